"""Owns closed forms of KL(p || q) for pairs of distributions.

Each is E_p[log p] - E_p[log q], minus p's entropy minus the mean of q's log density under p, with
its terms in torch's order: sums of float32 depend on it.
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
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .kl import infinite, kl_divergence, register_kl, unbounded
from .location import EULER, Cauchy, Laplace, Normal, Uniform
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_det, mahalanobis
from .pareto import Pareto
from .poisson import Poisson


def _log_partition(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _gain_of_x_log_x(p: Uniform) -> Tensor:
    """The integral of log x over p's interval."""
    part = mindtorch.special.xlogy(p.high, p.high) - mindtorch.special.xlogy(p.low, p.low)
    return part - (p.high - p.low)


def _to_continuous_bernoulli(p: Beta | Uniform, q: ContinuousBernoulli) -> Tensor:
    """From any p over [0, 1]: the log density is linear in the value."""
    return -p.entropy() - p.mean * q.logits - mindtorch.log1p(-q.probs) - q._log_constant()


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
    total_p, total_q = (d.concentration1 + d.concentration0 for d in (p, q))
    above = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    below = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    by_one = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    by_zero = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return above - below + by_one + by_zero + (total_q - total_p) * total_p.digamma()


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
    other = -q._log_constant() - mindtorch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + log_norm + other


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
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    by_rate = q.concentration * (p.rate / q.rate).log()
    norms = q.concentration.lgamma() - p.concentration.lgamma()
    lean = (p.concentration - q.concentration) * p.concentration.digamma()
    return by_rate + norms + lean + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, q_place, p_place = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    mean_exp = (q_place + (1 + ratio).lgamma() - p_place).exp()
    return -ratio.log() - q_place + p_place + ratio * EULER + mean_exp - (1 + EULER)


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
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return unbounded(value, p.scale < q.scale)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return unbounded(value, (q.low > p.low) | (q.high < p.high))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_events(p, q)
    lower, root = q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril
    spread = _spread(_solve(lower, root))
    far = mahalanobis(lower, q.loc - p.loc)
    log_dets = half_log_det(lower) - half_log_det(root)
    return log_dets + 0.5 * (spread + far - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_events(p, q)
    lower = q._unbroadcasted_scale_tril
    log_dets = 2 * half_log_det(lower) - p._log_det()
    far = mahalanobis(lower, q.loc - p.loc)
    diagonal = mindtorch.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    spread = _spread(_solve(lower, p._unbroadcasted_cov_factor)) + _spread(_solve(lower, diagonal))
    return 0.5 * (log_dets + spread + far - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_lowrank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_events(p, q)
    root = p._unbroadcasted_scale_tril
    log_dets = q._log_det() - 2 * half_log_det(root)
    scaled, whitened = _lowrank_inverse(q)
    spread = _spread(root * scaled) - _spread(whitened.matmul(root))
    return 0.5 * (log_dets + spread + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_events(p, q)
    log_dets = q._log_det() - p._log_det()
    factor, diagonal = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    scaled, whitened = _lowrank_inverse(q)
    spread = (diagonal / q._unbroadcasted_cov_diag).sum(-1) + _spread(factor * scaled)
    spread = spread - _spread(whitened * diagonal.sqrt().unsqueeze(-2))
    spread = spread - _spread(whitened.matmul(factor))
    return 0.5 * (log_dets + spread + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


def _solve(lower: Tensor, right: Tensor) -> Tensor:
    """The solution of `lower @ x = right` for both batches."""
    shape = mindtorch.broadcast_shapes(lower.shape[:-2], right.shape[:-2])
    lower, right = (t.expand((*shape, *t.shape[-2:])) for t in (lower, right))
    solution: Tensor = mindtorch.linalg.solve_triangular(lower, right, upper=False)
    return solution


def _spread(matrix: Tensor) -> Tensor:
    """The trace of `matrix @ matrix.mT`, of the batch's shape."""
    return matrix.reshape((*matrix.shape[:-2], -1)).pow(2).sum(-1)


def _lowrank_inverse(q: LowRankMultivariateNormal) -> tuple[Tensor, Tensor]:
    """A diagonal's root and a matrix: q's precision is the former's square minus A.mT @ A."""
    diagonal = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    whitened = mindtorch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    return diagonal.rsqrt().unsqueeze(-1), whitened


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
    return _to_continuous_bernoulli(p, q)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    value = _to_continuous_bernoulli(p, q)
    # As torch has it: infinite for equal bounds too.
    return mindtorch.where((p.high >= 1) | (p.low <= 0), math.inf, value)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _unit_exponential(p: Beta | ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    value = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return unbounded(value, p.low < 0)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    scaled = p.scale * q.rate
    value = (p.alpha / scaled).log() - p.alpha.reciprocal()
    return unbounded(value + p.alpha * scaled / (p.alpha - 1) - 1, p.alpha <= 1)


@register_kl(Beta, Normal)
def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean, variance = p.mean, q.scale.pow(2)
    second = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    spread = second * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + spread / variance


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    norm = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    spread = p.variance + p.mean.square() - 2.0 * q.loc * p.mean
    return -p.entropy() + norm + spread / (2.0 * q.scale.square())


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance, square = q.scale.pow(2), p.rate.pow(2)
    norm = 0.5 * (square * variance * 2 * math.pi).log() - 1
    return norm + (square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


@register_kl(Gamma, Normal)
def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance, square, shape = q.scale.pow(2), p.rate.pow(2), p.concentration
    norm = 0.5 * (square * variance * 2 * math.pi).log() - shape - shape.lgamma()
    second = 0.5 * (shape.pow(2) + shape) / square
    spread = second - q.loc * shape / p.rate + 0.5 * q.loc.pow(2)
    return norm + (shape - 1) * shape.digamma() + spread / variance


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    far = ((p.loc + p.scale * EULER - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + far - (EULER + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    far = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -(0.5 * (2 * ratio / math.pi).log()) + ratio + far / variance - 1


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    far = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    norm = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return norm + 0.5 * (width.pow(2) / 12 + far) / q.scale.pow(2)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    part = p.scale / (p.alpha - 1)
    norm = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    spread = p.alpha * part.pow(2) / (p.alpha - 2) + (p.alpha * part - q.loc).pow(2)
    return unbounded(norm + spread / (2 * q.scale.pow(2)) - 1, p.alpha <= 2)


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    total = p.concentration1 + p.concentration0
    mean_log = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    return -p.entropy() + _log_partition(q) - mean_log + q.rate * p.concentration1 / total


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    value = -q.concentration * ratio.log() + ratio + q.concentration.lgamma()
    return value + q.concentration * EULER - (1 + EULER)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    value = p.alpha.log() - mean_log + _log_partition(q) + (1 - q.concentration) * mean_log
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    return unbounded(value + mean - 1, p.alpha <= 1)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    mean_log = (1 - q.concentration) * _gain_of_x_log_x(p) / width
    value = -width.log() + _log_partition(q) + mean_log + q.rate * (p.high + p.low) / 2
    return unbounded(value, p.low < 0)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    scaled, place = p.rate * q.scale, q.loc / q.scale
    mean_exp = place.exp() * scaled / (scaled + 1)
    return scaled.log() - 1 - place + mean_exp + scaled.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    shape, scaled, place = p.concentration, p.rate * q.scale, q.loc / q.scale
    mean_exp = place.exp() * (1 + scaled.reciprocal()).pow(-shape) - place
    norm = (shape - 1) * shape.digamma() - shape.lgamma() - shape
    return norm + (scaled.log() + shape / scaled) + mean_exp


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    p_place, q_place, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    mean_exp = (-p_place + 0.5 * ratio + q_place).exp()
    half = 0.5 * (1 + math.log(2 * math.pi))
    return -(ratio.log() * 0.5) + (p_place - q_place) + mean_exp - half


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    scaled = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return scaled.log() + 0.5 * (high + low) - scaled * ((-high).exp() - (-low).exp())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    apart, ratio = p.loc - q.loc, p.scale / q.scale
    z = apart / p.scale
    mean_abs = math.sqrt(2 / math.pi) * p.scale * mindtorch.exp(-0.5 * z.pow(2))
    mean_abs = mean_abs + apart * mindtorch.erf(math.sqrt(0.5) * z)
    return -ratio.log() + mean_abs / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    xlogy = mindtorch.special.xlogy
    mirrored = xlogy(1 - p.high, 1 - p.high) - xlogy(1 - p.low, 1 - p.low) + width
    value = (b - 1) * mirrored / width + (a.lgamma() + b.lgamma() - (a + b).lgamma())
    value = value - width.log() - (a - 1) * _gain_of_x_log_x(p) / width
    return unbounded(value, (p.high > 1) | (p.low < 0))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    value = _gain_of_x_log_x(p) / width * (q.alpha + 1)
    value = value - (q.alpha * q.scale.pow(q.alpha) * width).log()
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
    value = -p.entropy() + (q.high - q.low).log()
    return unbounded(value, (q.low > 0) | (q.high < 1))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    value = -p.entropy() + (q.high - q.low).log()
    # As torch has it: infinite for equal bounds too.
    return mindtorch.where((q.low >= 0) | (q.high <= 1), math.inf, value)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _from_poisson(p: Poisson, q: Bernoulli) -> Tensor:
    return infinite(p.rate)
