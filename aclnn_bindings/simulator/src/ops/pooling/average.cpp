// Average pooling with sliding and with adaptive windows, and their gradients.
#include "params/pooling.h"
#include "loops/given.h"
#include "loops/rows.h"
#include "loops/stage.h"
#include "loops/window.h"

namespace aclsim {
namespace {

struct Plan : Windows {
  bool count_padding;
  int64_t divisor;  // 0: the number of elements
};

// The mean of a window's sum, or an element's share: adaptive ones are divided by a side at a time, as torch does.
template <class C>
C divided(C sum, const Plan& p, const Windows::Reach& deep, const Windows::Reach& high,
          const Windows::Reach& wide) {
  if (p.divisor) return sum / static_cast<C>(p.divisor);
  if (p.count_padding) return sum / static_cast<C>(deep.padded * high.padded * wide.padded);
  const int64_t sides[] = {deep.end - deep.begin, high.end - high.begin, wide.end - wide.begin};
  if (!p.adaptive) return sum / static_cast<C>(sides[0] * sides[1] * sides[2]);
  for (const int64_t side : sides) sum /= static_cast<C>(side);
  return sum;
}
constexpr int64_t kTorchs = 512;  // elements of a window up to which sums are of floats, as torch's
template <class C>
ACL_VECTOR double total(const C* x, int64_t n) {
  return lane_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return x[i]; });
}
template <class C, int Out>
void average(Call& c) {
  using P = params::AvgPool2d;

  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C* x = stage.in(c.tensor(P::self));
  C* y = stage.out(c.tensor(Out));
  each_planes(p, [&](int64_t first, int64_t last) {
    each_window(
        p, first, last,
        [&](int64_t plane, int64_t o, const Windows::Reach& deep, const Windows::Reach& high,
            const Windows::Reach& wide) {
          const C* from = x + plane * p.in_space();
          C sum = 0;
          const auto add = [&](auto& to) ACL_LAMBDA {
            each_input(p, deep, high, wide, [&](int64_t i) { to += from[i]; });
          };
          if (p.adaptive && p.out_space() == 1) {
            sum = static_cast<C>(total(from, p.in_space()));
          } else if (p.cost() > kTorchs * p.out_space()) {
            double whole = 0;
            add(whole);
            sum = static_cast<C>(whole);
          } else {
            add(sum);
          }
          y[plane * p.out_space() + o] = divided(sum, p, deep, high, wide);
        });
  });
  stage.done();
}
template <int Out>
void run_average(Call& c) {
  using P = params::AvgPool2d;

  with_float(c.tensor(P::self).dtype,
             [&](auto tag) { average<typename decltype(tag)::type, Out>(c); });
}
template <class C, int Out>
void average_grad(Call& c) {
  using P = params::AvgPool2dBackward;

  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C* g = stage.in(c.tensor(P::gradOutput));
  C* gx = stage.out(c.tensor(Out));
  each_planes(p, [&](int64_t first, int64_t last) {
    std::fill(gx + first * p.in_space(), gx + last * p.in_space(), C(0));
    each_window(p, first, last,
                [&](int64_t plane, int64_t o, const Windows::Reach& deep,
                    const Windows::Reach& high, const Windows::Reach& wide) {
                  C* to = gx + plane * p.in_space();
                  const C share = divided(g[plane * p.out_space() + o], p, deep, high, wide);
                  each_input(p, deep, high, wide, [&](int64_t i) { to[i] += share; });
                });
  });
  stage.done();
}
template <int Out>
void run_average_grad(Call& c) {
  using P = params::AvgPool2dBackward;

  with_float(c.tensor(P::gradOutput).dtype,
             [&](auto tag) { average_grad<typename decltype(tag)::type, Out>(c); });
}

// Turns the windows of a call into its plan.
void finish(Call& c, int self, bool count_padding, int64_t divisor) {
  const Windows w = c.get<Windows>();
  Plan& p = c.make<Plan>();
  static_cast<Windows&>(p) = w;
  p.count_padding = count_padding;
  p.divisor = divisor;
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(self)));
}
template <int Dims, int Out>
aclnnStatus check_average(Call& c) {
  using P = params::AvgPool2d;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, Dims, P::kernelSize, P::strides, P::paddings, -1,
                                    c.flag(P::ceilMode), pooled));
  finish(c, P::self, c.flag(P::countIncludePad), c.integer(P::divisorOverride));
  return expect_shape(c, Out, pooled);
}
// (gradOutput, self, kernelSize, ...) as above.
template <int Dims, int Out>
aclnnStatus check_average_grad(Call& c) {
  using P = params::AvgPool2dBackward;

  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, P::self, Dims, P::kernelSize, P::stride, P::padding, -1,
                                    c.flag(P::ceilMode), pooled));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::gradOutput, pooled));
  finish(c, P::gradOutput, c.flag(P::countIncludePad), c.integer(P::divisorOverride));
  return expect_same_shape(c, Out, P::self);
}
template <int Dims>
aclnnStatus check_adaptive(Call& c) {
  using P = params::AdaptiveAvgPool2d;

  ACL_RETURN_IF_FAILED(read_adaptive(c, P::self, P::out, Dims));
  const Windows& w = c.get<Windows>();
  const Span<const int64_t> size = c.ints(P::outputSize);
  bool fits = size.size == Dims;
  for (int i = 0; fits && i < Dims; ++i) fits = size[i] == w.out[3 - Dims + i];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "outputSize should be the last dims of out, %s.",
                  shape_text(c.tensor(P::out)));
  }
  finish(c, P::self, false, 0);
  return ACLNN_SUCCESS;
}
template <int Dims>
aclnnStatus check_adaptive_grad(Call& c) {
  using P = params::AdaptiveAvgPool2dBackward;

  ACL_RETURN_IF_FAILED(read_adaptive(c, P::self, P::gradOutput, Dims));
  finish(c, P::gradOutput, false, 0);
  return expect_same_shape(c, P::out, P::self);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnAvgPool2d, (check_average<2, params::AvgPool2d::out>),
         run_average<params::AvgPool2d::out>)
ACLNN_OP(aclnnAvgPool2dBackward, (check_average_grad<2, params::AvgPool2dBackward::gradInput>),
         run_average_grad<params::AvgPool2dBackward::gradInput>)
ACLNN_OP(aclnnAvgPool3d, (check_average<3, params::AvgPool3d::out>),
         run_average<params::AvgPool3d::out>)
ACLNN_OP(aclnnAvgPool3dBackward, (check_average_grad<3, params::AvgPool3dBackward::output>),
         run_average_grad<params::AvgPool3dBackward::output>)
ACLNN_OP(aclnnAdaptiveAvgPool2d, check_adaptive<2>, run_average<params::AdaptiveAvgPool2d::out>)
ACLNN_OP(aclnnAdaptiveAvgPool2dBackward, check_adaptive_grad<2>,
         run_average_grad<params::AdaptiveAvgPool2dBackward::out>)
ACLNN_OP(aclnnAdaptiveAvgPool3d, check_adaptive<3>, run_average<params::AdaptiveAvgPool3d::out>)
ACLNN_OP(aclnnAdaptiveAvgPool3dBackward, check_adaptive_grad<3>,
         run_average_grad<params::AdaptiveAvgPool3dBackward::out>)
