// Average pooling with sliding and with adaptive windows, and their gradients.
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

double divisor_of(const Plan& p, const Windows::Reach& deep, const Windows::Reach& high,
                  const Windows::Reach& wide) {
  if (p.divisor) return static_cast<double>(p.divisor);
  if (p.count_padding) return static_cast<double>(deep.padded * high.padded * wide.padded);
  return static_cast<double>((deep.end - deep.begin) * (high.end - high.begin) *
                             (wide.end - wide.begin));
}
template <class F>
void each_planes(const Windows& w, F f) {
  parallel_for(w.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.cost())), f);
}
template <class C>
ACL_VECTOR double total(const C* x, int64_t n) {
  return lane_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return x[i]; });
}
template <class C, int Out>
void average(Call& c) {
  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C* x = stage.in(c.tensor(0));
  C* y = stage.out(c.tensor(Out));
  each_planes(p, [&](int64_t first, int64_t last) {
    each_window(
        p, first, last,
        [&](int64_t plane, int64_t o, const Windows::Reach& deep, const Windows::Reach& high,
            const Windows::Reach& wide) {
          const C* from = x + plane * p.in_space();
          double sum = 0;
          if (wide.end - wide.begin == p.in[2] && p.in[2] > 1) {  // whole lines: one run per depth
            const int64_t run = (high.end - high.begin) * p.in[2];
            for (int64_t d = deep.begin; d < deep.end; ++d) {
              sum += total(from + (d * p.in[1] + high.begin) * p.in[2], run);
            }
          } else {
            each_input(p, deep, high, wide, [&](int64_t i) { sum += from[i]; });
          }
          y[plane * p.out_space() + o] = static_cast<C>(sum / divisor_of(p, deep, high, wide));
        });
  });
  stage.done();
}
template <int Out>
aclError run_average(Call& c) {
  with_float(c.tensor(0).dtype, [&](auto tag) { average<typename decltype(tag)::type, Out>(c); });
  return ACL_SUCCESS;
}
template <class C, int Out>
void average_grad(Call& c) {
  const Plan& p = c.get<Plan>();
  Stage<C> stage(c);
  const C* g = stage.in(c.tensor(0));
  C* gx = stage.out(c.tensor(Out));
  each_planes(p, [&](int64_t first, int64_t last) {
    std::fill(gx + first * p.in_space(), gx + last * p.in_space(), C(0));
    each_window(p, first, last,
                [&](int64_t plane, int64_t o, const Windows::Reach& deep,
                    const Windows::Reach& high, const Windows::Reach& wide) {
                  C* to = gx + plane * p.in_space();
                  const C share = static_cast<C>(g[plane * p.out_space() + o] /
                                                 divisor_of(p, deep, high, wide));
                  each_input(p, deep, high, wide, [&](int64_t i) { to[i] += share; });
                });
  });
  stage.done();
}
template <int Out>
aclError run_average_grad(Call& c) {
  with_float(c.tensor(0).dtype,
             [&](auto tag) { average_grad<typename decltype(tag)::type, Out>(c); });
  return ACL_SUCCESS;
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
// (self, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride, [cubeMathType,]
// out).
template <int Dims, int Out>
aclnnStatus check_average(Call& c) {
  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, 0, Dims, 1, 2, 3, -1, c.flag(4), pooled));
  finish(c, 0, c.flag(5), c.integer(6));
  return expect_shape(c, Out, pooled);
}
// (gradOutput, self, kernelSize, ...) as above.
template <int Dims, int Out>
aclnnStatus check_average_grad(Call& c) {
  Shape pooled;
  ACL_RETURN_IF_FAILED(read_windows(c, 1, Dims, 2, 3, 4, -1, c.flag(5), pooled));
  ACL_RETURN_IF_FAILED(expect_shape(c, 0, pooled));
  finish(c, 0, c.flag(6), c.integer(7));
  return expect_same_shape(c, Out, 1);
}
// (self, outputSize, out).
template <int Dims>
aclnnStatus check_adaptive(Call& c) {
  ACL_RETURN_IF_FAILED(read_adaptive(c, 0, 2, Dims));
  const Windows& w = c.get<Windows>();
  const Span<const int64_t> size = c.ints(1);
  bool fits = size.size == Dims;
  for (int i = 0; fits && i < Dims; ++i) fits = size[i] == w.out[3 - Dims + i];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "outputSize should be the last dims of out, %s.",
                  shape_text(c.tensor(2)));
  }
  finish(c, 0, false, 0);
  return ACLNN_SUCCESS;
}
// (gradOutput, self, out).
template <int Dims>
aclnnStatus check_adaptive_grad(Call& c) {
  ACL_RETURN_IF_FAILED(read_adaptive(c, 1, 0, Dims));
  finish(c, 0, false, 0);
  return expect_same_shape(c, 2, 1);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnAvgPool2d, (check_average<2, 8>), run_average<8>)
ACLNN_OP(aclnnAvgPool2dBackward, (check_average_grad<2, 9>), run_average_grad<9>)
ACLNN_OP(aclnnAvgPool3d, (check_average<3, 7>), run_average<7>)
ACLNN_OP(aclnnAvgPool3dBackward, (check_average_grad<3, 8>), run_average_grad<8>)
ACLNN_OP(aclnnAdaptiveAvgPool2d, check_adaptive<2>, run_average<2>)
ACLNN_OP(aclnnAdaptiveAvgPool2dBackward, check_adaptive_grad<2>, run_average_grad<2>)
ACLNN_OP(aclnnAdaptiveAvgPool3d, check_adaptive<3>, run_average<2>)
ACLNN_OP(aclnnAdaptiveAvgPool3dBackward, check_adaptive_grad<3>, run_average_grad<2>)
