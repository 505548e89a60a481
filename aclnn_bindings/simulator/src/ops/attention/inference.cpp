// Attention in inference: aclnnFusedInferAttentionScore, aclnnIncreFlashAttention and
// aclnnPromptFlashAttention, over dense, packed and block-wise caches, with prefixes, rotary parts,
// sinks and quantised caches or operands. Formulas: the "npu_fused_infer_attention_score",
// "..._v2", "npu_incre_flash_attention" and "npu_prompt_flash_attention" pages of torch_npu.
#include "params/attention.h"
#include "loops/sequences.h"
#include "loops/versions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace aclsim {
namespace {

// Where the versions have their arguments; key and value are lists at 1 and 2, the shift 3, the
// mask 4. Versions of aclnnIncreFlashAttention have lengths of keys only.
struct Places {
  int length_q, length_k, dequant1;  // followed by quant1, dequant2, quant2, offset2
  int anti_scale, anti_offset, table, padding_q, padding_k;
  int key_scale, key_offset, value_scale, value_offset;
  int prefix_k, prefix_v, prefix_length, q_rope, k_rope, query_scale, sink, start_q, start_k;
  int heads, scale, before, after, layout, kv_heads, sparse, block, anti_mode, lse_flag, key_mode,
      value_mode, shift_type, out, lse;
};
#define AT(name) ACLSIM_AT(P, name)
#define AT_OPTIONAL(name) either(AT(name), AT(name##Optional))
template <typename P>
constexpr Places kAt = {
    AT_OPTIONAL(actualSeqLengths), AT_OPTIONAL(actualSeqLengthsKv), AT_OPTIONAL(deqScale1),
    AT_OPTIONAL(antiquantScale), AT_OPTIONAL(antiquantOffset), AT_OPTIONAL(blockTable),
    AT_OPTIONAL(queryPaddingSize), AT_OPTIONAL(kvPaddingSize), AT(keyAntiquantScaleOptional),
    AT(keyAntiquantOffsetOptional), AT(valueAntiquantScaleOptional),
    AT(valueAntiquantOffsetOptional), AT(keySharedPrefixOptional), AT(valueSharedPrefixOptional),
    AT(actualSharedPrefixLenOptional), AT(queryRopeOptional), AT(keyRopeOptional),
    AT(dequantScaleQueryOptional), AT(learnableSinkOptional), AT(qStartIdxOptional),
    AT(kvStartIdxOptional), P::numHeads, P::scaleValue, AT(preTokens), AT(nextTokens),
    P::inputLayout, P::numKeyValueHeads, AT(sparseMode), AT(blockSize), AT(antiquantMode),
    AT(softmaxLseFlag), AT(keyAntiquantMode), AT(valueAntiquantMode), AT(pseType), P::attentionOut,
    AT(softmaxLse)};
template <typename P>
constexpr Places kIncremental = [] {
  Places at = kAt<P>;
  at.length_q = kNone, at.length_k = P::actualSeqLengths;
  at.dequant1 = AT(dequantScale1), at.table = AT(blocktable);
  return at;
}();
#undef AT_OPTIONAL
#undef AT

const Tensor* tensor_at(const Call& c, int arg) {
  if (arg == kNone || c.null(arg)) return nullptr;
  if (c.args[arg].kind == ArgKind::TensorList)
    return c.tensors(arg).size ? c.tensors(arg)[0] : nullptr;
  return c.tensor(arg).numel() ? c.maybe(arg) : nullptr;
}
Ints ints_at(const Call& c, int arg) {
  if (arg == kNone || c.null(arg)) return {};
  const Span<const int64_t> v = c.ints(arg);
  return Ints(v.begin(), v.end());
}
int64_t int_at(const Call& c, int arg, int64_t otherwise) {
  return arg == kNone ? otherwise : c.integer(arg);
}

// "BNSD_BSND" reads one layout and writes another.
struct Layouts {
  char in[8] = {}, out[8] = {};
  bool packed() const { return std::strcmp(in, "TND") == 0 || std::strcmp(in, "NTD") == 0; }
};
Layouts layouts_of(const char* text) {
  Layouts l;
  const std::string whole = text ? text : "BSH";
  const size_t bar = whole.find('_');
  const std::string in = whole.substr(0, bar),
                    out = bar == std::string::npos ? in : whole.substr(bar + 1);
  std::strncpy(l.in, in == "SH" ? "BSH" : in.c_str(), sizeof l.in - 1);
  std::strncpy(l.out, out == "SH" ? "BSH" : out.c_str(), sizeof l.out - 1);
  return l;
}

// Keys or values as one batch-major table [batch, rows, heads, depth].
struct Cache {
  Heads heads;
  Ints rows;
};
bool packs(const Tensor& t, const Tensor& query) {
  return t.dtype == ACL_INT32 || (t.dtype == ACL_FLOAT && query.dtype != ACL_FLOAT);
}
Floats elements(const Tensor& t, const Tensor& query) {
  const Doubles wide = unpacked(t, packs(t, query));
  return Floats(wide.begin(), wide.end());
}
// The view's dims as the kernel sees them: int4 packed in INT32 is eight times as wide.
void dims_of(const Tensor& t, const Tensor& query, int64_t* dims) {
  std::copy(t.dims, t.dims + t.rank, dims);
  if (packs(t, query) && t.rank) dims[t.rank - 1] *= kPacked;
}
// A cache in blocks: [blocks, size, heads * depth], [blocks, heads, size, depth] or, in the inner
// format, [blocks, heads, depth / w, size, w].
struct Blocks {
  int64_t size, heads, depth, wide;  // wide 0: not the inner format
  int64_t index(int64_t block, int64_t n, int64_t row, int64_t d, bool head_first) const {
    if (wide)
      return (((block * heads + n) * (depth / wide) + d / wide) * size + row) * wide + d % wide;
    if (head_first) return ((block * heads + n) * size + row) * depth + d;
    return ((block * size + row) * heads + n) * depth + d;
  }
};
bool blocks_of(const Tensor& t, const Tensor& query, int64_t heads, int64_t size, Blocks& b) {
  int64_t d[kMaxRank];
  dims_of(t, query, d);
  b = {size, heads, 0, 0};
  if (t.rank == 3) {
    b.depth = d[2] / heads;
    return d[1] == size && d[2] % heads == 0;
  }
  if (t.rank == 4) {
    b.depth = d[3];
    return d[1] == heads && d[2] == size;
  }
  b.depth = t.rank == 5 ? d[2] * d[4] : 0, b.wide = t.rank == 5 ? d[4] : 0;
  return t.rank == 5 && d[1] == heads && d[3] == size;
}
Cache gather_blocks(const Tensor& t, const Tensor& query, const Ints& table, int64_t per_batch,
                    int64_t heads, int64_t size, const Ints& lengths) {
  Cache cache;
  Blocks b;
  blocks_of(t, query, heads, size, b);
  const Floats all = elements(t, query);
  cache.rows = lengths;
  Heads& h = cache.heads;
  h.heads = heads, h.depth = b.depth, h.head = b.depth, h.row = heads * b.depth;
  for (size_t batch = 0; batch < lengths.size(); ++batch) {
    h.start.push_back(static_cast<int64_t>(h.data.size()));
    for (int64_t s = 0; s < lengths[batch]; ++s) {
      const int64_t block = table[batch * per_batch + s / size];
      for (int64_t n = 0; n < heads; ++n) {
        for (int64_t d = 0; d < b.depth; ++d) {
          h.data.push_back(all[b.index(block, n, s % size, d, t.rank == 4)]);
        }
      }
    }
  }
  return cache;
}
// A list with a tensor for each batch, or one for all.
bool read_list(const Call& c, int arg, const char* layout, const Ints& ends, int64_t heads,
               Cache& cache, bool values) {
  using P = params::IncreFlashAttention;

  const Tensor& query = c.tensor(P::query);
  Heads& h = cache.heads;
  const Span<Tensor*> list = c.args[arg].kind == ArgKind::TensorList
                                 ? c.tensors(arg)
                                 : Span<Tensor*>{&c.args[arg].tensor, 1};
  for (int64_t i = 0; i < list.size; ++i) {
    int64_t dims[kMaxRank];
    dims_of(*list[i], query, dims);
    Heads one;
    Ints rows;
    if (!place_heads(dims, list[i]->rank, layout, heads, 0, ends, one, rows)) return false;
    if (i > 0 && (one.heads != h.heads || one.depth != h.depth || one.row != h.row)) return false;
    const auto base = static_cast<int64_t>(h.data.size());
    Ints starts = h.start;
    for (int64_t s : one.start) starts.push_back(base + s);
    const Floats data =
        values ? elements(*list[i], query) : Floats(static_cast<size_t>(list[i]->numel()));
    Floats joined = std::move(h.data);
    joined.insert(joined.end(), data.begin(), data.end());
    // Heads of BNSD are as far apart as a batch has rows, which may differ between members.
    if (i > 0 && one.head != h.head) return false;
    h = one;
    h.data = std::move(joined), h.start = starts;
    cache.rows.insert(cache.rows.end(), rows.begin(), rows.end());
  }
  return list.size > 0;
}

// What dequantises element (batch, head, row, depth) of a cache, by the documented modes: 0 per
// channel or tensor, 1 token, 2 head, 3 token and head, 4 token in blocks, 5 that and head.
struct Anti {
  Floats scale, offset;
  int64_t mode = 0, heads = 1, depth = 1, rows = 1, size = 1, per_batch = 0;
  Ints table;
  int64_t index(int64_t b, int64_t n, int64_t s, int64_t d) const {
    const auto count = static_cast<int64_t>(scale.size());
    if (count == 1) return 0;
    const int64_t block = mode > 3 ? table[b * per_batch + s / size] : 0;
    switch (mode) {
      case 1: return count >= (b + 1) * rows ? b * rows + s : s;
      case 2: return n;
      case 3: return (b * heads + n) * rows + s;
      case 4: return block * size + s % size;
      case 5: return (block * heads + n) * size + s % size;
      default: return count == heads ? n : n * depth + d;
    }
  }
};
// Both operands' parameters in one tensor [2, ...], or one of the separate ones.
Anti anti_of(const Call& c, const Places& at, const Cache& cache, bool value, const Ints& table,
             int64_t per_batch) {
  Anti a;
  a.heads = cache.heads.heads, a.depth = cache.heads.depth;
  a.rows = cache.rows.empty() ? 1 : *std::max_element(cache.rows.begin(), cache.rows.end());
  a.size = std::max<int64_t>(1, int_at(c, at.block, 1)), a.table = table, a.per_batch = per_batch;
  const Tensor* own = tensor_at(c, value ? at.value_scale : at.key_scale);
  if (own) {
    a.scale = floats(own), a.offset = floats(tensor_at(c, value ? at.value_offset : at.key_offset));
    a.mode = int_at(c, value ? at.value_mode : at.key_mode, 0);
    if (a.mode == 1 && own->rank) a.rows = own->dims[own->rank - 1];
    if (a.mode == 3 && own->rank) a.rows = own->dims[own->rank - 1];
    return a;
  }
  const Tensor* both = tensor_at(c, at.anti_scale);
  if (!both) return a;
  a.mode = int_at(c, at.anti_mode, 0);
  if (a.mode == 1) a.rows = both->dims[both->rank - 1];
  for (auto [from, to] : {std::pair<const Tensor*, Floats*>{both, &a.scale},
                          {tensor_at(c, at.anti_offset), &a.offset}}) {
    const Floats all = floats(from);
    const size_t half = all.size() / 2;
    to->assign(all.begin() + (value ? half : 0), all.begin() + (value ? 2 * half : half));
  }
  return a;
}
void dequantise(Cache& cache, const Anti& a) {
  if (a.scale.empty()) return;
  Heads& h = cache.heads;
  for (size_t b = 0; b < cache.rows.size(); ++b) {
    for (int64_t n = 0; n < h.heads; ++n) {
      for (int64_t s = 0; s < cache.rows[b]; ++s) {
        float* row = h.at(static_cast<int64_t>(b), n, s);
        for (int64_t d = 0; d < h.depth; ++d) {
          const int64_t i = a.index(static_cast<int64_t>(b), n, s, d);
          row[d] = (row[d] + (a.offset.empty() ? 0 : a.offset[i])) * a.scale[i];
        }
      }
    }
  }
}

// Rows that count: a length for each batch, or one for all; none means all rows.
Ints lengths_of(const Ints& given, const Ints& rows) {
  Ints lengths = rows;
  for (size_t b = 0; b < lengths.size() && !given.empty(); ++b) {
    lengths[b] =
        std::min(rows[b], given.size() == 1 ? given[0] : given[std::min(b, given.size() - 1)]);
  }
  return lengths;
}
// Where right-aligned rows begin, for a number of rows of padding after them.
Ints left_padding(const Tensor* padding, const Ints& rows, const Ints& lengths) {
  Ints first(rows.size(), 0);
  if (!padding) return first;
  const int64_t after = std::max<int64_t>(0, integers(padding)[0]);
  for (size_t b = 0; b < rows.size(); ++b) {
    first[b] = std::max<int64_t>(0, rows[b] - lengths[b] - after);
  }
  return first;
}
void move_starts(Heads& h, const Ints& first) {
  for (size_t b = 0; b < h.start.size() && b < first.size(); ++b) h.start[b] += first[b] * h.row;
}
// Rows of a prefix that all batches share, put before their own.
Cache after_prefix(const Cache& prefix, int64_t rows, const Cache& own, const Ints& lengths) {
  Cache joined;
  Heads& h = joined.heads;
  h.heads = own.heads.heads, h.depth = own.heads.depth, h.head = h.depth, h.row = h.heads * h.depth;
  for (size_t b = 0; b < lengths.size(); ++b) {
    h.start.push_back(static_cast<int64_t>(h.data.size()));
    joined.rows.push_back(rows + lengths[b]);
    for (int64_t s = 0; s < rows + lengths[b]; ++s) {
      for (int64_t n = 0; n < h.heads; ++n) {
        const float* from = s < rows ? prefix.heads.at(0, n, s)
                                     : own.heads.at(static_cast<int64_t>(b), n, s - rows);
        h.data.insert(h.data.end(), from, from + h.depth);
      }
    }
  }
  return joined;
}

bool spread_over(const Tensor& t, int64_t batch, int64_t queries, Spread& o) {
  int64_t step = 1;
  const bool by_batch = t.rank == 2 && queries == 1 && batch > 1 && t.dims[0] == batch;
  for (int i = t.rank - 1; i >= 0; --i) {
    int to = 4 - t.rank + i;
    if (i == 0 && (t.rank == 3 || by_batch)) to = 0;
    o.strides[to] = t.dims[i] == 1 ? 0 : step;
    step *= t.dims[i];
  }
  return t.rank >= 1 && t.rank <= 4;
}
// A factor that may be the bits of a float in the low half of a UINT64.
double factor_of(const Tensor* t, double otherwise) {
  if (!t) return otherwise;
  if (t->dtype != ACL_UINT64 && t->dtype != ACL_INT64) return floats(t)[0];
  return float_of(static_cast<uint32_t>(integers(t)[0]));
}

// The geometry of a call; `values` says whether to read elements too.
struct Reading {
  Sequences s;
  Layouts layout;
  Ints query_rows;  // of the tensor, where queries may be fewer
  Cache k, v, k_rope;
};
bool read_query(const Call& c, const Places& at, Reading& r) {
  using P = params::IncreFlashAttention;

  const Tensor& q = c.tensor(P::query);
  r.layout = layouts_of(c.text(at.layout));
  r.s.heads = c.integer(at.heads);
  const Ints ends = ints_at(c, at.length_q);
  if (!place_heads(q.dims, q.rank, r.layout.in, r.s.heads, 0, ends, r.s.q, r.query_rows))
    return false;
  r.s.queries = r.layout.packed() ? r.query_rows : lengths_of(ends, r.query_rows);
  const int64_t kv = c.integer(at.kv_heads);
  r.s.kv_heads = kv > 0 ? kv : r.s.heads;
  if (r.s.heads % r.s.kv_heads != 0) return false;
  const Tensor* rope = tensor_at(c, at.q_rope);
  Ints rows;
  return !rope ||
         place_heads(rope->dims, rope->rank, r.layout.in, r.s.heads, 0, ends, r.s.q_rope, rows);
}
bool paged(const Call& c, const Places& at) { return tensor_at(c, at.table) != nullptr; }
bool fits_blocks(const Call& c, const Places& at, const Reading& r) {
  using P = params::IncreFlashAttention;

  Blocks k, v;
  const int64_t size = int_at(c, at.block, 0);
  return size > 0 && !ints_at(c, at.length_k).empty() &&
         blocks_of(*tensor_at(c, P::key), c.tensor(P::query), r.s.kv_heads, size, k) &&
         blocks_of(*tensor_at(c, P::value), c.tensor(P::query), r.s.kv_heads, size, v) &&
         k.depth == r.s.q.depth;
}
bool fits_lists(const Call& c, const Places& at, Reading& r, bool values) {
  using P = params::IncreFlashAttention;

  const Ints ends = ints_at(c, at.length_k);
  if (!read_list(c, P::key, r.layout.in, ends, r.s.kv_heads, r.k, values) ||
      !read_list(c, P::value, r.layout.in, ends, r.s.kv_heads, r.v, values)) {
    return false;
  }
  if (r.k.rows != r.v.rows || r.k.rows.size() != r.query_rows.size()) return false;
  const bool rope = tensor_at(c, at.k_rope) != nullptr;
  return r.k.heads.depth == r.s.q.depth &&
         (!rope || read_list(c, at.k_rope, r.layout.in, ends, r.s.kv_heads, r.k_rope, values));
}
Shape out_shape(const Reading& r, int64_t depth, const Tensor& q) {
  const int64_t batch = static_cast<int64_t>(r.query_rows.size());
  const int64_t rows = batch ? r.query_rows[0] : 0, n = r.s.heads;
  const std::string out = r.layout.out;
  const int64_t tokens =
      r.layout.packed() ? q.dims[std::strcmp(r.layout.in, "NTD") == 0 ? 1 : 0] : 0;
  if (out == "TND") return {3, {tokens, n, depth}};
  if (out == "NTD") return {3, {n, tokens, depth}};
  if (out == "BSH") return {3, {batch, rows, n * depth}};
  if (out == "BSND") return {4, {batch, rows, n, depth}};
  if (out == "NBSD") return {4, {n, batch, rows, depth}};
  return {4, {batch, n, rows, depth}};
}
int64_t value_depth(const Call& c, const Places& at, const Reading& r) {
  using P = params::IncreFlashAttention;

  if (!paged(c, at)) return r.v.heads.depth;
  Blocks b;
  blocks_of(*tensor_at(c, P::value), c.tensor(P::query), r.s.kv_heads, int_at(c, at.block, 0), b);
  return b.depth;
}
template <const Places& at>
aclnnStatus check_infer(Call& c) {
  using P = params::IncreFlashAttention;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::query, P::key, P::value, at.out}));
  ACL_RETURN_IF_FAILED(expect_together(c, at.q_rope, at.k_rope));
  ACL_RETURN_IF_FAILED(expect_together(c, at.prefix_k, at.prefix_v));
  Reading r;
  const bool fits = tensor_at(c, P::key) && tensor_at(c, P::value) && c.integer(at.heads) > 0 &&
                    read_query(c, at, r) &&
                    (paged(c, at) ? fits_blocks(c, at, r) : fits_lists(c, at, r, false));
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "query %s with %lld heads, key %s and value %s do not fit the layout %s with the "
                  "given lengths and block table.",
                  shape_text(c.tensor(P::query)), static_cast<long long>(c.integer(at.heads)),
                  tensor_at(c, P::key) ? shape_text(*tensor_at(c, P::key)) : "[]",
                  tensor_at(c, P::value) ? shape_text(*tensor_at(c, P::value)) : "[]",
                  c.text(at.layout) ? c.text(at.layout) : "BSH");
  }
  const int64_t sparse = int_at(c, at.sparse, 0);
  if (sparse < 0 || sparse > 4) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "sparseMode %lld is not supported by the simulator, only 0 to 4.",
                  static_cast<long long>(sparse));
  }
  if (tensor_at(c, at.query_scale)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.",
                  c.name(at.query_scale));
  }
  if (at.lse != kNone && c.flag(at.lse_flag)) ACL_RETURN_IF_FAILED(expect_given(c, {at.lse}));
  return expect_shape(c, at.out, out_shape(r, value_depth(c, at, r), c.tensor(P::query)));
}

void read_caches(const Call& c, const Places& at, Reading& r) {
  using P = params::IncreFlashAttention;

  Ints table, given = ints_at(c, at.length_k);
  int64_t per_batch = 0;
  if (paged(c, at)) {
    const Tensor& t = *tensor_at(c, at.table);
    table = integers(t), per_batch = width_of(t);
    const int64_t size = c.integer(at.block);
    Ints lengths(r.query_rows.size(), per_batch * size);
    lengths = lengths_of(given, lengths);
    r.k = gather_blocks(*tensor_at(c, P::key), c.tensor(P::query), table, per_batch, r.s.kv_heads,
                        size, lengths);
    r.v = gather_blocks(*tensor_at(c, P::value), c.tensor(P::query), table, per_batch, r.s.kv_heads,
                        size, lengths);
    if (const Tensor* rope = tensor_at(c, at.k_rope)) {
      r.k_rope =
          gather_blocks(*rope, c.tensor(P::query), table, per_batch, r.s.kv_heads, size, lengths);
    }
  } else {
    fits_lists(c, at, r, true);
  }
  dequantise(r.k, anti_of(c, at, r.k, false, table, per_batch));
  dequantise(r.v, anti_of(c, at, r.v, true, table, per_batch));
}
void place_caches(const Call& c, const Places& at, Reading& r) {
  const bool cut = !r.layout.packed() && !paged(c, at);
  Ints lengths = cut ? lengths_of(ints_at(c, at.length_k), r.k.rows) : r.k.rows;
  r.s.first_key = left_padding(cut ? tensor_at(c, at.padding_k) : nullptr, r.k.rows, lengths);
  for (Cache* cache : {&r.k, &r.v, &r.k_rope}) move_starts(cache->heads, r.s.first_key);
  if (tensor_at(c, at.prefix_k)) {
    Cache pk, pv;
    read_list(c, at.prefix_k, r.layout.in, {}, r.s.kv_heads, pk, true);
    read_list(c, at.prefix_v, r.layout.in, {}, r.s.kv_heads, pv, true);
    const Ints given = ints_at(c, at.prefix_length);
    const int64_t rows = given.empty() ? pk.rows[0] : std::min(given[0], pk.rows[0]);
    r.k = after_prefix(pk, rows, r.k, lengths), r.v = after_prefix(pv, rows, r.v, lengths);
    for (int64_t& n : lengths) n += rows;
  }
  r.s.keys = lengths;
  r.s.k = std::move(r.k.heads), r.s.v = std::move(r.v.heads),
  r.s.k_rope = std::move(r.k_rope.heads);
}
void read_scores(const Call& c, const Places& at, Reading& r) {
  using P = params::IncreFlashAttention;

  Sequences& s = r.s;
  s.q.data = floats(c.tensor(P::query)), s.q_rope.data = floats(tensor_at(c, at.q_rope));
  s.first_query = left_padding(r.layout.packed() ? nullptr : tensor_at(c, at.padding_q),
                               r.query_rows, s.queries);
  move_starts(s.q, s.first_query), move_starts(s.q_rope, s.first_query);
  s.scale = c.number(at.scale), s.sparse = int_at(c, at.sparse, 0);
  s.before = int_at(c, at.before, INT32_MAX), s.after = int_at(c, at.after, INT32_MAX);
  s.query_start = ints_at(c, at.start_q), s.key_start = ints_at(c, at.start_k);
  const auto batch = static_cast<int64_t>(s.queries.size());
  const int64_t most = batch ? *std::max_element(r.query_rows.begin(), r.query_rows.end()) : 0;
  if (const Tensor* mask = tensor_at(c, P::attenMask)) {
    s.mask.data = floats(mask);
    spread_over(*mask, batch, most, s.mask);
  }
  if (const Tensor* shift = tensor_at(c, P::pseShift)) {
    const int64_t type = int_at(c, at.shift_type, 0);
    (type > 1 ? s.slopes : s.shift.data) = floats(shift);
    s.slope_root = type == 3;
    if (type < 2) spread_over(*shift, batch, most, s.shift);
  }
  s.sink = floats(tensor_at(c, at.sink));
  if (at.dequant1 == kNone) return;
  s.dequant1 = factor_of(tensor_at(c, at.dequant1), 1);
  s.quant1 = factor_of(tensor_at(c, at.dequant1 + 1), 0);
  s.dequant2 = factor_of(tensor_at(c, at.dequant1 + 2), 1);
}
// Element i of an output of [heads, depth] lies in quantisation parameters per channel or tensor.
void write_out(const Call& c, const Places& at, const Reading& r, const Heads& out) {
  const Tensor* scale = at.dequant1 == kNone ? nullptr : tensor_at(c, at.dequant1 + 3);
  if (!scale) {
    write(c.tensor(at.out), out.data);
    return;
  }
  const Floats factors = floats(scale), offsets = floats(tensor_at(c, at.dequant1 + 4));
  Floats q(out.data.size());
  for (size_t b = 0; b < out.start.size(); ++b) {
    for (int64_t n = 0; n < r.s.heads; ++n) {
      for (int64_t i = 0; i < r.query_rows[b]; ++i) {
        const int64_t base = out.at(static_cast<int64_t>(b), n, i) - out.data.data();
        for (int64_t d = 0; d < out.depth; ++d) {
          const size_t f = factors.size() == 1 ? 0 : static_cast<size_t>(n * out.depth + d);
          q[base + d] = out.data[base + d] * factors[f] + (offsets.empty() ? 0 : offsets[f]);
        }
      }
    }
  }
  write_quantized(c.maybe(at.out), q);
}
// log of the sum of exponentials, [B, N, S, 1] or, packed, [T, N, 1]; infinite for rows of none.
void write_lse(const Call& c, const Places& at, const Statistics& stats) {
  Floats lse(stats.top.size());
  for (size_t i = 0; i < lse.size(); ++i) {
    const bool none = stats.sum[i] == 0 || stats.sum[i] == std::numeric_limits<float>::max();
    lse[i] = none ? INFINITY : stats.top[i] + std::log(stats.sum[i]);
  }
  write(c.maybe(at.lse), lse);
}
Statistics statistics_of(const Reading& r, const Tensor& q) {
  Statistics stats;
  const int64_t batch = static_cast<int64_t>(r.query_rows.size()), n = r.s.heads;
  const bool packed = r.layout.packed();
  const int64_t tokens = packed ? q.dims[std::strcmp(r.layout.in, "NTD") == 0 ? 1 : 0] : 0;
  const int64_t plain[4] = {batch, n, batch ? r.query_rows[0] : 0, 1}, flat[3] = {tokens, n, 1};
  Ints ends, rows;
  for (int64_t length : r.query_rows) ends.push_back((ends.empty() ? 0 : ends.back()) + length);
  place_heads(packed ? flat : plain, packed ? 3 : 4, packed ? "TND" : "BNSD", 0, 0, ends,
              stats.place, rows);
  stats.place.data.resize(1);
  stats.top.resize(static_cast<size_t>(packed ? tokens * n : batch * n * plain[2]));
  stats.sum.resize(stats.top.size());
  return stats;
}
template <const Places& at>
void run_infer(Call& c) {
  using P = params::IncreFlashAttention;

  Reading r;
  read_query(c, at, r);
  read_caches(c, at, r);
  place_caches(c, at, r);
  read_scores(c, at, r);
  const Shape shape = out_shape(r, r.s.v.depth, c.tensor(P::query));
  Heads out;
  Ints rows, ends;
  for (int64_t length : r.query_rows) ends.push_back((ends.empty() ? 0 : ends.back()) + length);
  place_heads(shape.dims, shape.rank, r.layout.out, r.s.heads, 0, ends, out, rows);
  out.data.resize(static_cast<size_t>(c.tensor(at.out).numel()));
  const Ints starts = out.start;
  move_starts(out, r.s.first_query);
  Statistics stats = statistics_of(r, c.tensor(P::query));
  move_starts(stats.place, r.s.first_query);
  attend(r.s, out, stats);
  out.start = starts;
  write_out(c, at, r, out);
  if (at.lse != kNone && c.flag(at.lse_flag)) write_lse(c, at, stats);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_INFER(op, at) \
  ACLNN_OP_FLAGS(op, check_infer<at>, run_infer<at>, kOwnNulls | kOwnLimits)
ACLNN_INFER(aclnnFusedInferAttentionScore, kAt<params::FusedInferAttentionScore>)
ACLNN_INFER(aclnnFusedInferAttentionScoreV2, kAt<params::FusedInferAttentionScoreV2>)
ACLNN_INFER(aclnnFusedInferAttentionScoreV3, kAt<params::FusedInferAttentionScoreV3>)
ACLNN_INFER(aclnnFusedInferAttentionScoreV4, kAt<params::FusedInferAttentionScoreV4>)
ACLNN_INFER(aclnnFusedInferAttentionScoreV5, kAt<params::FusedInferAttentionScoreV5>)
ACLNN_INFER(aclnnIncreFlashAttention, kIncremental<params::IncreFlashAttention>)
ACLNN_INFER(aclnnIncreFlashAttentionV2, kIncremental<params::IncreFlashAttentionV2>)
ACLNN_INFER(aclnnIncreFlashAttentionV3, kIncremental<params::IncreFlashAttentionV3>)
ACLNN_INFER(aclnnIncreFlashAttentionV4, kIncremental<params::IncreFlashAttentionV4>)
ACLNN_INFER(aclnnPromptFlashAttention, kAt<params::PromptFlashAttention>)
ACLNN_INFER(aclnnPromptFlashAttentionV2, kAt<params::PromptFlashAttentionV2>)
ACLNN_INFER(aclnnPromptFlashAttentionV3, kAt<params::PromptFlashAttentionV3>)
