// Attention to chosen keys: by blocks of a mask, by lists of blocks for each query, with what makes
// such lists. Formulas: the "npu_block_sparse_attention", "npu_sparse_flash_attention" and
// "npu_lightning_indexer" pages of torch_npu and its tests of npu_nsa_compress and
// npu_nsa_select_attention.
#include "params/attention.h"
#include "loops/sequences.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace aclsim {
namespace {

// Lengths given as an array or as a tensor.
Ints numbers_at(const Call& c, int arg) {
  if (arg < 0 || c.null(arg)) return {};
  if (c.args[arg].kind == ArgKind::Tensor) return integers(c.tensor(arg));
  const Span<const int64_t> v = c.ints(arg);
  return Ints(v.begin(), v.end());
}
bool is(const char* text, const char* name) { return text && std::strcmp(text, name) == 0; }
bool place(const Tensor& t, const char* layout, int64_t heads, const Ints& ends, Heads& h,
           Ints& rows, bool values) {
  if (values) h.data = floats(t);
  return place_heads(t.dims, t.rank, layout, heads, 0, ends, h, rows);
}
void cut_lengths(Ints& rows, const Ints& given, bool packed) {
  for (size_t b = 0; b < rows.size() && !packed && !given.empty(); ++b) {
    rows[b] = std::min(rows[b], given[std::min(b, given.size() - 1)]);
  }
}
// Where the ops have their arguments.
struct SparsePlaces {
  int q, k, v, lengths_q, lengths_k, layout_q, layout_k, kv_heads, scale, mode;
  int q_rope = kNone, k_rope = kNone, sink = kNone;
};
// Reads queries, keys and values; in phase 1 without their elements, whose count lengths may need.
bool read_sequences(const Call& c, const SparsePlaces& at, Sequences& s, bool values) {
  using P = params::BlockSparseAttention;

  const char *lq = c.text(at.layout_q), *lk = c.text(at.layout_k);
  const bool packed = is(lq, "TND");
  if (!lq || !lk || packed != is(lk, "TND")) return false;
  const bool lists = c.args[at.lengths_q < 0 ? P::query : at.lengths_q].kind == ArgKind::IntArray;
  Ints ends_q, ends_k, again;
  if (values || lists) ends_q = numbers_at(c, at.lengths_q), ends_k = numbers_at(c, at.lengths_k);
  if (!place(c.tensor(at.q), lq, 0, ends_q, s.q, s.queries, values) ||
      !place(c.tensor(at.k), lk, at.kv_heads == kNone ? 0 : c.integer(at.kv_heads), ends_k, s.k,
             s.keys, values) ||
      !place(c.tensor(at.v), lk, s.k.heads, ends_k, s.v, again, values)) {
    return false;
  }
  s.heads = s.q.heads, s.kv_heads = s.k.heads;
  cut_lengths(s.queries, ends_q, packed), cut_lengths(s.keys, ends_k, packed);
  s.scale = c.number(at.scale), s.sparse = at.mode == kNone ? 0 : c.integer(at.mode);
  if (at.sink != kNone) s.sink = floats(at_or_null(c, at.sink));
  if (at_or_null(c, at.q_rope) && at_or_null(c, at.k_rope)) {
    if (!place(c.tensor(at.q_rope), lq, s.heads, ends_q, s.q_rope, again, values) ||
        !place(c.tensor(at.k_rope), lk, s.kv_heads, ends_k, s.k_rope, again, values)) {
      return false;
    }
  }
  return s.kv_heads > 0 && s.heads % s.kv_heads == 0 && s.q.depth == s.k.depth &&
         s.queries.size() == s.keys.size();
}
aclnnStatus refuse_sequences(const Call& c, const SparsePlaces& at) {
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "query %s, key %s and value %s do not fit the layouts %s and %s.",
                shape_text(c.tensor(at.q)), shape_text(c.tensor(at.k)), shape_text(c.tensor(at.v)),
                c.text(at.layout_q) ? c.text(at.layout_q) : "none",
                c.text(at.layout_k) ? c.text(at.layout_k) : "none");
}
// Geometry of the output: the query's, with the values' depth.
Heads output_of(const Call& c, const SparsePlaces& at, const Sequences& s) {
  const Tensor& q = c.tensor(at.q);
  int64_t dims[kMaxRank];
  std::copy(q.dims, q.dims + q.rank, dims);
  dims[q.rank - 1] = s.v.depth;
  Heads out;
  Ints rows;
  place_heads(dims, q.rank, c.text(at.layout_q), 0, 0, numbers_at(c, at.lengths_q), out, rows);
  out.data.resize(static_cast<size_t>(q.numel() / std::max<int64_t>(1, s.q.depth) * s.v.depth));
  return out;
}
// Statistics of `repeat` equal elements: [.., heads, rows, repeat], or for packed rows [rows,
// heads, repeat].
Statistics statistics_of(const Call& c, const SparsePlaces& at, const Sequences& s, int64_t repeat) {
  Statistics stats;
  const Tensor& q = c.tensor(at.q);
  Ints rows;
  if (is(c.text(at.layout_q), "TND")) {
    const int64_t dims[3] = {q.dims[0], s.heads, repeat};
    place_heads(dims, 3, "TND", 0, 0, numbers_at(c, at.lengths_q), stats.place, rows);
  } else {
    const int64_t most = q.numel() / std::max<int64_t>(1, q.dims[0] * s.heads * s.q.depth),
                  dims[4] = {q.dims[0], s.heads, most, repeat};
    place_heads(dims, 4, "BNSD", 0, 0, {}, stats.place, rows);
  }
  stats.place.data.resize(1);
  stats.top.resize(static_cast<size_t>(q.numel() / std::max<int64_t>(1, s.q.depth) * repeat));
  stats.sum.resize(stats.top.size());
  return stats;
}

// Block-sparse attention: mask [batch, heads, blocks of queries, blocks of keys], 1 where attended.
struct SparseBlocks {
  SparsePlaces at;
  int mask, plain_mask, shape, table, type, lse_flag, out, lse;
};
constexpr SparseBlocks kBlocks = [] {
  using P = params::BlockSparseAttention;
  return SparseBlocks{{0, 1, 2, 6, 7, 9, 10, 11, 13, kNone},
                P::blockSparseMaskOptional,
                P::attenMaskOptional,
                P::blockShapeOptional,
                P::blockTableOptional,
                12,
                P::softmaxLseFlag,
                P::attentionOut,
                P::softmaxLseOptional};
}();
constexpr SparseBlocks kBlocksV2 = [] {
  using P = params::BlockSparseAttentionV2;
  return SparseBlocks{{0, 1, 2, 6, 7, 12, 13, 14, 16, kNone},
                P::blockSparseMaskOptional,
                P::attenMaskOptional,
                P::blockShapeOptional,
                P::blockTableOptional,
                15,
                P::softmaxLseFlag,
                P::attentionOut,
                P::softmaxLseOptional};
}();
constexpr SparseBlocks kBlocksGrad = [] {
  using P = params::BlockSparseAttentionGrad;
  return SparseBlocks{{1, 2, 3, 9, 10, 11, 12, 13, 15, kNone},
                P::blockSparseMaskOptional,
                P::attenMaskOptional,
                P::blockShapeOptional,
                kNone,
                14,
                kNone,
                P::attentionOut,
                P::softmaxLse};
}();
aclnnStatus check_blocks_of(Call& c, const SparseBlocks& b) {
  using P = params::BlockSparseAttentionV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {b.at.q, b.at.k, b.at.v, b.mask, b.shape, b.out}));
  Sequences s;
  if (c.ints(b.shape).size != 2 || c.ints(b.shape)[0] < 1 || c.ints(b.shape)[1] < 1 ||
      !read_sequences(c, b.at, s, false)) {
    return refuse_sequences(c, b.at);
  }
  for (int arg : {b.plain_mask, b.table}) {
    if (at_or_null(c, arg))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(arg));
  }
  for (int arg : {P::qDequantScaleOptional, P::kDequantScaleOptional, P::vDequantScaleOptional}) {
    if (b.mask == 3 && b.lse == 23 && at_or_null(c, arg)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(arg));
    }
  }
  const Tensor& m = c.tensor(b.mask);
  const auto most = [](const Ints& v) {
    return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
  };
  const auto blocks = [](int64_t n, int64_t size) { return (n + size - 1) / size; };
  const bool fits = m.rank == 4 && m.dims[0] == static_cast<int64_t>(s.queries.size()) &&
                    m.dims[1] == s.heads &&
                    m.dims[2] >= blocks(most(s.queries), c.ints(b.shape)[0]) &&
                    m.dims[3] >= blocks(most(s.keys), c.ints(b.shape)[1]);
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s does not cover the blocks of the scores.",
                  c.name(b.mask), shape_text(m));
  return expect_numel(c, b.out,
                      c.tensor(b.at.q).numel() / std::max<int64_t>(1, s.q.depth) * s.v.depth);
}
Sequences read_blocks(const Call& c, const SparseBlocks& b, Ints& mask) {
  Sequences s;
  read_sequences(c, b.at, s, true);
  mask = integers(c.tensor(b.mask));
  const Tensor& m = c.tensor(b.mask);
  const int64_t heads = m.dims[1], rows = m.dims[2], cols = m.dims[3], high = c.ints(b.shape)[0],
                wide = c.ints(b.shape)[1];
  s.closed = [&mask, heads, rows, cols, high, wide](int64_t batch, int64_t n, int64_t i,
                                                    int64_t j) {
    return mask[((batch * heads + n) * rows + i / high) * cols + j / wide] == 0;
  };
  return s;
}
template <const SparseBlocks& b>
aclnnStatus check_blocks(Call& c) {
  return check_blocks_of(c, b);
}
template <const SparseBlocks& b>
void run_blocks(Call& c) {
  Ints mask;
  const Sequences s = read_blocks(c, b, mask);
  Heads out = output_of(c, b.at, s);
  Statistics stats = statistics_of(c, b.at, s, 1);
  attend(s, out, stats);
  write(c.tensor(b.out), out.data);
  if (c.integer(b.lse_flag) == 0 || !at_or_null(c, b.lse)) return;
  for (size_t i = 0; i < stats.top.size(); ++i) stats.top[i] += std::log(stats.sum[i]);
  write(c.tensor(b.lse), stats.top);
}
aclnnStatus check_blocks_grad(Call& c) {
  using P = params::BlockSparseAttentionGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::dout, P::softmaxLse, P::dq, P::dk, P::dv}));
  ACL_RETURN_IF_FAILED(check_blocks_of(c, kBlocksGrad));
  for (int i : {0, 1, 2}) ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dq + i, P::query + i));
  return expect_same_shape(c, P::dout, P::attentionOut);
}
void run_blocks_grad(Call& c) {
  using P = params::BlockSparseAttentionGrad;

  Ints mask;
  const Sequences s = read_blocks(c, kBlocksGrad, mask);
  Heads dout = output_of(c, kBlocksGrad.at, s);
  dout.data = floats(c.tensor(P::dout));
  Statistics stats = statistics_of(c, kBlocksGrad.at, s, 1);
  stats.top = floats(c.tensor(P::softmaxLse));  // log of the sum: the sum is one from there
  std::fill(stats.sum.begin(), stats.sum.end(), 1.0f);
  SequenceGradients g(s);
  attend_back(s, dout, stats, g);
  write(c.tensor(P::dq), g.q.data), write(c.tensor(P::dk), g.k.data),
      write(c.tensor(P::dv), g.v.data);
}

// Lists of chosen blocks for each query and head of keys, -1 where there are no more.
struct Chosen {
  std::vector<std::vector<bool>> open;  // per (row, key head): which blocks
  std::vector<int64_t> first_row;       // per batch
  int64_t kv_heads, group, size;
  bool closed(int64_t b, int64_t n, int64_t i, int64_t j) const {
    const auto& blocks = open[(first_row[b] + i) * kv_heads + n / group];
    return static_cast<size_t>(j / size) >= blocks.size() || !blocks[j / size];
  }
};
// Indices [batch, rows, key heads, count] or [rows, key heads, count].
Chosen chosen_of(const Tensor& indices, const Sequences& s, int64_t size, int64_t rows_of_batch,
                 bool packed) {
  Chosen k;
  k.kv_heads = s.kv_heads, k.group = s.heads / s.kv_heads, k.size = size;
  const Ints list = integers(indices);
  const int64_t count = width_of(indices), lines = rows_of(indices);
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<bool> blocks;
    for (int64_t i = line * count; i < (line + 1) * count; ++i) {
      if (list[i] < 0) continue;
      if (static_cast<size_t>(list[i]) >= blocks.size())
        blocks.resize(static_cast<size_t>(list[i]) + 1);
      blocks[list[i]] = true;
    }
    k.open.push_back(blocks);
  }
  int64_t row = 0;
  for (size_t b = 0; b < s.queries.size(); ++b) {
    k.first_row.push_back(packed ? row : static_cast<int64_t>(b) * rows_of_batch);
    row += s.queries[b];
  }
  return k;
}
struct Lists {
  SparsePlaces at;
  int indices, table, size, flag, out, top, sum;
  int mask = kNone;
};
constexpr Lists kSparse = [] {
  using P = params::SparseFlashAttention;
  return Lists{{0, 1, 2, 5, 6, 11, 12, kNone, 9, 13, 7, 8},
               P::sparseIndices,
               P::blockTableOptional,
               P::sparseBlockSizeOptional,
               P::returnSoftmaxLse,
               P::attentionOut,
               P::softmaxMax,
               P::softmaxSum};
}();
constexpr Lists kSparseV2 = [] {
  using P = params::SparseFlashAttentionV2;
  return Lists{{0, 1, 2, 5, 6, 12, 13, kNone, 10, 14, 7, 8, 9},
               P::sparseIndices,
               P::blockTableOptional,
               P::sparseBlockSizeOptional,
               P::returnSoftmaxLse,
               P::attentionOut,
               P::softmaxMax,
               P::softmaxSum};
}();
constexpr Lists kSparseGrad = [] {
  using P = params::SparseFlashAttentionGrad;
  return Lists{{0, 1, 2, 8, 9, 14, 14, kNone, 12, 15, 10, 11},
               P::sparseIndices,
               kNone,
               P::sparseBlockSize,
               kNone,
               P::out,
               P::softmaxMax,
               P::softmaxSum};
}();
constexpr Lists kSelected = [] {
  using P = params::NsaSelectedAttention;
  return Lists{{0, 1, 2, 5, 6, 9, 9, kNone, 7, kNone},
               P::topkIndices,
               kNone,
               P::selectedBlockSize,
               kNone,
               P::attentionOut,
               P::softmaxMaxOut,
               P::softmaxSumOut,
               P::attenMaskOptional};
}();
constexpr Lists kSelectedGrad = [] {
  using P = params::NsaSelectedAttentionGrad;
  return Lists{{0, 1, 2, 8, 9, 15, 15, kNone, 11, kNone},
               P::topkIndices,
               kNone,
               P::selectedBlockSize,
               kNone,
               P::attentionOut,
               P::softmaxMax,
               P::softmaxSum,
               P::attenMaskOptional};
}();

aclnnStatus check_lists_of(Call& c, const Lists& l) {
  ACL_RETURN_IF_FAILED(expect_given(c, {l.at.q, l.at.k, l.at.v, l.indices, l.out}));
  ACL_RETURN_IF_FAILED(expect_together(c, l.at.q_rope, l.at.k_rope));
  if (at_or_null(c, l.table) || is(c.text(l.at.layout_k), "PA_BSND")) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "Keys in blocks are not supported by the simulator, only BSND and TND.");
  }
  Sequences s;
  const Tensor& indices = c.tensor(l.indices);
  const bool packed = is(c.text(l.at.layout_q), "TND");
  if (packed) ACL_RETURN_IF_FAILED(expect_given(c, {l.at.lengths_q, l.at.lengths_k}));
  const bool tensors = l.at.lengths_q >= 0 && c.args[l.at.lengths_q].kind == ArgKind::Tensor;
  if (c.integer(l.size) < 1 || (!(packed && tensors) && !read_sequences(c, l.at, s, false)))
    return refuse_sequences(c, l.at);
  const int64_t rows = rows_of(c.tensor(l.at.q)) /
                       std::max<int64_t>(1, c.tensor(l.at.q).dims[c.tensor(l.at.q).rank - 2]);
  const Tensor& k = c.tensor(l.at.k);
  if (indices.rank < 3 || rows_of(indices) != rows * k.dims[k.rank - 2])
    return refuse_sequences(c, l.at);
  if (l.at.mode != kNone && c.integer(l.at.mode) != 0 && c.integer(l.at.mode) != 3) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "sparseMode %lld is not supported by the simulator, only 0 and 3.",
                  static_cast<long long>(c.integer(l.at.mode)));
  }
  return expect_numel(
      c, l.out,
      rows * c.tensor(l.at.q).dims[c.tensor(l.at.q).rank - 2] * width_of(c.tensor(l.at.v)));
}
struct Listed {
  Sequences s;
  Chosen chosen;
};
bool read_listed(const Call& c, const Lists& l, Listed& r) {
  if (!read_sequences(c, l.at, r.s, true)) return false;
  const Tensor& q = c.tensor(l.at.q);
  const bool packed = is(c.text(l.at.layout_q), "TND");
  r.chosen = chosen_of(c.tensor(l.indices), r.s, c.integer(l.size), packed ? 0 : q.dims[1], packed);
  r.s.closed = [&r](int64_t b, int64_t n, int64_t i, int64_t j) {
    return r.chosen.closed(b, n, i, j);
  };
  if (const Tensor* mask = at_or_null(c, l.mask)) {  // [queries, keys] of the longest sequence
    r.s.sparse = 1, r.s.mask.data = floats(mask);
    r.s.mask.strides[2] = width_of(*mask), r.s.mask.strides[3] = 1;
    for (size_t b = 0; b < r.s.queries.size(); ++b) {
      if (r.s.queries[b] > rows_of(*mask) || r.s.keys[b] > width_of(*mask)) return false;
    }
  }
  return true;
}
// Statistics of the sparse ops: [batch, key heads, rows, group], or [key heads, rows, group]; those
// of selected attention have eight equal elements a head.
Statistics listed_statistics(const Call& c, const Lists& l, const Sequences& s) {
  if (l.mask != kNone) return statistics_of(c, l.at, s, 8);
  return statistics_of(c, l.at, s, 1);
}
Floats regrouped(const Floats& v, const Call& c, const Lists& l, const Sequences& s, bool back) {
  if (l.mask != kNone) return v;
  const Tensor& q = c.tensor(l.at.q);
  const bool packed = is(c.text(l.at.layout_q), "TND");
  const int64_t batch = packed ? 1 : q.dims[0], rows = packed ? q.dims[0] : q.dims[1],
                group = s.heads / s.kv_heads;
  Floats out(v.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t n = 0; n < s.heads; ++n) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t plain = packed ? i * s.heads + n : (b * s.heads + n) * rows + i;
        const int64_t grouped = ((b * s.kv_heads + n / group) * rows + i) * group + n % group;
        out[back ? plain : grouped] = v[back ? grouped : plain];
      }
    }
  }
  return out;
}
template <const Lists& l>
aclnnStatus check_listed(Call& c) {
  return check_lists_of(c, l);
}
template <const Lists& l>
aclError run_listed(Call& c) {
  Listed r;
  if (!read_listed(c, l, r))
    return c.trap(507015, "The lengths do not fit query, key, value and mask.");
  Heads out = output_of(c, l.at, r.s);
  Statistics stats = listed_statistics(c, l, r.s);
  attend(r.s, out, stats);
  write(c.tensor(l.out), out.data);
  if (l.flag != kNone && !c.flag(l.flag)) return ACL_SUCCESS;
  write(at_or_null(c, l.top), regrouped(stats.top, c, l, r.s, false));
  write(at_or_null(c, l.sum), regrouped(stats.sum, c, l, r.s, false));
  return ACL_SUCCESS;
}
template <const Lists& l, int Dy, int Dq>
aclnnStatus check_listed_grad(Call& c) {
  using P = params::NsaSelectedAttentionGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {Dy, l.top, l.sum, Dq, Dq + 1, Dq + 2}));
  ACL_RETURN_IF_FAILED(check_lists_of(c, l));
  for (int i : {P::query, P::key, P::value}) ACL_RETURN_IF_FAILED(expect_same_shape(c, Dq + i, i));
  return expect_same_shape(c, Dy, l.out);
}
template <const Lists& l, int Dy, int Dq>
aclError run_listed_grad(Call& c) {
  Listed r;
  if (!read_listed(c, l, r))
    return c.trap(507015, "The lengths do not fit query, key, value and mask.");
  const Sequences& s = r.s;
  Heads dout = output_of(c, l.at, s);
  dout.data = floats(c.tensor(Dy));
  Statistics stats = listed_statistics(c, l, s);
  stats.top = regrouped(floats(c.tensor(l.top)), c, l, s, true),
  stats.sum = regrouped(floats(c.tensor(l.sum)), c, l, s, true);
  SequenceGradients g(s);
  attend_back(s, dout, stats, g);
  write(c.tensor(Dq), g.q.data), write(c.tensor(Dq + 1), g.k.data),
      write(c.tensor(Dq + 2), g.v.data);
  if (!s.q_rope.empty())
    write(at_or_null(c, Dq + 3), g.q_rope.data), write(at_or_null(c, Dq + 4), g.k_rope.data);
  return ACL_SUCCESS;
}

// (query, key, weights, lengthsQ, lengthsK, blockTable, layoutQ, layoutK, count, mode, pre, next,
// returnValues, indices, values): the keys with the largest sum over a group's heads of
// weight relu(q k).
aclnnStatus check_indexer(Call& c) {
  using P = params::LightningIndexer;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::query, P::key, P::weights, P::sparseIndicesOut}));
  const Tensor &q = c.tensor(P::query), &k = c.tensor(P::key);
  const bool packed = is(c.text(P::layoutQueryOptional), "TND");
  const bool fits = !at_or_null(c, P::blockTableOptional) &&
                    (packed ? is(c.text(P::layoutKeyOptional), "TND")
                            : is(c.text(P::layoutQueryOptional), "BSND") &&
                                  is(c.text(P::layoutKeyOptional), "BSND")) &&
                    q.rank == (packed ? 3 : 4) && k.rank == q.rank && width_of(q) == width_of(k) &&
                    c.integer(P::sparseCount) > 0 &&
                    (c.integer(P::sparseMode) == 0 || c.integer(P::sparseMode) == 3);
  if (!fits) {
    return c.fail(
        ACLNN_ERR_PARAM_INVALID,
        "query %s and key %s do not fit: layouts BSND and TND, sparseMode 0 and 3 and keys "
        "outside of blocks are supported by the simulator.",
        shape_text(q), shape_text(k));
  }
  if (packed)
    ACL_RETURN_IF_FAILED(
        expect_given(c, {P::actualSeqLengthsQueryOptional, P::actualSeqLengthsKeyOptional}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::weights, rows_of(q)));
  const int64_t rows = rows_of(q) / std::max<int64_t>(1, q.dims[q.rank - 2]),
                heads = k.dims[k.rank - 2];
  if (c.flag(P::returnValues))
    ACL_RETURN_IF_FAILED(
        expect_numel(c, P::sparseValuesOut, rows * heads * c.integer(P::sparseCount)));
  return expect_numel(c, P::sparseIndicesOut, rows * heads * c.integer(P::sparseCount));
}
aclError run_indexer(Call& c) {
  using P = params::LightningIndexer;

  Sequences s;
  const bool packed = is(c.text(P::layoutQueryOptional), "TND");
  Ints ends_q = numbers_at(c, P::actualSeqLengthsQueryOptional),
       ends_k = numbers_at(c, P::actualSeqLengthsKeyOptional);
  if (!place(c.tensor(P::query), c.text(P::layoutQueryOptional), 0, ends_q, s.q, s.queries, true) ||
      !place(c.tensor(P::key), c.text(P::layoutKeyOptional), 0, ends_k, s.k, s.keys, true)) {
    return c.trap(507015, "The lengths do not fit query and key.");
  }
  cut_lengths(s.queries, ends_q, packed), cut_lengths(s.keys, ends_k, packed);
  s.sparse = c.integer(P::sparseMode);
  const Floats weights = floats(c.tensor(P::weights));
  const int64_t heads = s.q.heads, kv = s.k.heads, group = heads / kv,
                count = c.integer(P::sparseCount), rows = rows_of(c.tensor(P::query)) / heads;
  Ints indices(static_cast<size_t>(rows * kv * count), -1);
  Floats values(indices.size());
  for (size_t b = 0; b < s.queries.size(); ++b) {
    for (int64_t i = 0; i < s.queries[b]; ++i) {
      const int64_t row = (s.q.start[b] + i * s.q.row) / (heads * s.q.depth);
      for (int64_t n = 0; n < kv; ++n) {
        std::vector<std::pair<double, int64_t>> found;
        for (int64_t j = 0; j < s.keys[b]; ++j) {
          if (s.hidden(static_cast<int64_t>(b), i, j)) continue;
          double sum = 0;
          for (int64_t h = n * group; h < (n + 1) * group; ++h) {
            const float *x = s.q.at(static_cast<int64_t>(b), h, i),
                        *y = s.k.at(static_cast<int64_t>(b), n, j);
            sum += weights[row * heads + h] *
                   std::max(0.0, std::inner_product(x, x + s.q.depth, y, 0.0));
          }
          found.push_back({sum, j});
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& d) { return a.first > d.first; });
        for (size_t k = 0; k < found.size() && static_cast<int64_t>(k) < count; ++k) {
          indices[(row * kv + n) * count + k] = found[k].second;
          values[(row * kv + n) * count + k] = static_cast<float>(found[k].first);
        }
      }
    }
  }
  write(c.tensor(P::sparseIndicesOut), indices);
  if (c.flag(P::returnValues)) write(c.maybe(P::sparseValuesOut), values);
  return ACL_SUCCESS;
}

// (input [tokens, heads, depth], weight [block, heads], ends, layout, block, stride, kind, output):
// weighted sums of windows of each sequence.
Ints window_starts(const Ints& ends, int64_t block, int64_t stride) {
  Ints starts;
  int64_t begin = 0;
  for (int64_t end : ends) {
    for (int64_t at = begin; at + block <= end; at += stride) starts.push_back(at);
    begin = end;
  }
  return starts;
}
template <int Input, int Ends, int Block, int Out>
aclnnStatus check_compress(Call& c) {
  using P = params::NsaCompress;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::input, Input, Input + 1, Ends, Out}));
  const Tensor &x = c.tensor(Input), &w = c.tensor(Input + 1),
               &y = c.tensor(Input ? P::input : Out);
  const bool fits = x.rank == 3 && w.rank == 2 && w.dims[0] == c.integer(Block) &&
                    w.dims[1] == x.dims[1] && c.integer(Block + 1) > 0;
  const Ints starts =
      fits ? window_starts(numbers_at(c, Ends), c.integer(Block), c.integer(Block + 1)) : Ints();
  const bool inside =
      numbers_at(c, Ends).empty() || numbers_at(c, Ends).back() <= (x.rank ? x.dims[0] : 0);
  if (!fits || !inside ||
      y.numel() != static_cast<int64_t>(starts.size()) * x.dims[1] * x.dims[2]) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "input %s, weight %s and %s %s do not fit the sequences.", shape_text(x),
                  shape_text(w), Input ? "outputGrad" : "output", shape_text(y));
  }
  return ACLNN_SUCCESS;
}
void run_compress(Call& c) {
  using P = params::NsaCompress;

  const Tensor& t = c.tensor(P::input);
  const Floats x = floats(t), w = floats(c.tensor(P::weight));
  const int64_t heads = t.dims[1], d = t.dims[2], block = c.integer(P::compressBlockSize);
  const Ints starts =
      window_starts(numbers_at(c, P::actSeqLenOptional), block, c.integer(P::compressStride));
  Doubles y(starts.size() * heads * d);
  for (size_t o = 0; o < starts.size(); ++o) {
    for (int64_t k = 0; k < block; ++k) {
      for (int64_t i = 0; i < heads * d; ++i)
        y[o * heads * d + i] +=
            static_cast<double>(w[k * heads + i / d]) * x[(starts[o] + k) * heads * d + i];
    }
  }
  write(c.tensor(P::output), y);
}
void run_compress_grad(Call& c) {
  using P = params::NsaCompressGrad;

  const Tensor& t = c.tensor(P::input);
  const Floats g = floats(c.tensor(P::outputGrad)), x = floats(t), w = floats(c.tensor(P::weight));
  const int64_t heads = t.dims[1], d = t.dims[2], block = c.integer(P::compressBlockSize);
  const Ints starts = window_starts(numbers_at(c, P::actSeqLenOptionalOptional), block,
                                    c.integer(P::compressStride));
  Doubles dx(x.size()), dw(w.size());
  for (size_t o = 0; o < starts.size(); ++o) {
    for (int64_t k = 0; k < block; ++k) {
      for (int64_t i = 0; i < heads * d; ++i) {
        const int64_t from = (starts[o] + k) * heads * d + i;
        const double up = g[o * heads * d + i];
        dx[from] += up * w[k * heads + i / d], dw[k * heads + i / d] += up * x[from];
      }
    }
  }
  write(c.tensor(P::inputGradOut), dx), write(c.tensor(P::weightGradOut), dw);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnBlockSparseAttention, check_blocks<kBlocks>, run_blocks<kBlocks>)
ACLNN_OWN(aclnnBlockSparseAttentionV2, check_blocks<kBlocksV2>, run_blocks<kBlocksV2>)
ACLNN_OWN(aclnnBlockSparseAttentionGrad, check_blocks_grad, run_blocks_grad)
ACLNN_OWN(aclnnSparseFlashAttention, check_listed<kSparse>, run_listed<kSparse>)
ACLNN_OWN(aclnnSparseFlashAttentionV2, check_listed<kSparseV2>, run_listed<kSparseV2>)
ACLNN_OWN(aclnnSparseFlashAttentionGrad,
             (check_listed_grad<kSparseGrad, params::SparseFlashAttentionGrad::dOut,
                                params::SparseFlashAttentionGrad::dQueryOut>),
             (run_listed_grad<kSparseGrad, params::SparseFlashAttentionGrad::dOut,
                              params::SparseFlashAttentionGrad::dQueryOut>))
ACLNN_OWN(aclnnNsaSelectedAttention, check_listed<kSelected>, run_listed<kSelected>)
ACLNN_OWN(aclnnNsaSelectedAttentionGrad,
             (check_listed_grad<kSelectedGrad, params::NsaSelectedAttentionGrad::attentionOutGrad,
                                params::NsaSelectedAttentionGrad::dqOut>),
             (run_listed_grad<kSelectedGrad, params::NsaSelectedAttentionGrad::attentionOutGrad,
                              params::NsaSelectedAttentionGrad::dqOut>))
ACLNN_OWN(aclnnLightningIndexer, check_indexer, run_indexer)
ACLNN_OWN(aclnnNsaCompress,
             (check_compress<params::NsaCompress::input, params::NsaCompress::actSeqLenOptional,
                             params::NsaCompress::compressBlockSize, params::NsaCompress::output>),
             run_compress)
ACLNN_OWN(
    aclnnNsaCompressGrad,
    (check_compress<
        params::NsaCompressGrad::input, params::NsaCompressGrad::actSeqLenOptionalOptional,
        params::NsaCompressGrad::compressBlockSize, params::NsaCompressGrad::inputGradOut>),
    run_compress_grad)
