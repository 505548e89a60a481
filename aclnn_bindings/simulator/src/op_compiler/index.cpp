// Types of graph clients that make, choose or write single values, and steps of optimizers; with the
// prototypes of the Apache-licensed inc/ops headers of github.com/mindspore-ai/graphengine.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_arange.h>
#include <aclnnop/aclnn_cast.h>
#include <aclnnop/aclnn_div.h>
#include <aclnnop/aclnn_elu.h>
#include <aclnnop/aclnn_hardtanh.h>
#include <aclnnop/aclnn_kl_div.h>
#include <aclnnop/aclnn_linspace.h>
#include <aclnnop/aclnn_ne_tensor.h>
#include <aclnnop/aclnn_nonzero.h>
#include <aclnnop/aclnn_nonzero_v2.h>
#include <aclnnop/aclnn_one_hot.h>
#include <aclnnop/aclnn_scatter.h>
#include <aclnnop/aclnn_softplus.h>
#include <aclnnop/aclnn_std_mean_correction.h>
#include <aclnnop/aclnn_sub.h>
#include <aclnnop/aclnn_topk.h>

namespace aclsim {
namespace {

// One ACLNN operator with scalars, of an output as large as the input.
#define SAME_SIZE(c) \
  EXPECT(c, 1, 1);   \
  EXPECT_OUT_SIZE(c, 0, count_of(c.in(0).dims))

aclError softplus(TypeCall& c) {
  SAME_SIZE(c);
  return ACLSIM_RUN(c, aclnnSoftplus, c.in_tensor(0), c.scalar(1), c.scalar(20), c.out_tensor(0));
}
aclError relu6(TypeCall& c) {
  SAME_SIZE(c);
  return ACLSIM_RUN(c, aclnnHardtanh, c.in_tensor(0), c.scalar(0), c.scalar(6), c.out_tensor(0));
}
aclError elu(TypeCall& c) {
  SAME_SIZE(c);
  return ACLSIM_RUN(c, aclnnElu, c.in_tensor(0), c.scalar(c.float_attr("alpha", 1)),
                    c.scalar(c.float_attr("scale", 1)), c.scalar(c.float_attr("input_scale", 1)),
                    c.out_tensor(0));
}
aclError is_nan(TypeCall& c) {  // what differs from itself
  SAME_SIZE(c);
  return ACLSIM_RUN(c, aclnnNeTensor, c.in_tensor(0), c.in_tensor(0), c.out_tensor(0));
}

// x, target → target × (log target − x), or its sum or mean.
aclError kl_div(TypeCall& c) {
  EXPECT(c, 2, 1);
  int64_t n = count_of(c.in(0).dims);
  std::string reduction = c.text_attr("reduction", "");
  EXPECT_IN_SIZE(c, 1, n);
  const std::string known[] = {"none", "mean", "sum", "batchmean"};  // aclnnKlDiv's 0 to 2, and ours
  auto at = std::find(std::begin(known), std::end(known), reduction) - std::begin(known);
  if (at == 4) return c.refuse("reduction %s is none of none, sum, batchmean and mean", reduction.c_str());
  EXPECT_OUT_SIZE(c, 0, at == 0 ? n : 1);
  View out = c.out(0);
  if (at != 0) out.dims.clear(), out.strides.clear();
  aclError code = ACLSIM_RUN(c, aclnnKlDiv, c.in_tensor(0), c.in_tensor(1),
                             std::min<int64_t>(at, 2), false, c.tensor(out));
  if (code || at != 3 || c.in(0).dims.empty()) return code;
  return ACLSIM_RUN(c, aclnnInplaceDivs, c.tensor(out), c.scalar(static_cast<float>(c.in(0).dims[0])));
}

// x → standard deviation, mean
aclError reduce_std(TypeCall& c) {
  EXPECT(c, 1, 2);
  return ACLSIM_RUN(c, aclnnStdMeanCorrection, c.in_tensor(0), c.array(c.ints_attr("dim", {})),
                    c.int_attr("unbiased", 1), c.flag_attr("keepdim", false), c.out_tensor(0),
                    c.out_tensor(1));
}

aclError top_k(TypeCall& c) {  // x, k → values, indices
  EXPECT(c, 2, 2);
  Dims k = c.ints(1);
  if (k.size() != 1) return c.refuse("k is one value");
  View indices = c.room(ACL_INT64, c.out(1).dims);
  aclError code = ACLSIM_RUN(c, aclnnTopk, c.in_tensor(0), k[0], c.int_attr("dim", -1),
                             c.flag_attr("largest", true), c.flag_attr("sorted", true),
                             c.out_tensor(0), c.tensor(indices));
  if (code) return code;
  return ACLSIM_RUN(c, aclnnCast, c.tensor(indices), c.out(1).dtype, c.out_tensor(1));
}

aclError range(TypeCall& c) {  // start, limit, delta
  EXPECT(c, 3, 1);
  for (size_t i : {0, 1, 2}) EXPECT_IN_SIZE(c, i, 1);
  return ACLSIM_RUN(c, aclnnArange, c.scalar_in(0), c.scalar_in(1), c.scalar_in(2), c.out_tensor(0));
}
aclError lin_space(TypeCall& c) {  // start, stop, num
  EXPECT(c, 3, 1);
  for (size_t i : {0, 1}) EXPECT_IN_SIZE(c, i, 1);
  return ACLSIM_RUN(c, aclnnLinspace, c.scalar_in(0), c.scalar_in(1), count_of(c.out(0).dims),
                    c.out_tensor(0));
}

aclError one_hot(TypeCall& c) {  // x, depth, on_value, off_value
  EXPECT(c, 4, 1);
  const Dims &x = c.in(0).dims, &y = c.out(0).dims;
  int64_t axis = c.int_attr("axis", -1), rank = static_cast<int64_t>(y.size());
  if (axis < 0) axis += rank;
  if (y.size() != x.size() + 1 || axis < 0 || axis >= rank) {
    return c.refuse("the output has one dimension more than x, at axis");
  }
  EXPECT_IN_SIZE(c, 0, y[axis] ? count_of(y) / y[axis] : 0);
  for (size_t i : {2, 3}) EXPECT_IN_SIZE(c, i, 1);
  return ACLSIM_RUN(c, aclnnOneHot, c.in_tensor(0), static_cast<int>(y[axis]), c.in_tensor(2),
                    c.in_tensor(3), axis, c.out_tensor(0));
}

// x → where it is not zero: a row of coordinates for each, or with `transpose` a column.
aclError non_zero(TypeCall& c) {
  EXPECT(c, 1, 1);
  const View &x = c.in(0), &out = c.out(0);
  bool columns = c.flag_attr("transpose", false);
  auto rank = static_cast<int64_t>(x.dims.size());
  View places = c.room(ACL_INT64, columns ? Dims{rank, count_of(x.dims)} : Dims{count_of(x.dims), rank});
  aclTensor* all = c.tensor(places);
  aclError code = columns ? ACLSIM_RUN(c, aclnnNonzeroV2, c.in_tensor(0), all)
                          : ACLSIM_RUN(c, aclnnNonzero, c.in_tensor(0), all);
  if (!code) code = c.settle();
  if (code) return code;
  places.dims = c.dims_of(all);
  places.strides = strides_of(places.dims);
  if (count_of(places.dims) > count_of(out.dims)) {
    return c.refuse("output 0 has no room for %lld places",
                    static_cast<long long>(places.dims[columns ? 1 : 0]));
  }
  if (!c.set_dims(0, places.dims)) return c.refuse("the shape of output 0 cannot be told");
  return c.copy(c.out(0), places);
}

// x, size, stride, storage_offset → those elements of x's memory.
aclError as_strided(TypeCall& c) {
  EXPECT(c, 3, 1);
  View from = c.in(0);
  Dims size = c.ints(1), strides = c.ints(2);
  int64_t offset = c.given(3) ? c.ints(3).at(0) : 0, last = offset, first = offset;
  if (size != c.out(0).dims || strides.size() != size.size()) {
    return c.refuse("size is not that of output 0, or has another number of dimensions than stride");
  }
  for (size_t i = 0; i < size.size(); ++i) (strides[i] > 0 ? last : first) += (size[i] - 1) * strides[i];
  if (count_of(size) && (first < 0 || last >= count_of(from.dims))) {
    return c.refuse("size, stride and storage_offset lead outside of x");
  }
  from.dims = size, from.strides = strides, from.offset += offset;
  return c.copy(c.out(0), from);
}

size_t bytes_of(aclDataType dtype) { return aclDataTypeSize(dtype); }
int64_t index_at(const View& view, int64_t i) {
  return view.dtype == ACL_INT64 ? static_cast<const int64_t*>(view.data)[i]
                                 : static_cast<const int32_t*>(view.data)[i];
}
// Points that `indices` names in the first dimensions of `whole`, each of `length` elements.
struct Points {
  int64_t count, named, length;
};
aclError points_of(TypeCall& c, const View& whole, const View& indices, Points* p) {
  if (indices.dtype != ACL_INT32 && indices.dtype != ACL_INT64) {
    return c.refuse("indices are neither int32 nor int64");
  }
  if (indices.dims.empty() || indices.dims.back() > static_cast<int64_t>(whole.dims.size())) {
    return c.refuse("indices name more dimensions than there are");
  }
  p->named = indices.dims.back();
  p->count = count_of(Dims(indices.dims.begin(), indices.dims.end() - 1));
  p->length = count_of(Dims(whole.dims.begin() + p->named, whole.dims.end()));
  return ACL_SUCCESS;
}
// The first element of point `i`; -1 where an index is out of range.
int64_t point(const View& whole, const View& indices, const Points& p, int64_t i) {
  int64_t at = 0;
  for (int64_t d = 0; d < p.named; ++d) {
    int64_t index = index_at(indices, i * p.named + d);
    if (index < 0 || index >= whole.dims[d]) return -1;
    at = at * whole.dims[d] + index;
  }
  return at * p.length;
}
aclError gather_nd(TypeCall& c) {  // x, indices
  EXPECT(c, 2, 1);
  Points p;
  View x = c.in(0), indices = c.in(1), out = c.out(0);
  if (aclError code = points_of(c, x, indices, &p)) return code;
  if (count_of(out.dims) != p.count * p.length || out.dtype != x.dtype) {
    return c.refuse("the output is not of x's dtype, or not as large as the points");
  }
  return c.on_stream([=]() -> aclError {
    size_t each = bytes_of(x.dtype) * static_cast<size_t>(p.length);
    for (int64_t i = 0; i < p.count; ++i) {
      int64_t from = point(x, indices, p, i);
      if (from < 0) return ACL_ERROR_RT_AICORE_EXCEPTION;
      std::memcpy(static_cast<char*>(out.data) + i * each,
                  static_cast<const char*>(x.data) + from * bytes_of(x.dtype), each);
    }
    return ACL_SUCCESS;
  });
}
aclError tensor_scatter_update(TypeCall& c) {  // x, indices, updates
  EXPECT(c, 3, 1);
  Points p;
  View x = c.in(0), indices = c.in(1), updates = c.in(2), out = c.out(0);
  if (aclError code = points_of(c, x, indices, &p)) return code;
  if (count_of(updates.dims) != p.count * p.length || updates.dtype != x.dtype ||
      out.dtype != x.dtype || out.dims != x.dims) {
    return c.refuse("updates or output do not fit x and indices");
  }
  if (aclError code = c.copy(out, x)) return code;
  return c.on_stream([=]() -> aclError {
    size_t each = bytes_of(x.dtype) * static_cast<size_t>(p.length);
    for (int64_t i = 0; i < p.count; ++i) {
      int64_t to = point(x, indices, p, i);
      if (to < 0) return ACL_ERROR_RT_AICORE_EXCEPTION;
      std::memcpy(static_cast<char*>(out.data) + to * bytes_of(x.dtype),
                  static_cast<const char*>(updates.data) + i * each, each);
    }
    return ACL_SUCCESS;
  });
}
aclError scatter_elements(TypeCall& c) {  // data, indices, updates
  EXPECT(c, 3, 1);
  std::string reduction = c.text_attr("reduction", "none");
  if (reduction != "none" && reduction != "add") {
    return c.refuse("reduction %s is not simulated", reduction.c_str());
  }
  return ACLSIM_RUN(c, aclnnScatter, c.in_tensor(0), c.int_attr("axis", 0), c.in_tensor(1),
                    c.in_tensor(2), reduction == "add" ? int64_t{1} : int64_t{0}, c.out_tensor(0));
}

// Steps change their first inputs where they are; float32 only.
// `alike`: inputs of as many elements as the first; the others are single numbers.
aclError expect_floats(TypeCall& c, const std::vector<size_t>& alike, size_t most = SIZE_MAX) {
  int64_t n = count_of(c.in(0).dims);
  for (size_t i = 0; i < std::min(most, c.inputs()); ++i) {
    if (c.in(i).dtype != ACL_FLOAT) return c.refuse("input %zu is not float32", i);
    bool same = i == 0 || std::count(alike.begin(), alike.end(), i);
    EXPECT_IN_SIZE(c, i, same ? n : 1);
  }
  return ACL_SUCCESS;
}
aclError var_out(TypeCall& c) {
  bool same = c.outputs() == 0 || c.out(0).data == c.in(0).data;
  return same ? ACL_SUCCESS : c.copy(c.out(0), c.in(0));
}
aclError apply_momentum(TypeCall& c) {  // var, accum, lr, grad, momentum
  EXPECT(c, 5, 1);
  if (aclError code = expect_floats(c, {1, 3})) return code;
  View var = c.in(0), accum = c.in(1), lr = c.in(2), grad = c.in(3), momentum = c.in(4);
  bool nesterov = c.flag_attr("use_nesterov", false);
  int64_t n = count_of(var.dims);
  aclError code = c.on_stream([=]() -> aclError {
    float step = *floats(lr), keep = *floats(momentum);
    for (int64_t i = 0; i < n; ++i) {
      float g = floats(grad)[i], a = floats(accum)[i] = floats(accum)[i] * keep + g;
      floats(var)[i] -= nesterov ? step * (g + a * keep) : step * a;
    }
    return ACL_SUCCESS;
  });
  return code ? code : var_out(c);
}
// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
aclError apply_adam(TypeCall& c) {
  EXPECT(c, 10, 1);
  if (aclError code = expect_floats(c, {1, 2, 9})) return code;
  std::vector<View> in;
  for (size_t i = 0; i < 10; ++i) in.push_back(c.in(i));
  bool nesterov = c.flag_attr("use_nesterov", false);
  aclError code = c.on_stream([=]() -> aclError {
    float *var = floats(in[0]), *m = floats(in[1]), *v = floats(in[2]), *grad = floats(in[9]);
    double beta1 = *floats(in[6]), beta2 = *floats(in[7]), epsilon = *floats(in[8]);
    double step = *floats(in[5]) * std::sqrt(1 - double(*floats(in[4]))) / (1 - double(*floats(in[3])));
    for (int64_t i = 0; i < count_of(in[0].dims); ++i) {
      double g = grad[i];
      m[i] = static_cast<float>(beta1 * m[i] + (1 - beta1) * g);
      v[i] = static_cast<float>(beta2 * v[i] + (1 - beta2) * g * g);
      double towards = nesterov ? beta1 * m[i] + (1 - beta1) * g : m[i];
      var[i] = static_cast<float>(var[i] - step * towards / (std::sqrt(double(v[i])) + epsilon));
    }
    return ACL_SUCCESS;
  });
  return code ? code : var_out(c);
}

// var, m, v, beta1_power, beta2_power (both of the step before), lr, weight_decay, beta1, beta2,
// epsilon, grad, max_grad_norm
aclError apply_adam_w(TypeCall& c) {
  EXPECT(c, 11, 3);
  if (c.flag_attr("amsgrad", false)) return c.refuse("amsgrad is not simulated");
  if (aclError code = expect_floats(c, {1, 2, 10}, 11)) return code;
  std::vector<View> in;
  for (size_t i = 0; i < 11; ++i) in.push_back(c.in(i));
  double sign = c.flag_attr("maximize", false) ? -1 : 1;
  aclError code = c.on_stream([in, sign]() -> aclError {
    float *var = floats(in[0]), *m = floats(in[1]), *v = floats(in[2]), *grad = floats(in[10]);
    double beta1 = *floats(in[7]), beta2 = *floats(in[8]), lr = *floats(in[5]);
    double first = 1 - *floats(in[3]) * beta1, second = 1 - *floats(in[4]) * beta2;
    for (int64_t i = 0; i < count_of(in[0].dims); ++i) {
      double g = sign * grad[i];
      m[i] = static_cast<float>(beta1 * m[i] + (1 - beta1) * g);
      v[i] = static_cast<float>(beta2 * v[i] + (1 - beta2) * g * g);
      double spread = std::sqrt(v[i] / second) + *floats(in[9]);
      var[i] = static_cast<float>(var[i] * (1 - lr * *floats(in[6])) - lr * m[i] / first / spread);
    }
    return ACL_SUCCESS;
  });
  for (size_t i = 0; i < 3 && !code; ++i) {
    if (c.out(i).data != c.in(i).data) code = c.copy(c.out(i), c.in(i));
  }
  return code;
}

aclError apply_rms_prop(TypeCall& c) {  // var, ms, mom, lr, rho, momentum, epsilon, grad
  EXPECT(c, 8, 1);
  if (aclError code = expect_floats(c, {1, 2, 7})) return code;
  std::vector<View> in;
  for (size_t i = 0; i < 8; ++i) in.push_back(c.in(i));
  aclError code = c.on_stream([in]() -> aclError {
    float *var = floats(in[0]), *squares = floats(in[1]), *moment = floats(in[2]), *grad = floats(in[7]);
    double lr = *floats(in[3]), rho = *floats(in[4]), keep = *floats(in[5]), epsilon = *floats(in[6]);
    for (int64_t i = 0; i < count_of(in[0].dims); ++i) {
      double g = grad[i];
      squares[i] = static_cast<float>(rho * squares[i] + (1 - rho) * g * g);
      moment[i] = static_cast<float>(keep * moment[i] + lr * g / std::sqrt(squares[i] + epsilon));
      var[i] -= moment[i];
    }
    return ACL_SUCCESS;
  });
  return code ? code : var_out(c);
}
aclError apply_adagrad(TypeCall& c) {  // var, accum, lr, grad → var, and accum where it is asked for
  if (c.inputs() != 4 || c.outputs() < 1 || c.outputs() > 2) {
    return c.refuse("takes four inputs and one or two outputs");
  }
  if (aclError code = expect_floats(c, {1, 3})) return code;
  View var = c.in(0), accum = c.in(1), lr = c.in(2), grad = c.in(3);
  bool update = c.flag_attr("update_slots", true);
  aclError code = c.on_stream([=]() -> aclError {
    for (int64_t i = 0; i < count_of(var.dims); ++i) {
      double g = floats(grad)[i], a = floats(accum)[i] + (update ? g * g : 0);
      floats(accum)[i] = static_cast<float>(a);
      floats(var)[i] = static_cast<float>(floats(var)[i] - *floats(lr) * g / std::sqrt(a));
    }
    return ACL_SUCCESS;
  });
  if (code == ACL_SUCCESS && c.outputs() == 2 && c.out(1).data != accum.data) code = c.copy(c.out(1), accum);
  return code ? code : var_out(c);
}
// parameters, gradient, learning_rate, accum, momentum, stat: 1 before a parameter's first step.
aclError sgd(TypeCall& c) {
  EXPECT(c, 6, 1);
  if (aclError code = expect_floats(c, {1, 3, 5})) return code;
  View var = c.in(0), grad = c.in(1), lr = c.in(2), accum = c.in(3), momentum = c.in(4), stat = c.in(5);
  float dampening = c.float_attr("dampening", 0), decay = c.float_attr("weight_decay", 0);
  bool nesterov = c.flag_attr("nesterov", false);
  aclError code = c.on_stream([=]() -> aclError {
    double step = *floats(lr), keep = *floats(momentum);
    for (int64_t i = 0; i < count_of(var.dims); ++i) {
      double g = floats(grad)[i] + double(decay) * floats(var)[i];
      bool first = floats(stat)[i] > 0;
      double a = first ? g : floats(accum)[i] * keep + g * (1 - double(dampening));
      floats(accum)[i] = static_cast<float>(a);
      floats(stat)[i] = 0;
      floats(var)[i] = static_cast<float>(floats(var)[i] - step * (nesterov ? g + keep * a : a));
    }
    return ACL_SUCCESS;
  });
  return code ? code : var_out(c);
}
// ref, value: ref takes, adds or subtracts it where it is.
aclError assign(TypeCall& c) {
  EXPECT(c, 2, 1);
  aclError code = c.copy(c.in(0), c.in(1));
  return code ? code : var_out(c);
}
aclError assign_add(TypeCall& c) {
  EXPECT(c, 2, 1);
  aclError code = ACLSIM_RUN(c, aclnnInplaceAdd, c.in_tensor(0), c.in_tensor(1), c.scalar(1));
  return code ? code : var_out(c);
}
aclError add_n(TypeCall& c) {  // any number of tensors of one shape → their sum
  if (c.inputs() < 1 || c.outputs() != 1) return c.refuse("takes one input or more, and one output");
  aclError code = c.copy(c.out(0), c.in(0));
  for (size_t i = 1; i < c.inputs() && !code; ++i) {
    if (c.in(i).dims != c.in(0).dims) return c.refuse("input %zu differs in shape from input 0", i);
    code = ACLSIM_RUN(c, aclnnInplaceAdd, c.out_tensor(0), c.in_tensor(i), c.scalar(1));
  }
  return code;
}
aclError assign_sub(TypeCall& c) {
  EXPECT(c, 2, 1);
  aclError code = ACLSIM_RUN(c, aclnnInplaceSub, c.in_tensor(0), c.in_tensor(1), c.scalar(1));
  return code ? code : var_out(c);
}

}  // namespace

const TypeTable& index_types() {
  static const auto* rows = new TypeTable{
      {"Softplus", softplus}, {"Relu6", relu6}, {"Elu", elu}, {"IsNan", is_nan},
      {"KLDiv", kl_div}, {"ReduceStd", reduce_std}, {"TopK", top_k}, {"Range", range},
      {"LinSpace", lin_space}, {"OneHot", one_hot}, {"NonZero", non_zero}, {"AsStrided", as_strided},
      {"GatherNd", gather_nd}, {"ApplyAdamW", apply_adam_w},
      {"TensorScatterUpdate", tensor_scatter_update}, {"ScatterElements", scatter_elements},
      {"ApplyMomentum", apply_momentum}, {"ApplyAdam", apply_adam},
      {"ApplyRMSProp", apply_rms_prop}, {"ApplyAdagrad", apply_adagrad},
      {"ApplyAdagradD", apply_adagrad}, {"SGD", sgd}, {"AddN", add_n}, {"Assign", assign},
      {"AssignAdd", assign_add}, {"AssignSub", assign_sub}};
  return *rows;
}

}  // namespace aclsim
