// Triangles and diagonals of matrices.
#include "params/shape.h"
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"
#include "loops/diagonal.h"

namespace aclsim {
namespace {

// (self, diagonal, out): zeros above (Upper: below) the diagonal.
aclnnStatus check_triangle(Call& c) {
  using P = params::Tril;

  const int out = c.count > 2 ? P::out : P::self;
  if (c.tensor(P::self).rank < 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have at least 2 dims, but its shape is %s.",
                  shape_text(c.tensor(P::self)));
  }
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, out, P::self));
  return expect_same_shape(c, out, P::self);
}
template <bool Upper>
void triangle(const Tensor& out, const Tensor& self, int64_t diagonal) {
  if (out.numel() == 0) return;
  const int last = out.rank - 1;
  const int64_t n = out.dims[last], bytes = static_cast<int64_t>(dtype_size(out.dtype));
  static const char zero[16] = {};
  const Rows rows({&self, &out}, last);
  const int64_t height = out.dims[last - 1];
  // Rows come in order, so a row's number in its matrix is its place modulo the height.
  Walker at(last, out.dims);
  for (int64_t r = 0; r < rows.count(); ++r, at.next()) {
    const int64_t cut = std::min(std::max(r % height + diagonal + !Upper, int64_t{0}), n);
    char* to = static_cast<char*>(out.data) + (out.offset + at.offset(out.strides)) * bytes;
    const char* from =
        static_cast<char*>(self.data) + (self.offset + at.offset(self.strides)) * bytes;
    const int64_t so = out.strides[last], si = self.strides[last];
    const int64_t keep = Upper ? cut : 0, keep_n = Upper ? n - cut : cut;
    const int64_t clear = Upper ? 0 : cut, clear_n = n - keep_n;
    copy_elements(to + keep * so * bytes, so, from + keep * si * bytes, si, keep_n, bytes);
    copy_elements(to + clear * so * bytes, so, zero, 0, clear_n, bytes);
  }
}
template <bool Upper, int Out>
void run_triangle(Call& c) {
  using P = params::Tril;

  triangle<Upper>(c.tensor(Out), c.tensor(P::self), c.integer(P::diagonal));
}

// (self, diagonal, out): a vector becomes a matrix, a matrix gives its diagonal.
aclnnStatus check_diag(Call& c) {
  using P = params::Diag;

  const Tensor& self = c.tensor(P::self);
  const int64_t k = c.integer(P::diagonal) < 0 ? -c.integer(P::diagonal) : c.integer(P::diagonal);
  Shape shape;
  if (self.rank == 1) {
    shape.rank = 2;
    shape.dims[0] = shape.dims[1] = self.dims[0] + k;
  } else if (self.rank == 2) {
    shape.rank = 1;
    shape.dims[0] = diagonal_of(self, c.integer(P::diagonal)).dims[0];
  } else {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have 1 or 2 dims, but its shape is %s.",
                  shape_text(self));
  }
  return expect_shape(c, P::out, shape);
}
void run_diag(Call& c) {
  using P = params::Diag;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (self.rank == 1) {
    fill_tensor(out, Scalar{ACL_INT64, {}});
    copy_tensor(diagonal_of(out, c.integer(P::diagonal)), self);
  } else {
    copy_tensor(out, diagonal_of(self, c.integer(P::diagonal)));
  }
}
// (self, diagonal, out): any tensor, flattened, on a diagonal.
aclnnStatus check_diag_flat(Call& c) {
  using P = params::DiagFlat;

  Shape shape;
  shape.rank = 2;
  shape.dims[0] = shape.dims[1] =
      c.tensor(P::self).numel() +
      (c.integer(P::diagonal) < 0 ? -c.integer(P::diagonal) : c.integer(P::diagonal));
  c.workspace_size = c.tensor(P::self).numel() * dtype_size(c.tensor(P::self).dtype);
  return expect_shape(c, P::out, shape);
}
void run_diag_flat(Call& c) {
  using P = params::DiagFlat;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  const int64_t n = self.numel();
  fill_tensor(out, Scalar{ACL_INT64, {}});
  if (n == 0) return;
  copy_tensor(dense(c.workspace, self.dtype, self.dims, self.rank), self);
  copy_tensor(diagonal_of(out, c.integer(P::diagonal)), dense(c.workspace, self.dtype, &n, 1));
}

// (selfRef, fillValue, wrap): wrap goes on after a tall matrix' end.
aclnnStatus check_fill_diagonal(Call& c) {
  using P = params::InplaceFillDiagonal;

  const Tensor& self = c.tensor(P::selfRef);
  if (self.rank < 2) return c.fail(ACLNN_ERR_PARAM_INVALID, "selfRef should have 2 or more dims.");
  for (int i = 1; self.rank > 2 && i < self.rank; ++i) {
    if (self.dims[i] != self.dims[0]) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "All dims of selfRef should be equal, but are %s.",
                    shape_text(self));
    }
  }
  return ACLNN_SUCCESS;
}
void run_fill_diagonal(Call& c) {
  using P = params::InplaceFillDiagonal;

  const Tensor& self = c.tensor(P::selfRef);
  if (self.numel() == 0) return;
  Tensor v = self;
  v.rank = 1;
  v.strides[0] = 0;
  for (int i = 0; i < self.rank; ++i) {
    v.dims[0] = std::min(v.dims[0], self.dims[i]);
    v.strides[0] += self.strides[i];
  }
  fill_tensor(v, c.scalar(P::fillValue));
  const int64_t width = self.dims[1];
  for (int64_t top = width + 1; c.flag(P::wrap) && self.rank == 2 && top < self.dims[0];
       top += width + 1) {
    v.offset = self.offset + top * self.strides[0];
    v.dims[0] = std::min(width, self.dims[0] - top);
    fill_tensor(v, c.scalar(P::fillValue));
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnTriu, check_triangle, (run_triangle<true, params::Triu::out>))
ACLNN_OP(aclnnTril, check_triangle, (run_triangle<false, params::Tril::out>))
ACLNN_OP(aclnnInplaceTriu, check_triangle, (run_triangle<true, params::InplaceTriu::selfRef>))
ACLNN_OP(aclnnInplaceTril, check_triangle, (run_triangle<false, params::InplaceTril::selfRef>))
ACLNN_OP(aclnnDiag, check_diag, run_diag)
ACLNN_OP(aclnnDiagFlat, check_diag_flat, run_diag_flat)
ACLNN_OP(aclnnInplaceFillDiagonal, check_fill_diagonal, run_fill_diagonal)
