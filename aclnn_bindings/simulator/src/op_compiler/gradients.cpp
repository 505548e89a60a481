// Gradients of functions of one number, as MindSpore builds them: two inputs of one shape, what the
// type's prototype calls y and dy (op_proto's elewise_calculation_ops.h).
#include <cmath>

#include "op_compiler/rows.h"

namespace aclsim {
namespace {

// `slope` takes what the first input is: the function's result or its argument.
template <double (*slope)(double)>
aclError gradient(TypeCall& c) {
  EXPECT(c, 2, 1);
  const int64_t count = count_of(c.out(0).dims);
  EXPECT_IN_SIZE(c, 0, count);
  EXPECT_IN_SIZE(c, 1, count);
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < count; ++i) {
      to[0][i] = static_cast<float>(slope(from[0][i]) * from[1][i]);
    }
    return ACL_SUCCESS;
  });
}

// Of the function's result.
double of_sqrt(double y) { return 0.5 / y; }
double of_rsqrt(double y) { return -0.5 * y * y * y; }
double of_reciprocal(double y) { return -y * y; }
double of_asinh(double y) { return 1 / std::cosh(y); }
double of_acosh(double y) { return 1 / std::sinh(y); }
// Of the function's argument.
double of_acos(double x) { return -1 / std::sqrt(1 - x * x); }
double of_asin(double x) { return 1 / std::sqrt(1 - x * x); }
double of_atan(double x) { return 1 / (1 + x * x); }
double of_abs(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }  // 0 and NaN are themselves

}  // namespace

const TypeTable& gradient_types() {
  static const auto* rows = new TypeTable{
      {"SqrtGrad", gradient<of_sqrt>}, {"RsqrtGrad", gradient<of_rsqrt>},
      {"ReciprocalGrad", gradient<of_reciprocal>}, {"InvGrad", gradient<of_reciprocal>},
      {"AsinhGrad", gradient<of_asinh>}, {"AcoshGrad", gradient<of_acosh>},
      {"AcosGrad", gradient<of_acos>}, {"AsinGrad", gradient<of_asin>},
      {"AtanGrad", gradient<of_atan>}, {"AbsGrad", gradient<of_abs>}};
  return *rows;
}

}  // namespace aclsim
