// Matrices as quantised and grouped products read them: packed or narrow elements, the inner
// format, transposed views, scales per row, column or block. Exact: products are in double.
#pragma once

#include "loops/values.h"

namespace aclsim {

// [batch, rows, cols], row-major.
struct Matrices {
  Doubles v;
  int64_t batch = 0, rows = 0, cols = 0;
  const double* at(int64_t b) const { return v.data() + b * rows * cols; }
  double* at(int64_t b) { return v.data() + b * rows * cols; }
};

constexpr int64_t kNoLimit = -1;
// The sizes that a matrix operand of phase 1 has, without a look at elements; rows and columns of
// the inner format may be padded.
Matrices matrices_like(const Tensor& t, bool transposed, bool packs);
// Reads a tensor of two or more dims. `packs`: INT32 and FLOAT hold eight int4 or float4 along the
// dim whose stride is one. Rows and columns past a limit are padding of the inner format.
Matrices matrices_of(const Tensor& t, bool transposed, bool packs, int64_t rows = kNoLimit,
                     int64_t cols = kNoLimit);

// Is a tensor in the inner format given in the dims of its tiles?
bool in_tiles(const Tensor& t);
// Is a tensor of two or three dims in the inner format a plain view of tiles, which its storage holds
// whole? So clients describe them: logical dims, and the tiles' as those of the storage.
bool stands_for_tiles(const Tensor& t);
// Writes matrices to a tensor of which one of the above is true, zeros to what is beyond them.
void write_tiles(const Tensor& t, const Matrices& m);

Matrices transposed_of(const Matrices& m);

// A vector as one row that serves all: a parameter for each column.
inline Tensor over_columns(const Tensor& t) {
  Tensor v = t;
  if (t.rank == 1)
    v.rank = 2, v.dims[1] = t.dims[0], v.strides[1] = t.strides[0], v.dims[0] = 1, v.strides[0] = 0;
  return v;
}
// Multiplies each element by its block's scale, [.., blocks of rows, blocks of columns], where a
// block has as many rows as divide them evenly, rounded up. Scales that are powers of two come in
// pairs, one for 32 elements of a row: [.., rows, blocks / 2, 2], or, `by_rows`, of a column:
// [.., blocks / 2, columns, 2].
void scale_blocks(Matrices& m, const Tensor& scale, bool by_rows);
// Adds its block's offset, times the sign.
void shift_blocks(Matrices& m, const Tensor& offset, double sign);

// a b, where a batch of one serves all; batches join by the dims given beyond two, which broadcast.
Matrices product(const Matrices& a, const Matrices& b);

// A scale that may be packed by aclnnTransQuantParam: the bits of a float in the low half.
Floats packed_scales(const Tensor* t);
// The nine-bit offset that such a word has from bit 37 on.
Floats packed_offsets(const Tensor* t);

// "relu", "gelu", "fastgelu", "silu" and such on one value; by the numbers of grouped products.
enum class Activation : uint8_t { None, Relu, GeluTanh, GeluErf, FastGelu, Silu };
double activated(double x, Activation activation);

}  // namespace aclsim
