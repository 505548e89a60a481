// Random fills and draws. Streams are this simulator's own: same seed and offset, same numbers.
#include "params/random.h"
#include "loops/indices.h"
#include "loops/philox.h"
#include "loops/promote.h"

#include <numeric>

namespace aclsim {
namespace {

// out[i] = f(i) for every element in row-major order.
template <class F>
void draw(const Tensor& out, F f) {
  parallel_for(out.numel(), 8192, [&](int64_t begin, int64_t end) {
    Walker at(out.rank, out.dims, begin);
    for (int64_t i = begin; i < end; ++i, at.next()) {
      store_one(f(i, at), out.data, out.dtype, out.offset + at.offset(out.strides));
    }
  });
}
aclnnStatus check_uniform(Call& c) {
  using P = params::InplaceUniform;

  if (c.number(P::from) <= c.number(P::to)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "from is %g, more than to, %g.", c.number(P::from),
                c.number(P::to));
}
void run_uniform(Call& c) {
  using P = params::InplaceUniform;

  const Philox random = stream_of(c, P::seed);
  const double from = c.number(P::from), span = c.number(P::to) - from;
  const Tensor& self = c.tensor(P::selfRef);
  const bool fine = self.dtype == ACL_DOUBLE;
  draw(self, [&](int64_t i, const Walker&) {
    const auto place = static_cast<uint64_t>(i);
    return from + span * (fine ? random.unit_double(place) : random.unit(place));
  });
}

// Mean and deviation are numbers or tensors that broadcast to out.
double parameter(const Call& c, int i, const Tensor& out, const Walker& at) {
  if (c.args[i].kind != ArgKind::Tensor) return c.number(i);
  const Tensor& t = c.tensor(i);
  int64_t offset = t.offset;
  for (int d = 0; d < t.rank; ++d) {
    if (t.dims[d] != 1) offset += at.index[d + out.rank - t.rank] * t.strides[d];
  }
  return load_one<double>(t.data, t.dtype, offset);
}
template <int Mean, int Std, int Seed, int Out>
aclnnStatus check_normal(Call& c) {
  Shape shape;
  for (int i : {Mean, Std}) {
    if (c.args[i].kind == ArgKind::Tensor && !broadcast(shape, c.tensor(i))) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "mean and std can't broadcast.");
    }
    if (i == Std && c.args[i].kind != ArgKind::Tensor && c.number(i) < 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "std should not be negative, but is %g.", c.number(i));
    }
  }
  if (shape.rank == 0) return ACLNN_SUCCESS;
  return expect_shape(c, Out, shape);
}
template <int Mean, int Std, int Seed, int Out>
void run_normal(Call& c) {
  const Philox random = stream_of(c, Seed);
  const Tensor& out = c.tensor(Out);
  draw(out, [&](int64_t i, const Walker& at) {
    return parameter(c, Mean, out, at) +
           parameter(c, Std, out, at) * random.normal(static_cast<uint64_t>(i));
  });
}

// (selfRef, from, to, seed, offset): integers in [from, to).
aclnnStatus check_random(Call& c) {
  using P = params::InplaceRandom;

  if (c.integer(P::from) < c.integer(P::to)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "from is %lld, not less than to, %lld.",
                static_cast<long long>(c.integer(P::from)),
                static_cast<long long>(c.integer(P::to)));
}
void run_random(Call& c) {
  using P = params::InplaceRandom;

  const Philox random = stream_of(c, P::seed);
  const int64_t from = c.integer(P::from);
  const uint64_t span = static_cast<uint64_t>(c.integer(P::to)) - static_cast<uint64_t>(from);
  draw(c.tensor(P::selfRef), [&](int64_t i, const Walker&) {
    return static_cast<int64_t>(random.integer(static_cast<uint64_t>(i)) % span) + from;
  });
}
// (selfRef, seed, offset): all values that the dtype holds exactly.
void run_random_any(Call& c) {
  using P = params::InplaceRandomWithoutFromTo;

  const Philox random = stream_of(c, P::seed);
  const Tensor& self = c.tensor(P::selfRef);
  int bits = static_cast<int>(dtype_size(self.dtype)) * 8 - (self.dtype == ACL_UINT8 ? 0 : 1);
  if (self.dtype == ACL_FLOAT || self.dtype == ACL_DOUBLE) bits = self.dtype == ACL_FLOAT ? 24 : 53;
  if (self.dtype == ACL_FLOAT16 || self.dtype == ACL_BF16) bits = self.dtype == ACL_BF16 ? 8 : 11;
  if (self.dtype == ACL_BOOL) bits = 1;
  draw(self, [&](int64_t i, const Walker&) {
    return static_cast<int64_t>(random.integer(static_cast<uint64_t>(i)) >> (64 - bits));
  });
}

// prob: a scalar or a tensor of the output's shape.
template <int Prob, int Seed, int Out>
aclnnStatus check_bernoulli(Call& c) {
  using P = params::Bernoulli;

  if (c.args[Prob].kind == ArgKind::Tensor) {
    return c.tensor(Prob).numel() == 1 ? expect_same_shape(c, Out, P::self)
                                       : expect_same_shape(c, Out, Prob);
  }
  const double p = c.scalar(Prob).real();
  if (p < 0 || p > 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "prob should be in [0, 1], is %g.", p);
  return expect_same_shape(c, Out, P::self);
}
template <int Prob, int Seed, int Out>
void run_bernoulli(Call& c) {
  const Philox random = stream_of(c, Seed);
  const Arg& prob = c.args[Prob];
  const bool one = prob.kind == ArgKind::Tensor && prob.tensor->numel() == 1;
  draw(c.tensor(Out), [&](int64_t i, const Walker& at) {
    const double p = prob.kind == ArgKind::Tensor
                         ? load_one<double>(prob.tensor->data, prob.tensor->dtype,
                                            prob.tensor->offset +
                                                (one ? 0 : at.offset(prob.tensor->strides)))
                         : prob.scalar->real();
    return static_cast<int64_t>(random.unit_double(static_cast<uint64_t>(i)) < p);
  });
}

aclnnStatus check_randperm(Call& c) {
  using P = params::Randperm;

  Shape shape;
  shape.rank = 1;
  shape.dims[0] = c.integer(P::n);
  c.workspace_size = static_cast<uint64_t>(c.integer(P::n) < 0 ? 0 : c.integer(P::n)) * 8;
  return expect_shape(c, P::out, shape);
}
void run_randperm(Call& c) {
  using P = params::Randperm;

  const Philox random = stream_of(c, P::seed);
  int64_t* order = static_cast<int64_t*>(c.workspace);
  const int64_t n = c.integer(P::n);
  std::iota(order, order + n, int64_t{0});
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i],
              order[random.integer(static_cast<uint64_t>(i)) % static_cast<uint64_t>(i + 1)]);
  }
  copy_tensor(c.tensor(P::out), dense(order, ACL_INT64, &n, 1));
}

// (self, numsamples, replacement, seed, offset, out): rows of weights, not normalised.
template <int Out>
aclnnStatus check_multinomial(Call& c) {
  using P = params::Multinomial;

  const Tensor& self = c.tensor(P::self);
  if (self.rank < 1 || self.rank > 2 || c.integer(P::numsamples) < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have 1 or 2 dims, numsamples be positive.");
  }
  const int64_t n = self.dims[self.rank - 1];
  if (!c.flag(P::replacement) && c.integer(P::numsamples) > n) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "numsamples is %lld, there are %lld categories.",
                  static_cast<long long>(c.integer(P::numsamples)), static_cast<long long>(n));
  }
  Shape shape = shape_of(self);
  shape.dims[self.rank - 1] = c.integer(P::numsamples);
  c.workspace_size = static_cast<uint64_t>(n) * 8;
  return expect_shape(c, Out, shape);
}
int64_t pick(double* weights, int64_t n, double total, double at) {
  double sum = 0;
  int64_t last = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    sum += weights[i];
    if (at * total < sum) return i;
  }
  return last;
}
template <int Out>
aclError run_multinomial(Call& c) {
  using P = params::Multinomial;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(Out);
  const Philox random = stream_of(c, P::seed);
  const int axis = self.rank - 1;
  const int64_t n = self.dims[axis], samples = c.integer(P::numsamples);
  double* weights = static_cast<double*>(c.workspace);
  const int64_t rows = self.rank == 2 ? self.dims[0] : 1;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t from = self.offset + (self.rank == 2 ? r * self.strides[0] : 0);
    const int64_t to = out.offset + (self.rank == 2 ? r * out.strides[0] : 0);
    load(weights, self.data, self.dtype, from, self.strides[axis], n);
    for (int64_t s = 0; s < samples; ++s) {
      const double total = std::accumulate(weights, weights + n, 0.0);
      if (!(total > 0) || std::isinf(total)) {
        return c.trap(507015, "a row of weights sums to %g", total);
      }
      const int64_t k =
          pick(weights, n, total, random.unit_double(static_cast<uint64_t>(r * samples + s)));
      store_one(k, out.data, out.dtype, to + s * out.strides[axis]);
      if (!c.flag(P::replacement)) weights[k] = 0;
    }
  }
  return ACL_SUCCESS;
}

// (selfRef, count, lambda, seed, offset): `count` names the threads of another device's stream,
// which the numbers here don't follow.
aclnnStatus check_exponential(Call& c) {
  using P = params::SimThreadExponential;

  if (c.number(P::lambda) > 0) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "lambda should be more than 0, but is %g.",
                c.number(P::lambda));
}
void run_exponential(Call& c) {
  using P = params::SimThreadExponential;

  const Philox random = stream_of(c, P::seed);
  draw(c.tensor(P::selfRef), [&](int64_t i, const Walker&) {
    return -std::log1p(-random.unit_double(static_cast<uint64_t>(i))) / c.number(P::lambda);
  });
}

}  // namespace
}  // namespace aclsim

#define ACLNN_NORMAL(op, ...) ACLNN_OP(op, (check_normal<__VA_ARGS__>), (run_normal<__VA_ARGS__>))
#define ACLNN_BERNOULLI(op, ...) \
  ACLNN_OP(op, (check_bernoulli<__VA_ARGS__>), (run_bernoulli<__VA_ARGS__>))
ACLNN_OP(aclnnInplaceUniform, check_uniform, run_uniform)
ACLNN_NORMAL(aclnnInplaceNormal, params::InplaceNormal::mean, params::InplaceNormal::std,
             params::InplaceNormal::seed, params::InplaceNormal::selfRef)
ACLNN_NORMAL(aclnnNormalFloatFloat, params::NormalFloatFloat::mean, params::NormalFloatFloat::std,
             params::NormalFloatFloat::seed, params::NormalFloatFloat::out)
ACLNN_NORMAL(aclnnNormalFloatTensor, params::NormalFloatTensor::mean,
             params::NormalFloatTensor::std, params::NormalFloatTensor::seed,
             params::NormalFloatTensor::out)
ACLNN_NORMAL(aclnnNormalTensorFloat, params::NormalTensorFloat::mean,
             params::NormalTensorFloat::std, params::NormalTensorFloat::seed,
             params::NormalTensorFloat::out)
ACLNN_NORMAL(aclnnNormalTensorTensor, params::NormalTensorTensor::mean,
             params::NormalTensorTensor::std, params::NormalTensorTensor::seed,
             params::NormalTensorTensor::out)
ACLNN_OP(aclnnInplaceRandom, check_random, run_random)
ACLNN_OP(aclnnInplaceRandomWithoutFromTo, nullptr, run_random_any)
ACLNN_BERNOULLI(aclnnBernoulli, params::Bernoulli::prob, params::Bernoulli::seed,
                params::Bernoulli::out)
ACLNN_BERNOULLI(aclnnBernoulliTensor, params::BernoulliTensor::prob, params::BernoulliTensor::seed,
                params::BernoulliTensor::out)
ACLNN_BERNOULLI(aclnnInplaceBernoulli, params::InplaceBernoulli::prob,
                params::InplaceBernoulli::seed, params::InplaceBernoulli::selfRef)
ACLNN_BERNOULLI(aclnnInplaceBernoulliTensor, params::InplaceBernoulliTensor::prob,
                params::InplaceBernoulliTensor::seed, params::InplaceBernoulliTensor::selfRef)
ACLNN_OP(aclnnRandperm, check_randperm, run_randperm)
ACLNN_OP(aclnnMultinomial, check_multinomial<params::Multinomial::out>,
         run_multinomial<params::Multinomial::out>)
// Seed and offset stand in tensors.
ACLNN_OP(aclnnInplaceUniformTensor, check_uniform, run_uniform)
ACLNN_NORMAL(aclnnInplaceNormalTensor, params::InplaceNormalTensor::mean,
             params::InplaceNormalTensor::std, params::InplaceNormalTensor::seedTensor,
             params::InplaceNormalTensor::selfRef)
ACLNN_OP(aclnnInplaceRandomTensor, check_random, run_random)
ACLNN_OP(aclnnInplaceRandomWithoutFromToTensor, nullptr, run_random_any)
ACLNN_OP(aclnnMultinomialTensor, check_multinomial<params::MultinomialTensor::out>,
         run_multinomial<params::MultinomialTensor::out>)
ACLNN_OP(aclnnSimThreadExponential, check_exponential, run_exponential)
