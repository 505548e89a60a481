// Places of a grid under affine maps.
#include "params/image.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (theta, size, alignCorners, out): torch's affine_grid for [N, C, H, W] and [N, C, D, H, W].
aclnnStatus check_affine_grid(Call& c) {
  using P = params::AffineGrid;

  ACL_RETURN_IF_FAILED(expect_ints(c, P::size, 4, 5));
  const Span<const int64_t> s = c.ints(P::size);
  const int64_t dims = s.size - 2;
  ACL_RETURN_IF_FAILED(expect_dims(c, P::theta, {s[0], dims, dims + 1}));
  return dims == 2 ? expect_dims(c, P::out, {s[0], s[2], s[3], 2})
                   : expect_dims(c, P::out, {s[0], s[2], s[3], s[4], 3});
}
double grid_coordinate(int64_t i, int64_t n, bool corners) {
  if (n <= 1) return 0;
  const double at = 2.0 * static_cast<double>(i);
  return corners ? at / static_cast<double>(n - 1) - 1
                 : (at + 1) / static_cast<double>(n) - 1;
}
void run_affine_grid(Call& c) {
  using P = params::AffineGrid;

  const Tensor& out = c.tensor(P::out);
  const int dims = out.rank - 2;
  const Numbers theta = numbers(c.tensor(P::theta));
  Numbers grid(static_cast<size_t>(out.numel()));
  Walker at(out.rank - 1, out.dims);
  for (size_t k = 0; k < grid.size(); k += static_cast<size_t>(dims), at.next()) {
    const double* matrix = theta.data() + at.index[0] * dims * (dims + 1);
    for (int r = 0; r < dims; ++r) {
      double sum = matrix[r * (dims + 1) + dims];
      for (int i = 0; i < dims; ++i) {
        const int d = dims - i;  // coordinate x goes with the last dim
        sum += matrix[r * (dims + 1) + i] *
               grid_coordinate(at.index[d], out.dims[d], c.flag(P::alignCorners));
      }
      grid[k + static_cast<size_t>(r)] = sum;
    }
  }
  put(out, grid);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnAffineGrid, check_affine_grid, run_affine_grid)
