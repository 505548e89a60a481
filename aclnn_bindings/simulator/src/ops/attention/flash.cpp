// Attention in training, in four dense layouts, and its gradients. Rotary parts and quantized
// inputs are refused; attention_varlen.cpp has packed sequences. Formulas of prefixes and sinks: the
// op-plugin document npu_fusion_attention.
#include "params/attention.h"
#include "loops/attention.h"
#include "loops/given.h"
#include "loops/stage.h"
#include "loops/versions.h"

namespace aclsim {
namespace {

// Where the versions of the op have their arguments. `refused_*` lists optional ones, from and to;
// `lengths` are two of packed sequences; `prefix` is followed by where queries and keys start in
// versions that have a type of shift.
struct Places {
  int dy, shift, drop, mask, top, sum;
  int sink, prefix, start, refused_from, refused_to, lengths;
  int scale, keep, before, after, heads, layout, sparse, shift_type;
  int dq, dk, dv, dshift, dsink;  // a forward op has only dq: its output
};
#define AT(name) ACLSIM_AT(P, name)
template <typename P>
constexpr Places kAt = {
    AT(dy), either(AT(realShiftOptional), AT(pseShiftOptional)), AT(dropMaskOptional),
    AT(attenMaskOptional), either(AT(softmaxMaxOut), AT(softmaxMaxOptional)),
    either(AT(softmaxSumOut), AT(softmaxSumOptional)), either(AT(sinkOptional), AT(sinkInOptional)),
    AT(prefixOptional), AT(qStartIdxOptional), either(AT(queryRopeOptional), 1),
    either(AT(dScaleOOptional), either(AT(dScaleVOptional), 0)), AT(actualSeqQLenOptional),
    AT(scaleValue), AT(keepProb), AT(preTokens), AT(nextTokens), AT(headNum), AT(inputLayout),
    AT(sparseMode), AT(pseType), either(AT(attentionOutOut), AT(dqOut)), AT(dkOut), AT(dvOut),
    AT(dpseOut), AT(dsinkOut)};
#undef AT

bool absent(const Call& c, int arg) {
  if (arg == kNone) return true;
  if (c.null(arg)) return true;
  return c.args[arg].kind == ArgKind::Tensor ? c.tensor(arg).numel() == 0 : c.args[arg].size == 0;
}

int64_t integer_or(const Call& c, int arg, int64_t otherwise) {
  return arg == kNone ? otherwise : c.integer(arg);
}
const Tensor* tensor_or_null(const Call& c, int arg) {
  return arg == kNone ? nullptr : c.maybe(arg);
}

struct Sizes {
  int64_t batch, heads, rows, depth;
  HeadLayout layout;
};
// Reads a dense tensor of a layout; with heads 0 they follow from `depth`.
bool read_sizes(const Tensor& t, const char* layout, int64_t heads, int64_t depth, Sizes& s) {
  const int64_t* d = t.dims;
  const bool flat = std::strcmp(layout, "BSH") == 0 || std::strcmp(layout, "SBH") == 0;
  if (t.rank != (flat ? 3 : 4)) return false;
  if (flat) {
    if (heads == 0) heads = depth > 0 && d[2] % depth == 0 ? d[2] / depth : 0;
    if (heads <= 0 || d[2] % heads != 0) return false;
    const bool batch_first = layout[0] == 'B';
    s = {d[batch_first ? 0 : 1], heads, d[batch_first ? 1 : 0], d[2] / heads, {}};
    s.layout.row = batch_first ? d[2] : s.batch * d[2];
    s.layout.batch = batch_first ? s.rows * d[2] : d[2];
    s.layout.head = s.depth;
    return true;
  }
  if (std::strcmp(layout, "BNSD") == 0) {
    s = {d[0], d[1], d[2], d[3], {d[1] * d[2] * d[3], d[2] * d[3], d[3]}};
  } else if (std::strcmp(layout, "BSND") == 0) {
    s = {d[0], d[2], d[1], d[3], {d[1] * d[2] * d[3], d[3], d[2] * d[3]}};
  } else {
    return false;
  }
  return heads == 0 || s.heads == heads;
}
// A tensor of the last two, or all four, of [B, N, Sq, Skv]; dims of 1 repeat.
bool spread(const Tensor& t, const int64_t* score, ScoreOperand& o) {
  if (t.rank != 2 && t.rank != 4) return false;
  for (int i = 0; i < t.rank; ++i) {
    const int to = 4 - t.rank + i;
    if (t.dims[i] != score[to] && t.dims[i] != 1) return false;
    o.strides[to] = t.dims[i] == 1 ? 0 : t.strides[i];
  }
  o.tensor = &t;
  return true;
}

aclnnStatus refuse_unsupported(const Call& c, const Places& at) {
  for (int i = at.refused_from; i <= at.lengths + 1; ++i) {
    if (i > at.refused_to && i < at.lengths) continue;
    if (c.args[i].kind <= ArgKind::FloatArray && !absent(c, i)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
    }
  }
  const int64_t mode = integer_or(c, at.sparse, 0);
  if (mode < 0 || mode > 6) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "sparseMode %lld is not supported by the simulator, "
                  "only 0 to 6.",
                  static_cast<long long>(mode));
  }
  const int64_t type = integer_or(c, at.shift_type, 1);
  if (type < 0 || type > 3) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "pseType %lld should be in [0, 3].",
                  static_cast<long long>(type));
  }
  return ACLNN_SUCCESS;
}
bool has_slopes(const Call& c, const Places& at) {
  return !absent(c, at.shift) && integer_or(c, at.shift_type, 1) > 1;
}
// What stands for a sample or a head has a member for each.
aclnnStatus expect_counts(const Call& c, const Places& at, const Attention& a) {
  const int64_t mode = integer_or(c, at.sparse, 0);
  if (mode > 4 && c.ints(at.prefix).size != a.batch) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "sparseMode %lld needs a number for each of %lld samples in %s.",
                  static_cast<long long>(mode), static_cast<long long>(a.batch), c.name(at.prefix));
  }
  if (!absent(c, at.sink)) ACL_RETURN_IF_FAILED(expect_numel(c, at.sink, a.heads));
  if (has_slopes(c, at) && c.tensor(at.shift).numel() != a.heads) {
    return expect_numel(c, at.shift, a.batch * a.heads);
  }
  return ACLNN_SUCCESS;
}
aclnnStatus read_scores(Call& c, const Places& at, Attention& a) {
  const int64_t score[4] = {a.batch, a.heads, a.queries, a.keys};
  const bool masks = a.sparse == Sparse::Mask || a.sparse == Sparse::AllMask;
  if (masks && !absent(c, at.mask) && !spread(c.tensor(at.mask), score, a.mask)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%s of shape %s does not spread over scores of shape %s.", c.name(at.mask),
                  shape_text(c.tensor(at.mask)), shape_text(score, 4));
  }
  if (!absent(c, at.shift) && !has_slopes(c, at) && !spread(c.tensor(at.shift), score, a.shift)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%s of shape %s does not spread over scores of shape %s.", c.name(at.shift),
                  shape_text(c.tensor(at.shift)), shape_text(score, 4));
  }
  if (!(a.keep > 0 && a.keep <= 1) || (a.keep < 1 && absent(c, at.drop))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "keepProb %g should be in (0, 1], and 1 without a mask of "
                  "what to drop.",
                  a.keep);
  }
  const int64_t bits = a.batch * a.heads * a.queries * a.keys;
  if (a.keep < 1 && c.tensor(at.drop).numel() < (bits + 7) / 8) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have a bit for each of %lld scores.",
                  c.name(at.drop), static_cast<long long>(bits));
  }
  return ACLNN_SUCCESS;
}
aclnnStatus plan_of(Call& c, const Places& at) {
  using P = params::FlashAttentionScore;

  for (int arg : std::initializer_list<int>{P::query, P::key, P::value, at.top, at.sum, at.dq}) {
    if (arg != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {arg}));
  }
  ACL_RETURN_IF_FAILED(refuse_unsupported(c, at));
  const char* layout = c.text(at.layout) ? c.text(at.layout) : "";
  Sizes q, k, v;
  if (c.integer(at.heads) <= 0 ||
      !read_sizes(c.tensor(P::query), layout, c.integer(at.heads), 0, q) ||
      !read_sizes(c.tensor(P::key), layout, 0, q.depth, k) ||
      !read_sizes(c.tensor(P::value), layout, k.heads, 0, v) || k.heads == 0 ||
      q.heads % k.heads != 0 || q.depth != k.depth || k.rows != v.rows || q.batch != k.batch ||
      k.batch != v.batch) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "query %s, key %s and value %s with %lld heads do not fit the layout %s; the "
                  "simulator knows BSH, SBH, BSND and BNSD.",
                  shape_text(c.tensor(P::query)), shape_text(c.tensor(P::key)),
                  shape_text(c.tensor(P::value)), static_cast<long long>(c.integer(at.heads)),
                  layout);
  }
  Attention& a = c.make<Attention>();
  a.batch = q.batch, a.heads = q.heads, a.kv_heads = k.heads, a.queries = q.rows, a.keys = k.rows;
  a.depth = q.depth, a.value_depth = v.depth;
  a.q = q.layout, a.k = k.layout, a.v = v.layout;
  Tensor out = c.tensor(P::query);  // the query's shape with the values' depth
  out.dims[out.rank - 1] = out.rank == 3 ? q.heads * v.depth : v.depth;
  Sizes o;
  read_sizes(out, layout, q.heads, 0, o);
  a.out = o.layout;
  a.scale = c.number(at.scale),
  a.keep = at.keep == kNone ? 1 : c.number(at.keep == kNone ? 0 : at.keep);
  a.shift_first = integer_or(c, at.shift_type, 1) == 1;
  const int64_t mode = integer_or(c, at.sparse, 0);
  a.sparse = mode == 5 ? Sparse::AllMask : static_cast<Sparse>(mode);  // 5: the mask has the prefix
  a.before = c.integer(at.before), a.after = c.integer(at.after);
  ACL_RETURN_IF_FAILED(expect_counts(c, at, a));
  ACL_RETURN_IF_FAILED(read_scores(c, at, a));
  for (int arg : {at.top, at.sum}) {
    if (arg == kNone) continue;
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, a.batch * a.heads * a.queries * kStatistics));
  }
  c.workspace_size = stage_bytes(c, ACL_FLOAT);
  return expect_shape(c, at.dy == kNone ? at.dq : at.dy, shape_of(out));
}
const uint8_t* kept_bits(Call& c, const Places& at, Stage<float>& stage) {
  if (c.get<Attention>().keep >= 1 || absent(c, at.drop)) return nullptr;
  const Tensor& t = c.tensor(at.drop);
  auto* bits = stage.take<uint8_t>(t.numel());
  copy_tensor(dense(bits, ACL_UINT8, t.dims, t.rank), t);
  return bits;
}

int64_t first_of(const Call& c, int arg) { return arg == kNone || absent(c, arg) ? 0 : c.ints(arg)[0]; }
AttentionData data_of(Call& c, const Places& at, Stage<float>& stage) {
  using P = params::FlashAttentionScore;

  AttentionData d = {stage.in(c.tensor(P::query)), stage.in(c.tensor(P::key)),
                     stage.in(c.tensor(P::value)), nullptr};
  d.kept = kept_bits(c, at, stage);
  if (!absent(c, at.sink)) d.sink = stage.in(c.tensor(at.sink));
  if (!absent(c, at.prefix)) d.prefix = c.ints(at.prefix);
  if (has_slopes(c, at)) {
    const Tensor& slopes = c.tensor(at.shift);
    d.slopes = {stage.in(slopes), slopes.numel(), first_of(c, at.start), first_of(c, at.start + 1),
                integer_or(c, at.shift_type, 1) == 3};
  }
  return d;
}

template <const Places& at>
aclnnStatus check_score(Call& c) {
  return plan_of(c, at);
}
template <const Places& at>
void run_score(Call& c) {
  const Attention& a = c.get<Attention>();
  Stage<float> stage(c);
  const AttentionData d = data_of(c, at, stage);
  float* out = stage.out(c.tensor(at.dq));
  float *top = stage.out(tensor_or_null(c, at.top)), *sum = stage.out(tensor_or_null(c, at.sum));
  attention_forward(a, d, out, top, sum);
  stage.done();
}
template <const Places& at>
aclnnStatus check_grad(Call& c) {
  using P = params::FlashAttentionScoreGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {at.dy, at.dk, at.dv}));
  ACL_RETURN_IF_FAILED(plan_of(c, at));
  const Attention& a = c.get<Attention>();
  for (int i = P::query; i < 3; ++i) ACL_RETURN_IF_FAILED(expect_same_shape(c, at.dq + i, i));
  if (!absent(c, at.sink) && !absent(c, at.dsink)) ACL_RETURN_IF_FAILED(expect_numel(c, at.dsink, a.heads));
  if (!absent(c, at.dshift) && !absent(c, at.shift) && !has_slopes(c, at)) {
    const int64_t all = a.batch * a.heads * a.queries * a.keys;
    if (c.tensor(at.shift).numel() != all) {
      return c.fail(ACLNN_ERR_PARAM_INVALID,
                    "The gradient of a shift of shape %s that repeats is not "
                    "supported by the simulator.",
                    shape_text(c.tensor(at.shift)));
    }
    return expect_numel(c, at.dshift, all);
  }
  return ACLNN_SUCCESS;
}
template <const Places& at>
void run_grad(Call& c) {
  const Attention& a = c.get<Attention>();
  Stage<float> stage(c);
  const AttentionData d = data_of(c, at, stage);
  const float *dy = stage.in(c.tensor(at.dy)), *top = stage.in(c.tensor(at.top)),
              *sum = stage.in(c.tensor(at.sum));
  float *dq = stage.out(c.tensor(at.dq)), *dk = stage.out(c.tensor(at.dk)),
        *dv = stage.out(c.tensor(at.dv));
  const bool shifted = !absent(c, at.dshift) && !absent(c, at.shift) && !has_slopes(c, at);
  float* dshift = shifted ? stage.out(c.tensor(at.dshift)) : nullptr;
  float* dsink = d.sink && !absent(c, at.dsink) ? stage.out(c.tensor(at.dsink)) : nullptr;
  attention_backward(a, d, dy, top, sum, dq, dk, dv, dshift, dsink);
  stage.done();
}

}  // namespace
}  // namespace aclsim

#define ACLNN_FLASH(op, P, kind) ACLNN_OP_FLAGS(op, check_##kind<kAt<P>>, run_##kind<kAt<P>>, kOwnNulls)
ACLNN_FLASH(aclnnFlashAttentionScore, params::FlashAttentionScore, score)
ACLNN_FLASH(aclnnFlashAttentionScoreV2, params::FlashAttentionScoreV2, score)
ACLNN_FLASH(aclnnFlashAttentionScoreV3, params::FlashAttentionScoreV3, score)
ACLNN_FLASH(aclnnFlashAttentionScoreV4, params::FlashAttentionScoreV4, score)
ACLNN_FLASH(aclnnFlashAttentionScoreGrad, params::FlashAttentionScoreGrad, grad)
ACLNN_FLASH(aclnnFlashAttentionScoreGradV2, params::FlashAttentionScoreGradV2, grad)
ACLNN_FLASH(aclnnFlashAttentionScoreGradV3, params::FlashAttentionScoreGradV3, grad)
ACLNN_FLASH(aclnnFlashAttentionScoreGradV4, params::FlashAttentionScoreGradV4, grad)
