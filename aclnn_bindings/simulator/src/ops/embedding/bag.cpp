// Bags of embeddings: sums, means and maxima over the rows that a bag names.
#include "loops/numbers.h"

namespace aclsim {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

// (weight [R, D], indices, offsets, scaleGradByFreq, mode, sparse, perSampleWeights,
// includeLastOffset, paddingIdx, output [B, D], offset2bag, bagSize, maxIndices): torch's
// _embedding_bag. Indices of two dims are one bag per row.
int64_t bags_of(const Call& c) {
  const Tensor& indices = c.tensor(1);
  if (indices.rank == 2) return indices.dims[0];
  return std::max<int64_t>(0, c.tensor(2).numel() - c.flag(7));
}
aclnnStatus check_bag(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 9, 10, 11, 12}));
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 2, 2));
  ACL_RETURN_IF_FAILED(expect_rank(c, 1, 0, 2));
  ACL_RETURN_IF_FAILED(expect_int(c, 4, kSum, kMax));
  if (!c.null(6) && c.tensor(6).numel() > 0) {
    ACL_RETURN_IF_FAILED(expect_numel(c, 6, c.tensor(1).numel()));
  }
  return expect_dims(c, 9, {bags_of(c), c.tensor(0).dims[1]});
}
// Where each bag starts among the flat indices, with the end of the last.
Integers starts_of(const Call& c) {
  const int64_t bags = bags_of(c), n = c.tensor(1).numel();
  Integers starts;
  if (c.tensor(1).rank == 2) {
    for (int64_t b = 0; b < bags; ++b) starts.push_back(b * c.tensor(1).dims[1]);
  } else if (bags > 0) {
    starts = integers(c.tensor(2));
    starts.resize(static_cast<size_t>(bags + c.flag(7)));
  }
  if (!c.flag(7) || c.tensor(1).rank == 2) starts.push_back(n);
  return starts;
}
struct Bags {
  Numbers out;
  Integers bag, size, best;
};
void fill_bag(const Call& c, const Numbers& table, const Integers& at, const Numbers& scale,
              int64_t b, int64_t begin, int64_t end, Bags& to) {
  const int64_t width = c.tensor(0).dims[1], mode = c.integer(4);
  double* row = to.out.data() + b * width;
  for (int64_t i = begin; i < end; ++i) {
    to.bag[i] = b;
    if (at[i] == c.integer(8)) continue;
    const bool first = to.size[b]++ == 0;
    for (int64_t k = 0; k < width; ++k) {
      const double x = table[at[i] * width + k];
      if (mode != kMax) {
        row[k] += scale.empty() ? x : x * scale[i];
      } else if (first || x > row[k]) {
        row[k] = x;
        to.best[b * width + k] = at[i];
      }
    }
  }
  for (int64_t k = 0; mode == kMean && to.size[b] > 0 && k < width; ++k) {
    row[k] /= static_cast<double>(to.size[b]);
  }
}
aclError run_bag(Call& c) {
  const Tensor& weight = c.tensor(0);
  const int64_t bags = bags_of(c), n = c.tensor(1).numel();
  Integers at = integers(c.tensor(1));
  IndexFault fault;
  for (int64_t k : at) {
    if (k < 0 || k >= weight.dims[0]) fault.resolve(weight.dims[0] + (k < 0 ? -k : k), weight.dims[0]);
  }
  if (aclError error = fault.report(c, 1)) return error;
  const Integers starts = starts_of(c);
  const Numbers scale = c.null(6) ? Numbers() : numbers(c.tensor(6)), table = numbers(weight);
  Bags to = {Numbers(bags * weight.dims[1]), Integers(n), Integers(bags),
             Integers(bags * weight.dims[1])};
  for (int64_t b = 0; b < bags; ++b) {
    if (starts[b] < 0 || starts[b + 1] > n) {
      return c.trap(507015, "offset %lld leads outside", static_cast<long long>(starts[b + 1]));
    }
    fill_bag(c, table, at, scale, b, starts[b], starts[b + 1], to);
  }
  put(c.tensor(9), to.out);
  const auto give = [&](int arg, const Integers& values) {
    const Tensor* t = c.maybe(arg);
    if (t && t->numel() == static_cast<int64_t>(values.size())) put(t, values);
  };
  give(10, to.bag);
  give(11, to.size);
  give(12, c.integer(4) == kMax ? to.best : to.size);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

// No weights per sample is what most clients pass.
ACLNN_OP_FLAGS(aclnnEmbeddingBag, check_bag, run_bag, kOwnNulls)
