// repeat_interleave in its forms: each slice along an axis some number of times.
#include "params/shape.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// Where the arguments stand; -1: absent. Without a dim, self counts as one flat row.
template <int Repeats, int Dim, int Size, int Out>
struct Interleave {
  static int axis(const Call& c) {
    using P = params::RepeatInterleave;

    if (Dim < 0 || c.tensor(P::self).rank == 0) return 0;
    const int64_t d = c.integer(Dim < 0 ? 0 : Dim);
    return static_cast<int>(d < 0 ? d + c.tensor(P::self).rank : d);
  }
  static bool fixed(const Call& c) { return c.args[Repeats].kind != ArgKind::Tensor; }
  static int64_t slices(const Call& c) {
    using P = params::RepeatInterleave;

    return Dim < 0 ? c.tensor(P::self).numel() : axis_size(c.tensor(P::self), axis(c));
  }

  static aclnnStatus check(Call& c) {
    using P = params::RepeatInterleave;

    const Tensor& self = c.tensor(P::self);
    if (Dim >= 0) {
      int64_t given = c.integer(Dim < 0 ? 0 : Dim);
      ACL_RETURN_IF_FAILED(expect_axis(c, Dim, given, self.rank));
    }
    const int64_t n = slices(c);
    if (!fixed(c)) {
      const Tensor& repeats = c.tensor(Repeats);
      if (repeats.rank > 1 || (repeats.numel() != n && repeats.numel() != 1)) {
        return c.fail(ACLNN_ERR_PARAM_INVALID, "repeats should have 1 or %lld elements, not %s.",
                      static_cast<long long>(n), shape_text(repeats));
      }
    }
    const int64_t size = fixed(c) ? c.integer(Repeats) * n : c.integer(Size);
    Shape shape;
    shape.rank = 1;
    if (Dim >= 0 && self.rank > 0) shape = shape_of(self);
    shape.dims[axis(c)] = size;
    ACL_RETURN_IF_FAILED(expect_shape(c, Out, shape));
    ACL_RETURN_IF_FAILED(expect_same_dtype(c, Out, P::self));
    c.workspace_size = (size + n) * sizeof(int64_t) + self.numel() * dtype_size(self.dtype);
    return ACLNN_SUCCESS;
  }

  // at[k]: the slice that place k of the output takes.
  static bool places(const Call& c, int64_t* at, int64_t size, int64_t* counts) {
    const int64_t n = slices(c);
    if (fixed(c)) {
      std::fill_n(counts, n, c.integer(Repeats));
    } else {
      Tensor repeats = c.tensor(Repeats);
      if (repeats.numel() == 1) repeats.rank = 0;
      copy_tensor(dense(counts, ACL_INT64, &n, 1), repeats);
    }
    int64_t k = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (counts[i] < 0 || counts[i] > size - k) return false;
      std::fill_n(at + k, counts[i], i);
      k += counts[i];
    }
    return k == size;
  }

  static aclError run(Call& c) {
    using P = params::RepeatInterleave;

    Tensor self = c.tensor(P::self);
    const Tensor& out = c.tensor(Out);
    if (out.numel() == 0) return ACL_SUCCESS;
    int64_t* at = static_cast<int64_t*>(c.workspace);
    const int64_t size = axis_size(out, axis(c)), n = slices(c);
    if (!places(c, at, size, at + size)) {
      return c.trap(507015, "repeats don't sum to the output's size %lld",
                    static_cast<long long>(size));
    }
    if (Dim < 0 || self.rank == 0) {
      void* flat = at + size + n;
      copy_tensor(dense(flat, self.dtype, self.dims, self.rank), self);
      self = dense(flat, self.dtype, &n, 1);
    }
    select_slices(out, self, at, axis(c));
    return ACL_SUCCESS;
  }
};

// (repeats, outputSize, out): the places themselves.
aclnnStatus check_places(Call& c) {
  using P = params::RepeatInterleaveTensor;

  Shape shape;
  shape.rank = 1;
  shape.dims[0] = c.integer(P::outputSize);
  return expect_shape(c, P::out, shape);
}
aclError run_places(Call& c) {
  using P = params::RepeatInterleaveTensor;

  const Tensor &repeats = c.tensor(P::repeats), &out = c.tensor(P::out);
  int64_t k = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    const int64_t n = load_one<int64_t>(repeats.data, repeats.dtype,
                                        repeats.offset + i * repeats.strides[0]);
    if (n < 0 || k + n > out.numel())
      return c.trap(507015, "repeats don't sum to the output's size");
    for (int64_t r = 0; r < n; ++r, ++k) {
      store_one(i, out.data, out.dtype, out.offset + k * out.strides[0]);
    }
  }
  return ACL_SUCCESS;
}

// (yGrad, repeats, axis, out): each slice of out is the sum of its copies' gradients.
aclnnStatus check_repeat_grad(Call& c) {
  using P = params::RepeatInterleaveGrad;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::axis);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::axis, axis, c.tensor(P::out).rank));
  const int64_t n = axis_size(c.tensor(P::out), static_cast<int>(axis));
  const Tensor& repeats = c.tensor(P::repeats);
  c.workspace_size = n * sizeof(int64_t);
  if (repeats.rank <= 1 && (repeats.numel() == n || repeats.numel() == 1)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "repeats should have 1 or %lld elements, not %s.",
                static_cast<long long>(n), shape_text(repeats));
}
aclError run_repeat_grad(Call& c) {
  using P = params::RepeatInterleaveGrad;

  const Tensor &grad = c.tensor(P::yGrad), &out = c.tensor(P::out);
  if (out.numel() == 0) return ACL_SUCCESS;
  const int axis = static_cast<int>(c.get<int64_t>());
  const int64_t n = axis_size(out, axis), size = axis_size(grad, axis);
  int64_t* counts = static_cast<int64_t*>(c.workspace);
  Tensor repeats = c.tensor(P::repeats);
  if (repeats.numel() == 1) repeats.rank = 0;
  copy_tensor(dense(counts, ACL_INT64, &n, 1), repeats);
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += counts[i];
  if (total != size) return c.trap(507015, "repeats don't sum to the gradient's size");
  const Rows rows({&out, &grad}, axis);
  with_float(out.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(size, [&](const int64_t* offsets) {
      Buffer<C> given(size), sums(n);
      const C* g = row_in<C>(given, grad, offsets[1], axis);
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < counts[i]; ++k) sum += *g++;
        sums[i] = static_cast<C>(sum);
      }
      store(sums.get(), out.data, out.dtype, offsets[0], axis_stride(out, axis), n);
    });
  });
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_INTERLEAVE(op, ...) \
  ACLNN_OP(op, (Interleave<__VA_ARGS__>::check), (Interleave<__VA_ARGS__>::run))
ACLNN_INTERLEAVE(aclnnRepeatInterleave, params::RepeatInterleave::repeats, -1,
                 params::RepeatInterleave::outputSize, params::RepeatInterleave::out)
ACLNN_INTERLEAVE(aclnnRepeatInterleaveInt, params::RepeatInterleaveInt::repeats, -1,
                 params::RepeatInterleaveInt::outputSize, params::RepeatInterleaveInt::out)
ACLNN_INTERLEAVE(aclnnRepeatInterleaveWithDim, params::RepeatInterleaveWithDim::repeats,
                 params::RepeatInterleaveWithDim::dim, params::RepeatInterleaveWithDim::outputSize,
                 params::RepeatInterleaveWithDim::out)
ACLNN_INTERLEAVE(aclnnRepeatInterleaveIntWithDim, params::RepeatInterleaveIntWithDim::repeats,
                 params::RepeatInterleaveIntWithDim::dim,
                 params::RepeatInterleaveIntWithDim::outputSize,
                 params::RepeatInterleaveIntWithDim::out)
ACLNN_OP(aclnnRepeatInterleaveTensor, check_places, run_places)
ACLNN_OP(aclnnRepeatInterleaveGrad, check_repeat_grad, run_repeat_grad)
