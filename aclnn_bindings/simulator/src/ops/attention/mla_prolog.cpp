// What comes before multi-head latent attention: queries through a low-rank product, a norm and a
// rotation, keys and values into their caches. Formulas: the "npu_mla_prolog", "npu_mla_prolog_v2" and
// "npu_mla_prolog_v3" pages of torch_npu and its tests of the first two.
#include <cmath>
#include <cstring>

#include "loops/group.h"
#include "loops/indices.h"
#include "loops/matrices.h"

namespace aclsim {
namespace {

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
double number_of(const Call& c, const char* name, double other) {
  const int at = named(c, name);
  return at == kNone ? other : c.number(at);
}
int64_t setting(const Call& c, const char* name) {
  const int at = named(c, name);
  return at == kNone ? 0 : c.integer(at);
}

struct Sizes {
  int64_t tokens, inner, low, heads, nope, rope, latent, slots;
};
Sizes sizes_of(const Call& c) {
  const Tensor& x = *part(c, "tokenX");
  const Matrices down = matrices_like(*part(c, "weightDq"), false, false);
  const Tensor& up = *part(c, "weightUk");
  const Tensor& cache = *part(c, "kvCache");
  const int64_t latent = up.dims[2];
  return {rows_of(x), width_of(x), part(c, "rmsnormGammaCq")->numel(), up.dims[0], up.dims[1],
          width_of(*part(c, "ropeCos")), latent, latent && down.cols ? cache.numel() / latent : 0};
}
enum class CacheKind : uint8_t { Rows, Blocks };  // Blocks: 32 bytes of each row lie together
bool read_mode(const Call& c, CacheKind& mode) {
  const int at = named(c, "cacheMode");
  const char* text = at == kNone || !c.text(at) ? "" : c.text(at);
  mode = !std::strcmp(text, "PA_NZ") ? CacheKind::Blocks : CacheKind::Rows;
  for (const char* known : {"", "PA_BSND", "PA_NZ", "BSND", "TND"}) {
    if (!std::strcmp(text, known)) return true;
  }
  return false;
}

aclnnStatus expect_operands(const Call& c) {
  for (const char* name : {"tokenX", "weightDq", "weightUqQr", "weightUk", "weightDkvKr",
                           "rmsnormGammaCq", "rmsnormGammaCkv", "ropeSin", "ropeCos", "kvCache",
                           "krCache", "query", "queryRope"}) {
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, name)}));
    if (!part(c, name)) return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should not be empty.", name);
  }
  if (part(c, "weightUk")->rank != 3 || part(c, "tokenX")->rank < 2 ||
      part(c, "weightDq")->rank < 2 || part(c, "weightUqQr")->rank < 2 ||
      part(c, "weightDkvKr")->rank < 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "weightUk should have 3 dims, the others 2 or more.");
  }
  return ACLNN_SUCCESS;
}
aclnnStatus check_prolog(Call& c) {
  ACL_RETURN_IF_FAILED(expect_operands(c));
  CacheKind mode;
  if (!read_mode(c, mode))
    return c.fail(ACLNN_ERR_PARAM_INVALID, "cacheMode should be PA_BSND, PA_NZ, BSND or TND.");
  for (const char* name : {"kvCacheQuantMode", "ckvkrRepoMode", "quantScaleRepoMode"}) {
    const int64_t most = std::strcmp(name, "kvCacheQuantMode") ? 0 : 2;
    if (setting(c, name) < 0 || setting(c, name) > most)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %lld is not supported by the simulator.", name,
                    static_cast<long long>(setting(c, name)));
  }
  if (part(c, "actualSeqLen") || part(c, "kNopeClipAlpha"))
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "actualSeqLen and kNopeClipAlpha are not supported by the simulator.");
  const Sizes s = sizes_of(c);
  const struct {
    const char* name;
    int64_t rows, cols;
  } weights[] = {{"weightDq", s.inner, s.low},
                 {"weightUqQr", s.low, s.heads * (s.nope + s.rope)},
                 {"weightDkvKr", s.inner, s.latent + s.rope}};
  for (const auto& w : weights) {
    const Matrices m = matrices_like(*part(c, w.name), false, false);
    if (m.batch != 1 || m.rows < w.rows || m.cols < w.cols)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s should be of %lld x %lld.", w.name,
                    shape_text(*part(c, w.name)), static_cast<long long>(w.rows),
                    static_cast<long long>(w.cols));
  }
  const struct {
    const char* name;
    int64_t numel;
  } others[] = {{"rmsnormGammaCkv", s.latent},
                {"ropeSin", s.tokens * s.rope},
                {"ropeCos", s.tokens * s.rope},
                {"cacheIndex", s.tokens},
                {"krCache", s.slots * s.rope},
                {"query", s.tokens * s.heads * s.latent},
                {"queryRope", s.tokens * s.heads * s.rope},
                {"dequantScaleX", s.tokens},
                {"dequantScaleWDq", s.low},
                {"dequantScaleWUqQr", s.heads * (s.nope + s.rope)},
                {"dequantScaleWDkvKr", s.latent + s.rope},
                {"smoothScalesCq", s.low},
                {"queryNorm", s.tokens * s.low},
                {"dequantScaleQNorm", s.tokens}};
  for (const auto& t : others) {
    if (part(c, t.name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, t.name), t.numel));
  }
  if (!part(c, "cacheIndex") && s.slots < s.tokens)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "kvCache has %lld rows for %lld tokens.",
                  static_cast<long long>(s.slots), static_cast<long long>(s.tokens));
  const Tensor* nope = part(c, "dequantScaleQNope");
  if (nope && nope->numel() != s.tokens && nope->numel() != s.tokens * s.heads)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dequantScaleQNopeOut %s should have a scale for a token "
                  "or a head of it.", shape_text(*nope));
  if (part(c, "query")->dtype == ACL_INT8 && !nope)
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "dequantScaleQNopeOut is null, which an int8 query needs.");
  const struct {
    const char *cache, *scale;
    int64_t cols;
  } caches[] = {{"kvCache", "quantScaleCkv", s.latent}, {"krCache", "quantScaleCkr", s.rope}};
  for (const auto& k : caches) {
    const Tensor* scale = part(c, k.scale);
    if (part(c, k.cache)->dtype == ACL_INT8 && !scale)
      return c.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is null, which an int8 cache needs.", k.scale);
    if (scale && scale->numel() != 1 && scale->numel() != k.cols)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s should have 1 or %lld elements.", k.scale,
                    shape_text(*scale), static_cast<long long>(k.cols));
    if (mode == CacheKind::Blocks && (part(c, k.cache)->rank != 4 || !part(c, k.cache)->contiguous()))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have 4 dims for PA_NZ.", k.cache);
  }
  return ACLNN_SUCCESS;
}

// x w, times a scale for each row and column where the operands are integers.
Floats multiplied(const Matrices& x, const Tensor& w, int64_t cols, const Floats& rows,
                  const Floats& columns) {
  const Matrices m = product(x, matrices_of(w, false, false, x.cols, cols));
  Floats y(m.v.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t r = i / static_cast<size_t>(m.cols), j = i % static_cast<size_t>(m.cols);
    y[i] = static_cast<float>(m.v[i] * (rows.empty() ? 1 : rows[r]) *
                              (columns.empty() ? 1 : columns[j]));
  }
  return y;
}
// Rows [first, first + n) of each `width` normed by their root mean square.
Floats normed(const Floats& x, int64_t width, int64_t n, const Floats& gamma, double eps,
              double times) {
  Floats y;
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(width)) {
    double square = 0;
    for (int64_t i = 0; i < n; ++i) square += static_cast<double>(x[row + i]) * x[row + i];
    const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (int64_t i = 0; i < n; ++i)
      y.push_back(static_cast<float>(x[row + i] * rstd * gamma[i] * times));
  }
  return y;
}
// Pairs (2i, 2i + 1) are turned, and lie half a row apart afterwards.
void turn(const float* x, const float* cos, const float* sin, int64_t n, float* y) {
  const int64_t half = n / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double a = x[2 * i], b = x[2 * i + 1];
    y[i] = static_cast<float>(a * cos[i] - b * sin[i]);
    y[half + i] = static_cast<float>(b * cos[half + i] + a * sin[half + i]);
  }
}
// Rows into the slots of a cache, quantised by `scale` where it has integers.
void store_rows(const Tensor& cache, CacheKind mode, const Floats& rows, int64_t width,
                const Floats& scale, const Ints& slots) {
  Floats all = floats(cache);
  const int64_t piece = 32 / static_cast<int64_t>(dtype_size(cache.dtype)),
                block = cache.rank == 4 ? cache.dims[1] : 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t t = static_cast<int64_t>(i) / width, j = static_cast<int64_t>(i) % width,
                  slot = slots[t];
    if (slot < 0) continue;
    int64_t at = slot * width + j;
    if (mode == CacheKind::Blocks)
      at = slot / block * block * width + j / piece * block * piece + slot % block * piece + j % piece;
    float v = rows[i];
    if (cache.dtype == ACL_INT8) {
      v = std::min(std::max(std::nearbyint(v * scale[scale.size() == 1 ? 0 : j]), -128.0f), 127.0f);
    }
    all[at] = v;
  }
  write(cache, all);
}

aclError run_prolog(Call& c) {
  const Sizes s = sizes_of(c);
  const aclDataType to = part(c, "queryRope")->dtype;
  const auto round = [&](Floats& v) { round_to(v.data(), to, static_cast<int64_t>(v.size())); };
  Matrices x = matrices_of(*part(c, "tokenX"), false, false);
  x.rows *= x.batch, x.batch = 1;
  const Floats token = floats(part(c, "dequantScaleX")), cos = floats(part(c, "ropeCos")),
               sin = floats(part(c, "ropeSin"));
  CacheKind mode = CacheKind::Rows;
  read_mode(c, mode);

  Floats low = multiplied(x, *part(c, "weightDq"), s.low, token, floats(part(c, "dequantScaleWDq")));
  if (token.empty()) round(low);
  low = normed(low, s.low, s.low, floats(part(c, "rmsnormGammaCq")),
               number_of(c, "rmsnormEpsilonCq", 0), number_of(c, "qcQrScale", 1));
  const Floats wide = floats(part(c, "dequantScaleWUqQr")), smooth = floats(part(c, "smoothScalesCq"));
  Floats scales;
  if (wide.empty()) {
    round(low);
  } else {
    for (size_t i = 0; i < low.size() && !smooth.empty(); ++i) low[i] *= smooth[i % smooth.size()];
    const QuantizedRows q = quantize_rows(low, s.low, 127);
    scales = q.scales;
    low = q.values;
    for (float& v : low) v = std::nearbyint(v);
  }
  write_quantized(part(c, "queryNorm"), low);
  if (!scales.empty()) write(part(c, "dequantScaleQNorm"), scales);
  const int64_t each = s.nope + s.rope;
  Floats up = multiplied({Doubles(low.begin(), low.end()), 1, s.tokens, s.low}, *part(c, "weightUqQr"),
                         s.heads * each, scales, wide);
  round(up);

  // Heads by tokens of the part without a rotation, times each head's matrix.
  Matrices nope = {Doubles(static_cast<size_t>(s.heads * s.tokens * s.nope)), s.heads, s.tokens, s.nope};
  Floats turned(static_cast<size_t>(s.tokens * s.heads * s.rope));
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t n = 0; n < s.heads; ++n) {
      const float* head = up.data() + (t * s.heads + n) * each;
      for (int64_t i = 0; i < s.nope; ++i) nope.v[(n * s.tokens + t) * s.nope + i] = head[i];
      turn(head + s.nope, cos.data() + t * s.rope, sin.data() + t * s.rope, s.rope,
           turned.data() + (t * s.heads + n) * s.rope);
    }
  }
  const Matrices absorbed = product(nope, matrices_of(*part(c, "weightUk"), false, false));
  Floats query(absorbed.v.size());
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t n = 0; n < s.heads; ++n) {
      for (int64_t i = 0; i < s.latent; ++i)
        query[(t * s.heads + n) * s.latent + i] =
            static_cast<float>(absorbed.v[(n * s.tokens + t) * s.latent + i]);
    }
  }
  round(query);
  round(turned);
  const Floats ckv_scale = floats(part(c, "quantScaleCkv"));
  if (part(c, "query")->dtype == ACL_INT8) {
    const Tensor& out = *part(c, "dequantScaleQNope");
    const int64_t group = out.numel() == s.tokens ? s.heads : 1;
    const QuantizedRows q = quantize_rows(query, group * s.latent, 127);
    query = q.values;
    write(out, q.scales);
    for (size_t i = 0; i < turned.size() && !ckv_scale.empty(); ++i)
      turned[i] *= ckv_scale[0] / q.scales[i / static_cast<size_t>(group * s.rope)];
  }
  write_quantized(part(c, "query"), query);
  write(part(c, "queryRope"), turned);

  const Floats down = multiplied(x, *part(c, "weightDkvKr"), s.latent + s.rope, token,
                                 floats(part(c, "dequantScaleWDkvKr")));
  const Floats ckv = normed(down, s.latent + s.rope, s.latent, floats(part(c, "rmsnormGammaCkv")),
                            number_of(c, "rmsnormEpsilonCkv", 0), number_of(c, "kcScale", 1));
  Floats kr(static_cast<size_t>(s.tokens * s.rope));
  for (int64_t t = 0; t < s.tokens; ++t)
    turn(down.data() + t * (s.latent + s.rope) + s.latent, cos.data() + t * s.rope,
         sin.data() + t * s.rope, s.rope, kr.data() + t * s.rope);
  Ints slots = integers(part(c, "cacheIndex"));
  for (int64_t t = static_cast<int64_t>(slots.size()); t < s.tokens; ++t) slots.push_back(t);
  for (int64_t slot : slots) {
    if (slot >= s.slots)
      return c.trap(507015, "cacheIndex %lld is beyond the %lld rows of kvCache",
                    static_cast<long long>(slot), static_cast<long long>(s.slots));
  }
  store_rows(*part(c, "kvCache"), mode, ckv, s.latent, ckv_scale, slots);
  store_rows(*part(c, "krCache"), mode, kr, s.rope, floats(part(c, "quantScaleCkr")), slots);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMlaProlog, check_prolog, run_prolog)
ACLNN_OWN(aclnnMlaPrologV2WeightNz, check_prolog, run_prolog)
ACLNN_OWN(aclnnMlaPrologV3WeightNz, check_prolog, run_prolog)
