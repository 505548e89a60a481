// Attention in training over packed sequences [tokens, heads, depth], and its gradients: five
// versions of aclnnFlashAttentionVarLenScore and of aclnnFlashAttentionUnpaddingScoreGrad.
// Formulas: the "npu_fusion_attention" and "npu_fusion_attention_v3" pages of torch_npu.
#include "params/attention.h"
#include "loops/sequences.h"
#include "loops/versions.h"

#include <cstring>

namespace aclsim {
namespace {

// Where the versions have their arguments.
struct Places {
  int q, q_rope, k, k_rope, v, shift, drop, mask, sink, prefix, ends_q, ends_k, start_q, start_k,
      scale, shift_type, layout, top, sum;  // keepProb to sparseMode follow scale
  int out;                                  // of the gradients: dy
  int dq, dq_rope, dk, dk_rope, dv, dshift, dsink;
};
#define AT(name) ACLSIM_AT(P, name)
template <typename P>
constexpr Places kAt = {
    P::query, AT(queryRope), either(AT(key), AT(keyIn)), either(AT(keyRope), AT(keyInRope)), P::value,
    either(AT(realShiftOptional), AT(pseShiftOptional)), P::dropMaskOptional, P::attenMaskOptional,
    either(AT(sinkOptional), AT(sinkInOptional)), P::prefixOptional, P::actualSeqQLenOptional,
    P::actualSeqKvLenOptional, AT(qStartIdxOptional), AT(kvStartIdxOptional), P::scaleValue,
    AT(pseType), either(AT(softmaxOutLayout), AT(softmaxInLayout)),
    either(AT(softmaxMaxOut), AT(softmaxMaxOptional)),
    either(AT(softmaxSumOut), AT(softmaxSumOptional)), either(AT(attentionOutOut), AT(dy)),
    AT(dqOut), AT(dqRopeOut), AT(dkOut), AT(dkRopeOut), AT(dvOut), AT(dpseOut), AT(dsinkOut)};
#undef AT

const Tensor* tensor_at(const Call& c, int arg) {
  if (arg == kNone || c.null(arg) || c.tensor(arg).numel() == 0) return nullptr;
  return c.maybe(arg);
}
Ints ints_at(const Call& c, int arg) {
  if (arg == kNone) return {};
  const Span<const int64_t> v = c.ints(arg);
  return Ints(v.begin(), v.end());
}
bool place(const Call& c, int arg, const Ints& ends, int64_t heads, Heads& h, Ints& rows) {
  const Tensor& t = c.tensor(arg);
  return place_heads(t.dims, t.rank, "TND", heads, 0, ends, h, rows);
}
int64_t pse_type(const Call& c, const Places& at) {
  return at.shift_type == kNone ? 1 : c.integer(at.shift_type);
}
// softmaxOutLayout and softmaxInLayout: "" or "same_as_input" (documents of the fourth versions).
bool by_head(const Call& c, const Places& at) {
  const char* layout = at.layout == kNone ? nullptr : c.text(at.layout);
  return !layout || std::strcmp(layout, "same_as_input") != 0;
}

// Geometry, checked in phase 1 and read again when running.
bool read_heads(const Call& c, const Places& at, Sequences& s) {
  const Ints ends_q = ints_at(c, at.ends_q), ends_k = ints_at(c, at.ends_k);
  Ints again;
  s.heads = c.integer(at.scale + 4);
  if (ends_q.size() != ends_k.size() || s.heads <= 0) return false;
  if (!place(c, at.q, ends_q, s.heads, s.q, s.queries) || !place(c, at.k, ends_k, 0, s.k, s.keys)) {
    return false;
  }
  s.kv_heads = s.k.heads;
  if (s.kv_heads == 0 || s.heads % s.kv_heads != 0 || s.q.depth != s.k.depth ||
      !place(c, at.v, ends_k, s.kv_heads, s.v, again)) {
    return false;
  }
  if (!tensor_at(c, at.q_rope) || !tensor_at(c, at.k_rope)) return true;
  return place(c, at.q_rope, ends_q, s.heads, s.q_rope, again) &&
         place(c, at.k_rope, ends_k, s.kv_heads, s.k_rope, again) &&
         s.q_rope.depth == s.k_rope.depth;
}
bool spreads(const Tensor& t, const Sequences& s, Spread& o) {
  if (t.rank != 2 && t.rank != 4) return false;
  const int64_t most_q = *std::max_element(s.queries.begin(), s.queries.end()),
                most_k = *std::max_element(s.keys.begin(), s.keys.end());
  const int64_t all[4] = {static_cast<int64_t>(s.queries.size()), s.heads, most_q, most_k};
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    const int to = 4 - t.rank + i;
    if (t.dims[i] != 1 && t.dims[i] < all[to]) return false;
    o.strides[to] = t.dims[i] == 1 ? 0 : step;
    step *= t.dims[i];
  }
  return true;
}
aclnnStatus check_modes(const Call& c, const Places& at, const Sequences& s) {
  const int64_t sparse = c.integer(at.scale + 7), type = pse_type(c, at);
  if (sparse < 0 || sparse > 6 ||
      (sparse > 4 && ints_at(c, at.prefix).size() != s.queries.size())) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "sparseMode %lld is not supported by the simulator: it knows 0 to 4, and 5 and 6 "
                  "with a prefix for each sequence.",
                  static_cast<long long>(sparse));
  }
  if (type < 0 || type > 3) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "pseType %lld should be in [0, 3].",
                  static_cast<long long>(type));
  }
  const double keep = c.number(at.scale + 1);
  if (!(keep > 0 && keep <= 1) || (keep < 1 && !tensor_at(c, at.drop))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "keepProb %g should be in (0, 1], and 1 without a mask of what to drop.", keep);
  }
  int64_t bits = 0;
  for (size_t b = 0; b < s.queries.size(); ++b) bits += s.heads * s.queries[b] * s.keys[b];
  if (keep < 1 && c.tensor(at.drop).numel() < (bits + 7) / 8) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have a bit for each of %lld scores.",
                  c.name(at.drop), static_cast<long long>(bits));
  }
  return ACLNN_SUCCESS;
}
aclnnStatus check_all(const Call& c, const Places& at) {
  ACL_RETURN_IF_FAILED(
      expect_given(c, {at.q, at.k, at.v, at.top, at.sum, at.out, at.ends_q, at.ends_k}));
  ACL_RETURN_IF_FAILED(expect_together(c, at.q_rope, at.k_rope));
  const char* layout = c.text(at.scale + 5);
  Sequences s;
  if (!layout || std::strcmp(layout, "TND") != 0 || !read_heads(c, at, s) || s.queries.empty()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "query %s, key %s and value %s with %lld heads and the given lengths do not fit "
                  "the layout TND.",
                  shape_text(c.tensor(at.q)), shape_text(c.tensor(at.k)),
                  shape_text(c.tensor(at.v)), static_cast<long long>(c.integer(at.scale + 4)));
  }
  const char* statistics = at.layout == kNone ? nullptr : c.text(at.layout);
  if (by_head(c, at) && statistics && *statistics) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "The statistics' layout \"%s\" is not documented: \"\" or \"same_as_input\".",
                  statistics);
  }
  ACL_RETURN_IF_FAILED(check_modes(c, at, s));
  Spread unused;
  for (int arg : {at.mask, at.shift}) {
    const bool slopes = arg == at.shift && pse_type(c, at) > 1;
    const bool masks = arg != at.mask || c.integer(at.scale + 7) < 2;
    if (tensor_at(c, arg) && !slopes && masks && !spreads(c.tensor(arg), s, unused)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s of shape %s does not cover the scores.",
                    c.name(arg), shape_text(c.tensor(arg)));
    }
  }
  const int64_t tokens = c.tensor(at.q).dims[0];
  for (int arg : {at.top, at.sum}) ACL_RETURN_IF_FAILED(expect_numel(c, arg, tokens * s.heads * 8));
  return expect_numel(c, at.out, tokens * s.heads * s.v.depth);
}
void read_drops(const Call& c, const Places& at, Sequences& s) {
  if (s.keep >= 1) return;
  for (int64_t bits : integers(tensor_at(c, at.drop))) s.kept.push_back(static_cast<uint8_t>(bits));
  int64_t start = 0;
  for (size_t b = 0; b < s.queries.size(); ++b) {
    s.kept_start.push_back(start);
    start += s.heads * s.queries[b] * s.keys[b];
  }
}
Sequences read_call(const Call& c, const Places& at) {
  Sequences s;
  read_heads(c, at, s);
  s.q.data = floats(c.tensor(at.q)), s.k.data = floats(c.tensor(at.k));
  s.v.data = floats(c.tensor(at.v));
  s.q_rope.data = floats(tensor_at(c, at.q_rope)), s.k_rope.data = floats(tensor_at(c, at.k_rope));
  s.scale = c.number(at.scale), s.keep = c.number(at.scale + 1);
  s.before = c.integer(at.scale + 2), s.after = c.integer(at.scale + 3);
  s.sparse = c.integer(at.scale + 7), s.prefix = ints_at(c, at.prefix);
  s.sink = floats(tensor_at(c, at.sink));
  s.query_start = ints_at(c, at.start_q), s.key_start = ints_at(c, at.start_k);
  const int64_t type = pse_type(c, at);
  s.shift_first = type == 1;
  if (const Tensor* mask = tensor_at(c, at.mask)) {
    s.mask.data = floats(mask);
    spreads(*mask, s, s.mask);
  }
  if (const Tensor* shift = tensor_at(c, at.shift)) {
    (type > 1 ? s.slopes : s.shift.data) = floats(shift);
    if (type < 2) spreads(*shift, s, s.shift);
    s.slope_root = type == 3;
  }
  read_drops(c, at, s);
  return s;
}
// Statistics have eight equal elements a row; by default heads are outermost.
Statistics statistics_of(const Call& c, const Places& at, const Sequences& s) {
  Statistics stats;
  const Tensor& q = c.tensor(at.q);
  const int64_t dims[3] = {by_head(c, at) ? s.heads : q.dims[0],
                           by_head(c, at) ? q.dims[0] : s.heads, 8};
  Ints rows;
  place_heads(dims, 3, by_head(c, at) ? "NTD" : "TND", 0, 0, ints_at(c, at.ends_q), stats.place,
              rows);
  stats.place.data.resize(1);
  stats.top = floats(c.tensor(at.top)), stats.sum = floats(c.tensor(at.sum));
  return stats;
}
template <const Places& at>
aclnnStatus check_score(Call& c) {
  return check_all(c, at);
}
template <const Places& at>
void run_score(Call& c) {
  const Sequences s = read_call(c, at);
  Heads out;
  Ints rows;
  const int64_t dims[3] = {c.tensor(at.q).dims[0], s.heads, s.v.depth};
  place_heads(dims, 3, "TND", 0, 0, ints_at(c, at.ends_q), out, rows);
  out.data.resize(static_cast<size_t>(c.tensor(at.out).numel()));
  Statistics stats = statistics_of(c, at, s);
  attend(s, out, stats);
  write(c.tensor(at.out), out.data);
  write(c.tensor(at.top), stats.top);
  write(c.tensor(at.sum), stats.sum);
}
template <const Places& at>
aclnnStatus check_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {at.dq, at.dk, at.dv}));
  ACL_RETURN_IF_FAILED(check_all(c, at));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, at.dq, at.q));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, at.dk, at.k));
  return expect_same_shape(c, at.dv, at.v);
}
template <const Places& at>
void run_grad(Call& c) {
  const Sequences s = read_call(c, at);
  Heads dout;
  Ints rows;
  const int64_t dims[3] = {c.tensor(at.q).dims[0], s.heads, s.v.depth};
  place_heads(dims, 3, "TND", 0, 0, ints_at(c, at.ends_q), dout, rows);
  dout.data = floats(c.tensor(at.out));
  SequenceGradients g(s);
  if (!s.shift.empty() && tensor_at(c, at.dshift)) g.shift.resize(s.shift.data.size());
  g.sink.resize(s.sink.size());
  attend_back(s, dout, statistics_of(c, at, s), g);
  write(c.tensor(at.dq), g.q.data), write(c.tensor(at.dk), g.k.data);
  write(c.tensor(at.dv), g.v.data);
  if (!s.q_rope.empty()) {
    write(tensor_at(c, at.dq_rope), g.q_rope.data), write(tensor_at(c, at.dk_rope), g.k_rope.data);
  }
  if (!g.shift.empty()) write(tensor_at(c, at.dshift), g.shift);
  if (!g.sink.empty()) write(tensor_at(c, at.dsink), g.sink);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_VARLEN(op, P) \
  ACLNN_OP_FLAGS(op, check_score<kAt<P>>, run_score<kAt<P>>, kOwnNulls | kOwnLimits)
#define ACLNN_VARLEN_GRAD(op, P) \
  ACLNN_OP_FLAGS(op, check_grad<kAt<P>>, run_grad<kAt<P>>, kOwnNulls | kOwnLimits)
ACLNN_VARLEN(aclnnFlashAttentionVarLenScore, params::FlashAttentionVarLenScore)
ACLNN_VARLEN(aclnnFlashAttentionVarLenScoreV2, params::FlashAttentionVarLenScoreV2)
ACLNN_VARLEN(aclnnFlashAttentionVarLenScoreV3, params::FlashAttentionVarLenScoreV3)
ACLNN_VARLEN(aclnnFlashAttentionVarLenScoreV4, params::FlashAttentionVarLenScoreV4)
ACLNN_VARLEN(aclnnFlashAttentionVarLenScoreV5, params::FlashAttentionVarLenScoreV5)
ACLNN_VARLEN_GRAD(aclnnFlashAttentionUnpaddingScoreGrad, params::FlashAttentionUnpaddingScoreGrad)
ACLNN_VARLEN_GRAD(aclnnFlashAttentionUnpaddingScoreGradV2, params::FlashAttentionUnpaddingScoreGradV2)
ACLNN_VARLEN_GRAD(aclnnFlashAttentionUnpaddingScoreGradV3, params::FlashAttentionUnpaddingScoreGradV3)
ACLNN_VARLEN_GRAD(aclnnFlashAttentionUnpaddingScoreGradV4, params::FlashAttentionUnpaddingScoreGradV4)
ACLNN_VARLEN_GRAD(aclnnFlashAttentionUnpaddingScoreGradV5, params::FlashAttentionUnpaddingScoreGradV5)
