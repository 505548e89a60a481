// Products of quantised matrices, and of plain ones with quantised or inner-format weights.
// Formulas: the "npu_quant_matmul", "npu_weight_quant_batchmatmul", "npu_transpose_batchmatmul"
// and "npu_quant_matmul_reduce_sum" pages of torch_npu, and the operator documents of CANN 9.1.
#include "params/matmul.h"
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

bool flag_at(const Call& c, int arg) { return arg != kNone && c.flag(arg); }

// Where the versions have their arguments.
struct Operands {
  int x2_scale, x1_scale, offset, bias, turn1, turn2, group, x2_offset, out;
};
constexpr Operands kQuantV2 = [] {
  using P = params::QuantMatmulV2;
  return Operands{P::deqScale, kNone, kNone, P::bias, P::adjX1, P::adjX2, kNone, kNone, P::out};
}();
constexpr Operands kQuantV3 = [] {
  using P = params::QuantMatmulV3;
  return Operands{P::scale,       kNone, P::offset, P::bias, P::transposeX1,
                P::transposeX2, kNone, kNone,     P::out};
}();
constexpr Operands kQuantV4 = [] {
  using P = params::QuantMatmulV4;
  return Operands{P::scale,       P::pertokenScaleOptional, P::offset, P::bias,
                P::transposeX1, P::transposeX2,           kNone,     kNone,
                P::out};
}();
constexpr Operands kQuantV5 = [] {
  using P = params::QuantMatmulV5;
  return Operands{P::x2Scale,     P::x1Scale, P::yOffset,  P::bias, P::transposeX1,
                P::transposeX2, 11,         P::x2Offset, P::out};
}();
constexpr Operands kReduceSum = [] {
  using P = params::QuantMatmulReduceSumWeightNz;
  return Operands{P::x2Scale,     P::x1Scale, kNone, kNone, P::transposeX1,
                P::transposeX2, kNone,      kNone, P::out};
}();
constexpr Operands kFusedQuant = [] {
  using P = params::FusedQuantMatmul;
  return Operands{P::x2Scale, P::x1Scale, P::yOffsetOptional, P::biasOptional, kNone, kNone, kNone,
                kNone,      P::out};
}();
constexpr Operands kQuant16 = [] {
  using P = params::BatchMatmulQuant;
  return Operands{P::quantParam,  kNone, kNone, P::bias, P::transposeX1,
                P::transposeX2, kNone, kNone, P::out};
}();

// Leading dims of x1 and x2, broadcast, with the product's rows and columns.
Shape product_shape(const Call& c, const Matrices& a, const Matrices& b, bool& fits) {
  using P = params::QuantMatmul;

  const Tensor &x1 = c.tensor(P::x1), &x2 = c.tensor(P::x2);
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
  using P = params::QuantMatmul;

  int out = c.count - 1;  // the last tensor: attributes may follow it
  while (out > 0 && (c.args[out].kind != ArgKind::Tensor || c.null(out))) --out;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s %s and %s %s can't be multiplied, or their product does "
                "not have the shape %s of the output.",
                c.name(P::x1), shape_text(c.tensor(P::x1)), c.name(P::x2),
                shape_text(c.tensor(P::x2)), shape_text(c.tensor(out)));
}
aclnnStatus check_product(Call& c, const Operands& at) {
  using P = params::QuantMatmul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, at.out}));
  if (c.tensor(P::x1).rank < 2 || c.tensor(P::x2).rank < 2) return refuse_product(c);
  const Matrices a = matrices_like(c.tensor(P::x1), flag_at(c, at.turn1), true),
                 b = matrices_like(c.tensor(P::x2), flag_at(c, at.turn2), true);
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
template <const Operands& at>
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
bool halves(const Call& c, const Operands& at) {
  using P = params::QuantMatmul;

  const aclDataType x2 = c.tensor(P::x2).dtype;
  return at_or_null(c, at.offset) && at.offset == kQuantV5.offset &&
         c.tensor(P::x1).dtype == ACL_INT8 && (x2 == ACL_INT4 || x2 == ACL_INT32);
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
Finish finish_of(const Call& c, const Operands& at, bool blocks) {
  using P = params::QuantMatmul;

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
    f.early = bias->dtype == ACL_INT32 || c.tensor(P::x1).dtype == ACL_FLOAT16;
  }
  return f;
}
Matrices quant_product(const Call& c, const Operands& at, bool& blocks) {
  using P = params::QuantMatmul;

  const Tensor *s1 = at_or_null(c, at.x1_scale), *s2 = at_or_null(c, at.x2_scale);
  const bool turn1 = flag_at(c, at.turn1), turn2 = flag_at(c, at.turn2);
  const Tensor& out = c.tensor(at.out);
  Matrices a = matrices_of(c.tensor(P::x1), false, true);
  const int64_t k = turn1 ? a.rows : a.cols, n = out.dims[out.rank - 1];
  Matrices b = matrices_of(c.tensor(P::x2), false, true, turn2 ? n : k, turn2 ? k : n);
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
template <const Operands& at>
void run_quant(Call& c) {
  bool blocks = false;
  const Matrices m = quant_product(c, at, blocks);
  const Tensor& out = c.tensor(at.out);
  if (out.dtype == ACL_INT32) {
    Doubles whole = m.v;
    const Tensor* bias = at_or_null(c, at.bias);
    const Doubles add = doubles(bias);
    for (size_t i = 0; i < whole.size() && bias; ++i) whole[i] += add[i % add.size()];
    write(out, whole);
    return;
  }
  const Floats y = finished(m, finish_of(c, at, blocks));
  if (is_float(out.dtype) && !is_narrow_float(out.dtype)) {
    write(out, y);
  } else {
    write_quantized(&out, y);
  }
}
// (x1, x2, bias, deqScale, out): one factor, given by value.
constexpr Operands kQuantV1 = [] {
  using P = params::QuantMatmul;
  return Operands{kNone, kNone, kNone, P::bias, kNone, kNone, kNone, kNone, P::out};
}();
aclnnStatus check_quant_first(Call& c) { return check_quant<kQuantV1>(c); }
void run_quant_first(Call& c) {
  using P = params::QuantMatmul;

  bool blocks = false;
  Finish f = finish_of(c, kQuantV1, false);
  f.column = {static_cast<float>(c.number(P::deqScale))};
  write(c.tensor(P::out), finished(quant_product(c, kQuantV1, blocks), f));
}
// The same with an operation after it, named at 10.
Activation activation_of(const char* text) {
  if (text && !std::strcmp(text, "relu")) return Activation::Relu;
  if (text && !std::strcmp(text, "gelu_tanh")) return Activation::GeluTanh;
  return text && !std::strcmp(text, "gelu_erf") ? Activation::GeluErf : Activation::None;
}
aclnnStatus check_activated(Call& c) {
  using P = params::FusedQuantMatmul;

  const char* text = c.text(P::fusedOpType) ? c.text(P::fusedOpType) : "";
  if ((*text && activation_of(text) == Activation::None) || at_or_null(c, P::x3Optional)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "fusedOpType \"%s\" should be relu, gelu_tanh or gelu_erf, without x3.", text);
  }
  return check_quant<kFusedQuant>(c);
}
void run_activated(Call& c) {
  using P = params::FusedQuantMatmul;

  bool blocks = false;
  const Matrices m = quant_product(c, kFusedQuant, blocks);
  Floats y = finished(m, finish_of(c, kFusedQuant, blocks));
  for (float& v : y) v = static_cast<float>(activated(v, activation_of(c.text(P::fusedOpType))));
  write(c.tensor(P::out), y);
}
// (x1, x2, x1Scale, x2Scale, yRef, transposeX1, transposeX2, groupSize): y += the scaled product.
constexpr Operands kInplace = [] {
  using P = params::QuantBatchMatmulInplaceAdd;
  return Operands{P::x2Scale,     P::x1ScaleOptional, kNone, kNone,
                P::transposeX1, P::transposeX2,     7,     kNone,
                P::yRef};
}();
void run_inplace(Call& c) {
  using P = params::QuantBatchMatmulInplaceAdd;

  bool blocks = false;
  Floats y = finished(quant_product(c, kInplace, blocks), finish_of(c, kInplace, blocks));
  const Floats before = floats(c.tensor(P::yRef));
  for (size_t i = 0; i < y.size(); ++i) y[i] += before[i];
  write(c.tensor(P::yRef), y);
}
// Batches of the product summed: out = sum of (x1 x2) x1Scale x2Scale.
aclnnStatus check_reduce_sum(Call& c) {
  using P = params::QuantMatmulReduceSumWeightNz;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::x1Scale, P::x2Scale, P::out}));
  const Matrices a = matrices_like(c.tensor(P::x1), false, false);
  const Tensor& out = c.tensor(P::out);
  if (c.tensor(P::x1).rank != 3 || out.rank < 2 || rows_of(out) != a.rows) return refuse_product(c);
  ACL_RETURN_IF_FAILED(expect_numel(c, P::x1Scale, a.batch * a.rows));
  return expect_numel(c, P::x2Scale, width_of(out));
}
void run_reduce_sum(Call& c) {
  using P = params::QuantMatmulReduceSumWeightNz;

  bool blocks = false;
  const Matrices m = quant_product(c, kReduceSum, blocks);
  const Floats each = finished(m, finish_of(c, kReduceSum, false));
  Doubles sum(static_cast<size_t>(m.rows * m.cols));
  for (size_t i = 0; i < each.size(); ++i) sum[i % sum.size()] += each[i];
  write(c.tensor(P::out), sum);
}

// (x, weight, antiquantScale, antiquantOffset, quantScale, quantOffset, bias, groupSize, .., y):
// y = x ((weight + offset) scale) + bias, quantised where asked.
template <int Out>
aclnnStatus check_weight(Call& c) {
  using P = params::WeightQuantBatchMatmulNz;

  constexpr Operands at = {kNone, kNone, kNone, 6, kNone, kNone, kNone, kNone, Out};
  ACL_RETURN_IF_FAILED(expect_given(c, {P::antiquantScale}));
  return check_product(c, at);
}
template <int Out>
void run_weight(Call& c) {
  using P = params::WeightQuantBatchMatmulNz;

  const Tensor& y = c.tensor(Out);
  const Matrices x = matrices_of(c.tensor(P::x), false, false);
  Matrices w = matrices_of(c.tensor(P::weight), false, true, x.cols, y.dims[y.rank - 1]);
  if (const Tensor* offset = at_or_null(c, P::antiquantOffsetOptional))
    shift_blocks(w, over_columns(*offset), 1);
  scale_blocks(w, over_columns(c.tensor(P::antiquantScale)), true);
  Finish f;
  f.bias = floats(at_or_null(c, P::biasOptional));
  Floats out = finished(product(x, w), f);
  const Tensor* quant = at_or_null(c, P::quantScaleOptional);
  if (!quant) {
    write(y, out);
    return;
  }
  Finish q;
  q.column = packed_scales(quant);
  q.offset = at_or_null(c, P::quantOffsetOptional) ? floats(at_or_null(c, P::quantOffsetOptional))
                                                   : packed_offsets(quant);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(
        q.of(out[i], 0, static_cast<int64_t>(i) % width_of(y), 0, 1, width_of(y)));
  }
  write_quantized(&y, out);
}

// Plain products whose second operand is in the inner format: out = beta self + alpha mat1 mat2.
template <int A, int Out>
aclnnStatus check_inner(Call& c) {
  using P = params::AddmmWeightNz;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::self, A, A + 1, Out}));
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
  if (A == 1 && !broadcast(s, c.tensor(P::self))) return refuse_fit(c, P::self, Out);
  return ACLNN_SUCCESS;
}
template <int A, int Out>
void run_inner(Call& c) {
  using P = params::AddmmWeightNz;

  const Tensor& out = c.tensor(Out);
  const Matrices a = matrices_of(c.tensor(A), false, false);
  Matrices m = product(a, matrices_of(c.tensor(A + 1), false, false, a.cols, width_of(out)));
  if (A == 1) {
    Doubles self(m.v.size());
    copy_tensor(dense(self.data(), ACL_DOUBLE, out.dims, out.rank), c.tensor(P::self));
    const double beta = c.scalar(P::beta).real(), alpha = c.scalar(P::alpha).real();
    for (size_t i = 0; i < self.size(); ++i)
      m.v[i] = alpha * m.v[i] + (beta == 0 ? 0 : beta * self[i]);
  }
  write(out, m.v);
}

// (A, B, C, alpha, beta, transA, transB, out): out = alpha op(A) op(B) + beta C.
aclnnStatus check_gemm(Call& c) {
  using P = params::Gemm;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::A, P::B, P::C, P::out}));
  if (c.tensor(P::A).rank != 2 || c.tensor(P::B).rank != 2) return refuse_product(c);
  const Matrices a = matrices_like(c.tensor(P::A), c.integer(P::transA) != 0, false),
                 b = matrices_like(c.tensor(P::B), c.integer(P::transB) != 0, false);
  if (c.tensor(P::A).rank != 2 || c.tensor(P::B).rank != 2 || a.cols != b.rows)
    return refuse_product(c);
  Shape s;
  s.rank = 2, s.dims[0] = a.rows, s.dims[1] = b.cols;
  Shape into = s;
  const bool fits = broadcast(into, c.tensor(P::C)) && into.rank == 2 &&
                    into.dims[0] == s.dims[0] && into.dims[1] == s.dims[1];
  if (!fits) return refuse_product(c);
  return expect_shape(c, P::out, s);
}
void run_gemm(Call& c) {
  using P = params::Gemm;

  Matrices m = product(matrices_of(c.tensor(P::A), c.integer(P::transA) != 0, false),
                       matrices_of(c.tensor(P::B), c.integer(P::transB) != 0, false));
  Doubles add(m.v.size());
  copy_tensor(dense(add.data(), ACL_DOUBLE, c.tensor(P::out).dims, 2), c.tensor(P::C));
  const double alpha = c.number(P::alpha), beta = c.number(P::beta);
  for (size_t i = 0; i < add.size(); ++i) m.v[i] = alpha * m.v[i] + (beta == 0 ? 0 : beta * add[i]);
  write(c.tensor(P::out), m.v);
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
  using P = params::TransposeBatchMatMul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::out}));
  for (int arg : {P::permX1, P::permX2}) ACL_RETURN_IF_FAILED(expect_order(c, arg));
  const Span<const int64_t> turned =
      c.ints(P::permY);  // rows before batches is all that the document has
  if (turned.size != 3 || turned[0] != 1 || turned[1] != 0 || turned[2] != 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "permY should be [1, 0, 2].");
  }
  const Matrices a = matrices_like(permuted(c.tensor(P::x1), c.ints(P::permX1)), false, false);
  const Tensor x2 =
      c.tensor(P::x2).rank == 3 ? permuted(c.tensor(P::x2), c.ints(P::permX2)) : c.tensor(P::x2);
  const Matrices b = matrices_like(x2, false, false);
  if (c.tensor(P::x1).rank != 3 || a.cols > b.rows || a.batch != b.batch ||
      c.integer(P::batchSplitFactor) < 1) {
    return refuse_product(c);
  }
  const int64_t n = a.batch * a.rows > 0 ? c.tensor(P::out).numel() / (a.batch * a.rows) : 0;
  if (n > b.cols || b.cols - n >= 64) return refuse_product(c);
  return expect_numel(c, P::out, a.batch * a.rows * n);
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
void run_transpose(Call& c) {
  using P = params::TransposeBatchMatMul;

  const Tensor& out = c.tensor(P::out);
  const Matrices a = matrices_of(permuted(c.tensor(P::x1), c.ints(P::permX1)), false, false);
  const int64_t n = out.numel() / std::max<int64_t>(1, a.batch * a.rows);
  const Tensor x2 =
      c.tensor(P::x2).rank == 3 ? permuted(c.tensor(P::x2), c.ints(P::permX2)) : c.tensor(P::x2);
  const Matrices m = product(a, matrices_of(x2, false, false, a.cols, n));
  const Floats scale = packed_scales(at_or_null(c, P::scale)),
               offset = packed_offsets(at_or_null(c, P::scale)),
               bias = floats(at_or_null(c, P::bias));
  Floats v(m.v.begin(), m.v.end());
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t column = i / (m.rows * m.cols) * m.cols + i % m.cols;
    if (!bias.empty())
      v[i] += bias[bias.size() > static_cast<size_t>(m.cols) ? column : i % m.cols];
    if (!scale.empty())
      v[i] = v[i] * scale[column % scale.size()] +
             (offset.empty() ? 0 : offset[column % offset.size()]);
  }
  const Floats y = rows_first(m, v, c.integer(P::batchSplitFactor));
  if (out.dtype == ACL_INT8) {
    write_quantized(&out, y);
  } else {
    write(out, y);
  }
}

// (x1, x2, bias, x1Scale, x2Scale, dtype, groupSize, permX1, permX2, permY, batchSplitFactor, out): small
// operands, a scale for each row of x1 and each column of x2.
aclnnStatus check_turned(Call& c) {
  using P = params::TransposeQuantBatchMatMul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::out}));
  for (int arg : {P::permX1, P::permX2, P::permY}) ACL_RETURN_IF_FAILED(expect_order(c, arg));
  if (c.tensor(P::x1).rank != 3 || c.tensor(P::x2).rank < 3) return refuse_product(c);
  const Tensor x2 =
      c.tensor(P::x2).rank == 3 ? permuted(c.tensor(P::x2), c.ints(P::permX2)) : c.tensor(P::x2);
  const Matrices a = matrices_like(permuted(c.tensor(P::x1), c.ints(P::permX1)), false, false),
                 b = matrices_like(x2, false, false);
  const int64_t n = a.batch * a.rows > 0 ? c.tensor(P::out).numel() / (a.batch * a.rows) : 0;
  if (a.cols > b.rows || a.batch != b.batch || c.integer(P::batchSplitFactor) < 1 || n > b.cols ||
      b.cols - n >= 64 || (n * a.batch) % c.integer(P::batchSplitFactor) != 0)
    return refuse_product(c);
  if (at_or_null(c, P::bias)) ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, n));
  for (int i : {P::x1Scale, P::x2Scale}) {
    const int64_t lines = i == 3 ? a.rows : n;
    if (at_or_null(c, i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, lines));
  }
  return expect_numel(c, P::out, a.batch * a.rows * n);
}
void run_turned(Call& c) {
  using P = params::TransposeQuantBatchMatMul;

  const Tensor& out = c.tensor(P::out);
  const Matrices a = matrices_of(permuted(c.tensor(P::x1), c.ints(P::permX1)), false, false);
  const int64_t n = out.numel() / std::max<int64_t>(1, a.batch * a.rows);
  const Tensor x2 =
      c.tensor(P::x2).rank == 3 ? permuted(c.tensor(P::x2), c.ints(P::permX2)) : c.tensor(P::x2);
  const Matrices m = product(a, matrices_of(x2, false, false, a.cols, n));
  const Floats rows = floats(at_or_null(c, P::x1Scale)), cols = floats(at_or_null(c, P::x2Scale)),
               bias = floats(at_or_null(c, P::bias));
  Floats v(m.v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(m.cols), r = i / static_cast<size_t>(m.cols) % m.rows;
    v[i] = static_cast<float>(m.v[i] * (rows.empty() ? 1 : rows[r % rows.size()]) *
                                  (cols.empty() ? 1 : cols[j % cols.size()]) + (bias.empty() ? 0 : bias[j]));
  }
  const bool turned = c.ints(P::permY).size == 3 && c.ints(P::permY)[0] == 1;
  write(out, turned ? rows_first(m, v, c.integer(P::batchSplitFactor)) : v);
}

// (x, weight, weightScale, [groupList,] bias, xScale, xOffset, smoothScale, xQuantMode,
// transposeWeight, out): x is quantised first, per token or tensor, unless scales are given.
template <bool Grouped>
aclnnStatus check_dequant(Call& c) {
  using P = params::QuantGroupedMatmulDequant;

  constexpr int kBias = Grouped ? P::biasOptional : P::groupList;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, P::weightScale, kBias + 6}));
  if (Grouped) ACL_RETURN_IF_FAILED(expect_given(c, {P::groupList}));
  const Matrices w = matrices_like(c.tensor(P::weight), c.flag(kBias + 5), false);
  const Tensor &x = c.tensor(P::x), &out = c.tensor(kBias + 6);
  if (x.rank != 2 || w.rows < width_of(x) || w.cols < width_of(out) || rows_of(out) != rows_of(x) ||
      w.rows - width_of(x) >= 64) {
    return refuse_product(c);
  }
  if (c.tensor(P::weightScale).dtype == ACL_INT64) {
    return expect_given(c, {kBias + 1});
  }
  return expect_numel(c, kBias + 3, width_of(x));
}
// x in units of its scales, and the scales.
Floats quantised_rows(const Call& c, int bias, Floats& scales) {
  using P = params::QuantMatmulDequant;

  Floats x = floats(c.tensor(P::x));
  const int64_t k = width_of(c.tensor(P::x)), rows = rows_of(c.tensor(P::x));
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
void run_dequant(Call& c) {
  using P = params::QuantGroupedMatmulDequant;

  constexpr int kBias = Grouped ? P::biasOptional : P::groupList;
  Floats scales;
  const Floats x = quantised_rows(c, kBias, scales);
  const Tensor& out = c.tensor(kBias + 6);
  const int64_t k = width_of(c.tensor(P::x)), rows = rows_of(c.tensor(P::x)), n = width_of(out);
  const Matrices w = matrices_of(c.tensor(P::weight), c.flag(kBias + 5), false, k, n);
  const Floats of_weight = packed_scales(c.maybe(P::weightScale));
  const bool folded =
      c.tensor(P::weightScale).dtype == ACL_INT64;  // the factor of x is in it already
  const Ints group =
      Grouped ? groups_of_rows(integers(c.tensor(P::groupList)), rows, false) : Ints(rows, 0);
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
}

// (x1, x2, diagonal, deqOffset, deqScale, addOffset, mulScale, bias, transposeX1, transposeX2, scale,
// offset, out): x2 is ((x2 + offset) scale + addOffset) mulScale; what the document derives from these
// (the unit matrix, deqOffset and deqScale) is not read.
aclnnStatus check_weight_first(Call& c) {
  using P = params::WeightQuantBatchMatmul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::out}));
  const Tensor &x = c.tensor(P::x1), &w = c.tensor(P::x2);
  if (x.rank != 2 || w.rank != 2) return refuse_product(c);
  const Matrices a = matrices_like(x, c.flag(P::transposeX1), false),
                 b = matrices_like(w, c.flag(P::transposeX2), false);
  if (a.cols != b.rows) return refuse_product(c);
  for (int i : {P::addOffset, P::mulScale, P::bias}) {
    if (!c.null(i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, b.cols));
  }
  return expect_numel(c, P::out, a.rows * b.cols);
}
void run_weight_first(Call& c) {
  using P = params::WeightQuantBatchMatmul;

  Matrices b = matrices_of(c.tensor(P::x2), c.flag(P::transposeX2), false);
  const Floats add = floats(c.maybe(P::addOffset)), mul = floats(c.maybe(P::mulScale)),
               bias = floats(c.maybe(P::bias));
  for (size_t i = 0; i < b.v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(b.cols);
    b.v[i] = ((b.v[i] + c.number(P::antiquantOffset)) * c.number(P::antiquantScale) +
              (add.empty() ? 0 : add[j % add.size()])) *
             (mul.empty() ? 1 : mul[j % mul.size()]);
  }
  Matrices m = product(matrices_of(c.tensor(P::x1), c.flag(P::transposeX1), false), b);
  for (size_t i = 0; i < m.v.size() && !bias.empty(); ++i) m.v[i] += bias[i % bias.size()];
  write(c.tensor(P::out), m.v);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnQuantMatmul, check_quant_first, run_quant_first)
ACLNN_OWN(aclnnQuantMatmulV2, check_quant<kQuantV2>, run_quant<kQuantV2>)
ACLNN_OWN(aclnnQuantMatmulV3, check_quant<kQuantV3>, run_quant<kQuantV3>)
ACLNN_OWN(aclnnQuantMatmulV4, check_quant<kQuantV4>, run_quant<kQuantV4>)
ACLNN_OWN(aclnnQuantMatmulV5, check_quant<kQuantV5>, run_quant<kQuantV5>)
ACLNN_OWN(aclnnQuantMatmulWeightNz, check_quant<kQuantV5>, run_quant<kQuantV5>)
ACLNN_OWN(aclnnQuantMatmulReduceSumWeightNz, check_reduce_sum, run_reduce_sum)
ACLNN_OWN(aclnnBatchMatmulQuant, check_quant<kQuant16>, run_quant<kQuant16>)
ACLNN_OWN(aclnnQuantMatmulDequant, check_dequant<false>, run_dequant<false>)
ACLNN_OWN(aclnnQuantGroupedMatmulDequant, check_dequant<true>, run_dequant<true>)
ACLNN_OWN(aclnnQuantGroupedMatmulDequantWeightNZ, check_dequant<true>, run_dequant<true>)
ACLNN_OWN(aclnnWeightQuantBatchMatmul, check_weight_first, run_weight_first)
ACLNN_OWN(aclnnWeightQuantBatchMatmulV2, check_weight<8>,
              run_weight<params::WeightQuantBatchMatmulV2::y>)
ACLNN_OWN(aclnnWeightQuantBatchMatmulV3, check_weight<9>,
              run_weight<params::WeightQuantBatchMatmulV3::y>)
ACLNN_OWN(aclnnWeightQuantBatchMatmulNz, check_weight<8>,
              run_weight<params::WeightQuantBatchMatmulNz::y>)
ACLNN_OWN(aclnnMatmulWeightNz,
              (check_inner<params::MatmulWeightNz::self, params::MatmulWeightNz::out>),
              (run_inner<params::MatmulWeightNz::self, params::MatmulWeightNz::out>))
ACLNN_OWN(aclnnBatchMatMulWeightNz,
              (check_inner<params::BatchMatMulWeightNz::self, params::BatchMatMulWeightNz::out>),
              (run_inner<params::BatchMatMulWeightNz::self, params::BatchMatMulWeightNz::out>))
ACLNN_OWN(aclnnAddmmWeightNz,
              (check_inner<params::AddmmWeightNz::mat1, params::AddmmWeightNz::out>),
              (run_inner<params::AddmmWeightNz::mat1, params::AddmmWeightNz::out>))
ACLNN_OWN(aclnnGemm, check_gemm, run_gemm)
ACLNN_OWN(aclnnTransposeBatchMatMul, check_transpose, run_transpose)
ACLNN_OWN(aclnnTransposeBatchMatMulWeightNz, check_transpose, run_transpose)
ACLNN_OWN(aclnnTransposeQuantBatchMatMul, check_turned, run_turned)
ACLNN_OWN(aclnnTransposeQuantBatchMatMulWeightNz, check_turned, run_turned)
ACLNN_OWN(aclnnFusedQuantMatmul, check_activated, run_activated)
ACLNN_OWN(aclnnFusedQuantMatmulWeightNz, check_activated, run_activated)
ACLNN_OWN(aclnnQuantBatchMatmulInplaceAdd, check_quant<kInplace>, run_inplace)
