// Norms and rotations that end in a cache of keys and values; caches in blocks, written and gathered.
// Formulas: the "npu_kv_rmsnorm_rope_cache", "npu_scatter_pa_kv_cache" and "npu_quant_scatter" pages of
// torch_npu and its tests.
#include "params/kv_cache.h"
#include "loops/values.h"

#include <cmath>
#include <cstring>
#include "loops/rotation.h"

namespace aclsim {
namespace {

// A cache of rows in blocks: row `slot` of head n, plain [blocks, size, heads, width] or in tiles
// of columns [blocks, heads * width / w, size, w].
struct Cache {
  const Tensor* t;
  Doubles v;
  int64_t size, row;
  bool tiles;
  int64_t index(int64_t slot, int64_t i) const {
    const int64_t block = slot / size, at = slot % size;
    if (!tiles) return (block * size + at) * row + i;
    const int64_t w = tile();
    return ((block * (row / w) + i / w) * size + at) * w + i % w;
  }
  int64_t tile() const {
    const size_t bytes = dtype_size(t->dtype);
    return t->rank == 4 && t->dims[2] == size
               ? t->dims[3]
               : static_cast<int64_t>(32 / std::max<size_t>(1, bytes));
  }
  int64_t slots() const { return row ? static_cast<int64_t>(v.size()) / row : 0; }
};
bool in_tiles(const char* mode) { return mode && std::strstr(mode, "NZ") != nullptr; }
Cache cache_of(const Tensor& t, int64_t row, bool tiles, bool tile_dims) {
  return {&t, doubles(t), t.rank == 4 ? t.dims[tiles && tile_dims ? 2 : 1] : 1, row, tiles};
}

// (key, keyCacheRef, slotMapping, value, valueCacheRef, compressLens, compressSeqOffset, seqLens,
// cacheMode, ...), or without values.
struct Scatter {
  int cache, slots, value, value_cache, lens, offsets, seqs, mode;
};
constexpr Scatter kScatter = [] {
  using P = params::ScatterPaKvCache;
  return Scatter{P::keyCacheRef,     P::slotMapping,          P::value,
                 P::valueCacheRef,   P::compressLensOptional, P::compressSeqOffsetOptional,
                 P::seqLensOptional, P::cacheModeOptional};
}();
constexpr Scatter kScatterKey = [] {
  using P = params::ScatterPaCache;
  return Scatter{P::keyCacheRef,
                 P::slotMapping,
                 -1,
                 -1,
                 P::compressLensOptional,
                 P::compressSeqOffsetOptional,
                 P::seqLensOptional,
                 P::cacheMode};
}();
template <const Scatter& at>
aclnnStatus check_scatter(Call& c) {
  using P = params::ScatterPaCache;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::key, at.cache, at.slots}));
  if (at.value >= 0) ACL_RETURN_IF_FAILED(expect_given(c, {at.value, at.value_cache}));
  for (int arg : {at.lens, at.offsets, at.seqs}) {
    if (at_or_null(c, arg)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(arg));
    }
  }
  for (int which : {0, 1}) {
    const int x = which ? at.value : P::key, cache = which ? at.value_cache : at.cache;
    if (x < 0) continue;
    const Tensor &t = c.tensor(x), &k = c.tensor(cache);
    const int64_t row = t.rank == 3 ? t.dims[1] * t.dims[2] : width_of(t);
    if (k.rank < 4 || row == 0 || k.numel() % row != 0 || k.dtype != t.dtype) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s holds no rows like those of %s %s.",
                    c.name(cache), shape_text(k), c.name(x), shape_text(t));
    }
  }
  return expect_numel(c, at.slots, c.tensor(P::key).dims[0]);
}
template <const Scatter& at>
aclError run_scatter(Call& c) {
  using P = params::ScatterPaCache;

  const Ints slots = integers(c.tensor(at.slots));
  const bool tiles = in_tiles(c.text(at.mode));
  for (int which : {0, 1}) {
    const int x = which ? at.value : P::key;
    if (x < 0) continue;
    const Tensor& t = c.tensor(x);
    const Doubles rows = doubles(t);
    const int64_t row = t.dims[0] ? t.numel() / t.dims[0] : 0;
    Cache cache = cache_of(c.tensor(which ? at.value_cache : at.cache), row, tiles, true);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] < 0) continue;
      if (slots[i] >= cache.slots()) return c.trap(507015, "A slot lies outside the cache.");
      for (int64_t j = 0; j < row; ++j) cache.v[cache.index(slots[i], j)] = rows[i * row + j];
    }
    write(*cache.t, cache.v);
  }
  return ACL_SUCCESS;
}
aclnnStatus check_gather(Call& c) {
  using P = params::GatherPaKvCache;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::keyCache, P::valueCache, P::blockTables, P::seqLens, P::keyRef, P::valueRef}));
  for (int i : {P::keyCache, P::valueCache}) {
    const Tensor &k = c.tensor(i), &out = c.tensor(P::keyRef + i);
    const int64_t row = out.rank && out.dims[0] ? out.numel() / out.dims[0] : 0;
    if (k.rank != 4 || (row && k.numel() % row != 0)) return refuse_fit(c, P::keyRef + i, i);
  }
  return expect_numel(c, P::seqLens,
                      c.tensor(P::blockTables).dims[0] + (c.flag(P::isSeqLensCumsum) ? 1 : 0));
}
void run_gather(Call& c) {
  using P = params::GatherPaKvCache;

  Ints lengths = integers(c.tensor(P::seqLens));
  const Ints table = integers(c.tensor(P::blockTables)),
             first = integers(at_or_null(c, P::seqOffsetOptional));
  if (c.flag(P::isSeqLensCumsum)) {
    for (size_t i = 0; i + 1 < lengths.size(); ++i) lengths[i] = lengths[i + 1] - lengths[i];
    lengths.pop_back();
  }
  const int64_t per = width_of(c.tensor(P::blockTables));
  for (int which : {P::keyCache, P::valueCache}) {
    const Tensor& out = c.tensor(P::keyRef + which);
    const int64_t rows = out.dims[0], row = rows ? out.numel() / rows : 0;
    const Cache cache = cache_of(c.tensor(which), row, in_tiles(c.text(P::cacheMode)), true);
    Doubles v(static_cast<size_t>(rows * row));
    int64_t to = 0;
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int64_t skip = first.empty() ? 0 : first[b] / cache.size;
      for (int64_t s = 0; s < lengths[b] && to < rows; ++s, ++to) {
        const int64_t place = skip + s / cache.size,
                      block = place < per ? table[b * per + place] : -1;
        const int64_t slot = block * cache.size + s % cache.size;
        if (block < 0 || slot >= cache.slots()) continue;
        for (int64_t j = 0; j < row; ++j) v[to * row + j] = cache.v[cache.index(slot, j)];
      }
    }
    write(out, v);
  }
}

// Puts rows of [batch, tokens] into a cache by the mode's meaning of the index; quantised where the
// cache holds integers.
struct Rows {
  Floats v;
  int64_t batch, tokens, width;
};
aclError place_rows(Call& c, const Rows& r, const Tensor& out, const Ints& index, const char* mode,
                    const Floats& scale, const Floats& offset, bool divide, bool tile_dims) {
  const bool plain = !mode || !*mode || std::strcmp(mode, "Norm") == 0,
             blocks = mode && std::strstr(mode, "BLK");
  Cache cache = cache_of(out, r.width, in_tiles(mode), tile_dims);
  const bool quantises = out.dtype == ACL_INT8 || is_narrow_float(out.dtype);
  const int64_t per_batch = blocks ? (r.tokens + cache.size - 1) / cache.size : r.tokens;
  for (int64_t b = 0; b < r.batch; ++b) {
    for (int64_t t = 0; t < r.tokens; ++t) {
      int64_t slot = index[b * per_batch + (blocks ? t / cache.size : t)];
      if (slot < 0) continue;
      if (plain) cache.size = out.dims[out.rank - 2], slot += b * cache.size;
      if (blocks) slot = slot / cache.size * cache.size + t % cache.size;
      if (slot >= cache.slots()) return c.trap(507015, "An index lies outside the cache.");
      for (int64_t j = 0; j < r.width; ++j) {
        double v = r.v[(b * r.tokens + t) * r.width + j];
        const size_t s = scale.size() == 1 ? 0 : static_cast<size_t>(j);
        if (!scale.empty()) v = divide ? v / scale[s] : v * scale[s];
        if (!offset.empty()) v += offset[offset.size() == 1 ? 0 : j];
        if (quantises && out.dtype == ACL_INT8)
          v = std::min(std::max(std::nearbyint(v), -128.0), 127.0);
        cache.v[cache.index(slot, j)] = v;
      }
    }
  }
  write(out, cache.v);
  return ACL_SUCCESS;
}
void normalise(float* x, int64_t n, const Floats& gamma, double eps) {
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += static_cast<double>(x[i]) * x[i];
  const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] * rstd * gamma[i]);
}
// (kv, gamma, cos, sin, index, kCacheRef, ckvCacheRef, kRopeScale, cKvScale, kRopeOffset,
// cKvOffset, [v,] eps, cacheMode, isOutputKv, kRopeOut, cKvOut). Without v the norm takes the first
// part of a row and the rotation the rest; with it, the rotation takes the first part of the whole
// norm.
template <int Eps>
aclnnStatus check_kv(Call& c) {
  using P = params::KvRmsNormRopeCacheV2;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::kv, P::gamma, P::cos, P::sin, P::index, P::kCacheRef, P::ckvCacheRef}));
  const Tensor& kv = c.tensor(P::kv);
  const int64_t rope = width_of(c.tensor(P::cos)), norm = c.tensor(P::gamma).numel();
  const bool whole = Eps == 12 && at_or_null(c, P::vOptional);
  if (kv.rank != 4 || kv.dims[1] != 1 || rope % 2 != 0 ||
      width_of(kv) != (whole ? norm : norm + rope)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "kv %s should be [batch, 1, tokens, %lld].",
                  shape_text(kv), static_cast<long long>(whole ? norm : norm + rope));
  }
  for (int i : {P::cos, P::sin})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, kv.dims[0] * kv.dims[2] * rope));
  if (c.flag(Eps + 2)) ACL_RETURN_IF_FAILED(expect_given(c, {Eps + 3, Eps + 4}));
  return ACLNN_SUCCESS;
}
template <int Eps>
aclError run_kv(Call& c) {
  using P = params::KvRmsNormRopeCacheV2;

  const Tensor& t = c.tensor(P::kv);
  const Floats kv = floats(t), gamma = floats(c.tensor(P::gamma)), cos = floats(c.tensor(P::cos)),
               sin = floats(c.tensor(P::sin));
  const int64_t n = width_of(t), rope = width_of(c.tensor(P::cos)),
                norm = c.tensor(P::gamma).numel(), rows = rows_of(t);
  const Tensor* v = Eps == 12 ? at_or_null(c, P::vOptional) : nullptr;
  Rows key = {{}, t.dims[0], t.dims[2], v ? n : rope},
       value = {{}, t.dims[0], t.dims[2], v ? width_of(*v) : norm};
  if (v) value.v = floats(v);
  const Turn turn = turn_of(kInterleaveHalf, rope);
  for (int64_t r = 0; r < rows; ++r) {
    Floats row(kv.begin() + r * n, kv.begin() + (r + 1) * n), rotated(static_cast<size_t>(rope));
    normalise(row.data(), norm, gamma, c.number(Eps));
    turn_row(turn, row.data() + (v ? 0 : norm), &cos[r * rope], &sin[r * rope], rotated.data());
    key.v.insert(key.v.end(), rotated.begin(), rotated.end());
    if (v)
      key.v.insert(key.v.end(), row.begin() + rope, row.end());
    else
      value.v.insert(value.v.end(), row.begin(), row.begin() + norm);
  }
  const Ints index = integers(c.tensor(P::index));
  const char* mode = c.text(Eps + 1);
  aclError code = place_rows(c, key, c.tensor(P::kCacheRef), index, mode,
                             floats(at_or_null(c, P::kRopeScaleOptional)),
                             floats(at_or_null(c, P::kRopeOffsetOptional)), false, false);
  if (code == ACL_SUCCESS) {
    code = place_rows(c, value, c.tensor(P::ckvCacheRef), index, mode,
                      floats(at_or_null(c, P::cKvScaleOptional)),
                      floats(at_or_null(c, P::cKvOffsetOptional)), false, false);
  }
  if (c.flag(Eps + 2)) write(at_or_null(c, Eps + 3), key.v), write(at_or_null(c, Eps + 4), value.v);
  return code;
}
aclnnStatus check_qkv(Call& c) {
  using P = params::QkvRmsNormRopeCache;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::qkv, P::qGamma, P::kGamma, P::cos, P::sin, P::index,
                                        P::qOut, P::kCache, P::vCache, P::qkvSize, P::headNums}));
  const Span<const int64_t> size = c.ints(P::qkvSize), heads = c.ints(P::headNums);
  const bool fits =
      size.size == 4 && heads.size == 3 && heads[0] + heads[1] + heads[2] == size[2] &&
      c.tensor(P::qkv).numel() == size[0] * size[1] * size[2] * size[3] &&
      width_of(c.tensor(P::cos)) % size[3] == 0 && in_tiles(c.text(P::cacheModeOptional));
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "qkv %s, qkvSize and headNums do not fit, or cacheMode is not PA_NZ.",
                  shape_text(c.tensor(P::qkv)));
  }
  for (int i : {P::qGamma, P::kGamma}) ACL_RETURN_IF_FAILED(expect_numel(c, i, size[3]));
  return expect_numel(c, P::qOut, size[0] * size[1] * heads[0] * size[3]);
}
aclError run_qkv(Call& c) {
  using P = params::QkvRmsNormRopeCache;

  const Span<const int64_t> size = c.ints(P::qkvSize), heads = c.ints(P::headNums);
  const int64_t tokens = size[0] * size[1], d = size[3], each = rows_of(c.tensor(P::cos));
  const Floats qkv = floats(c.tensor(P::qkv)), cos = floats(c.tensor(P::cos)),
               sin = floats(c.tensor(P::sin));
  const int64_t angle_heads = width_of(c.tensor(P::cos)) / d;
  const Turn turn = turn_of(kHalf, d);
  Floats parts[3];
  for (int64_t t = 0; t < tokens; ++t) {
    const float* row = qkv.data() + t * size[2] * d;
    for (int part = 0; part < 3; ++part) {
      for (int64_t n = 0; n < heads[part]; ++n, row += d) {
        Floats v(row, row + d), rotated = v;
        if (part < 2) {
          const int64_t line = each == tokens ? t : t / size[1],
                        angle = (line * angle_heads + (angle_heads > 1 ? n : 0)) * d;
          normalise(v.data(), d, floats(c.tensor(P::qGamma + part)), c.number(P::epsilon));
          turn_row(turn, v.data(), &cos[angle], &sin[angle], rotated.data());
        }
        parts[part].insert(parts[part].end(), rotated.begin(), rotated.end());
      }
    }
  }
  write(c.tensor(P::qOut), parts[0]);
  for (int part = 0; part < 3; ++part) write(at_or_null(c, P::qOutBeforeQuant + part), parts[part]);
  const Ints index = integers(c.tensor(P::index));
  for (int part : {1, 2}) {
    const Rows rows = {parts[part], 1, tokens, heads[part] * d};
    const aclError code =
        place_rows(c, rows, c.tensor(P::qOut + part), index, c.text(P::cacheModeOptional),
                   floats(at_or_null(c, P::vCache + part)),
                   floats(at_or_null(c, P::vScaleOptional + part)), true, true);
    if (code != ACL_SUCCESS) return code;
  }
  return ACL_SUCCESS;
}

// (selfRef, indices, updates, quantScales, quantZeroPoints, axis, quantAxis, reduction): row b of
// the updates, quantised, goes to self[b] from indices[b] on along the axis; indices of [n, 2] name
// the batch as well.
aclnnStatus check_quant_scatter(Call& c) {
  using P = params::InplaceQuantScatter;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::selfRef, P::indices, P::updates, P::quantScales}));
  const Tensor &self = c.tensor(P::selfRef), &updates = c.tensor(P::updates);
  const int64_t axis = c.integer(P::axis) < 0 ? c.integer(P::axis) + self.rank : c.integer(P::axis);
  if (self.rank != updates.rank || self.rank < 3 || axis <= 0 || axis >= self.rank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "updates %s do not fit %s along axis %lld.",
                  shape_text(updates), shape_text(self),
                  static_cast<long long>(c.integer(P::axis)));
  }
  for (int i = 1; i < self.rank; ++i) {
    if (i != axis && updates.dims[i] != self.dims[i]) return refuse_fit(c, P::updates, P::selfRef);
  }
  if (width_of(c.tensor(P::quantScales)) != width_of(updates) &&
      c.tensor(P::quantScales).numel() != 1)
    return refuse_fit(c, P::quantScales, P::updates);
  return expect_numel(c, P::indices, updates.dims[0] * (c.tensor(P::indices).rank == 2 ? 2 : 1));
}
aclError run_quant_scatter(Call& c) {
  using P = params::InplaceQuantScatter;

  const Tensor &self = c.tensor(P::selfRef), &updates = c.tensor(P::updates);
  const int64_t axis = c.integer(P::axis) < 0 ? c.integer(P::axis) + self.rank : c.integer(P::axis),
                n = width_of(updates);
  Floats rows = floats(updates);
  const Floats scale = floats(c.tensor(P::quantScales)),
               zero = floats(at_or_null(c, P::quantZeroPoints));
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t j = i % static_cast<size_t>(n);
    rows[i] = rows[i] / scale[scale.size() == 1 ? 0 : j] +
              (zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : j]);
  }
  const Ints indices = integers(c.tensor(P::indices));
  const bool pairs = c.tensor(P::indices).rank == 2;
  const int64_t each = updates.dims[0] ? updates.numel() / updates.dims[0] : 0;
  for (int64_t b = 0; b < updates.dims[0]; ++b) {
    const int64_t batch = pairs ? indices[2 * b] : b, first = indices[pairs ? 2 * b + 1 : b];
    Tensor to = self;
    if (batch < 0 || batch >= self.dims[0] || first < 0 ||
        first + updates.dims[axis] > self.dims[axis]) {
      return c.trap(507015, "An index lies outside %s.", c.name(P::selfRef));
    }
    to.offset += batch * self.strides[0] + first * self.strides[axis];
    to.dims[0] = 1, to.dims[axis] = updates.dims[axis];
    write_quantized(&to, Floats(rows.begin() + b * each, rows.begin() + (b + 1) * each));
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnScatterPaKvCache, check_scatter<kScatter>, run_scatter<kScatter>)
ACLNN_OWN(aclnnScatterPaCache, check_scatter<kScatterKey>, run_scatter<kScatterKey>)
ACLNN_OWN(aclnnGatherPaKvCache, check_gather, run_gather)
ACLNN_OWN(aclnnKvRmsNormRopeCache, check_kv<params::KvRmsNormRopeCache::epsilon>,
           run_kv<params::KvRmsNormRopeCache::epsilon>)
ACLNN_OWN(aclnnKvRmsNormRopeCacheV2, check_kv<params::KvRmsNormRopeCacheV2::epsilon>,
           run_kv<params::KvRmsNormRopeCacheV2::epsilon>)
ACLNN_OWN(aclnnQkvRmsNormRopeCache, check_qkv, run_qkv)
ACLNN_OWN(aclnnInplaceQuantScatter, check_quant_scatter, run_quant_scatter)
ACLNN_OWN(aclnnInplaceQuantScatterV2, check_quant_scatter, run_quant_scatter)
