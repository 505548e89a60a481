// Making complex numbers and taking them apart.
#include "params/pointwise.h"
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"

namespace aclsim {
namespace {

// The real parts of a complex tensor as a real view, the imaginary ones one element further.
Tensor part_of(const Tensor& t, bool imaginary) {
  Tensor v = t;
  v.dtype = t.dtype == ACL_COMPLEX128 ? ACL_DOUBLE
            : t.dtype == ACL_COMPLEX32 ? ACL_FLOAT16
                                       : ACL_FLOAT;
  v.offset = 2 * t.offset + imaginary;
  for (int i = 0; i < t.rank; ++i) v.strides[i] *= 2;
  return v;
}
aclnnStatus expect_complex(const Call& c, int arg) {
  if (is_complex(c.tensor(arg).dtype) || c.tensor(arg).dtype == ACL_COMPLEX32) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be complex, but is %s.",
                c.name(arg), dtype_name(c.tensor(arg).dtype));
}

// (a, b, out): real and imaginary parts, or absolute value and angle.
aclnnStatus check_make(Call& c) {
  using P = params::Polar;

  Shape shape = shape_of(c.tensor(P::input));
  if (!broadcast(shape, c.tensor(P::angle))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s can't broadcast.",
                  shape_text(c.tensor(P::input)), shape_text(c.tensor(P::angle)));
  }
  ACL_RETURN_IF_FAILED(expect_complex(c, P::out));
  return expect_shape(c, P::out, shape);
}
void run_complex(Call& c) {
  using P = params::Complex;

  copy_tensor(part_of(c.tensor(P::out), false), c.tensor(P::real));
  copy_tensor(part_of(c.tensor(P::out), true), c.tensor(P::imag));
}
template <bool Imaginary>
void polar_part(const Tensor& out, const Tensor& size, const Tensor& angle) {
  Loop loop = loop_over(part_of(out, Imaginary));
  loop.add(size);
  loop.add(angle);
  loop.coalesce();
  with_float(angle.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
      for (int64_t i = 0; i < n; ++i) {
        o[i] = in[0][i] * (Imaginary ? std::sin(in[1][i]) : std::cos(in[1][i]));
      }
    });
  });
}
void run_polar(Call& c) {
  using P = params::Polar;

  polar_part<false>(c.tensor(P::out), c.tensor(P::input), c.tensor(P::angle));
  polar_part<true>(c.tensor(P::out), c.tensor(P::input), c.tensor(P::angle));
}

void run_real(Call& c) {
  using P = params::Real;

  const Tensor& self = c.tensor(P::self);
  copy_tensor(c.tensor(P::out), is_complex(self.dtype) ? part_of(self, false) : self);
}
// (x, out): of real numbers pi below 0, NaN for NaN, else 0, whatever the sign of a zero.
template <bool Complex>
void angles(const Loop& loop) {
  run_loop<c128>(loop, [](int64_t n, c128* out, const c128* const* in) {
    for (int64_t i = 0; i < n; ++i) {
      const double a = in[0][i].real();
      const double real = a < 0 ? 3.14159265358979323846 : a != a ? a : 0;
      out[i] = Complex ? std::atan2(in[0][i].imag(), a) : real;
    }
  });
}
void run_angle(Call& c) {
  using P = params::AngleV2;

  Loop loop = loop_over(c.tensor(P::out));
  loop.add(c.tensor(P::x));
  loop.coalesce();
  is_complex(c.tensor(P::x).dtype) ? angles<true>(loop) : angles<false>(loop);
}
aclnnStatus check_same(Call& c) {
  using P = params::Real;
  return expect_same_shape(c, P::out, P::self);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnComplex, check_make, run_complex)
ACLNN_OP(aclnnPolar, check_make, run_polar)
ACLNN_OP(aclnnReal, check_same, run_real)
ACLNN_OP(aclnnAngleV2, check_same, run_angle)
