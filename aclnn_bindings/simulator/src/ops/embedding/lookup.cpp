// Embedding lookups and their gradients.
#include "params/embedding.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// (weight, indices, out): out[..., :] = weight[indices[...], :].
aclnnStatus check_embedding(Call& c) {
  using P = params::Embedding;

  const Tensor &weight = c.tensor(P::weight), &indices = c.tensor(P::indices);
  if (weight.rank != 2 || indices.rank >= kMaxRank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "weight should have 2 dims, but its shape is %s.",
                  shape_text(weight));
  }
  Shape shape = shape_of(indices);
  shape.dims[shape.rank++] = weight.dims[1];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::weight));
  c.workspace_size = indices.numel() * sizeof(int64_t);
  return expect_shape(c, P::out, shape);
}
aclError run_embedding(Call& c) {
  using P = params::Embedding;

  const Tensor &weight = c.tensor(P::weight), &indices = c.tensor(P::indices),
               &out = c.tensor(P::out);
  if (out.numel() == 0) return ACL_SUCCESS;
  int64_t* at = static_cast<int64_t*>(c.workspace);
  IndexFault fault;
  if (!read_indices(at, indices, weight.dims[0], fault)) return fault.report(c, P::indices);
  const int64_t width = weight.dims[1], bytes = static_cast<int64_t>(dtype_size(weight.dtype));
  parallel_for(
      indices.numel(), std::max<int64_t>(1, 16384 / width), [&](int64_t begin, int64_t end) {
        Walker w(indices.rank, indices.dims, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) {
          const int64_t to = out.offset + w.offset(out.strides);
          const int64_t from = weight.offset + at[i] * weight.strides[0];
          copy_elements(static_cast<char*>(out.data) + to * bytes, out.strides[indices.rank],
                        static_cast<const char*>(weight.data) + from * bytes, weight.strides[1],
                        width, static_cast<size_t>(bytes));
        }
      });
  return ACL_SUCCESS;
}

aclnnStatus check_embedding_grad(Call& c) {
  using P = params::EmbeddingDenseBackward;

  const Tensor &grad = c.tensor(P::grad), &indices = c.tensor(P::indices);
  Shape shape;
  shape.rank = 2;
  shape.dims[0] = c.integer(P::numWeights);
  shape.dims[1] = grad.rank > 0 ? grad.dims[grad.rank - 1] : 0;
  if (grad.rank == 0 || grad.numel() != indices.numel() * shape.dims[1]) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of grad doesn't fit %s of indices.",
                  shape_text(grad), shape_text(indices));
  }
  c.workspace_size =
      indices.numel() * 8 + grad.numel() * 8 + shape.dims[0] * (shape.dims[1] + 1) * 8;
  return expect_shape(c, P::out, shape);
}
template <class C>
ACL_VECTOR void add_row(C* __restrict to, const C* __restrict from, C factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}
template <class C>
void embedding_grad(Call& c, const int64_t* at, C* space) {
  using P = params::EmbeddingDenseBackward;

  const Tensor &grad = c.tensor(P::grad), &out = c.tensor(P::out);
  const int64_t n = c.tensor(P::indices).numel(), width = out.dims[1], rows = out.dims[0];
  C* sums = space + grad.numel();
  C* counts = sums + rows * width;
  copy_tensor(dense(space, dtype_of<C>(), grad.dims, grad.rank), grad);
  std::fill_n(sums, rows * (width + 1), C(0));
  for (int64_t i = 0; i < n; ++i) counts[at[i]] += 1;
  const int64_t padding = c.integer(P::paddingIdx);
  for (int64_t i = 0; i < n; ++i) {
    if (at[i] == padding) continue;
    add_row(sums + at[i] * width, space + i * width,
            c.flag(P::scaleGradByFreq) ? C(1) / counts[at[i]] : C(1), width);
  }
  copy_tensor(out, dense(sums, dtype_of<C>(), out.dims, 2));
}
aclError run_embedding_grad(Call& c) {
  using P = params::EmbeddingDenseBackward;

  if (c.tensor(P::out).numel() == 0) return ACL_SUCCESS;
  int64_t* at = static_cast<int64_t*>(c.workspace);
  IndexFault fault;
  if (!read_indices(at, c.tensor(P::indices), c.integer(P::numWeights), fault))
    return fault.report(c, P::indices);
  with_float(c.tensor(P::grad).dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    embedding_grad<C>(c, at, reinterpret_cast<C*>(at + c.tensor(P::indices).numel()));
  });
  return ACL_SUCCESS;
}

// (selfRef, indices, maxNorm, normType): scales the named rows whose norm is larger.
aclnnStatus check_renorm_rows(Call& c) {
  using P = params::EmbeddingRenorm;

  if (c.tensor(P::selfRef).rank != 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "selfRef should have 2 dims, but its shape is %s.",
                  shape_text(c.tensor(P::selfRef)));
  }
  c.workspace_size = c.tensor(P::indices).numel() * sizeof(int64_t);
  return ACLNN_SUCCESS;
}
double row_norm(const float* x, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double a = std::fabs(x[i]);
    if (std::isinf(p)) {
      sum = std::max(sum, a);
    } else {
      sum += p == 2 ? a * a : (p == 0 ? a != 0 : std::pow(a, p));  // p = 0 counts
    }
  }
  return std::isinf(p) || p == 0 ? sum : (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
}
void renorm_row(const Tensor& t, int64_t offset, int64_t stride, int64_t n, double p,
                double limit) {
  Buffer<float> row(n);
  load(row.get(), t.data, t.dtype, offset, stride, n);
  const double norm = row_norm(row, n, p);
  if (!(norm > limit)) return;
  for (int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(row[i] * (limit / (norm + 1e-7)));
  store(row.get(), t.data, t.dtype, offset, stride, n);
}
aclError run_renorm_rows(Call& c) {
  using P = params::EmbeddingRenorm;

  const Tensor& self = c.tensor(P::selfRef);
  int64_t* at = static_cast<int64_t*>(c.workspace);
  const int64_t n = c.tensor(P::indices).numel();
  IndexFault fault;
  if (!read_indices(at, c.tensor(P::indices), self.dims[0], fault)) return fault.report(c, P::indices);
  std::sort(at, at + n);
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && at[i] == at[i - 1]) continue;
    renorm_row(self, self.offset + at[i] * self.strides[0], self.strides[1], self.dims[1],
               c.number(P::normType), c.number(P::maxNorm));
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnEmbedding, check_embedding, run_embedding)
ACLNN_OP(aclnnEmbeddingDenseBackward, check_embedding_grad, run_embedding_grad)
ACLNN_OP(aclnnEmbeddingRenorm, check_renorm_rows, run_renorm_rows)
