// Arithmetic of several operands, scans, views and samples: one ACLNN operator each.
#include "op_compiler/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <aclnnop/aclnn_adaptive_avg_pool2d.h>
#include <aclnnop/aclnn_adaptive_avg_pool2d_backward.h>
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_addcdiv.h>
#include <aclnnop/aclnn_addcmul.h>
#include <aclnnop/aclnn_avgpool2d.h>
#include <aclnnop/aclnn_avgpool2d_backward.h>
#include <aclnnop/aclnn_cummax.h>
#include <aclnnop/aclnn_cummin.h>
#include <aclnnop/aclnn_cumprod.h>
#include <aclnnop/aclnn_diag.h>
#include <aclnnop/aclnn_dot.h>
#include <aclnnop/aclnn_embedding_dense_backward.h>
#include <aclnnop/aclnn_equal.h>
#include <aclnnop/aclnn_eye.h>
#include <aclnnop/aclnn_grid_sampler2d.h>
#include <aclnnop/aclnn_grid_sampler2d_backward.h>
#include <aclnnop/aclnn_inverse.h>
#include <aclnnop/aclnn_isclose.h>
#include <aclnnop/aclnn_left_shift.h>
#include <aclnnop/aclnn_lerp_tensor.h>
#include <aclnnop/aclnn_linalg_cross.h>
#include <aclnnop/aclnn_logsumexp.h>
#include <aclnnop/aclnn_masked_scatter.h>
#include <aclnnop/aclnn_nan_to_num.h>
#include <aclnnop/aclnn_prod.h>
#include <aclnnop/aclnn_right_shift.h>
#include <aclnnop/aclnn_roll.h>
#include <aclnnop/aclnn_searchsorted.h>
#include <aclnnop/aclnn_take.h>
#include <aclnnop/aclnn_trace.h>
#include <aclnnop/aclnn_x_log_y_tensor.h>

namespace aclsim {
namespace {

// Positions come in the dtype that the caller wants; the scans give int64.
template <class Scan>
aclError scan(TypeCall& c, Scan run) {
  EXPECT(c, 1, 2);
  View positions = c.room(ACL_INT64, c.out(1).dims);
  aclError code = run(c.tensor(positions));
  return code == ACL_SUCCESS ? c.copy(c.out(1), positions) : code;
}
aclError cummax(TypeCall& c) {
  return scan(c, [&](aclTensor* at) {
    return ACLSIM_RUN(c, aclnnCummax, IN(0), c.int_attr("dim", 0), c.out_tensor(0), at);
  });
}
aclError cummin(TypeCall& c) {
  return scan(c, [&](aclTensor* at) {
    return ACLSIM_RUN(c, aclnnCummin, IN(0), c.int_attr("axis", 0), c.out_tensor(0), at);
  });
}
aclError cumprod(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (c.flag_attr("exclusive", false) || c.flag_attr("reverse", false)) {
    return c.refuse("exclusive and reverse are not simulated");
  }
  return ACLSIM_RUN(c, aclnnCumprod, IN(0), c.scalar_in(1), c.out(0).dtype, c.out_tensor(0));
}
// x, axes → product over one axis, or over all.
aclError product(TypeCall& c) {
  EXPECT(c, 2, 1);
  Dims axes = c.ints(1);
  if (axes.size() == c.in(0).dims.size() && axes.size() != 1) {
    View all = c.out(0);
    all.dims.clear();
    all.strides.clear();
    return ACLSIM_RUN(c, aclnnProd, IN(0), c.out(0).dtype, c.tensor(all));
  }
  if (axes.size() != 1) return c.refuse("products over %zu axes are not simulated", axes.size());
  return ACLSIM_RUN(c, aclnnProdDim, IN(0), axes[0], c.flag_attr("keep_dims", false),
                    c.out(0).dtype, c.out_tensor(0));
}
aclError log_sum_exp(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnLogSumExp, IN(0), c.array(c.ints(1)), c.flag_attr("keep_dims", false),
                    c.out_tensor(0));
}

aclError eye(TypeCall& c) {
  EXPECT(c, 0, 1);
  int64_t rows = c.int_attr("num_rows", 0), columns = c.int_attr("num_columns", rows);
  return ACLSIM_RUN(c, aclnnEye, rows, columns, c.out_tensor(0));
}
aclError inverse(TypeCall& c) {
  EXPECT(c, 1, 1);
  if (c.flag_attr("adjoint", false)) return c.refuse("adjoint is not simulated");
  return ACLSIM_RUN(c, aclnnInverse, IN(0), c.out_tensor(0));
}
aclError embedding_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnEmbeddingDenseBackward, IN(0), IN(1),
                    static_cast<uint64_t>(c.int_attr("num_weights", 0)),
                    static_cast<uint64_t>(c.int_attr("padding_idx", -1)),
                    c.flag_attr("scale_grad_by_freq", false), c.out_tensor(0));
}
aclError search(TypeCall& c) {
  EXPECT(c, 2, 1);
  return ACLSIM_RUN(c, aclnnSearchSorted, IN(0), IN(1), c.out(0).dtype == ACL_INT32,
                    c.flag_attr("right", false), static_cast<aclTensor*>(nullptr), c.out_tensor(0));
}
aclError masked_scatter(TypeCall& c) {
  EXPECT(c, 3, 1);
  if (aclError code = c.copy(c.out(0), c.in(0))) return code;
  return ACLSIM_RUN(c, aclnnInplaceMaskedScatter, c.out_tensor(0), IN(1), IN(2));
}
// Of a row of values, those at positions in it as if it had one axis.
aclError take(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (c.in(0).dims.size() != 1) return c.refuse("only rows of values are simulated");
  return ACLSIM_RUN(c, aclnnTake, IN(0), IN(1), c.out_tensor(0));
}

// (memory, size, strides, offset) twice: the second view's values into the first.
aclError view_copy(TypeCall& c) {
  EXPECT(c, 8, 1);
  View to = c.out(0), from = c.in(4);
  to.dims = c.ints(1), to.strides = c.ints(2), to.offset = c.ints(3).at(0);
  from.dims = c.ints(5), from.strides = c.ints(6), from.offset = c.ints(7).at(0);
  if (to.dims != from.dims || to.strides.size() != to.dims.size() ||
      from.strides.size() != from.dims.size()) {
    return c.refuse("the views have other shapes or other numbers of strides");
  }
  return c.copy(to, from);
}

// A pool's window [1, 1, h, w] of images [N, C, H, W], with pads before and after both axes.
struct Pool {
  Dims size, strides, pads;
};
aclError pool_of(TypeCall& c, Pool* pool) {
  Dims size = c.ints_attr("ksize", {}), strides = c.ints_attr("strides", {});
  Dims pads = c.ints_attr("pads", {0, 0, 0, 0});
  if (size.size() != 4 || strides.size() != 4 || pads.size() != 4) {
    return c.refuse("ksize, strides and pads need four values");
  }
  if (c.text_attr("data_format", "NCHW") != "NCHW" || c.flag_attr("global_pooling", false) ||
      c.text_attr("padding_mode", "CALCULATED") != "CALCULATED") {
    return c.refuse("only NCHW with pads that are given is simulated");
  }
  if (pads[0] != pads[1] || pads[2] != pads[3]) return c.refuse("pads before and after an axis differ");
  *pool = {{size[2], size[3]}, {strides[2], strides[3]}, {pads[0], pads[2]}};
  return ACL_SUCCESS;
}
aclTensor* image(TypeCall& c, const View& view) { return c.tensor(view, ACL_FORMAT_NCHW); }
aclError average_pool(TypeCall& c) {
  EXPECT(c, 1, 1);
  Pool pool;
  if (aclError code = pool_of(c, &pool)) return code;
  return ACLSIM_RUN(c, aclnnAvgPool2d, image(c, c.in(0)), c.array(pool.size),
                    c.array(pool.strides), c.array(pool.pads), c.flag_attr("ceil_mode", false),
                    !c.flag_attr("exclusive", true), int64_t{0}, int8_t{0}, image(c, c.out(0)));
}
// The images' size, and the gradient of the averages.
aclError average_pool_grad(TypeCall& c) {
  EXPECT(c, 2, 1);
  Pool pool;
  if (aclError code = pool_of(c, &pool)) return code;
  if (c.ints(0) != c.out(0).dims) return c.refuse("the output has another shape than asked for");
  aclTensor* out = image(c, c.out(0));
  return ACLSIM_RUN(c, aclnnAvgPool2dBackward, image(c, c.in(1)), out, c.array(pool.size),
                    c.array(pool.strides), c.array(pool.pads), c.flag_attr("ceil_mode", false),
                    !c.flag_attr("exclusive", true), int64_t{0}, int8_t{0}, out);
}
aclError adaptive_pool(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnAdaptiveAvgPool2d, image(c, c.in(0)),
                    c.array(c.ints_attr("output_size", {})), image(c, c.out(0)));
}
aclError adaptive_pool_grad(TypeCall& c) {
  EXPECT(c, 1, 1);
  aclTensor* out = image(c, c.out(0));
  return ACLSIM_RUN(c, aclnnAdaptiveAvgPool2dBackward, image(c, c.in(0)), out, out);
}

// What stands for infinities depends on the dtype where it is left out; clients give it.
aclError nan_to_num(TypeCall& c) {
  EXPECT(c, 1, 1);
  constexpr float kLeftOut = std::numeric_limits<float>::quiet_NaN();
  const float high = c.float_attr("posinf", kLeftOut), low = c.float_attr("neginf", kLeftOut);
  if (std::isnan(high) || std::isnan(low)) return c.refuse("posinf and neginf are needed");
  return ACLSIM_RUN(c, aclnnNanToNum, IN(0), c.float_attr("nan", 0), high, low, c.out_tensor(0));
}

struct Sampling {
  int64_t mode, padding;
  bool corners;
};
aclError sampling_of(TypeCall& c, Sampling* how) {
  const std::string modes[] = {"bilinear", "nearest", "bicubic"};
  const std::string paddings[] = {"zeros", "border", "reflection"};
  const std::string mode = c.text_attr("interpolation_mode", "bilinear");
  const std::string padding = c.text_attr("padding_mode", "zeros");
  how->mode = std::find(modes, modes + 3, mode) - modes;
  how->padding = std::find(paddings, paddings + 3, padding) - paddings;
  how->corners = c.flag_attr("align_corners", false);
  if (how->mode < 3 && how->padding < 3) return ACL_SUCCESS;
  return c.refuse("interpolation_mode %s or padding_mode %s is unknown", mode.c_str(), padding.c_str());
}
aclError sample(TypeCall& c) {
  EXPECT(c, 2, 1);
  Sampling how;
  if (aclError code = sampling_of(c, &how)) return code;
  return ACLSIM_RUN(c, aclnnGridSampler2D, image(c, c.in(0)), image(c, c.in(1)), how.mode,
                    how.padding, how.corners, image(c, c.out(0)));
}
aclError sample_grad(TypeCall& c) {
  EXPECT(c, 3, 2);
  Sampling how;
  if (aclError code = sampling_of(c, &how)) return code;
  return ACLSIM_RUN(c, aclnnGridSampler2DBackward, image(c, c.in(0)), image(c, c.in(1)),
                    image(c, c.in(2)), how.mode, how.padding, how.corners, c.flags({true, true}),
                    image(c, c.out(0)), image(c, c.out(1)));
}

}  // namespace

const TypeTable& arithmetic_types() {
  static const auto* rows = new TypeTable{
      ROW(Addcdiv, aclnnAddcdiv, 4, IN(0), IN(1), IN(2), c.scalar_in(3)),
      ROW(Addcmul, aclnnAddcmul, 4, IN(0), IN(1), IN(2), c.scalar_in(3)),
      ROW(AxpyV2, aclnnAdd, 3, IN(0), IN(1), c.scalar_in(2)),
      ROW(Lerp, aclnnLerp, 3, IN(0), IN(1), IN(2)),
      ROW(Xlogy, aclnnXLogYTensor, 2, IN(0), IN(1)),
      ROW(LeftShift, aclnnLeftShift, 2, IN(0), IN(1)),
      ROW(RightShift, aclnnRightShift, 2, IN(0), IN(1)),
      ROW(TensorEqual, aclnnEqual, 2, IN(0), IN(1)), ROW(Dot, aclnnDot, 2, IN(0), IN(1)),
      ROW(IsClose, aclnnIsClose, 2, IN(0), IN(1), double{c.float_attr("rtol", 1e-5f)},
          double{c.float_attr("atol", 1e-8f)}, c.flag_attr("equal_nan", false)),
      {"NanToNum", nan_to_num},
      ROW(Roll, aclnnRoll, 1, IN(0), c.array(c.ints_attr("shifts", {})),
          c.array(c.ints_attr("dims", {}))),
      ROW(Trace, aclnnTrace, 1, IN(0)), ROW(Diag, aclnnDiag, 1, IN(0), c.int_attr("diagonal", 0)),
      ROW(DiagPart, aclnnDiag, 1, IN(0), c.int_attr("diagonal", 0)),
      ROW(Cross, aclnnLinalgCross, 2, IN(0), IN(1), c.int_attr("dim", -1)),
      {"Cummax", cummax}, {"Cummin", cummin}, {"Cumprod", cumprod}, {"ReduceProd", product},
      {"ReduceLogSumExp", log_sum_exp}, {"Eye", eye}, {"MatrixInverse", inverse},
      {"EmbeddingDenseGrad", embedding_grad}, {"SearchSorted", search},
      {"MaskedScatter", masked_scatter}, {"Gather", take}, {"ViewCopy", view_copy},
      {"AvgPoolV2", average_pool}, {"AvgPoolV2Grad", average_pool_grad},
      {"AdaptiveAvgPool2d", adaptive_pool}, {"AdaptiveAvgPool2dGrad", adaptive_pool_grad},
      {"GridSampler2D", sample}, {"GridSampler2DGrad", sample_grad}};
  return *rows;
}

}  // namespace aclsim
