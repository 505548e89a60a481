// Padding with a constant, by reflection, replication or wrapping, and the gradients of these.
#include "params/shape.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <vector>

namespace aclsim {
namespace {

// Pads of the last dims first, two per dim, as torch orders them.
aclnnStatus padded_shape(const Call& c, int self, int pads, Shape& shape) {
  const Span<const int64_t> pad = c.ints(pads);
  shape = shape_of(c.tensor(self));
  if (pad.size % 2 || pad.size > 2 * shape.rank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s has %lld values, self has %d dims.", c.name(pads),
                  static_cast<long long>(pad.size), shape.rank);
  }
  for (int64_t i = 0; i < pad.size / 2; ++i) {
    int64_t& d = shape.dims[shape.rank - 1 - i];
    d += pad[2 * i] + pad[2 * i + 1];
    if (d < 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "The pads leave a negative size.");
  }
  return ACLNN_SUCCESS;
}

aclnnStatus check_constant(Call& c) {
  using P = params::ConstantPadNd;

  Shape shape;
  ACL_RETURN_IF_FAILED(padded_shape(c, P::self, P::pad, shape));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, shape);
}
void run_constant(Call& c) {
  using P = params::ConstantPadNd;

  Tensor from = c.tensor(P::self), to = c.tensor(P::out);
  fill_tensor(to, c.scalar(P::value));
  const Span<const int64_t> pad = c.ints(P::pad);
  for (int64_t i = 0; i < pad.size / 2; ++i) {
    const int d = from.rank - 1 - static_cast<int>(i);
    const int64_t before = pad[2 * i], begin = std::max<int64_t>(0, -before);
    const int64_t end = std::min(from.dims[d], to.dims[d] - before);
    from.offset += begin * from.strides[d];
    to.offset += (begin + before) * to.strides[d];
    from.dims[d] = to.dims[d] = std::max<int64_t>(0, end - begin);
  }
  copy_tensor(to, from);
}

enum class Mode { Reflect, Replicate, Wrap };

int64_t source(Mode mode, int64_t i, int64_t n) {
  if (mode == Mode::Wrap) return ((i % n) + n) % n;
  if (mode == Mode::Replicate || n == 1) return std::min(std::max<int64_t>(i, 0), n - 1);
  if (i < 0) return -i;
  return i < n ? i : 2 * (n - 1) - i;
}

template <Mode mode, int Dims>
aclnnStatus check_sizes(const Call& c, int self, int pads) {
  const Tensor& t = c.tensor(self);
  const Span<const int64_t> pad = c.ints(pads);
  if (pad.size != 2 * Dims || t.rank < Dims) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %d values, self %d dims or more.",
                  c.name(pads), 2 * Dims, Dims);
  }
  for (int64_t i = 0; i < pad.size; ++i) {
    const int64_t n = t.dims[t.rank - 1 - i / 2];
    // Nothing can be repeated of a size of 0.
    const int64_t most = mode == Mode::Reflect ? n - 1 : (mode == Mode::Wrap || !n ? n : INT64_MAX);
    if (pad[i] > most) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s value %lld is too large for size %lld.",
                    c.name(pads), static_cast<long long>(pad[i]), static_cast<long long>(n));
    }
  }
  return ACLNN_SUCCESS;
}

// Per dim of the padded tensor, the strided place in the plain one.
struct Places {
  std::vector<int64_t> at[kMaxRank];
  Places(Mode mode, const Tensor& padded, const Tensor& plain, Span<const int64_t> pad) {
    for (int d = 0; d < padded.rank; ++d) {
      const int from_end = padded.rank - 1 - d;
      const int64_t before = 2 * from_end < pad.size ? pad[2 * from_end] : 0;
      for (int64_t i = 0; i < padded.dims[d]; ++i) {
        at[d].push_back(source(mode, i - before, plain.dims[d]) * plain.strides[d]);
      }
    }
  }
  int64_t of(const Walker& w) const {
    int64_t sum = 0;
    for (int d = 0; d < w.rank; ++d) sum += at[d][static_cast<size_t>(w.index[d])];
    return sum;
  }
};

template <Mode mode, int Dims>
aclnnStatus check_pad(Call& c) {
  using P = params::CircularPad2d;

  ACL_RETURN_IF_FAILED((check_sizes<mode, Dims>(c, P::self, P::padding)));
  Shape shape;
  ACL_RETURN_IF_FAILED(padded_shape(c, P::self, P::padding, shape));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, shape);
}
template <Mode mode>
void run_pad(Call& c) {
  using P = params::CircularPad2d;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (out.numel() == 0) return;
  const Places places(mode, out, self, c.ints(P::padding));
  with_width(dtype_size(out.dtype), [&](auto width) {
    using T = decltype(width);
    parallel_for(out.numel(), 16384, [&](int64_t begin, int64_t end) {
      Walker w(out.rank, out.dims, begin);
      const T* from = static_cast<const T*>(self.data) + self.offset;
      T* to = static_cast<T*>(out.data) + out.offset;
      for (int64_t i = begin; i < end; ++i, w.next())
        to[w.offset(out.strides)] = from[places.of(w)];
    });
  });
}

// (gradOutput, self, padding, gradInput): summed in a dense copy in the compute type.
template <Mode mode, int Dims>
aclnnStatus check_pad_grad(Call& c) {
  using P = params::CircularPad2dBackward;

  ACL_RETURN_IF_FAILED((check_sizes<mode, Dims>(c, P::self, P::padding)));
  Shape shape;
  ACL_RETURN_IF_FAILED(padded_shape(c, P::self, P::padding, shape));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, shape));
  c.workspace_size = c.tensor(P::self).numel() * sizeof(c128);
  return expect_same_shape(c, P::gradInput, P::self);
}
template <Mode mode>
void run_pad_grad(Call& c) {
  using P = params::CircularPad2dBackward;

  const Tensor &grad = c.tensor(P::gradOutput), &out = c.tensor(P::gradInput);
  if (out.numel() == 0) return;
  with_number(grad.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    C* sums = static_cast<C*>(c.workspace);
    const Tensor sum = dense(sums, dtype_of<C>(), out.dims, out.rank);
    std::fill_n(sums, sum.numel(), C(0));
    const Places places(mode, grad, sum, c.ints(P::padding));
    Walker w(grad.rank, grad.dims);
    for (int64_t i = grad.numel(); i > 0; --i, w.next()) {
      sums[places.of(w)] +=
          load_one<C>(grad.data, grad.dtype, grad.offset + w.offset(grad.strides));
    }
    copy_tensor(out, sum);
  });
}

}  // namespace
}  // namespace aclsim

#define ACLNN_PAD(op, backward, mode, dims)                                  \
  ACLNN_OP(op, (check_pad<Mode::mode, dims>), run_pad<Mode::mode>)           \
  ACLNN_OP(backward, (check_pad_grad<Mode::mode, dims>), run_pad_grad<Mode::mode>)
ACLNN_OP(aclnnConstantPadNd, check_constant, run_constant)
ACLNN_PAD(aclnnReflectionPad1d, aclnnReflectionPad1dBackward, Reflect, 1)
ACLNN_PAD(aclnnReflectionPad2d, aclnnReflectionPad2dBackward, Reflect, 2)
ACLNN_PAD(aclnnReflectionPad3d, aclnnReflectionPad3dBackward, Reflect, 3)
ACLNN_PAD(aclnnReplicationPad1d, aclnnReplicationPad1dBackward, Replicate, 1)
ACLNN_PAD(aclnnReplicationPad2d, aclnnReplicationPad2dBackward, Replicate, 2)
ACLNN_PAD(aclnnReplicationPad3d, aclnnReplicationPad3dBackward, Replicate, 3)
ACLNN_PAD(aclnnCircularPad2d, aclnnCircularPad2dBackward, Wrap, 2)
ACLNN_PAD(aclnnCircularPad3d, aclnnCircularPad3dBackward, Wrap, 3)
