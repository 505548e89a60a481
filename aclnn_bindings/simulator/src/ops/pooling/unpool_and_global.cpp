// Pooling beyond torch's: ONNX' MaxPool, whole planes, and putting pooled values back.
#include "params/pooling.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (self [(N,) C, H, W], kernelShape, strides, autoPad, pads, dilations, ceilMode, out). Of pads one
// value serves all sides, two those of height and width, four are ONNX' begins, then ends.
struct MaxWindows {
  int64_t in[2], out[2], kernel[2], stride[2], begin[2], end[2], dilation[2];
};
int64_t nth(Span<const int64_t> given, int64_t i, int64_t otherwise) {
  return given.size == 0 ? otherwise : given[std::min(i, given.size - 1)];
}
int64_t pooled_size(const MaxWindows& w, int i, bool ceil) {
  const int64_t padded = w.in[i] + w.begin[i] + w.end[i];
  const int64_t span = padded - w.dilation[i] * (w.kernel[i] - 1) - 1;
  if (span < 0) return 0;
  const int64_t n = (span + (ceil ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
  return ceil && (n - 1) * w.stride[i] >= w.in[i] + w.begin[i] ? n - 1 : n;
}
aclnnStatus check_max_pool(Call& c) {
  using P = params::MaxPool;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 3, 4));
  for (int i : {P::kernelShape, P::strides, P::dilations})
    ACL_RETURN_IF_FAILED(expect_ints(c, i, i == 1, 2));
  ACL_RETURN_IF_FAILED(expect_ints(c, P::pads, 0, 4));
  ACL_RETURN_IF_FAILED(expect_int(c, P::autoPad, 0, 0));
  const Tensor& self = c.tensor(P::self);
  MaxWindows& w = c.make<MaxWindows>();
  Shape shape = shape_of(self);
  bool fits = true;
  for (int i = P::self; i < 2; ++i) {
    w.in[i] = self.dims[self.rank - 2 + i];
    w.kernel[i] = nth(c.ints(P::kernelShape), i, 1);
    w.stride[i] = nth(c.ints(P::strides), i, 1);
    w.begin[i] = nth(c.ints(P::pads), i, 0);
    w.end[i] = c.ints(P::pads).size == 4 ? c.ints(P::pads)[2 + i] : w.begin[i];
    w.dilation[i] = nth(c.ints(P::dilations), i, 1);
    fits = fits && w.kernel[i] > 0 && w.stride[i] > 0 && w.dilation[i] > 0 && w.begin[i] >= 0 &&
           w.end[i] >= 0 && w.begin[i] < w.dilation[i] * (w.kernel[i] - 1) + 1;
    if (fits)
      shape.dims[self.rank - 2 + i] = w.out[i] = pooled_size(w, i, c.integer(P::ceilMode) != 0);
  }
  if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "The windows don't fit %s.", shape_text(self));
  return expect_shape(c, P::out, shape);
}
template <class T>
T window_max(const MaxWindows& w, const T* plane, int64_t h, int64_t x) {
  T top = std::numeric_limits<T>::lowest();
  if (std::numeric_limits<T>::has_infinity) top = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < w.kernel[0]; ++i) {
    const int64_t row = h * w.stride[0] - w.begin[0] + i * w.dilation[0];
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      const int64_t col = x * w.stride[1] - w.begin[1] + j * w.dilation[1];
      if (row < 0 || row >= w.in[0] || col < 0 || col >= w.in[1]) continue;
      const T value = plane[row * w.in[1] + col];
      top = value != value || value > top ? value : top;
    }
  }
  return top;
}
void run_max_pool(Call& c) {
  using P = params::MaxPool;

  const MaxWindows& w = c.get<MaxWindows>();
  with_real(c.tensor(P::self).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> x = values_of<T>(c.tensor(P::self));
    std::vector<T> y;
    const int64_t plane = w.in[0] * w.in[1];
    for (size_t from = 0; plane > 0 && from < x.size(); from += static_cast<size_t>(plane)) {
      for (int64_t h = 0; h < w.out[0]; ++h) {
        for (int64_t k = 0; k < w.out[1]; ++k) y.push_back(window_max(w, x.data() + from, h, k));
      }
    }
    put(c.tensor(P::out), y);
  });
}

// (self [N, C, ...], out [N, C, 1, ...]).
aclnnStatus check_global(Call& c) {
  using P = params::GlobalMaxPool;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 3, kMaxRank));
  Shape shape = shape_of(c.tensor(P::self));
  for (int i = 2; i < shape.rank; ++i) shape.dims[i] = 1;
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, shape);
}
template <bool Max>
void run_global(Call& c) {
  using P = params::GlobalMaxPool;

  const Tensor& out = c.tensor(P::out);
  const Numbers x = numbers(c.tensor(P::self));
  Numbers y(static_cast<size_t>(out.numel()));
  const size_t n = y.empty() ? 0 : x.size() / y.size();
  for (size_t p = 0; p < y.size(); ++p) {
    const double* plane = x.data() + p * n;
    double sum = Max ? -std::numeric_limits<double>::infinity() : 0;
    for (size_t i = 0; i < n; ++i) {
      if (!Max) sum += plane[i];
      if (Max && (plane[i] != plane[i] || plane[i] > sum)) sum = plane[i];
    }
    y[p] = Max ? sum : sum / static_cast<double>(n);
  }
  put(out, y);
}

// Max unpooling over `Dims` spatial dims: what is small and what is large, by argument.
template <int Dims>
aclnnStatus check_planes(const Call& c, int small, int indices, int sizes, int large) {
  ACL_RETURN_IF_FAILED(expect_rank(c, small, Dims + 1, Dims + 2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, indices, small));
  ACL_RETURN_IF_FAILED(expect_ints(c, sizes, Dims, Dims));
  Shape shape = shape_of(c.tensor(small));
  for (int i = 0; i < Dims; ++i) shape.dims[shape.rank - Dims + i] = c.ints(sizes)[i];
  return expect_shape(c, large, shape);
}
// (self, indices, outputSize, [stride, padding,] out): zeros but for self at its indices.
template <int Dims, int Out>
aclnnStatus check_unpool(Call& c) {
  using P = params::MaxUnpool2d;

  ACL_RETURN_IF_FAILED(expect_same_dtype(c, Out, P::self));
  return check_planes<Dims>(c, P::self, P::indices, P::outputSize, Out);
}
// f(small, large) for every index of every plane.
template <class F>
aclError each_index(const Call& c, int indices, const Tensor& large, int dims, F f) {
  const Integers at = integers(c.tensor(indices));
  const int64_t small_plane = tail_numel(c.tensor(indices), dims);
  const int64_t plane = tail_numel(large, dims);
  for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
    if (at[i] < 0 || at[i] >= plane) {
      return c.trap(507015, "index %lld is out of range for a plane of %lld",
                    static_cast<long long>(at[i]), static_cast<long long>(plane));
    }
    f(i, i / small_plane * plane + at[i]);
  }
  return ACL_SUCCESS;
}
template <int Dims, int Out>
aclError run_unpool(Call& c) {
  using P = params::MaxUnpool2d;

  aclError error = ACL_SUCCESS;
  with_real(c.tensor(P::self).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> x = values_of<T>(c.tensor(P::self));
    std::vector<T> y(static_cast<size_t>(c.tensor(Out).numel()));
    error =
        each_index(c, P::indices, c.tensor(Out), Dims, [&](int64_t i, int64_t k) { y[k] = x[i]; });
    if (error == ACL_SUCCESS) put(c.tensor(Out), y);
  });
  return error;
}
template <int Dims, int Out>
aclnnStatus check_unpool_grad(Call& c) {
  using P = params::MaxUnpool2dBackward;

  ACL_RETURN_IF_FAILED(expect_same_shape(c, Out, P::self));
  return check_planes<Dims>(c, P::self, P::indices, P::outputSize, P::gradOutput);
}
template <int Dims, int Out>
aclError run_unpool_grad(Call& c) {
  using P = params::MaxUnpool2dBackward;

  aclError error = ACL_SUCCESS;
  with_real(c.tensor(P::gradOutput).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> g = values_of<T>(c.tensor(P::gradOutput));
    std::vector<T> x(static_cast<size_t>(c.tensor(Out).numel()));
    error = each_index(c, P::indices, c.tensor(P::gradOutput), Dims,
                       [&](int64_t i, int64_t k) { x[i] = g[k]; });
    if (error == ACL_SUCCESS) put(c.tensor(Out), x);
  });
  return error;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaxPool, check_max_pool, run_max_pool)
ACLNN_OP(aclnnGlobalAveragePool, check_global, run_global<false>)
ACLNN_OP(aclnnGlobalMaxPool, check_global, run_global<true>)
ACLNN_OP(aclnnMaxUnpool2d, (check_unpool<2, params::MaxUnpool2d::out>),
         (run_unpool<2, params::MaxUnpool2d::out>))
ACLNN_OP(aclnnMaxUnpool3d, (check_unpool<3, params::MaxUnpool3d::outRef>),
         (run_unpool<3, params::MaxUnpool3d::outRef>))
ACLNN_OP(aclnnMaxUnpool2dBackward, (check_unpool_grad<2, params::MaxUnpool2dBackward::out>),
         (run_unpool_grad<2, params::MaxUnpool2dBackward::out>))
ACLNN_OP(aclnnMaxUnpool3dBackward, (check_unpool_grad<3, params::MaxUnpool3dBackward::out>),
         (run_unpool_grad<3, params::MaxUnpool3dBackward::out>))
