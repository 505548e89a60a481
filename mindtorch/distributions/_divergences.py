"""Owns closed forms of KL(p || q) for pairs of distributions.

Each is E_p[log p] - E_p[log q]: minus p's entropy, minus the mean of q's log density under p.
Source of the moments: Gil, Alajaji, Linder, "Rényi divergence measures for commonly used univariate
continuous distributions" (2013), and the distributions' own definitions.
"""

from __future__ import annotations

import math

import mindtorch

from .._tensor.tensor import Tensor
from .beta import Beta
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .half_normal import HalfNormal
from .kl import infinite, kl_divergence, register_kl, unbounded
from .location import EULER, Cauchy, Gumbel, Laplace, Normal, Uniform
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_det, mahalanobis
from .pareto import Pareto
from .poisson import Poisson

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


# --- cross entropies: -E_p[log q], of the first two moments of p where they suffice


def _cross_normal(p: Distribution, q: Normal) -> Tensor:
    """Of any p with a mean and a variance."""
    spread = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return spread + q.scale.log() + _HALF_LOG_TAU


def _cross_exponential(p: Exponential | Gamma, q: Exponential) -> Tensor:
    """Of any p over positive numbers."""
    return q.rate * p.mean - q.rate.log()


def _cross_gamma(mean_log: Tensor, mean: Tensor, q: Gamma) -> Tensor:
    """Of p by its mean and the mean of its logarithm."""
    return (
        q.concentration.lgamma()
        - q.concentration * q.rate.log()
        - (q.concentration - 1) * mean_log
        + q.rate * mean
    )


def _cross_pareto(mean_log: Tensor, q: Pareto) -> Tensor:
    return (q.alpha + 1) * mean_log - q.alpha * q.scale.log() - q.alpha.log()


def _cross_continuous_bernoulli(p: Beta | Uniform, q: ContinuousBernoulli) -> Tensor:
    """Of any p over [0, 1]: the log density is linear in the value."""
    return -q.logits * p.mean - (-q.probs).log1p() - q._log_constant()


def _mean_log_beta(p: Beta) -> Tensor:
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


def _mean_log_uniform(p: Uniform) -> Tensor:
    part = mindtorch.xlogy(p.high, p.high) - mindtorch.xlogy(p.low, p.low)
    return part / (p.high - p.low) - 1


# --- pairs of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = mindtorch.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = mindtorch.where(q.probs == 0, math.inf, t1)
    t1 = mindtorch.where(p.probs == 0, 0.0, t1)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2 = mindtorch.where(q.probs == 1, math.inf, t2)
    t2 = mindtorch.where(p.probs == 1, 0.0, t2)
    return t1 + t2


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not"
                                  " implemented")  # fmt: skip
    value = p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    )
    return unbounded(value, p.total_count > q.total_count)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = mindtorch.where((q.probs == 0).expand(terms.shape), math.inf, terms)
    return mindtorch.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    log_norm = p._log_constant() + mindtorch.log1p(-p.probs)
    other = q._log_constant() + mindtorch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + log_norm - other


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    norm = total_p.lgamma() - total_q.lgamma()
    each = p.concentration.lgamma() - q.concentration.lgamma()
    lean = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return norm - each.sum(-1) + ((p.concentration - q.concentration) * lean).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    mean_log = p.concentration.digamma() - p.rate.log()
    return _cross_gamma(mean_log, p.mean, q) - p.entropy()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    return _cross_gumbel_gumbel(p, q) - p.entropy()


def _cross_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return q.scale.log() + shift + ratio * EULER + (-shift + (1 + ratio).lgamma()).exp()


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - mindtorch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * mindtorch.exp(-apart / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale.log() - q.scale.log()) - ratio.log() + ratio - 1
    return unbounded(value, p.scale < q.scale)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return unbounded(value, (q.low > p.low) | (q.high < p.high))


def _normals(p_loc: Tensor, p_root: Tensor, q: MultivariateNormal) -> Tensor:
    """Of a normal vector with covariance `p_root @ p_root.mT`, up to p's determinant."""
    lower = q._unbroadcasted_scale_tril
    n = lower.shape[-1]
    shape = mindtorch.broadcast_shapes(lower.shape[:-2], p_root.shape[:-2])
    both = lower.expand((*shape, n, n)), p_root.expand((*shape, *p_root.shape[-2:]))
    spread = mindtorch.linalg.solve_triangular(*both, upper=False).pow(2).sum((-2, -1))
    return half_log_det(lower) + 0.5 * (spread + mahalanobis(lower, q.loc - p_loc) - n)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_events(p, q)
    scale_tril = p._unbroadcasted_scale_tril
    return _normals(p.loc, scale_tril, q) - half_log_det(scale_tril)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_events(p, q)
    return _normals(p.loc, p.scale_tril, q) - 0.5 * p._log_det()


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_lowrank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_events(p, q)
    scale_tril = p._unbroadcasted_scale_tril
    return _to_lowrank(p.loc, scale_tril, q) - half_log_det(scale_tril)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_events(p, q)
    return _to_lowrank(p.loc, p.scale_tril, q) - 0.5 * p._log_det()


def _to_lowrank(p_loc: Tensor, p_root: Tensor, q: LowRankMultivariateNormal) -> Tensor:
    root = q.scale_tril
    dense = MultivariateNormal(q.loc, scale_tril=root, validate_args=False)
    return _normals(p_loc, p_root, dense)


def _same_events(
    p: MultivariateNormal | LowRankMultivariateNormal,
    q: MultivariateNormal | LowRankMultivariateNormal,
) -> None:
    if p.event_shape != q.event_shape:
        low = [isinstance(d, LowRankMultivariateNormal) for d in (p, q)]
        rank = "Low Rank " if all(low) else "(Low Rank) " if any(low) else ""
        gap = " " * 26  # torch's text has a line's indent in it
        raise ValueError(
            f"KL-divergence between two {rank}Multivariate Normals with{gap}different event shapes"
            " cannot be computed"
        )


# --- pairs of different families


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return _cross_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    value = _cross_continuous_bernoulli(p, q) - p.entropy()
    # As torch has it: infinite for equal bounds too.
    return unbounded(value, (p.high >= 1) | (p.low <= 0))


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p: Gamma, q: Exponential) -> Tensor:
    return _cross_exponential(p, q) - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    value = q.rate * p.mean - q.rate.log() - p.entropy()
    return unbounded(value, p.low < 0)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Normal, q: Normal) -> Tensor:
    return _cross_normal(p, q) - p.entropy()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    value = _cross_normal(p, q) - p.entropy()
    return unbounded(value, p.alpha <= 2)


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    return _cross_gamma(_mean_log_beta(p), p.mean, q) - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _cross_gamma(-p.rate.log() - EULER, p.mean, q) - p.entropy()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    value = _cross_gamma(mean_log, p.mean, q) - p.entropy()
    return unbounded(value, p.alpha <= 1)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    value = q.rate * p.mean - q.rate.log() - p.entropy()
    return unbounded(value, p.alpha <= 1)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    value = _cross_gamma(_mean_log_uniform(p), p.mean, q) - p.entropy()
    return unbounded(value, p.low < 0)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    scaled = p.rate * q.scale
    shift = q.loc / q.scale
    mean_exp = (shift + scaled.log() - (scaled + 1).log()).exp()
    return q.scale.log() + p.mean / q.scale - shift + mean_exp - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    scaled, shift = p.rate * q.scale, q.loc / q.scale
    mean_exp = (shift - p.concentration * mindtorch.log1p(scaled.reciprocal())).exp()
    return q.scale.log() + p.mean / q.scale - shift + mean_exp - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    shift = (p.loc - q.loc) / q.scale
    mean_exp = (-shift + 0.5 * (p.scale / q.scale).pow(2)).exp()
    return q.scale.log() + shift + mean_exp - p.entropy()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    low, high = (q.loc - p.low) / q.scale, (q.loc - p.high) / q.scale
    mean_exp = (low.exp() - high.exp()) * q.scale / (p.high - p.low)
    return q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    apart = p.loc - q.loc
    z = apart / p.scale
    mean_abs = math.sqrt(2 / math.pi) * p.scale * mindtorch.exp(-0.5 * z.pow(2))
    mean_abs = mean_abs + apart * mindtorch.erf(math.sqrt(0.5) * z)
    return mean_abs / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    cross = norm - (a - 1) * _mean_log_uniform(p) - (b - 1) * _mean_log_uniform(mirrored)
    return unbounded(cross - p.entropy(), (p.high > 1) | (p.low < 0))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    value = _cross_pareto(_mean_log_uniform(p), q) - p.entropy()
    return unbounded(value, p.low < q.scale)


@register_kl(Exponential, Beta)
@register_kl(Exponential, ContinuousBernoulli)
@register_kl(Exponential, Pareto)
@register_kl(Exponential, Uniform)
def _from_exponential(p: Exponential, q: Beta) -> Tensor:
    return infinite(p.rate)


@register_kl(Gamma, Beta)
@register_kl(Gamma, ContinuousBernoulli)
@register_kl(Gamma, Pareto)
@register_kl(Gamma, Uniform)
def _from_gamma(p: Gamma, q: Beta) -> Tensor:
    return infinite(p.concentration)


@register_kl(Gumbel, Beta)
@register_kl(Gumbel, ContinuousBernoulli)
@register_kl(Gumbel, Exponential)
@register_kl(Gumbel, Gamma)
@register_kl(Gumbel, Pareto)
@register_kl(Gumbel, Uniform)
@register_kl(Laplace, Beta)
@register_kl(Laplace, ContinuousBernoulli)
@register_kl(Laplace, Exponential)
@register_kl(Laplace, Gamma)
@register_kl(Laplace, Pareto)
@register_kl(Laplace, Uniform)
@register_kl(Normal, Beta)
@register_kl(Normal, ContinuousBernoulli)
@register_kl(Normal, Exponential)
@register_kl(Normal, Gamma)
@register_kl(Normal, Pareto)
@register_kl(Normal, Uniform)
def _from_the_line(p: Normal, q: Beta) -> Tensor:
    return infinite(p.loc)


@register_kl(Pareto, Beta)
@register_kl(Pareto, ContinuousBernoulli)
@register_kl(Pareto, Uniform)
def _from_pareto(p: Pareto, q: Beta) -> Tensor:
    return infinite(p.scale)


@register_kl(Beta, Pareto)
def _beta_pareto(p: Beta, q: Pareto) -> Tensor:
    return infinite(p.concentration1)


@register_kl(ContinuousBernoulli, Pareto)
def _continuous_bernoulli_pareto(p: ContinuousBernoulli, q: Pareto) -> Tensor:
    return infinite(p.probs)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    value = (q.high - q.low).log() - p.entropy()
    return unbounded(value, (q.low > 0) | (q.high < 1))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    value = (q.high - q.low).log() - p.entropy()
    # As torch has it: infinite for equal bounds too.
    return unbounded(value, (q.low >= 0) | (q.high <= 1))


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _from_poisson(p: Poisson, q: Bernoulli) -> Tensor:
    return infinite(p.rate)
