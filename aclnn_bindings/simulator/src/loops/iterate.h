// Walks tensors of one broadcast shape together: strides, offsets, broadcasting, casts and threads
// are dealt with here, so that an inner loop only ever sees contiguous runs of its compute type.
#pragma once

#include "loops/block.h"
#include "loops/parallel.h"

namespace aclsim {

constexpr int kMaxOperands = 8;

// One operand of a loop. Strides count elements, aligned with the loop's dims.
struct Operand {
  const void* data = nullptr;
  int64_t offset = 0;
  aclDataType dtype = ACL_FLOAT;
  aclDataType rounded = ACL_FLOAT;  // what the value is cast to before use (FLOAT16, BF16 matter)
  int64_t strides[kMaxRank] = {};
};

// Operand 0 is the output; `count` includes it.
struct Loop {
  int rank = 0;
  int count = 0;
  int64_t dims[kMaxRank] = {};
  Operand operands[kMaxOperands];

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  // `t` must broadcast to the loop's dims.
  void add(const Tensor& t);
  // Merges dims that every operand walks as one, largest output stride first. Elementwise order
  // is free, so this changes no result.
  void coalesce();
};
Loop loop_over(const Tensor& out);

// out[i] = f(in[0][i], in[1][i], ...), i < n, all contiguous; out may be one of the inputs.
template <class C>
using Body = void (*)(int64_t n, C* out, const C* const* in);

// Runs `body` over the coalesced loop.
template <class C>
void run_loop(const Loop& loop, Body<C> body);

extern template void run_loop(const Loop&, Body<float>);
extern template void run_loop(const Loop&, Body<double>);
extern template void run_loop(const Loop&, Body<int64_t>);
extern template void run_loop(const Loop&, Body<c128>);

// `n` elements of one operand, row-major over `dims` from linear position `start`: in place where
// they lie contiguous in the compute type, else loaded into `buffer`.
template <class C>
const C* view_or_load(C* buffer, const Operand& op, int rank, const int64_t* dims, int64_t start,
                      int64_t n);
extern template const float* view_or_load(float*, const Operand&, int, const int64_t*, int64_t,
                                          int64_t);
extern template const double* view_or_load(double*, const Operand&, int, const int64_t*, int64_t,
                                           int64_t);
extern template const int64_t* view_or_load(int64_t*, const Operand&, int, const int64_t*, int64_t,
                                            int64_t);
extern template const c128* view_or_load(c128*, const Operand&, int, const int64_t*, int64_t,
                                         int64_t);

// Calls f with a value of an unsigned type of that width: for moves that don't look at values.
struct Sixteen {
  uint64_t words[2];
};
template <class F>
void with_width(size_t bytes, F f) {
  switch (bytes) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    case 8: f(uint64_t{}); break;
    default: f(Sixteen{});
  }
}

// Copies elements, casting where dtypes differ; `src` broadcasts to `dst`.
void copy_tensor(const Tensor& dst, const Tensor& src);
void fill_tensor(const Tensor& dst, const Scalar& value);
// A dense view over memory of the kernel's own.
Tensor dense(void* data, aclDataType dtype, const int64_t* dims, int rank);

// Counts through a strided index space in row-major order, one step of the last dim at a time.
struct Walker {
  int rank;
  const int64_t* dims;
  int64_t index[kMaxRank] = {};

  Walker(int rank_, const int64_t* dims_, int64_t start = 0) : rank(rank_), dims(dims_) {
    for (int i = rank - 1; start > 0 && i >= 0; --i) {  // dims may be 0 where start is
      index[i] = start % dims[i];
      start /= dims[i];
    }
  }
  int64_t offset(const int64_t* strides) const {
    int64_t sum = 0;
    for (int i = 0; i < rank; ++i) sum += index[i] * strides[i];
    return sum;
  }
  void next() {
    for (int i = rank - 1; i >= 0; --i) {
      if (++index[i] < dims[i]) return;
      index[i] = 0;
    }
  }
};

}  // namespace aclsim
