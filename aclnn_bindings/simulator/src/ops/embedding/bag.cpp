// Bags of embeddings: sums, means and maxima over the rows that a bag names.
#include "params/embedding.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

// (weight [R, D], indices, offsets, scaleGradByFreq, mode, sparse, perSampleWeights,
// includeLastOffset, paddingIdx, output [B, D], offset2bag, bagSize, maxIndices): torch's
// _embedding_bag. Indices of two dims are one bag per row.
int64_t bags_of(const Call& c) {
  using P = params::EmbeddingBag;

  const Tensor& indices = c.tensor(P::indices);
  if (indices.rank == 2) return indices.dims[0];
  return std::max<int64_t>(0, c.tensor(P::offsets).numel() - c.flag(P::includeLastOffset));
}
aclnnStatus check_bag(Call& c) {
  using P = params::EmbeddingBag;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::weight, P::indices, P::offsets, P::output, P::offset2bag, P::bagSize, P::maxIndices}));
  ACL_RETURN_IF_FAILED(expect_rank(c, P::weight, 2, 2));
  ACL_RETURN_IF_FAILED(expect_rank(c, P::indices, 0, 2));
  ACL_RETURN_IF_FAILED(expect_int(c, P::mode, kSum, kMax));
  if (!c.null(P::perSampleWeights) && c.tensor(P::perSampleWeights).numel() > 0) {
    ACL_RETURN_IF_FAILED(expect_numel(c, P::perSampleWeights, c.tensor(P::indices).numel()));
  }
  return expect_dims(c, P::output, {bags_of(c), c.tensor(P::weight).dims[1]});
}
// Where each bag starts among the flat indices, with the end of the last.
Integers starts_of(const Call& c) {
  using P = params::EmbeddingBag;

  const int64_t bags = bags_of(c), n = c.tensor(P::indices).numel();
  Integers starts;
  if (c.tensor(P::indices).rank == 2) {
    for (int64_t b = 0; b < bags; ++b) starts.push_back(b * c.tensor(P::indices).dims[1]);
  } else if (bags > 0) {
    starts = integers(c.tensor(P::offsets));
    starts.resize(static_cast<size_t>(bags + c.flag(P::includeLastOffset)));
  }
  if (!c.flag(P::includeLastOffset) || c.tensor(P::indices).rank == 2) starts.push_back(n);
  return starts;
}
struct Bags {
  Numbers out;
  Integers bag, size, best;
};
void fill_bag(const Call& c, const Numbers& table, const Integers& at, const Numbers& scale,
              int64_t b, int64_t begin, int64_t end, Bags& to) {
  using P = params::EmbeddingBag;

  const int64_t width = c.tensor(P::weight).dims[1], mode = c.integer(P::mode);
  double* row = to.out.data() + b * width;
  for (int64_t i = begin; i < end; ++i) {
    to.bag[i] = b;
    if (at[i] == c.integer(P::paddingIdx)) continue;
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
  using P = params::EmbeddingBag;

  const Tensor& weight = c.tensor(P::weight);
  const int64_t bags = bags_of(c), n = c.tensor(P::indices).numel();
  Integers at = integers(c.tensor(P::indices));
  IndexFault fault;
  for (int64_t k : at) {
    if (k < 0 || k >= weight.dims[0]) fault.resolve(weight.dims[0] + (k < 0 ? -k : k), weight.dims[0]);
  }
  if (aclError error = fault.report(c, P::indices)) return error;
  const Integers starts = starts_of(c);
  const Numbers scale = c.null(P::perSampleWeights) ? Numbers()
                                                    : numbers(c.tensor(P::perSampleWeights)),
                table = numbers(weight);
  Bags to = {Numbers(bags * weight.dims[1]), Integers(n), Integers(bags),
             Integers(bags * weight.dims[1])};
  for (int64_t b = 0; b < bags; ++b) {
    if (starts[b] < 0 || starts[b + 1] > n) {
      return c.trap(507015, "offset %lld leads outside", static_cast<long long>(starts[b + 1]));
    }
    fill_bag(c, table, at, scale, b, starts[b], starts[b + 1], to);
  }
  put(c.tensor(P::output), to.out);
  const auto give = [&](int arg, const Integers& values) {
    const Tensor* t = c.maybe(arg);
    if (t && t->numel() == static_cast<int64_t>(values.size())) put(t, values);
  };
  give(10, to.bag);
  give(11, to.size);
  give(12, c.integer(P::mode) == kMax ? to.best : to.size);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

// No weights per sample is what most clients pass.
ACLNN_OP_FLAGS(aclnnEmbeddingBag, check_bag, run_bag, kOwnNulls)
