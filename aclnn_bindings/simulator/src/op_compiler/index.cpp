// Types of graph clients that make, choose or write single values, and steps of optimizers; with the
// prototypes of the Apache-licensed inc/ops headers of github.com/mindspore-ai/graphengine.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_cast.h>
#include <aclnnop/aclnn_scatter.h>
#include <aclnnop/aclnn_std_mean_correction.h>
#include <aclnnop/aclnn_sub.h>
#include <aclnnop/aclnn_topk.h>

namespace aclsim {
namespace {

template <class F>
aclError elementwise(TypeCall& c, F value) {
  EXPECT(c, 1, 1);
  int64_t n = count_of(c.in(0).dims);
  EXPECT_OUT_SIZE(c, 0, n);
  return on_floats(c, {0}, {0}, [n, value](auto& in, auto& out) -> aclError {
    for (int64_t i = 0; i < n; ++i) out[0][i] = static_cast<float>(value(double(in[0][i])));
    return ACL_SUCCESS;
  });
}
aclError softplus(TypeCall& c) {
  return elementwise(c, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
}
aclError relu6(TypeCall& c) {
  return elementwise(c, [](double x) { return std::isnan(x) ? x : std::min(std::max(x, 0.0), 6.0); });
}
aclError elu(TypeCall& c) {
  double alpha = c.float_attr("alpha", 1), scale = c.float_attr("scale", 1);
  double input_scale = c.float_attr("input_scale", 1);
  return elementwise(c, [=](double x) {
    return scale * (x > 0 || std::isnan(x) ? x : alpha * std::expm1(x * input_scale));
  });
}
aclError is_nan(TypeCall& c) {
  return elementwise(c, [](double x) { return std::isnan(x) ? 1.0 : 0.0; });
}

// x, target → target × (log target − x), or its sum or mean.
aclError kl_div(TypeCall& c) {
  EXPECT(c, 2, 1);
  int64_t n = count_of(c.in(0).dims), batch = c.in(0).dims.empty() ? 1 : c.in(0).dims[0];
  std::string reduction = c.text_attr("reduction", "");
  EXPECT_IN_SIZE(c, 1, n);
  if (reduction != "none" && reduction != "sum" && reduction != "batchmean" && reduction != "mean") {
    return c.refuse("reduction %s is none of none, sum, batchmean and mean", reduction.c_str());
  }
  EXPECT_OUT_SIZE(c, 0, reduction == "none" ? n : 1);
  return on_floats(c, {0, 1}, {0}, [=](auto& in, auto& out) -> aclError {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      double x = in[0][i], t = in[1][i], loss = t > 0 ? t * (std::log(t) - x) : 0;
      if (reduction == "none") out[0][i] = static_cast<float>(loss);
      sum += loss;
    }
    if (reduction == "batchmean") sum /= double(batch);
    if (reduction == "mean") sum /= double(n);
    if (reduction != "none") out[0][0] = static_cast<float>(sum);
    return ACL_SUCCESS;
  });
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

// `value(i)` of every element of output 0, whatever its number type.
template <class F>
aclError generate(TypeCall& c, F value) {
  View out = c.out(0);
  int64_t n = count_of(out.dims);
  switch (out.dtype) {
#define FILLED(dtype, T)                                            \
  case dtype:                                                       \
    return c.on_stream([=]() -> aclError {                          \
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(out.data)[i] = static_cast<T>(value(i)); \
      return ACL_SUCCESS;                                           \
    })
    FILLED(ACL_FLOAT, float);
    FILLED(ACL_DOUBLE, double);
    FILLED(ACL_INT32, int32_t);
    FILLED(ACL_INT64, int64_t);
#undef FILLED
    default: return c.refuse("output 0 is neither float, double, int32 nor int64");
  }
}
aclError range(TypeCall& c) {  // start, limit, delta
  EXPECT(c, 3, 1);
  for (size_t i : {0, 1, 2}) EXPECT_IN_SIZE(c, i, 1);
  bool whole = c.in(0).dtype == ACL_INT32 || c.in(0).dtype == ACL_INT64;
  if (whole) {
    int64_t start = c.ints(0).at(0), delta = c.ints(2).at(0);
    return generate(c, [=](int64_t i) { return start + i * delta; });
  }
  double start = c.number(0), delta = c.number(2);
  return generate(c, [=](int64_t i) { return start + double(i) * delta; });
}
aclError lin_space(TypeCall& c) {  // start, stop, num
  EXPECT(c, 3, 1);
  for (size_t i : {0, 1}) EXPECT_IN_SIZE(c, i, 1);
  double start = c.number(0), stop = c.number(1);
  int64_t num = count_of(c.out(0).dims);
  return generate(c, [=](int64_t i) {
    return i == num - 1 && num > 1 ? stop : start + (num > 1 ? double(i) * (stop - start) / double(num - 1) : 0);
  });
}

aclError one_hot(TypeCall& c) {  // x, depth, on_value, off_value
  EXPECT(c, 4, 1);
  const Dims &x = c.in(0).dims, &y = c.out(0).dims;
  int64_t axis = c.int_attr("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(y.size());
  if (y.size() != x.size() + 1 || axis < 0 || axis >= static_cast<int64_t>(y.size())) {
    return c.refuse("the output has one dimension more than x, at axis");
  }
  double on = c.number(2), off = c.number(3);
  int64_t depth = y[axis], inner = count_of(Dims(y.begin() + axis + 1, y.end()));
  int64_t outer = count_of(Dims(y.begin(), y.begin() + axis));
  EXPECT_IN_SIZE(c, 0, outer * inner);
  for (size_t i : {2, 3}) EXPECT_IN_SIZE(c, i, 1);
  return on_floats(c, {0}, {0}, [=](auto& in, auto& out) -> aclError {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t i = 0; i < inner; ++i) {
          bool hot = static_cast<int64_t>(in[0][o * inner + i]) == d;
          out[0][(o * depth + d) * inner + i] = static_cast<float>(hot ? on : off);
        }
    return ACL_SUCCESS;
  });
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
aclError expect_floats(TypeCall& c, const std::vector<size_t>& alike) {
  int64_t n = count_of(c.in(0).dims);
  for (size_t i = 0; i < c.inputs(); ++i) {
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
      {"LinSpace", lin_space}, {"OneHot", one_hot}, {"GatherNd", gather_nd},
      {"TensorScatterUpdate", tensor_scatter_update}, {"ScatterElements", scatter_elements},
      {"ApplyMomentum", apply_momentum}, {"ApplyAdam", apply_adam},
      {"ApplyRMSProp", apply_rms_prop}, {"ApplyAdagrad", apply_adagrad},
      {"ApplyAdagradD", apply_adagrad}, {"SGD", sgd}, {"AddN", add_n}, {"Assign", assign},
      {"AssignAdd", assign_add}, {"AssignSub", assign_sub}};
  return *rows;
}

}  // namespace aclsim
