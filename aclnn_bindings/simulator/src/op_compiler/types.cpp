// The table of type names: each row says which ACLNN operators, on which views, a type is. Inputs,
// outputs and attributes are those of the operators' prototypes (CANN's operator specifications).
#include <algorithm>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_abs.h>
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_addmm.h>
#include <aclnnop/aclnn_all.h>
#include <aclnnop/aclnn_amax.h>
#include <aclnnop/aclnn_amin.h>
#include <aclnnop/aclnn_any.h>
#include <aclnnop/aclnn_argmax.h>
#include <aclnnop/aclnn_argmin.h>
#include <aclnnop/aclnn_cast.h>
#include <aclnnop/aclnn_cat.h>
#include <aclnnop/aclnn_ceil.h>
#include <aclnnop/aclnn_convolution.h>
#include <aclnnop/aclnn_cos.h>
#include <aclnnop/aclnn_div.h>
#include <aclnnop/aclnn_eq_tensor.h>
#include <aclnnop/aclnn_erf.h>
#include <aclnnop/aclnn_exp.h>
#include <aclnnop/aclnn_fill_scalar.h>
#include <aclnnop/aclnn_floor.h>
#include <aclnnop/aclnn_ge_tensor.h>
#include <aclnnop/aclnn_gt_tensor.h>
#include <aclnnop/aclnn_layer_norm.h>
#include <aclnnop/aclnn_le_tensor.h>
#include <aclnnop/aclnn_log.h>
#include <aclnnop/aclnn_logsoftmax.h>
#include <aclnnop/aclnn_lt_tensor.h>
#include <aclnnop/aclnn_matmul.h>
#include <aclnnop/aclnn_max_dim.h>
#include <aclnnop/aclnn_maximum.h>
#include <aclnnop/aclnn_mean.h>
#include <aclnnop/aclnn_min_dim.h>
#include <aclnnop/aclnn_minimum.h>
#include <aclnnop/aclnn_mish.h>
#include <aclnnop/aclnn_mish_backward.h>
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_ne_tensor.h>
#include <aclnnop/aclnn_neg.h>
#include <aclnnop/aclnn_one_hot.h>
#include <aclnnop/aclnn_ones.h>
#include <aclnnop/aclnn_reciprocal.h>
#include <aclnnop/aclnn_reduce_sum.h>
#include <aclnnop/aclnn_relu.h>
#include <aclnnop/aclnn_rsqrt.h>
#include <aclnnop/aclnn_sigmoid.h>
#include <aclnnop/aclnn_sign.h>
#include <aclnnop/aclnn_sin.h>
#include <aclnnop/aclnn_softmax.h>
#include <aclnnop/aclnn_sort.h>
#include <aclnnop/aclnn_sqrt.h>
#include <aclnnop/aclnn_sub.h>
#include <aclnnop/aclnn_swish.h>
#include <aclnnop/aclnn_tanh.h>
#include <aclnnop/aclnn_zero.h>

namespace aclsim {
namespace {

int64_t wrap(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

#define UNARY(type, op)                                                    \
  {#type, [](TypeCall& c) -> aclError {                                    \
     EXPECT(c, 1, 1);                                                      \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.out_tensor(0));            \
   }}
#define BINARY(type, op)                                                                   \
  {#type, [](TypeCall& c) -> aclError {                                                    \
     EXPECT(c, 2, 1);                                                                      \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.in_tensor(1), c.out_tensor(0));            \
   }}
#define SCALED(type, op)                                                                           \
  {#type, [](TypeCall& c) -> aclError {                                                            \
     EXPECT(c, 2, 1);                                                                              \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.in_tensor(1), c.scalar(1), c.out_tensor(0));       \
   }}

aclError identity(TypeCall& c) {
  EXPECT(c, 1, 1);
  return c.copy(c.out(0), c.in(0));
}

// A part of a tensor: from `begin` on, `dims` elements in steps.
View part(const View& whole, const Dims& begin, const Dims& dims, const Dims& steps) {
  View view = whole;
  view.dims = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    view.offset += begin[i] * whole.strides[i];
    view.strides[i] = whole.strides[i] * steps[i];
  }
  return view;
}

aclError slice(TypeCall& c) {
  EXPECT(c, 3, 1);
  Dims begin = c.ints(1), size = c.ints(2);
  const View& x = c.in(0);
  if (begin.size() != x.dims.size() || size.size() != x.dims.size()) {
    return c.refuse("offsets and size need one value per dimension");
  }
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] < 0) size[i] = x.dims[i] - begin[i];
    if (begin[i] < 0 || begin[i] + size[i] > x.dims[i]) {
      return c.refuse("dimension %zu ends at %lld and the slice at %lld", i,
                      static_cast<long long>(x.dims[i]),
                      static_cast<long long>(begin[i] + size[i]));
    }
  }
  return c.copy(c.out(0), part(x, begin, size, Dims(size.size(), 1)));
}

// The bounds of one dimension of a strided slice, clipped as Python's are.
void clip(int64_t length, int64_t step, bool from_start, bool to_end, int64_t* begin, int64_t* end) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + length : at, low, high); };
  *begin = from_start ? (step > 0 ? low : high) : bound(*begin);
  *end = to_end ? (step > 0 ? high : low) : bound(*end);
}

aclError strided_slice(TypeCall& c) {
  EXPECT(c, 3, 1);
  for (const char* mask : {"ellipsis_mask", "new_axis_mask"}) {
    if (c.int_attr(mask, 0)) return c.refuse("%s is not simulated", mask);
  }
  Dims begin = c.ints(1), end = c.ints(2), steps = c.given(3) ? c.ints(3) : Dims(begin.size(), 1);
  const View& x = c.in(0);
  int64_t from = c.int_attr("begin_mask", 0), to = c.int_attr("end_mask", 0);
  int64_t single = c.int_attr("shrink_axis_mask", 0);
  if (begin.size() > x.dims.size() || end.size() != begin.size() || steps.size() != begin.size()) {
    return c.refuse("begin, end and strides differ in length or have too many values");
  }
  View view = x;
  Dims dims, strides;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i < begin.size()) {
      if (steps[i] == 0) return c.refuse("stride %zu is 0", i);
      if (single >> i & 1) end[i] = begin[i] + 1, steps[i] = 1;
      bool last = (single >> i & 1) && begin[i] == -1;
      clip(x.dims[i], steps[i], from >> i & 1, (to >> i & 1) || last, &begin[i], &end[i]);
      view.offset += begin[i] * x.strides[i];
    }
    int64_t step = i < begin.size() ? steps[i] : 1;
    int64_t span = i < begin.size() ? end[i] - begin[i] : x.dims[i];
    if (i < begin.size() && (single >> i & 1)) continue;
    dims.push_back(std::max<int64_t>(0, (span + step - (step > 0 ? 1 : -1)) / step));
    strides.push_back(x.strides[i] * step);
  }
  view.dims = dims;
  view.strides = strides;
  return c.copy(c.out(0), view);
}

aclError transpose(TypeCall& c) {
  EXPECT(c, 1, 1);
  const View& x = c.in(0);
  Dims order = c.given(1) ? c.ints(1) : c.ints_attr("perm", {});
  if (order.size() != x.dims.size()) return c.refuse("perm needs one value per dimension");
  View view = x;
  for (size_t i = 0; i < order.size(); ++i) {
    auto from = static_cast<size_t>(wrap(order[i], order.size()));
    if (from >= order.size()) return c.refuse("perm names a dimension that is not there");
    view.dims[i] = x.dims[from];
    view.strides[i] = x.strides[from];
  }
  return c.copy(c.out(0), view);
}

// A transposition before or after a change of shape.
aclError confusion_transpose(TypeCall& c) {
  EXPECT(c, 1, 1);
  Dims order = c.ints_attr("perm", {}), shape = c.ints_attr("shape", {});
  bool first = c.flag_attr("transpose_first", false);
  View x = c.in(0);
  if (!first) x.dims = shape, x.strides = strides_of(shape);
  if (order.size() != x.dims.size()) return c.refuse("perm needs one value per dimension");
  View from = x, to = c.out(0);
  for (size_t i = 0; i < order.size(); ++i) {
    auto axis = static_cast<size_t>(wrap(order[i], order.size()));
    if (axis >= order.size()) return c.refuse("perm names a dimension that is not there");
    from.dims[i] = x.dims[axis];
    from.strides[i] = x.strides[axis];
  }
  to.dims = from.dims;
  to.strides = strides_of(to.dims);
  return c.copy(to, from);
}

// Paddings are pairs: before and after each dimension.
aclError pad_with(TypeCall& c, const Dims& paddings, const aclScalar* value) {
  const View& x = c.in(0);
  if (paddings.size() != 2 * x.dims.size()) return c.refuse("paddings needs two values per dimension");
  Dims begin(x.dims.size());
  for (size_t i = 0; i < begin.size(); ++i) {
    begin[i] = paddings[2 * i];
    if (begin[i] < 0 || begin[i] + x.dims[i] > c.out(0).dims[i]) {
      return c.refuse("paddings do not fit the output in dimension %zu", i);
    }
  }
  aclError code = value ? ACLSIM_RUN(c, aclnnInplaceFillScalar, c.out_tensor(0), value)
                        : ACLSIM_RUN(c, aclnnInplaceZero, c.out_tensor(0));
  if (code != ACL_SUCCESS) return code;
  return c.copy(part(c.out(0), begin, x.dims, Dims(begin.size(), 1)), x);
}
aclError pad(TypeCall& c) {
  EXPECT(c, 1, 1);
  return pad_with(c, c.given(1) ? c.ints(1) : c.ints_attr("paddings", {}), nullptr);
}
aclError pad_v3(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (c.text_attr("mode", "constant") != "constant") {
    return c.refuse("mode %s is not simulated", c.text_attr("mode", "").c_str());
  }
  if (!c.flag_attr("paddings_contiguous", true)) return c.refuse("paddings must be contiguous pairs");
  aclError code = pad_with(c, c.ints(1), nullptr);
  if (code != ACL_SUCCESS || !c.given(2)) return code;
  // The padding's value is a tensor: it is laid over the whole output, then the input once more.
  View value = c.in(2);
  value.dims = c.out(0).dims;
  value.strides.assign(value.dims.size(), 0);
  code = c.copy(c.out(0), value);
  if (code != ACL_SUCCESS) return code;
  Dims paddings = c.ints(1), begin;
  for (size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return c.copy(part(c.out(0), begin, c.in(0).dims, Dims(begin.size(), 1)), c.in(0));
}

// One value everywhere: a view without strides.
aclError fill(TypeCall& c) {
  EXPECT(c, 2, 1);
  View value = c.in(1);
  value.dims = c.out(0).dims;
  value.strides.assign(value.dims.size(), 0);
  return c.copy(c.out(0), value);
}
aclError broadcast_to(TypeCall& c) {
  EXPECT(c, 1, 1);
  const View& x = c.in(0);
  View view = x;
  view.dims = c.out(0).dims;
  view.strides.assign(view.dims.size(), 0);
  if (x.dims.size() > view.dims.size()) return c.refuse("the output has fewer dimensions");
  size_t extra = view.dims.size() - x.dims.size();
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (x.dims[i] != 1) view.strides[i + extra] = x.strides[i];
    if (x.dims[i] != 1 && x.dims[i] != view.dims[i + extra]) return c.refuse("shapes do not fit");
  }
  return c.copy(c.out(0), view);
}

Dims axes_of(TypeCall& c) { return c.given(1) ? c.ints(1) : c.ints_attr("axes", {}); }

#define REDUCE(type, op)                                                                       \
  {#type, [](TypeCall& c) -> aclError {                                                        \
     EXPECT(c, 1, 1);                                                                          \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.array(axes_of(c)),                             \
                       c.flag_attr("keep_dims", false), c.out_tensor(0));                      \
   }}
#define REDUCE_TYPED(type, op)                                                                 \
  {#type, [](TypeCall& c) -> aclError {                                                        \
     EXPECT(c, 1, 1);                                                                          \
     return ACLSIM_RUN(c, op, c.in_tensor(0), c.array(axes_of(c)),                             \
                       c.flag_attr("keep_dims", false), c.out(0).dtype, c.out_tensor(0));      \
   }}

// ACLNN gives positions as int64, type names often as int32.
template <class Body>
aclError with_positions(TypeCall& c, const View& out, Body body) {
  if (out.dtype == ACL_INT64) return body(c.tensor(out));
  View wide = c.room(ACL_INT64, out.dims);
  aclError code = body(c.tensor(wide));
  return code == ACL_SUCCESS ? ACLSIM_RUN(c, aclnnCast, c.tensor(wide), out.dtype, c.tensor(out))
                             : code;
}

aclError arg_with_value(TypeCall& c, bool largest) {
  EXPECT(c, 1, 2);
  int64_t axis = c.int_attr("dimension", 0);
  bool keep = c.flag_attr("keep_dims", false);
  return with_positions(c, c.out(0), [&](aclTensor* positions) {
    return largest ? ACLSIM_RUN(c, aclnnMaxDim, c.in_tensor(0), axis, keep, c.out_tensor(1), positions)
                   : ACLSIM_RUN(c, aclnnMinDim, c.in_tensor(0), axis, keep, c.out_tensor(1),
                                positions);
  });
}
aclError arg(TypeCall& c, bool largest) {
  EXPECT(c, 1, 1);
  int64_t axis = c.given(1) ? c.ints(1).at(0) : c.int_attr("dimension", 0);
  bool keep = c.flag_attr("keep_dims", false);
  return with_positions(c, c.out(0), [&](aclTensor* positions) {
    return largest ? ACLSIM_RUN(c, aclnnArgMax, c.in_tensor(0), axis, keep, positions)
                   : ACLSIM_RUN(c, aclnnArgMin, c.in_tensor(0), axis, keep, positions);
  });
}

// SortV2 has no output for positions.
aclError sort(TypeCall& c) {
  EXPECT(c, 1, 1);
  int64_t axis = c.int_attr("axis", -1);
  bool down = c.flag_attr("descending", false), stable = c.flag_attr("stable", false);
  auto run = [&](aclTensor* positions) {
    return ACLSIM_RUN(c, aclnnSort, c.in_tensor(0), stable, axis, down, c.out_tensor(0), positions);
  };
  if (c.outputs() < 2) return run(c.tensor(c.room(ACL_INT64, c.out(0).dims)));
  return with_positions(c, c.out(1), run);
}

aclError swish(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnSwish, c.in_tensor(0), c.scalar(c.float_attr("scale", 1)),
                    c.out_tensor(0));
}
aclError cast(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnCast, c.in_tensor(0), c.out(0).dtype, c.out_tensor(0));
}
aclError ones(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnInplaceOne, c.out_tensor(0));
}
aclError zeros(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnInplaceZero, c.out_tensor(0));
}

aclError softmax(TypeCall& c) {
  EXPECT(c, 1, 1);
  Dims axes = c.ints_attr("axes", {-1});
  if (axes.size() != 1) return c.refuse("axes has %zu values, expected one", axes.size());
  return ACLSIM_RUN(c, aclnnSoftmax, c.in_tensor(0), axes[0], c.out_tensor(0));
}
aclError log_softmax(TypeCall& c) {
  EXPECT(c, 1, 1);
  Dims axes = c.ints_attr("axes", {-1});
  if (axes.size() != 1) return c.refuse("axes has %zu values, expected one", axes.size());
  return ACLSIM_RUN(c, aclnnLogSoftmax, c.in_tensor(0), axes[0], c.out_tensor(0));
}

View flipped(View view, bool swap) {
  size_t n = view.dims.size();
  if (swap && n >= 2) {
    std::swap(view.dims[n - 1], view.dims[n - 2]);
    std::swap(view.strides[n - 1], view.strides[n - 2]);
  }
  return view;
}
aclError matmul(TypeCall& c) {
  EXPECT(c, 2, 1);
  bool left = c.flag_attr("transpose_x1", false) || c.flag_attr("adj_x1", false);
  bool right = c.flag_attr("transpose_x2", false) || c.flag_attr("adj_x2", false);
  if (c.given(2)) {
    if (c.out(0).dims.size() != 2) return c.refuse("a bias needs matrices of two dimensions");
    return ACLSIM_RUN(c, aclnnAddmm, c.in_tensor(2), c.tensor(flipped(c.in(0), left)),
                      c.tensor(flipped(c.in(1), right)), c.scalar(1), c.scalar(1), c.out_tensor(0),
                      int8_t{0});
  }
  return ACLSIM_RUN(c, aclnnMatmul, c.tensor(flipped(c.in(0), left)),
                    c.tensor(flipped(c.in(1), right)), c.out_tensor(0), int8_t{0});
}

aclError concat(TypeCall& c) {
  EXPECT(c, 1, 1);
  std::vector<aclTensor*> members;
  for (size_t i = 0; i < c.inputs(); ++i) members.push_back(c.in_tensor(i));
  return ACLSIM_RUN(c, aclnnCat, c.list(members), c.int_attr("concat_dim", 0), c.out_tensor(0));
}

// x, on_value, off_value.
aclError one_hot(TypeCall& c) {
  EXPECT(c, 3, 1);
  return ACLSIM_RUN(c, aclnnOneHot, c.in_tensor(0), static_cast<int>(c.int_attr("depth", 0)),
                    c.in_tensor(1), c.in_tensor(2), c.int_attr("axis", -1), c.out_tensor(0));
}

// x, filter, bias; attributes have one value per dimension of the data, pads two per axis.
aclError convolution(TypeCall& c) {
  EXPECT(c, 2, 1);
  size_t axes = c.in(0).dims.size() - 2;
  std::string format = c.text_attr("data_format", axes == 3 ? "NCDHW" : "NCHW");
  if (format != "NCHW" && format != "NCDHW") return c.refuse("data_format %s is not simulated", format.c_str());
  Dims strides = c.ints_attr("strides", Dims(axes + 2, 1));
  Dims dilations = c.ints_attr("dilations", Dims(axes + 2, 1));
  Dims pads = c.ints_attr("pads", Dims(axes * 2, 0)), padding;
  if (strides.size() != axes + 2 || dilations.size() != axes + 2 || pads.size() != 2 * axes) {
    return c.refuse("strides, dilations or pads have a wrong number of values");
  }
  for (size_t i = 0; i < axes; ++i) {
    if (pads[2 * i] != pads[2 * i + 1]) return c.refuse("pads before and after an axis differ");
    padding.push_back(pads[2 * i]);
  }
  aclFormat layout = axes == 3 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW;
  auto inner = [&](const Dims& all) { return c.array(Dims(all.begin() + 2, all.end())); };
  return ACLSIM_RUN(c, aclnnConvolution, c.tensor(c.in(0), layout), c.tensor(c.in(1), layout),
                    c.given(2) ? c.in_tensor(2) : nullptr, inner(strides), c.array(padding),
                    inner(dilations), false, c.array(Dims(axes, 0)), c.int_attr("groups", 1),
                    c.tensor(c.out(0), layout), int8_t{0});
}

// x, gamma, beta → y, mean, rstd.
aclError layer_norm(TypeCall& c) {
  EXPECT(c, 3, 3);
  const Dims& dims = c.in(0).dims;
  auto first = static_cast<size_t>(wrap(c.int_attr("begin_norm_axis", 0), dims.size()));
  if (first > dims.size()) return c.refuse("begin_norm_axis names a dimension that is not there");
  double epsilon = c.float_attr("epsilon", 1e-5f);
  return ACLSIM_RUN(c, aclnnLayerNorm, c.in_tensor(0),
                    c.array(Dims(dims.begin() + static_cast<long>(first), dims.end())),
                    c.in_tensor(1), c.in_tensor(2), epsilon, c.out_tensor(0), c.out_tensor(1),
                    c.out_tensor(2));
}

}  // namespace

const TypeTable& basic_types() {
  static const auto* rows = new TypeTable{
      {"Identity", identity}, {"TensorMove", identity}, {"Slice", slice},
      {"StridedSlice", strided_slice}, {"Transpose", transpose}, {"TransposeD", transpose},
      {"ConfusionTransposeD", confusion_transpose}, {"OneHotD", one_hot},
      {"Pad", pad}, {"PadD", pad}, {"PadV3", pad_v3}, {"Fill", fill},
      {"BroadcastTo", broadcast_to}, {"OnesLike", ones}, {"ZerosLike", zeros}, {"Cast", cast},
      UNARY(Abs, aclnnAbs), UNARY(Neg, aclnnNeg), UNARY(Exp, aclnnExp), UNARY(Log, aclnnLog),
      UNARY(Sqrt, aclnnSqrt), UNARY(Rsqrt, aclnnRsqrt), UNARY(Relu, aclnnRelu),
      UNARY(Sigmoid, aclnnSigmoid), UNARY(Tanh, aclnnTanh), UNARY(Floor, aclnnFloor),
      UNARY(Ceil, aclnnCeil), UNARY(Sign, aclnnSign), UNARY(Reciprocal, aclnnReciprocal),
      UNARY(Sin, aclnnSin), UNARY(Cos, aclnnCos), UNARY(Erf, aclnnErf), UNARY(Mish, aclnnMish),
      {"Swish", swish}, SCALED(Add, aclnnAdd), SCALED(Sub, aclnnSub), BINARY(Mul, aclnnMul),
      BINARY(RealDiv, aclnnDiv), BINARY(Maximum, aclnnMaximum), BINARY(Minimum, aclnnMinimum),
      BINARY(MishGrad, aclnnMishBackward),
      BINARY(Equal, aclnnEqTensor), BINARY(NotEqual, aclnnNeTensor), BINARY(Less, aclnnLtTensor),
      BINARY(LessEqual, aclnnLeTensor), BINARY(Greater, aclnnGtTensor),
      BINARY(GreaterEqual, aclnnGeTensor), REDUCE(ReduceMin, aclnnAmin), REDUCE(ReduceMax, aclnnAmax),
      REDUCE(ReduceMinD, aclnnAmin), REDUCE(ReduceMaxD, aclnnAmax), REDUCE(ReduceAll, aclnnAll),
      REDUCE(ReduceAny, aclnnAny), REDUCE_TYPED(ReduceSum, aclnnReduceSum),
      REDUCE_TYPED(ReduceSumD, aclnnReduceSum), REDUCE_TYPED(ReduceMean, aclnnMean),
      REDUCE_TYPED(ReduceMeanD, aclnnMean),
      {"ArgMaxWithValue", [](TypeCall& c) { return arg_with_value(c, true); }},
      {"ArgMinWithValue", [](TypeCall& c) { return arg_with_value(c, false); }},
      {"ArgMaxV2", [](TypeCall& c) { return arg(c, true); }},
      {"ArgMin", [](TypeCall& c) { return arg(c, false); }},
      {"Sort", sort}, {"SortV2", sort}, {"SoftmaxV2", softmax}, {"LogSoftmaxV2", log_softmax},
      {"MatMul", matmul}, {"MatMulV2", matmul}, {"BatchMatMul", matmul}, {"BatchMatMulV2", matmul},
      {"ConcatD", concat}, {"Conv2D", convolution}, {"Conv3D", convolution},
      {"LayerNormV3", layer_norm}};
  return *rows;
}

}  // namespace aclsim
