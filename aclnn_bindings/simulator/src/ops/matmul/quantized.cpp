// Products of quantised matrices, and of plain ones with quantised or inner-format weights.
// Formulas: the "npu_quant_matmul", "npu_weight_quant_batchmatmul", "npu_transpose_batchmatmul"
// and "npu_quant_matmul_reduce_sum" pages of torch_npu, and the operator documents of CANN 9.1.
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

bool flag_at(const Call& c, int arg) { return arg != kNone && c.flag(arg); }

// Where the versions have their arguments.
struct Places {
  int x2_scale, x1_scale, offset, bias, turn1, turn2, group, x2_offset, out;
};
constexpr Places kQuantV2 = {3, kNone, kNone, 2, 4, 5, kNone, kNone, 6};
constexpr Places kQuantV3 = {2, kNone, 3, 4, 5, 6, kNone, kNone, 7};
constexpr Places kQuantV4 = {2, 4, 3, 5, 6, 7, kNone, kNone, 8};
constexpr Places kQuantV5 = {3, 2, 7, 8, 9, 10, 11, 6, 12};
constexpr Places kReduceSum = {3, 2, kNone, kNone, 9, 10, kNone, kNone, 14};
constexpr Places kFusedQuant = {3, 2, 7, 8, kNone, kNone, kNone, kNone, 12};
constexpr Places kQuant16 = {2, kNone, kNone, 3, 4, 5, kNone, kNone, 6};

// Leading dims of x1 and x2, broadcast, with the product's rows and columns.
Shape product_shape(const Call& c, const Matrices& a, const Matrices& b, bool& fits) {
  const Tensor &x1 = c.tensor(0), &x2 = c.tensor(1);
  const bool tiles = x2.format == ACL_FORMAT_FRACTAL_NZ && x2.rank >= 4;
  Tensor left = x1, right = x2;
  left.rank -= 2, right.rank -= tiles ? 4 : 2;
  Shape s = shape_of(left);
  fits = broadcast(s, right) && (a.batch == 1 || b.batch == 1 || a.batch == b.batch) &&
         (a.cols == b.rows || (tiles && a.cols < b.rows && b.rows - a.cols < 64));
  s.dims[s.rank] = a.rows, s.dims[s.rank + 1] = b.cols, s.rank += 2;
  return s;
}
aclnnStatus refuse_product(const Call& c) {
  int out = c.count - 1;  // the last tensor: attributes may follow it
  while (out > 0 && (c.args[out].kind != ArgKind::Tensor || c.null(out))) --out;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s %s and %s %s can't be multiplied, or their product does "
                "not have the shape %s of the output.",
                c.name(0), shape_text(c.tensor(0)), c.name(1), shape_text(c.tensor(1)),
                shape_text(c.tensor(out)));
}
aclnnStatus check_product(Call& c, const Places& at) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, at.out}));
  if (c.tensor(0).rank < 2 || c.tensor(1).rank < 2) return refuse_product(c);
  const Matrices a = matrices_like(c.tensor(0), flag_at(c, at.turn1), true),
                 b = matrices_like(c.tensor(1), flag_at(c, at.turn2), true);
  bool fits;
  Shape s = product_shape(c, a, b, fits);
  const Tensor& out = c.tensor(at.out);
  if (!fits || out.rank < 2 || out.dims[out.rank - 2] != s.dims[s.rank - 2])
    return refuse_product(c);
  const int64_t cols = out.dims[out.rank - 1];
  if (cols > s.dims[s.rank - 1] || s.dims[s.rank - 1] - cols >= 64) return refuse_product(c);
  s.dims[s.rank - 1] = cols;
  return expect_shape(c, at.out, s);
}
template <const Places& at>
aclnnStatus check_quant(Call& c) {
  ACL_RETURN_IF_FAILED(check_product(c, at));
  const Tensor& out = c.tensor(at.out);
  if (out.dtype != ACL_INT32 && at.x2_scale != kNone)
    ACL_RETURN_IF_FAILED(expect_given(c, {at.x2_scale}));
  const int64_t n = out.dims[out.rank - 1];
  const Tensor* bias = at_or_null(c, at.bias);
  if (bias && bias->numel() != n && bias->numel() * out.dims[out.rank - 2] != out.numel()) {
    return expect_numel(c, at.bias, n);
  }
  return ACLNN_SUCCESS;
}
// Scales with a value for every block of both matrices, rather than one for a row or column.
bool blockwise(const Tensor* s) {
  return s && s->rank >= 2 && s->dims[s->rank - 1] > 1 && s->dims[s->rank - 2] > 1;
}
// An int8 matrix times an int4 one, where an offset of the output comes along: x1 enters as x1 - 8,
// as its two halves 16 high + (low - 8) do, and the offset makes up for that before x1's scale
// (op-plugin's test of npu_quant_matmul, A8W4).
constexpr double kHalf = 8;
bool halves(const Call& c, const Places& at) {
  const aclDataType x2 = c.tensor(1).dtype;
  return at_or_null(c, at.offset) && at.offset == kQuantV5.offset &&
         c.tensor(0).dtype == ACL_INT8 && (x2 == ACL_INT4 || x2 == ACL_INT32);
}
// out = ((acc + integer bias) column + inner) row + float bias + offset.
struct Finish {
  Floats column, row, offset, bias, inner;
  bool early = false;
  double of(double acc, int64_t i, int64_t j, int64_t batch, int64_t rows, int64_t cols) const {
    const auto pick = [](const Floats& f, int64_t at, double none) {
      return f.empty() ? none : f[f.size() == 1 ? 0 : static_cast<size_t>(at)];
    };
    const int64_t far = static_cast<int64_t>(bias.size()) > cols ? batch * cols + j : j;
    if (early) acc += pick(bias, far, 0);
    const int64_t line = static_cast<int64_t>(row.size()) > rows ? batch * rows + i : i;
    acc *= pick(column, j, 1);
    acc = (acc + pick(inner, j, 0)) * pick(row, line, 1);
    return acc + (early ? 0 : pick(bias, far, 0)) + pick(offset, j, 0);
  }
};
Floats finished(const Matrices& m, const Finish& f) {
  Floats out(m.v.size());
  size_t at = 0;
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j, ++at) {
        out[at] = static_cast<float>(f.of(m.v[at], i, j, b, m.rows, m.cols));
      }
    }
  }
  return out;
}
Finish finish_of(const Call& c, const Places& at, bool blocks) {
  Finish f;
  const Tensor* scale = at_or_null(c, at.x2_scale);
  if (!blocks) f.column = packed_scales(scale);
  if (!blocks || halves(c, at)) f.row = floats(at_or_null(c, at.x1_scale));
  if (halves(c, at)) {
    f.inner = floats(at_or_null(c, at.offset));
  } else if (c.tensor(at.out).dtype == ACL_INT8 || c.tensor(at.out).dtype == ACL_INT4) {
    // From the fifth version on, what is added to the result's steps is the offset of x2.
    const Tensor* shift = at_or_null(c, at.x2_offset != kNone ? at.x2_offset : at.offset);
    f.offset = shift ? floats(shift) : packed_offsets(scale);
  }
  if (const Tensor* bias = at_or_null(c, at.bias)) {
    f.bias = floats(bias);
    f.early = bias->dtype == ACL_INT32 || c.tensor(0).dtype == ACL_FLOAT16;
  }
  return f;
}
Matrices quant_product(const Call& c, const Places& at, bool& blocks) {
  const Tensor *s1 = at_or_null(c, at.x1_scale), *s2 = at_or_null(c, at.x2_scale);
  const bool turn1 = flag_at(c, at.turn1), turn2 = flag_at(c, at.turn2);
  const Tensor& out = c.tensor(at.out);
  Matrices a = matrices_of(c.tensor(0), false, true);
  const int64_t k = turn1 ? a.rows : a.cols, n = out.dims[out.rank - 1];
  Matrices b = matrices_of(c.tensor(1), false, true, turn2 ? n : k, turn2 ? k : n);
  blocks = blockwise(s2);
  if (halves(c, at)) {
    for (double& x : a.v) x -= kHalf;
    if (blocks) scale_blocks(b, *s2, !turn2);
  } else if (blocks) {
    if (const Tensor* shift = at_or_null(c, at.x2_offset)) shift_blocks(b, *shift, -1);
    scale_blocks(b, *s2, !turn2);
    if (s1) scale_blocks(a, *s1, turn1);
  }
  return product(turn1 ? transposed_of(a) : a, turn2 ? transposed_of(b) : b);
}
template <const Places& at>
aclError run_quant(Call& c) {
  bool blocks = false;
  const Matrices m = quant_product(c, at, blocks);
  const Tensor& out = c.tensor(at.out);
  if (out.dtype == ACL_INT32) {
    Doubles whole = m.v;
    const Tensor* bias = at_or_null(c, at.bias);
    const Doubles add = doubles(bias);
    for (size_t i = 0; i < whole.size() && bias; ++i) whole[i] += add[i % add.size()];
    write(out, whole);
    return ACL_SUCCESS;
  }
  const Floats y = finished(m, finish_of(c, at, blocks));
  if (is_float(out.dtype) && !is_narrow_float(out.dtype)) {
    write(out, y);
  } else {
    write_quantized(&out, y);
  }
  return ACL_SUCCESS;
}
// (x1, x2, bias, deqScale, out): one factor, given by value.
constexpr Places kQuantV1 = {kNone, kNone, kNone, 2, kNone, kNone, kNone, kNone, 4};
aclnnStatus check_quant_first(Call& c) { return check_quant<kQuantV1>(c); }
aclError run_quant_first(Call& c) {
  bool blocks = false;
  Finish f = finish_of(c, kQuantV1, false);
  f.column = {static_cast<float>(c.number(3))};
  write(c.tensor(4), finished(quant_product(c, kQuantV1, blocks), f));
  return ACL_SUCCESS;
}
// The same with an operation after it, named at 10.
Activation activation_of(const char* text) {
  if (text && !std::strcmp(text, "relu")) return Activation::Relu;
  if (text && !std::strcmp(text, "gelu_tanh")) return Activation::GeluTanh;
  return text && !std::strcmp(text, "gelu_erf") ? Activation::GeluErf : Activation::None;
}
aclnnStatus check_activated(Call& c) {
  const char* text = c.text(10) ? c.text(10) : "";
  if ((*text && activation_of(text) == Activation::None) || at_or_null(c, 9)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "fusedOpType \"%s\" should be relu, gelu_tanh or gelu_erf, without x3.", text);
  }
  return check_quant<kFusedQuant>(c);
}
aclError run_activated(Call& c) {
  bool blocks = false;
  const Matrices m = quant_product(c, kFusedQuant, blocks);
  Floats y = finished(m, finish_of(c, kFusedQuant, blocks));
  for (float& v : y) v = static_cast<float>(activated(v, activation_of(c.text(10))));
  write(c.tensor(12), y);
  return ACL_SUCCESS;
}
// (x1, x2, x1Scale, x2Scale, yRef, transposeX1, transposeX2, groupSize): y += the scaled product.
constexpr Places kInplace = {3, 2, kNone, kNone, 5, 6, 7, kNone, 4};
aclError run_inplace(Call& c) {
  bool blocks = false;
  Floats y = finished(quant_product(c, kInplace, blocks), finish_of(c, kInplace, blocks));
  const Floats before = floats(c.tensor(4));
  for (size_t i = 0; i < y.size(); ++i) y[i] += before[i];
  write(c.tensor(4), y);
  return ACL_SUCCESS;
}
// Batches of the product summed: out = sum of (x1 x2) x1Scale x2Scale.
aclnnStatus check_reduce_sum(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 14}));
  const Matrices a = matrices_like(c.tensor(0), false, false);
  const Tensor& out = c.tensor(14);
  if (c.tensor(0).rank != 3 || out.rank < 2 || rows_of(out) != a.rows) return refuse_product(c);
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, a.batch * a.rows));
  return expect_numel(c, 3, width_of(out));
}
aclError run_reduce_sum(Call& c) {
  bool blocks = false;
  const Matrices m = quant_product(c, kReduceSum, blocks);
  const Floats each = finished(m, finish_of(c, kReduceSum, false));
  Doubles sum(static_cast<size_t>(m.rows * m.cols));
  for (size_t i = 0; i < each.size(); ++i) sum[i % sum.size()] += each[i];
  write(c.tensor(14), sum);
  return ACL_SUCCESS;
}

// (x, weight, antiquantScale, antiquantOffset, quantScale, quantOffset, bias, groupSize, .., y):
// y = x ((weight + offset) scale) + bias, quantised where asked.
template <int Out>
aclnnStatus check_weight(Call& c) {
  constexpr Places at = {kNone, kNone, kNone, 6, kNone, kNone, kNone, kNone, Out};
  ACL_RETURN_IF_FAILED(expect_given(c, {2}));
  return check_product(c, at);
}
// Parameters of one element, one column, or blocks of rows.
Tensor over_columns(const Tensor& t) {
  Tensor v = t;
  if (t.rank != 1) return v;
  v.rank = 2, v.dims[1] = t.dims[0], v.strides[1] = t.strides[0], v.dims[0] = 1, v.strides[0] = 0;
  return v;
}
template <int Out>
aclError run_weight(Call& c) {
  const Tensor& y = c.tensor(Out);
  const Matrices x = matrices_of(c.tensor(0), false, false);
  Matrices w = matrices_of(c.tensor(1), false, true, x.cols, y.dims[y.rank - 1]);
  if (const Tensor* offset = at_or_null(c, 3)) shift_blocks(w, over_columns(*offset), 1);
  scale_blocks(w, over_columns(c.tensor(2)), true);
  Finish f;
  f.bias = floats(at_or_null(c, 6));
  Floats out = finished(product(x, w), f);
  const Tensor* quant = at_or_null(c, 4);
  if (!quant) {
    write(y, out);
    return ACL_SUCCESS;
  }
  Finish q;
  q.column = packed_scales(quant);
  q.offset = at_or_null(c, 5) ? floats(at_or_null(c, 5)) : packed_offsets(quant);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(
        q.of(out[i], 0, static_cast<int64_t>(i) % width_of(y), 0, 1, width_of(y)));
  }
  write_quantized(&y, out);
  return ACL_SUCCESS;
}

// Plain products whose second operand is in the inner format: out = beta self + alpha mat1 mat2.
template <int A, int Out>
aclnnStatus check_inner(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, A, A + 1, Out}));
  const Matrices a = matrices_like(c.tensor(A), false, false),
                 b = matrices_like(c.tensor(A + 1), false, false);
  const Tensor& out = c.tensor(Out);
  const bool matrices = c.tensor(A).rank >= 2 && c.tensor(A + 1).rank >= 2 && out.rank >= 2;
  const bool fits = matrices && rows_of(out) == a.batch * a.rows && b.rows >= a.cols &&
                    b.cols >= width_of(out) && (b.batch == a.batch || b.batch == 1);
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s and %s %s do not give the shape %s of %s.",
                  c.name(A), shape_text(c.tensor(A)), c.name(A + 1), shape_text(c.tensor(A + 1)),
                  shape_text(out), c.name(Out));
  }
  Shape s = shape_of(out);
  if (A == 1 && !broadcast(s, c.tensor(0))) return refuse_fit(c, 0, Out);
  return ACLNN_SUCCESS;
}
template <int A, int Out>
aclError run_inner(Call& c) {
  const Tensor& out = c.tensor(Out);
  const Matrices a = matrices_of(c.tensor(A), false, false);
  Matrices m = product(a, matrices_of(c.tensor(A + 1), false, false, a.cols, width_of(out)));
  if (A == 1) {
    Doubles self(m.v.size());
    copy_tensor(dense(self.data(), ACL_DOUBLE, out.dims, out.rank), c.tensor(0));
    const double beta = c.scalar(3).real(), alpha = c.scalar(4).real();
    for (size_t i = 0; i < self.size(); ++i)
      m.v[i] = alpha * m.v[i] + (beta == 0 ? 0 : beta * self[i]);
  }
  write(out, m.v);
  return ACL_SUCCESS;
}

// (A, B, C, alpha, beta, transA, transB, out): out = alpha op(A) op(B) + beta C.
aclnnStatus check_gemm(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 7}));
  if (c.tensor(0).rank != 2 || c.tensor(1).rank != 2) return refuse_product(c);
  const Matrices a = matrices_like(c.tensor(0), c.integer(5) != 0, false),
                 b = matrices_like(c.tensor(1), c.integer(6) != 0, false);
  if (c.tensor(0).rank != 2 || c.tensor(1).rank != 2 || a.cols != b.rows) return refuse_product(c);
  Shape s;
  s.rank = 2, s.dims[0] = a.rows, s.dims[1] = b.cols;
  Shape into = s;
  const bool fits = broadcast(into, c.tensor(2)) && into.rank == 2 &&
                    into.dims[0] == s.dims[0] && into.dims[1] == s.dims[1];
  if (!fits) return refuse_product(c);
  return expect_shape(c, 7, s);
}
aclError run_gemm(Call& c) {
  Matrices m = product(matrices_of(c.tensor(0), c.integer(5) != 0, false),
                       matrices_of(c.tensor(1), c.integer(6) != 0, false));
  Doubles add(m.v.size());
  copy_tensor(dense(add.data(), ACL_DOUBLE, c.tensor(7).dims, 2), c.tensor(2));
  const double alpha = c.number(3), beta = c.number(4);
  for (size_t i = 0; i < add.size(); ++i) m.v[i] = alpha * m.v[i] + (beta == 0 ? 0 : beta * add[i]);
  write(c.tensor(7), m.v);
  return ACL_SUCCESS;
}

// (x1, x2, bias, scale, permX1, permX2, permY, cubeMathType, batchSplitFactor, out).
Tensor permuted(const Tensor& t, Span<const int64_t> order) {
  Tensor v = t;
  if (order.size != 3 || t.rank != 3) return v;
  for (int i = 0; i < 3; ++i) v.dims[i] = t.dims[order[i]], v.strides[i] = t.strides[order[i]];
  return v;
}
// Null and empty leave the order; otherwise each axis comes once.
aclnnStatus expect_order(const Call& c, int arg) {
  const Span<const int64_t> order = c.ints(arg);
  unsigned seen = 0;
  for (int64_t axis : order) seen |= axis >= 0 && axis < 3 ? 1u << axis : 8u;
  if (order.size == 0 || (order.size == 3 && seen == 7)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have each of the axes 0, 1 and 2 once.", c.name(arg));
}
aclnnStatus check_transpose(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 9}));
  for (int arg : {4, 5}) ACL_RETURN_IF_FAILED(expect_order(c, arg));
  const Span<const int64_t> turned = c.ints(6);  // rows before batches is all that the document has
  if (turned.size != 3 || turned[0] != 1 || turned[1] != 0 || turned[2] != 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "permY should be [1, 0, 2].");
  }
  const Matrices a = matrices_like(permuted(c.tensor(0), c.ints(4)), false, false);
  const Tensor x2 = c.tensor(1).rank == 3 ? permuted(c.tensor(1), c.ints(5)) : c.tensor(1);
  const Matrices b = matrices_like(x2, false, false);
  if (c.tensor(0).rank != 3 || a.cols > b.rows || a.batch != b.batch || c.integer(8) < 1) {
    return refuse_product(c);
  }
  const int64_t n = a.batch * a.rows > 0 ? c.tensor(9).numel() / (a.batch * a.rows) : 0;
  if (n > b.cols || b.cols - n >= 64) return refuse_product(c);
  return expect_numel(c, 9, a.batch * a.rows * n);
}
// [batch, rows, cols] by rows, then what `split` parts of [batch * cols] each row has.
Floats rows_first(const Matrices& m, const Floats& v, int64_t split) {
  Floats out(v.size());
  const int64_t wide = m.batch * m.cols, part = wide / split;
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j) {
        const int64_t at = b * m.cols + j;
        out[(at / part * m.rows + i) * part + at % part] = v[(b * m.rows + i) * m.cols + j];
      }
    }
  }
  return out;
}
aclError run_transpose(Call& c) {
  const Tensor& out = c.tensor(9);
  const Matrices a = matrices_of(permuted(c.tensor(0), c.ints(4)), false, false);
  const int64_t n = out.numel() / std::max<int64_t>(1, a.batch * a.rows);
  const Tensor x2 = c.tensor(1).rank == 3 ? permuted(c.tensor(1), c.ints(5)) : c.tensor(1);
  const Matrices m = product(a, matrices_of(x2, false, false, a.cols, n));
  const Floats scale = packed_scales(at_or_null(c, 3)), offset = packed_offsets(at_or_null(c, 3)),
               bias = floats(at_or_null(c, 2));
  Floats v(m.v.begin(), m.v.end());
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t column = i / (m.rows * m.cols) * m.cols + i % m.cols;
    if (!bias.empty())
      v[i] += bias[bias.size() > static_cast<size_t>(m.cols) ? column : i % m.cols];
    if (!scale.empty())
      v[i] = v[i] * scale[column % scale.size()] +
             (offset.empty() ? 0 : offset[column % offset.size()]);
  }
  const Floats y = rows_first(m, v, c.integer(8));
  if (out.dtype == ACL_INT8) {
    write_quantized(&out, y);
  } else {
    write(out, y);
  }
  return ACL_SUCCESS;
}

// (x1, x2, bias, x1Scale, x2Scale, dtype, groupSize, permX1, permX2, permY, batchSplitFactor, out): small
// operands, a scale for each row of x1 and each column of x2.
aclnnStatus check_turned(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 11}));
  for (int arg : {7, 8, 9}) ACL_RETURN_IF_FAILED(expect_order(c, arg));
  if (c.tensor(0).rank != 3 || c.tensor(1).rank < 3) return refuse_product(c);
  const Tensor x2 = c.tensor(1).rank == 3 ? permuted(c.tensor(1), c.ints(8)) : c.tensor(1);
  const Matrices a = matrices_like(permuted(c.tensor(0), c.ints(7)), false, false),
                 b = matrices_like(x2, false, false);
  const int64_t n = a.batch * a.rows > 0 ? c.tensor(11).numel() / (a.batch * a.rows) : 0;
  if (a.cols > b.rows || a.batch != b.batch || c.integer(10) < 1 || n > b.cols || b.cols - n >= 64 ||
      (n * a.batch) % c.integer(10) != 0)
    return refuse_product(c);
  if (at_or_null(c, 2)) ACL_RETURN_IF_FAILED(expect_numel(c, 2, n));
  for (int i : {3, 4}) {
    const int64_t lines = i == 3 ? a.rows : n;
    if (at_or_null(c, i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, lines));
  }
  return expect_numel(c, 11, a.batch * a.rows * n);
}
aclError run_turned(Call& c) {
  const Tensor& out = c.tensor(11);
  const Matrices a = matrices_of(permuted(c.tensor(0), c.ints(7)), false, false);
  const int64_t n = out.numel() / std::max<int64_t>(1, a.batch * a.rows);
  const Tensor x2 = c.tensor(1).rank == 3 ? permuted(c.tensor(1), c.ints(8)) : c.tensor(1);
  const Matrices m = product(a, matrices_of(x2, false, false, a.cols, n));
  const Floats rows = floats(at_or_null(c, 3)), cols = floats(at_or_null(c, 4)), bias = floats(at_or_null(c, 2));
  Floats v(m.v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(m.cols), r = i / static_cast<size_t>(m.cols) % m.rows;
    v[i] = static_cast<float>(m.v[i] * (rows.empty() ? 1 : rows[r % rows.size()]) *
                                  (cols.empty() ? 1 : cols[j % cols.size()]) + (bias.empty() ? 0 : bias[j]));
  }
  const bool turned = c.ints(9).size == 3 && c.ints(9)[0] == 1;
  write(out, turned ? rows_first(m, v, c.integer(10)) : v);
  return ACL_SUCCESS;
}

// (x, weight, weightScale, [groupList,] bias, xScale, xOffset, smoothScale, xQuantMode,
// transposeWeight, out): x is quantised first, per token or tensor, unless scales are given.
template <bool Grouped>
aclnnStatus check_dequant(Call& c) {
  constexpr int kBias = Grouped ? 4 : 3;
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, kBias + 6}));
  if (Grouped) ACL_RETURN_IF_FAILED(expect_given(c, {3}));
  const Matrices w = matrices_like(c.tensor(1), c.flag(kBias + 5), false);
  const Tensor &x = c.tensor(0), &out = c.tensor(kBias + 6);
  if (x.rank != 2 || w.rows < width_of(x) || w.cols < width_of(out) || rows_of(out) != rows_of(x) ||
      w.rows - width_of(x) >= 64) {
    return refuse_product(c);
  }
  if (c.tensor(2).dtype == ACL_INT64) {
    return expect_given(c, {kBias + 1});
  }
  return expect_numel(c, kBias + 3, width_of(x));
}
// x in units of its scales, and the scales.
Floats quantised_rows(const Call& c, int bias, Floats& scales) {
  Floats x = floats(c.tensor(0));
  const int64_t k = width_of(c.tensor(0)), rows = rows_of(c.tensor(0));
  const Floats smooth = floats(at_or_null(c, bias + 3));
  for (size_t i = 0; i < x.size() && !smooth.empty(); ++i) x[i] *= smooth[i % k];
  scales = floats(at_or_null(c, bias + 1));
  const char* mode = c.text(bias + 4);
  if (scales.empty()) {
    scales = quantize_rows(x, k, 127).scales;
    if (mode && std::strcmp(mode, "pertensor") == 0 && rows) {
      scales.assign(1, *std::max_element(scales.begin(), scales.end()));
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const float s = scales[scales.size() == 1 ? 0 : i / k];
    x[i] = s == 0 ? 0 : std::min(std::max(std::nearbyint(x[i] / s), -128.0f), 127.0f);
  }
  return x;
}
template <bool Grouped>
aclError run_dequant(Call& c) {
  constexpr int kBias = Grouped ? 4 : 3;
  Floats scales;
  const Floats x = quantised_rows(c, kBias, scales);
  const Tensor& out = c.tensor(kBias + 6);
  const int64_t k = width_of(c.tensor(0)), rows = rows_of(c.tensor(0)), n = width_of(out);
  const Matrices w = matrices_of(c.tensor(1), c.flag(kBias + 5), false, k, n);
  const Floats of_weight = packed_scales(c.maybe(2));
  const bool folded = c.tensor(2).dtype == ACL_INT64;  // the factor of x is in it already
  const Ints group = Grouped ? groups_of_rows(integers(c.tensor(3)), rows, false) : Ints(rows, 0);
  Floats y(static_cast<size_t>(rows * n));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t g = std::max<int64_t>(0, group[i]);
    for (int64_t j = 0; j < n && group[i] >= 0; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += x[i * k + p] * w.at(g)[p * n + j];
      const size_t at = of_weight.size() == 1 ? 0 : static_cast<size_t>(g * n + j);
      const double factor = folded ? 1 : scales[scales.size() == 1 ? 0 : i];
      y[i * n + j] = static_cast<float>(sum * of_weight[at] * factor);
    }
  }
  write(out, y);
  return ACL_SUCCESS;
}

// (x1, x2, diagonal, deqOffset, deqScale, addOffset, mulScale, bias, transposeX1, transposeX2, scale,
// offset, out): x2 is ((x2 + offset) scale + addOffset) mulScale; what the document derives from these
// (the unit matrix, deqOffset and deqScale) is not read.
aclnnStatus check_weight_first(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 12}));
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  if (x.rank != 2 || w.rank != 2) return refuse_product(c);
  const Matrices a = matrices_like(x, c.flag(8), false), b = matrices_like(w, c.flag(9), false);
  if (a.cols != b.rows) return refuse_product(c);
  for (int i : {5, 6, 7}) {
    if (!c.null(i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, b.cols));
  }
  return expect_numel(c, 12, a.rows * b.cols);
}
aclError run_weight_first(Call& c) {
  Matrices b = matrices_of(c.tensor(1), c.flag(9), false);
  const Floats add = floats(c.maybe(5)), mul = floats(c.maybe(6)), bias = floats(c.maybe(7));
  for (size_t i = 0; i < b.v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(b.cols);
    b.v[i] = ((b.v[i] + c.number(11)) * c.number(10) + (add.empty() ? 0 : add[j % add.size()])) *
             (mul.empty() ? 1 : mul[j % mul.size()]);
  }
  Matrices m = product(matrices_of(c.tensor(0), c.flag(8), false), b);
  for (size_t i = 0; i < m.v.size() && !bias.empty(); ++i) m.v[i] += bias[i % bias.size()];
  write(c.tensor(12), m.v);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_PRODUCT(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_PRODUCT(aclnnQuantMatmul, check_quant_first, run_quant_first)
ACLNN_PRODUCT(aclnnQuantMatmulV2, check_quant<kQuantV2>, run_quant<kQuantV2>)
ACLNN_PRODUCT(aclnnQuantMatmulV3, check_quant<kQuantV3>, run_quant<kQuantV3>)
ACLNN_PRODUCT(aclnnQuantMatmulV4, check_quant<kQuantV4>, run_quant<kQuantV4>)
ACLNN_PRODUCT(aclnnQuantMatmulV5, check_quant<kQuantV5>, run_quant<kQuantV5>)
ACLNN_PRODUCT(aclnnQuantMatmulWeightNz, check_quant<kQuantV5>, run_quant<kQuantV5>)
ACLNN_PRODUCT(aclnnQuantMatmulReduceSumWeightNz, check_reduce_sum, run_reduce_sum)
ACLNN_PRODUCT(aclnnBatchMatmulQuant, check_quant<kQuant16>, run_quant<kQuant16>)
ACLNN_PRODUCT(aclnnQuantMatmulDequant, check_dequant<false>, run_dequant<false>)
ACLNN_PRODUCT(aclnnQuantGroupedMatmulDequant, check_dequant<true>, run_dequant<true>)
ACLNN_PRODUCT(aclnnQuantGroupedMatmulDequantWeightNZ, check_dequant<true>, run_dequant<true>)
ACLNN_PRODUCT(aclnnWeightQuantBatchMatmul, check_weight_first, run_weight_first)
ACLNN_PRODUCT(aclnnWeightQuantBatchMatmulV2, check_weight<8>, run_weight<8>)
ACLNN_PRODUCT(aclnnWeightQuantBatchMatmulV3, check_weight<9>, run_weight<9>)
ACLNN_PRODUCT(aclnnWeightQuantBatchMatmulNz, check_weight<8>, run_weight<8>)
ACLNN_PRODUCT(aclnnMatmulWeightNz, (check_inner<0, 2>), (run_inner<0, 2>))
ACLNN_PRODUCT(aclnnBatchMatMulWeightNz, (check_inner<0, 2>), (run_inner<0, 2>))
ACLNN_PRODUCT(aclnnAddmmWeightNz, (check_inner<1, 5>), (run_inner<1, 5>))
ACLNN_PRODUCT(aclnnGemm, check_gemm, run_gemm)
ACLNN_PRODUCT(aclnnTransposeBatchMatMul, check_transpose, run_transpose)
ACLNN_PRODUCT(aclnnTransposeBatchMatMulWeightNz, check_transpose, run_transpose)
ACLNN_PRODUCT(aclnnTransposeQuantBatchMatMul, check_turned, run_turned)
ACLNN_PRODUCT(aclnnTransposeQuantBatchMatMulWeightNz, check_turned, run_turned)
ACLNN_PRODUCT(aclnnFusedQuantMatmul, check_activated, run_activated)
ACLNN_PRODUCT(aclnnFusedQuantMatmulWeightNz, check_activated, run_activated)
ACLNN_PRODUCT(aclnnQuantBatchMatmulInplaceAdd, check_quant<kInplace>, run_inplace)
