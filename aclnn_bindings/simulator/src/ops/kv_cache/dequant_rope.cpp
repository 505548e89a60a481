// Queries, keys and values from one product: back from integers, rotated, and keys and values in eight
// bits in their caches. Formulas: the operator document of aclnnDequantRopeQuantKvcache and
// torch_npu's test of npu_rope_quant_kvcache, where scales multiply.
#include "params/kv_cache.h"
#include <cmath>
#include <cstring>

#include "loops/group.h"

namespace aclsim {
namespace {

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
bool is(const Call& c, const char* name, const char* text) {
  const char* given = c.text(named(c, name));
  return given && !std::strcmp(given, text);
}

struct Sizes {
  int64_t tokens, batch, width, depth, parts[3];
  int64_t per_batch() const { return batch ? tokens / batch : 0; }
};
bool paged(const Call& c) { return is(c, "cacheMode", "page"); }

aclnnStatus check_caches(Call& c) {
  using P = params::DequantRopeQuantKvcache;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::x, P::cos, P::sin, P::kCacheRef, P::vCacheRef, P::indices, P::scaleK,
                       P::scaleV, named(c, "sizeSplits"), named(c, "q")}));
  const Tensor &x = c.tensor(P::x), &k = c.tensor(P::kCacheRef), &v = c.tensor(P::vCacheRef);
  const Span<const int64_t> splits = c.ints(named(c, "sizeSplits"));
  const bool known = (c.null(named(c, "quantMode")) || is(c, "quantMode", "static")) &&
                     (c.null(named(c, "layout")) || is(c, "layout", "BSND")) &&
                     (c.null(named(c, "cacheMode")) || is(c, "cacheMode", "contiguous") || paged(c));
  if (!known || (x.rank != 2 && x.rank != 3) || k.rank != 4 || !k.same_shape(v) || splits.size != 3 ||
      k.dims[3] < 2 || k.dims[3] % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s, kCacheRef %s or vCacheRef %s does not fit, or quantMode is not static, layout "
                  "not BSND, cacheMode neither contiguous nor page, or sizeSplits has no 3 sizes.",
                  shape_text(x), shape_text(k), shape_text(v));
  }
  Sizes& s = c.make<Sizes>();
  s = {rows_of(x), x.dims[0], width_of(x), k.dims[3], {splits[0], splits[1], splits[2]}};
  const int64_t heads = k.dims[2];
  if (s.parts[0] < 0 || s.parts[0] % s.depth || s.parts[1] != heads * s.depth ||
      s.parts[2] != s.parts[1] || s.parts[0] + 2 * s.parts[1] != s.width) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "sizeSplits [%lld,%lld,%lld] does not split %s for %s.",
                  static_cast<long long>(s.parts[0]), static_cast<long long>(s.parts[1]),
                  static_cast<long long>(s.parts[2]), shape_text(x), shape_text(k));
  }
  for (int i : {P::cos, P::sin}) ACL_RETURN_IF_FAILED(expect_numel(c, i, s.tokens * s.depth));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::indices, paged(c) ? s.tokens : s.batch));
  for (int i : {P::scaleK, P::scaleV, P::offsetKOptional, P::offsetVOptional})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, s.parts[1]));
  for (const char* name : {"weightScale", "bias"})
    if (part(c, name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), s.width));
  if (part(c, "activationScale"))
    ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "activationScale"), s.tokens));
  if (x.dtype == ACL_INT32) ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "weightScale")}));
  ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "q"), s.tokens * s.parts[0]));
  for (const char* name : {"k", "v"}) {
    if (!c.flag(named(c, "kvOutput"))) break;
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, name)}));
    ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), s.tokens * s.parts[1]));
  }
  return ACLNN_SUCCESS;
}

// The rows of x as numbers.
Floats dequantised(const Call& c) {
  using P = params::DequantRopeQuantKvcache;

  Floats x = floats(c.tensor(P::x));
  if (c.tensor(P::x).dtype != ACL_INT32) return x;
  const size_t n = static_cast<size_t>(width_of(c.tensor(P::x)));
  const Floats scale = floats(part(c, "weightScale")), token = floats(part(c, "activationScale")),
               bias = floats(part(c, "bias"));
  const bool early = part(c, "bias") && part(c, "bias")->dtype == ACL_INT32;
  for (size_t i = 0; i < x.size(); ++i) {
    const double add = bias.empty() ? 0 : bias[i % n];
    x[i] = static_cast<float>((x[i] + (early ? add : 0)) * scale[i % n] *
                                  (token.empty() ? 1 : token[i / n]) + (early ? 0 : add));
  }
  return x;
}
void turn(float* x, const float* cos, const float* sin, int64_t n) {
  for (int64_t i = 0; i < n / 2; ++i) {
    const float a = x[i], b = x[n / 2 + i];
    x[i] = a * cos[i] - b * sin[i];
    x[n / 2 + i] = b * cos[n / 2 + i] + a * sin[n / 2 + i];
  }
}
aclError store_rows(Call& c, int cache, int scale, const Floats& rows) {
  using P = params::DequantRopeQuantKvcache;

  const Sizes& s = c.get<Sizes>();
  const Tensor& t = c.tensor(cache);
  const Floats by = floats(c.tensor(scale)), shift = floats(c.maybe(scale + 2));
  const Ints at = integers(c.tensor(P::indices));
  const int64_t width = s.parts[1], each = t.dims[1], slots = t.dims[0] * each;
  Floats all = floats(t);
  for (int64_t row = 0; row < s.tokens; ++row) {
    const int64_t b = row / s.per_batch(), place = paged(c) ? at[row] : at[b] + row % s.per_batch(),
                  slot = paged(c) ? place : b * each + place;
    if (place < 0 || (!paged(c) && place >= each) || slot >= slots)
      return c.trap(507015, "indices leave %s at %lld", c.name(cache), static_cast<long long>(place));
    for (int64_t j = 0; j < width; ++j) {
      const float v = rows[row * width + j] * by[j] + (shift.empty() ? 0 : shift[j]);
      all[slot * width + j] = std::min(std::max(std::nearbyint(v), -128.0f), 127.0f);
    }
  }
  write(t, all);
  return ACL_SUCCESS;
}
aclError run_caches(Call& c) {
  using P = params::DequantRopeQuantKvcache;

  const Sizes& s = c.get<Sizes>();
  const Floats x = dequantised(c), cos = floats(c.tensor(P::cos)), sin = floats(c.tensor(P::sin));
  Floats parts[3];
  for (int64_t row = 0; row < s.tokens; ++row) {
    const float* from = x.data() + row * s.width;
    for (int p = 0; p < 3; from += s.parts[p++]) {
      const auto first = static_cast<int64_t>(parts[p].size());
      parts[p].insert(parts[p].end(), from, from + s.parts[p]);
      for (int64_t i = 0; p < 2 && i < s.parts[p]; i += s.depth)
        turn(parts[p].data() + first + i, cos.data() + row * s.depth, sin.data() + row * s.depth, s.depth);
    }
  }
  write(c.maybe(named(c, "q")), parts[0]);
  if (c.flag(named(c, "kvOutput"))) {
    write(part(c, "k"), parts[1]);
    write(part(c, "v"), parts[2]);
  }
  const aclDataType to = c.tensor(named(c, "q")).dtype;
  for (int p : {1, 2}) round_to(parts[p].data(), to, static_cast<int64_t>(parts[p].size()));
  const aclError code = store_rows(c, P::kCacheRef, P::scaleK, parts[1]);
  return code == ACL_SUCCESS ? store_rows(c, P::vCacheRef, P::scaleV, parts[2]) : code;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnDequantRopeQuantKvcache, check_caches, run_caches, kOwnNulls)
