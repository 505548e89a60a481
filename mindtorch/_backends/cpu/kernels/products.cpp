// Inner loops of numpy's generalized universal functions that multiply matrices of floats.
//
// What is summed in which order: loops/float_gemm.h. Of a batch, as torch does it (BatchLinearAlgebra,
// "bmm"; aten/src/ATen/native/LinearAlgebra.cpp), products of under 400 steps are sums in turn.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "loops/cascade.h"
#include "loops/float_gemm.h"
#include "loops/iterate.h"
#include "universal.h"

namespace {

using aclsim::Matrix;

constexpr int64_t LEAST_STEPS = 400, GRAIN = 1 << 18;

struct Product {
  Matrix<float> out;
  Matrix<const float> a, b;
  bool added;

  void in_turn() const {
    for (int64_t i = 0; i < out.rows; ++i)
      for (int64_t j = 0; j < out.cols; ++j) {
        const float *left = a.data + i * a.row_stride, *right = b.data + j * b.col_stride;
        float sum = 0, &to = out.data[i * out.row_stride + j];
        for (int64_t k = 0; k < a.cols; ++k) sum += left[k * a.col_stride] * right[k * b.row_stride];
        to = added ? to + sum : sum;
      }
  }
};

int64_t steps_of(const intptr_t* sizes) { return sizes[1] * sizes[2] * sizes[3]; }

void start_from(const Matrix<float>& out, const char* self, intptr_t down, intptr_t across) {
  for (int64_t i = 0; i < out.rows; ++i)
    for (int64_t j = 0; j < out.cols; ++j)
      out.data[i * out.row_stride + j] = *reinterpret_cast<const float*>(self + i * down + j * across);
}

// (m,k),(k,n)->(m,n), or with (m,n) to which the product is added. Results are dense lines.
template <bool BATCH, bool ADDED>
void product(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t m = sizes[1], k = sizes[2], n = sizes[3], bytes = sizeof(float);
  const intptr_t* at = steps + (ADDED ? 4 : 3);
  const intptr_t* to = at + (ADDED ? 6 : 4);
  const bool small = BATCH && (steps_of(sizes) < LEAST_STEPS || (n == 1 && m > 1 && at[1] == bytes));
  const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, steps_of(sizes)));
  aclsim::parallel_for(sizes[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto place = [&](int operand) { return args[operand] + i * steps[operand]; };
      const Product p{{reinterpret_cast<float*>(place(ADDED ? 3 : 2)), m, n, to[0] / bytes, 1},
                      {reinterpret_cast<const float*>(place(0)), m, k, at[0] / bytes, at[1] / bytes},
                      {reinterpret_cast<const float*>(place(1)), k, n, at[2] / bytes, n == 1 ? 1 : at[3] / bytes},
                      ADDED};
      if (ADDED) start_from(p.out, place(2), at[4], at[5]);
      small ? p.in_turn() : aclsim::float_gemm(p.out, p.a, p.b, ADDED);
    }
  });
}

// (m,k),(k,n),(n)->(m,n): a line is added to each row, as a matrix whose rows are one.
void biased(char** args, const intptr_t* sizes, const intptr_t* steps, void* data) {
  intptr_t strides[4 + 2 * 4];
  std::copy_n(steps, 8, strides);
  strides[8] = 0;
  std::copy_n(steps + 8, 3, strides + 9);
  product<false, true>(args, sizes, strides, data);
}

// (m,n)->(n): sums of columns, of dense results, in torch's order.
void column_sums(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t dims[] = {sizes[1], sizes[2]}, bytes = sizeof(float);
  for (intptr_t i = 0; i < sizes[0]; ++i) {
    aclsim::Tensor rows = aclsim::dense(args[0] + i * steps[0], ACL_FLOAT, dims, 2);
    rows.strides[0] = steps[2] / bytes;
    rows.strides[1] = steps[3] / bytes;
    aclsim::cascade_sum(reinterpret_cast<float*>(args[1] + i * steps[1]), rows, 1, false, false);
  }
}

// (m,k),(k)->(m): each row by the vector, as the only row of the transposed product.
void by_vector(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t m = sizes[1], k = sizes[2], bytes = sizeof(float);
  for (intptr_t i = 0; i < sizes[0]; ++i) {
    const auto place = [&](int operand) { return args[operand] + i * steps[operand]; };
    aclsim::float_gemm({reinterpret_cast<float*>(place(2)), 1, m, m, 1},
                       {reinterpret_cast<const float*>(place(1)), 1, k, k, steps[5] / bytes},
                       {reinterpret_cast<const float*>(place(0)), k, m, steps[4] / bytes,
                        m == 1 ? k : steps[3] / bytes},
                       false);
  }
}

// Products of four quads at a time of dense lines, added to `sums`; how many there were.
intptr_t whole_quads(float (&sums)[4][4], const float* a, const float* b, intptr_t n) {
  typedef float Quad __attribute__((vector_size(16)));
  typedef Quad At __attribute__((aligned(4), may_alias));
  const auto quad = [](const float* p, int q) { return reinterpret_cast<const At*>(p)[q]; };
  Quad s0{}, s1{}, s2{}, s3{};
  intptr_t k = 0;
  for (; k + 16 <= n; k += 16, a += 16, b += 16) {
    s0 += quad(a, 0) * quad(b, 0);
    s1 += quad(a, 1) * quad(b, 1);
    s2 += quad(a, 2) * quad(b, 2);
    s3 += quad(a, 3) * quad(b, 3);
  }
  const Quad all[] = {s0, s1, s2, s3};
  memcpy(sums, all, sizeof sums);
  return k;
}

// (k),(k)->(): quads in turn, four, two or one at a time, each with its sums; then the rest.
void dot(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  for (intptr_t i = 0; i < sizes[0]; ++i) {
    const auto place = [&](int operand) {
      return reinterpret_cast<const float*>(args[operand] + i * steps[operand]);
    };
    const auto at = [&](int operand, intptr_t k) { return place(operand)[k * steps[3 + operand] / 4]; };
    float sums[4][4] = {};
    intptr_t k = 0;
    if (steps[3] == sizeof(float) && steps[4] == sizeof(float)) k = whole_quads(sums, place(0), place(1), sizes[1]);
    for (int quads : {4, 2, 1})
      for (; k + 4 * quads <= sizes[1]; k += 4 * quads)
        for (int n = 0; n < 4 * quads; ++n) sums[n / 4][n % 4] += at(0, k + n) * at(1, k + n);
    for (; k < sizes[1]; ++k) sums[0][0] += at(0, k) * at(1, k);
    for (int quad = 1; quad < 4; ++quad)
      for (int lane = 0; lane < 4; ++lane) sums[0][lane] += sums[quad][lane];
    const float* lanes = sums[0];
    *reinterpret_cast<float*>(args[2] + i * steps[2]) = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }
}

const char f = 11;  // numpy's number of float

}  // namespace

extern const Universal PRODUCTS[] = {
    {"product", "(m,k),(k,n)->(m,n)", 2, 1, 1, {f, f, f}, {product<false, false>}},
    {"products", "(m,k),(k,n)->(m,n)", 2, 1, 1, {f, f, f}, {product<true, false>}},
    {"product_added", "(m,k),(k,n),(m,n)->(m,n)", 3, 1, 1, {f, f, f, f}, {product<false, true>}},
    {"products_added", "(m,k),(k,n),(m,n)->(m,n)", 3, 1, 1, {f, f, f, f}, {product<true, true>}},
    {"product_biased", "(m,k),(k,n),(n)->(m,n)", 3, 1, 1, {f, f, f, f}, {biased}},
    {"column_sums", "(m,n)->(n)", 1, 1, 1, {f, f}, {column_sums}},
    {"by_vector", "(m,k),(k)->(m)", 2, 1, 1, {f, f, f}, {by_vector}},
    {"dot", "(k),(k)->()", 2, 1, 1, {f, f, f}, {dot}},
    {}};
