// Types of several kinds: losses, distances, packed signs, random choices, masks, calibration.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_bernoulli.h>
#include <aclnnop/aclnn_ctc_loss.h>
#include <aclnnop/aclnn_ctc_loss_backward.h>
#include <aclnnop/aclnn_dropout_do_mask.h>
#include <aclnnop/aclnn_dropout_gen_mask.h>
#include <aclnnop/aclnn_sign_bits_pack.h>
#include <aclnnop/aclnn_zero.h>

namespace aclsim {
namespace {

// log_probs [steps, batch, classes], targets, lengths of both → loss, log alpha.
// torch_npu adds the longest target times the classes to `blank`.
int64_t blank_of(TypeCall& c, int64_t classes) {
  int64_t blank = c.int_attr("blank", 0);
  return classes > 0 && blank >= classes ? blank % classes : blank;
}
aclError ctc(TypeCall& c) {
  EXPECT(c, 4, 2);
  EXPECT_IN(c, 0, {-1, -1, -1});
  View loss = c.out(0);
  if (loss.dims.empty()) loss.dims = {1}, loss.strides = {1};
  return ACLSIM_RUN(c, aclnnCtcLoss, c.in_tensor(0), c.in_tensor(1), c.array(c.ints(2)),
                    c.array(c.ints(3)), blank_of(c, c.in(0).dims[2]),
                    c.flag_attr("zero_infinity", false), c.tensor(loss), c.out_tensor(1));
}
aclError ctc_grad(TypeCall& c) {
  EXPECT(c, 7, 1);
  EXPECT_IN(c, 1, {-1, -1, -1});
  View grad = c.in(0), loss = c.in(5);
  for (View* view : {&grad, &loss}) {
    if (view->dims.empty()) view->dims = {1}, view->strides = {1};
  }
  return ACLSIM_RUN(c, aclnnCtcLossBackward, c.tensor(grad), c.in_tensor(1), c.in_tensor(2),
                    c.array(c.ints(3)), c.array(c.ints(4)), c.tensor(loss), c.in_tensor(6),
                    blank_of(c, c.in(1).dims[2]), c.flag_attr("zero_infinity", false),
                    c.out_tensor(0));
}

// grad, x1, x2 and the distance, all laid out as [..., p, r, m] → gradient of x1 [..., p, m].
// p: below zero for infinity.
aclError cdist_grad(TypeCall& c) {
  EXPECT(c, 4, 1);
  const Dims& all = c.in(0).dims;
  if (all.size() < 3) return c.refuse("the inputs need three dimensions or more");
  for (size_t i = 1; i < 4; ++i) {
    if (c.in(i).dims != all) return c.refuse("input %zu has another shape than the gradient", i);
  }
  int64_t m = all[all.size() - 1], r = all[all.size() - 2];
  int64_t rows = count_of(Dims(all.begin(), all.end() - 2));
  if (count_of(c.out(0).dims) != rows * m) return c.refuse("the output does not fit the inputs");
  double p = c.float_attr("p", 2);
  return on_floats(c, {0, 1, 2, 3}, {0}, [=](const auto& from, const auto& to) {
    auto slope = [p](double diff, double distance) {
      if (diff == 0 || distance == 0 || p == 0) return 0.0;
      double sign = diff > 0 ? 1 : -1, size = std::abs(diff);
      if (p < 0) return size >= distance ? sign : 0.0;
      return sign * std::pow(size / distance, p - 1);
    };
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < m; ++k) {
        double sum = 0;
        for (int64_t j = 0; j < r; ++j) {
          int64_t at = (i * r + j) * m + k;
          sum += from[0][at] * slope(static_cast<double>(from[1][at] - from[2][at]), from[3][at]);
        }
        to[0][i * m + k] = static_cast<float>(sum);
      }
    }
    return ACL_SUCCESS;
  });
}

aclError sign_bits_pack(TypeCall& c) {
  EXPECT(c, 1, 1);
  return ACLSIM_RUN(c, aclnnSignBitsPack, c.in_tensor(0), c.int_attr("size", 1), c.out_tensor(0));
}

// Channels of two images added, 16 to a block; blocks past an image's end are zero.
aclError stride_add(TypeCall& c) {
  EXPECT(c, 2, 1);
  constexpr int64_t kBlock = 16;
  int64_t blocks = c.int_attr("c1_len", 0);
  const Dims& out = c.out(0).dims;
  if (out.size() < 2 || blocks < 0 || out[1] != blocks * kBlock) {
    return c.refuse("the output needs c1_len times 16 channels");
  }
  if (aclError code = ACLSIM_RUN(c, aclnnInplaceZero, c.out_tensor(0))) return code;
  const char* names[] = {"x1_c1_offset", "x2_c1_offset"};
  for (size_t i = 0; i < 2; ++i) {
    const View& x = c.in(i);
    int64_t skip = c.int_attr(names[i], 0) * kBlock;
    Dims rest = x.dims;
    if (rest.size() != out.size() || skip < 0) return c.refuse("input %zu does not fit the output", i);
    rest[1] = out[1];
    if (rest != out) return c.refuse("input %zu does not fit the output", i);
    View from = x, to = c.out(0);
    from.dims[1] = to.dims[1] = std::max<int64_t>(0, std::min(out[1], x.dims[1] - skip));
    from.offset += skip * x.strides[1];
    if (!from.dims[1]) continue;
    if (aclError code = ACLSIM_RUN(c, aclnnInplaceAdd, c.tensor(to), c.tensor(from), c.scalar(1))) return code;
  }
  return ACL_SUCCESS;
}

// A mask → positions of `count` of its true elements, in order, and which rows are filled. Each set
// of that size is equally likely (Knuth, The Art of Computer Programming, 3.4.2, algorithm S).
aclError random_choice(TypeCall& c) {
  EXPECT(c, 1, 2);
  const Dims& dims = c.in(0).dims;
  int64_t count = c.int_attr("count", 0);
  auto rank = static_cast<int64_t>(dims.size());
  EXPECT_OUT(c, 0, {count, rank});
  EXPECT_OUT(c, 1, {count});
  if (c.in(0).dtype != ACL_BOOL || c.out(0).dtype != ACL_INT32 || c.out(1).dtype != ACL_BOOL) {
    return c.refuse("the mask must be bool, and the outputs int32 and bool");
  }
  int64_t seed = c.int_attr("seed", 0), second = c.int_attr("seed2", 0), total = count_of(dims);
  const auto* mask = static_cast<const uint8_t*>(c.in(0).data);
  auto* positions = static_cast<int32_t*>(c.out(0).data);
  auto* filled = static_cast<uint8_t*>(c.out(1).data);
  return c.on_stream([=] {
    std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                        static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)};
    std::mt19937_64 draws = seed || second ? std::mt19937_64(seeds)
                                           : std::mt19937_64(std::random_device()());
    int64_t left = std::count_if(mask, mask + total, [](uint8_t m) { return m != 0; });
    int64_t wanted = std::min(left, count), row = 0;
    std::fill_n(positions, count * rank, 0);
    std::memset(filled, 0, static_cast<size_t>(count));
    for (int64_t i = 0; i < total && row < wanted; ++i) {
      if (!mask[i]) continue;
      bool chosen = std::uniform_int_distribution<int64_t>(1, left--)(draws) <= wanted - row;
      if (!chosen) continue;
      int64_t rest = i;
      for (int64_t d = rank - 1; d >= 0; --d) {
        int64_t length = dims[static_cast<size_t>(d)];
        positions[row * rank + d] = static_cast<int32_t>(rest % length);
        rest /= length;
      }
      filled[row++] = 1;
    }
    return ACL_SUCCESS;
  });
}

// A byte per element, one with the given probability; the seeds alone decide which.
aclError dropout_mask(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (c.out(0).dtype != ACL_UINT8) return c.refuse("the mask must be uint8");
  auto keep = static_cast<float>(c.number(1));
  if (!(keep >= 0 && keep <= 1)) return c.refuse("the probability is %g, not from 0 to 1", static_cast<double>(keep));
  return ACLSIM_RUN(c, aclnnBernoulli, c.out_tensor(0), c.scalar(keep), c.int_attr("seed", 0),
                    c.int_attr("seed2", 0), c.out_tensor(0));
}
// (elements, share that stays, seed, seed1, offset): a bit per element, in whole 128 of them.
aclError dropout_bits(TypeCall& c) {
  EXPECT(c, 5, 1);
  if (c.out(0).dtype != ACL_UINT8) return c.refuse("the mask must be uint8");
  const double keep = c.number(1);
  if (!(keep >= 0 && keep <= 1)) return c.refuse("the probability is %g, not from 0 to 1", keep);
  const Dims shape = c.ints(0), seed = c.ints(2), offset = c.ints(4);
  if (seed.empty() || offset.empty()) return c.refuse("seed and offset need a number each");
  return ACLSIM_RUN(c, aclnnDropoutGenMask, c.array(shape), 1 - keep, seed[0], offset.back(),
                    c.out_tensor(0));
}
aclError dropout_apply(TypeCall& c) {
  EXPECT(c, 3, 1);
  double keep = c.number(2);
  int64_t n = count_of(c.in(0).dims);
  if (c.in(1).dtype != ACL_UINT8 || count_of(c.in(1).dims) != n || count_of(c.out(0).dims) != n) {
    return c.refuse("the mask must have a byte for each element");
  }
  if (!(keep > 0 && keep <= 1)) return c.refuse("the probability is %g, not above 0 and at most 1", keep);
  const auto* mask = static_cast<const uint8_t*>(c.in(1).data);
  return on_floats(c, {0}, {0}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < n; ++i) {
      to[0][i] = mask[i] ? static_cast<float>(from[0][i] / keep) : 0.0f;
    }
    return ACL_SUCCESS;
  });
}

// Flags of overflow: arithmetic here gives infinities, as products do in their mode for these, in
// which the flags stay zero.
aclError no_overflow(TypeCall& c) {
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (aclError code = ACLSIM_RUN(c, aclnnInplaceZero, c.out_tensor(i))) return code;
  }
  return ACL_SUCCESS;
}

struct Calibration {
  float low, high, from, to, step;  // percentiles, and where to look for the scale
  bool offset;
};
// The range of the data between two percentiles, widened and narrowed in steps: the one whose int8
// values come closest to the data gives scale and offset.
void calibrate(const Calibration& rule, const float* data, int64_t n, float least, float most,
               const int32_t* sums, int64_t bins, float* scale, float* offset) {
  auto below = [&](float share) {
    int64_t count = 0;
    for (int64_t i = 0; i < bins; ++i) {
      count += static_cast<float>(sums[i]) / static_cast<float>(n) < share;
    }
    return static_cast<float>(count) / static_cast<float>(bins) * (most - least) + least;
  };
  float high = below(rule.high), low = below(1 - rule.low);
  if (rule.offset) {
    high = std::max(high, 0.0f), low = std::min(low, 0.0f);
  } else {
    high = std::max(std::abs(high), std::abs(low));
  }
  double best = -1;
  auto steps = static_cast<int64_t>(std::ceil((static_cast<double>(rule.to) - rule.from) / rule.step));
  for (int64_t k = 0; k < steps; ++k) {
    float end = high * (rule.from + static_cast<float>(k) * rule.step);
    float unit = rule.offset ? (end - low) / 255 : end / 127;
    if (rule.offset && unit < 1.192092896e-07f) unit = 1;
    float shift = rule.offset ? -(std::nearbyint(low / unit) + 128) : 0;
    double loss = 0;
    for (int64_t i = 0; i < n; ++i) {
      float q = std::clamp(std::nearbyint(data[i] / unit) + shift, -128.0f, 127.0f);
      double off = static_cast<double>((q - shift) * unit) - data[i];
      loss += off * off;
    }
    if (best < 0 || loss < best) best = loss, *scale = unit, *offset = shift;
  }
}
// data, its least and most, cumulative sums of its histogram → scale, offset.
aclError ifmr(TypeCall& c) {
  EXPECT(c, 4, 2);
  EXPECT_IN(c, 1, {1});
  EXPECT_IN(c, 2, {1});
  EXPECT_IN(c, 3, {-1});
  EXPECT_OUT(c, 0, {1});
  EXPECT_OUT(c, 1, {1});
  if (c.in(3).dtype != ACL_INT32 || c.in(3).dims[0] == 0) return c.refuse("cumsum must be int32, not empty");
  auto range = c.floats_attr("search_range", {0.7f, 1.3f});
  Calibration rule = {c.float_attr("min_percentile", 0.999999f), c.float_attr("max_percentile", 0.999999f),
                      range[0], range.back(), c.float_attr("search_step", 0.01f),
                      c.flag_attr("with_offset", true)};
  if (range.size() != 2 || !(rule.step > 0)) return c.refuse("search_range needs two values, search_step a positive one");
  int64_t n = count_of(c.in(0).dims), bins = c.in(3).dims[0];
  const auto* sums = static_cast<const int32_t*>(c.in(3).data);
  return on_floats(c, {0, 1, 2}, {0, 1}, [=](const auto& from, const auto& to) {
    calibrate(rule, from[0], n, from[1][0], from[2][0], sums, bins, to[0], to[1]);
    return ACL_SUCCESS;
  });
}

// assigned, overlaps [truths, boxes], responsible, max_overlaps, argmax_overlaps, gt_max_overlaps,
// gt_argmax_overlaps, num_gts → assigned, with the number (from one) of a box's truth where it is
// positive: GridAssigner of MMDetection.
aclError grid_assign_positive(TypeCall& c) {
  EXPECT(c, 8, 1);
  EXPECT_IN(c, 1, {-1, -1});
  int64_t rows = c.in(1).dims[0], boxes = c.in(1).dims[1];
  for (size_t i : {0, 2, 3, 4}) EXPECT_IN_SIZE(c, i, boxes);
  for (size_t i : {5, 6}) EXPECT_IN_SIZE(c, i, rows);
  EXPECT_OUT_SIZE(c, 0, boxes);
  bool flags = c.in(2).dtype == ACL_UINT8 || c.in(2).dtype == ACL_BOOL;
  if (!flags || c.in(4).dtype != ACL_INT32 || c.in(6).dtype != ACL_INT32) {
    return c.refuse("flags are not of one byte, or places not int32");
  }
  int64_t truths = std::min(rows, c.ints(7).at(0));
  float least = c.float_attr("pos_iou_thr", 0), weakest = c.float_attr("min_pos_iou", 0);
  bool all = c.flag_attr("gt_max_assign_all", true);
  const auto* responsible = static_cast<const uint8_t*>(c.in(2).data);
  const auto* truth_of = static_cast<const int32_t*>(c.in(4).data);
  const auto* best_of = static_cast<const int32_t*>(c.in(6).data);
  return on_floats(c, {0, 1, 3, 5}, {0}, [=](auto& in, auto& out) -> aclError {
    for (int64_t i = 0; i < boxes; ++i) {
      bool positive = responsible[i] && in[2][i] > least;
      out[0][i] = positive ? static_cast<float>(truth_of[i] + 1) : in[0][i];
    }
    for (int64_t t = 0; t < truths; ++t) {
      if (!(in[3][t] > weakest)) continue;
      for (int64_t i = 0; i < boxes; ++i) {
        bool best = all ? in[1][t * boxes + i] == in[3][t] : i == best_of[t];
        if (best && responsible[i]) out[0][i] = static_cast<float>(t + 1);
      }
    }
    return ACL_SUCCESS;
  });
}

}  // namespace

const TypeTable& various_types() {
  static const auto* rows = new TypeTable{
      {"GridAssignPositive", grid_assign_positive},
      {"CTCLossV2", ctc}, {"CTCLossV2Grad", ctc_grad}, {"CdistGrad", cdist_grad},
      {"SignBitsPack", sign_bits_pack}, {"StrideAdd", stride_add},
      {"RandomChoiceWithMask", random_choice}, {"DropOutGenMaskV3", dropout_mask},
      {"StatelessDropOutGenMask", dropout_bits},
      {"DropOutDoMaskV3", dropout_apply}, {"NPUAllocFloatStatus", no_overflow},
      {"NPUGetFloatStatus", no_overflow}, {"NPUGetFloatStatusV2", no_overflow},
      {"NPUGetFloatDebugStatus", no_overflow}, {"NPUClearFloatStatus", no_overflow},
      {"NPUClearFloatStatusV2", no_overflow}, {"NPUClearFloatDebugStatus", no_overflow},
      {"IFMR", ifmr}};
  return *rows;
}

}  // namespace aclsim
