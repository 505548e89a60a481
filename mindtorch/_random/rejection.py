"""Owns gamma, Poisson and binomial draws: torch's own on cpu, by rejection on any device.

Every round proposes for all elements at once and keeps what is accepted first; it ends, after a few
rounds, when the device says that none is left. A seed repeats the draws, but they are not those of
torch on another device; on cpu `sequential` draws torch's.

Sources: Marsaglia, Tsang, "A simple method for generating gamma variables" (2000); Hörmann, "The
transformed rejection method for generating Poisson random variables" (1993); Hörmann, "The
generation of binomial random variates" (1993).
"""

from __future__ import annotations

from collections.abc import Callable

from .._autograd.function import Function, FunctionNode, once_differentiable
from .._compat.argument_errors import parsed
from .._functional.creation import from_array
from .._functional.publish import surface
from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from .._tensor.types import Array
from ..ops.rules import scalar_name
from ..ops.spec import aten
from . import sequential
from .draws import with_zero_gradients
from .generator import Generator, default_generator, refuse_batches
from .pathwise import dirichlet_gradient, gamma_gradient, wide
from .sequential import BUILT


def _uniform(like: Tensor, generator: Generator | None) -> Tensor:
    """Draws from (0, 1): the smallest positive number stands for 0."""
    return aten.empty_like(like).uniform_(generator=generator).clamp_(min=dt.finfo(like.dtype).tiny)


def _first_accepted(like: Tensor, propose: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
    """For each element the first proposal that was accepted; waits for the device each round.

    Where a distribution has no draws (NaN, inf) no proposal is finite: it is taken, or no round
    would be the last.
    """
    result, open_ = aten.zeros_like(like), aten.ones_like(like, dtype=dt.bool)
    while bool(aten.any(open_).item()):
        value, accepted = propose()
        accepted = aten.logical_or(accepted, aten.logical_not(aten.isfinite(value)))
        accept_now = aten.logical_and(open_, accepted)
        result = aten.where(accept_now, value, result)
        open_ = aten.logical_and(open_, aten.logical_not(accepted))
    return result


def _gamma(concentration: Tensor, generator: Generator | None) -> Tensor:
    if BUILT and concentration.device.type == "cpu":
        return _gamma_on_host(concentration, generator)
    alpha = aten.to(concentration, wide(concentration))
    small = aten.lt(alpha, 1)
    d = aten.where(small, alpha + 1, alpha) - 1 / 3
    c = 1 / (3 * d.sqrt())

    def propose() -> tuple[Tensor, Tensor]:
        x = aten.empty_like(d).normal_(generator=generator)
        v = (1 + c * x) ** 3
        positive = aten.gt(v, 0)
        v = aten.where(positive, v, 1.0)
        bound = 0.5 * x * x + d - d * v + d * v.log()
        accepted = aten.logical_and(positive, aten.lt(_uniform(d, generator).log(), bound))
        return d * v, aten.logical_or(accepted, invalid)

    # Taken as they come: with NaN for a bound they would be proposed for ever.
    invalid = aten.logical_not(aten.gt(alpha, 0))
    draws = _first_accepted(d, propose)
    boost = aten.where(small, _uniform(d, generator).log() / alpha, 0.0).exp()
    draws = aten.to(draws * boost, concentration.dtype)
    return draws.clamp_(min=dt.finfo(concentration.dtype).tiny)


def _refuse_halves(tensor: Tensor, kernel: str) -> None:
    """NotImplementedError in torch's words: its cpu kernels take float32 and float64."""
    if tensor.device.type == "cpu" and tensor.dtype not in (dt.float32, dt.float64):
        name = scalar_name(tensor.dtype)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def _source(generator: Generator | None) -> Generator:
    return default_generator("cpu") if generator is None else generator


def _host(tensor: Tensor) -> Array:
    return aten.to(tensor.detach(), dt.float64).numpy()


def _gamma_on_host(concentration: Tensor, generator: Generator | None) -> Tensor:
    single = concentration.dtype is not dt.float64
    draws = sequential.gamma(_source(generator), _host(concentration), single)
    least = dt.finfo(concentration.dtype).tiny
    return aten.to(from_array(draws), concentration.dtype).clamp_(min=least)


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: FunctionNode, concentration: Tensor, generator: Generator | None) -> Tensor:
        draws = _gamma(concentration, generator)
        ctx.save_for_backward(concentration, draws)
        ctx.label = "StandardGammaBackward0"
        return draws

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionNode, grad: Tensor) -> tuple[Tensor, None]:
        concentration, draws = ctx.saved_tensors
        return grad * gamma_gradient(concentration, draws), None


@surface(method=False)
def _standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma draws of shape parameters `self` and rate 1; gradients pass through the quantile."""
    _refuse_halves(self, "gamma_cpu")
    if self.device.type == "meta":
        return aten.empty_like(self)
    draws = _StandardGamma.apply(self, generator)
    assert isinstance(draws, Tensor)
    return draws


@surface(method=False)
def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """The derivative of `_standard_gamma`'s draws by their shape parameters."""
    return gamma_gradient(self, output)


@surface(method=False)
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The derivative of Dirichlet draws `x` by `alpha`, of which the sum is `total`, over 1 - x."""
    return dirichlet_gradient(x, alpha, total)


@surface(method=False)
def _sample_dirichlet(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws of Dirichlet distributions of concentrations `self`; they pass no gradients."""
    _refuse_halves(self, "dirichlet")
    self = self.detach()
    if self.device.type != "cpu":
        draws = _standard_gamma(self, generator)
        return draws / draws.sum(-1, keepdim=True)
    draws = _standard_gamma(aten.to(self, dt.float64), generator)
    shares = aten.to(draws / draws.sum(-1, keepdim=True), self.dtype)
    limits = dt.finfo(self.dtype)
    return shares.clamp(limits.tiny, 1 - limits.eps / 2)


def _refuse_integers(tensor: Tensor, name: str) -> None:
    if tensor.dtype.category != dt.FLOAT:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{tensor.dtype.legacy}'")


@surface(method=False)
@parsed()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson draws of rates `input`, of its shape and dtype.

    RuntimeError for negative rates; NotImplementedError for dtypes that are not floating.
    """
    if input.requires_grad:
        rates = input.detach()
        return with_zero_gradients(lambda: poisson(rates, generator), "PoissonBackward0", input)
    refuse_batches(input)
    _refuse_integers(input, "poisson")
    if input.device.type == "meta":
        return aten.empty_like(input)
    if input.numel() and not bool(aten.all(input >= 0).item()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if BUILT and input.device.type == "cpu":
        counts = sequential.poisson(_source(generator), _host(input))
        return aten.to(from_array(counts), input.dtype)
    rate = aten.to(input.detach(), wide(input))
    return aten.to(_poisson(rate, generator), input.dtype)


def _poisson(rate: Tensor, generator: Generator | None) -> Tensor:
    large = aten.ge(rate, 10)
    few = _count_until(aten.where(large, 0.0, rate), generator)
    lam = aten.where(large, rate, 10.0)
    b = 0.931 + 2.53 * lam.sqrt()
    a = 0.02483 * b - 0.059
    inverse_alpha, bound = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose() -> tuple[Tensor, Tensor]:
        u, v = _uniform(lam, generator) - 0.5, _uniform(lam, generator)
        side = (0.5 - u.abs()).clamp(min=dt.finfo(lam.dtype).tiny)
        k = aten.floor((2 * a / side + b) * u + lam + 0.43)
        inside = aten.logical_and(aten.ge(side, 0.07), aten.le(v, bound))
        outside = aten.logical_or(
            aten.lt(k, 0), aten.logical_and(aten.lt(side, 0.013), aten.gt(v, side))
        )
        k0 = k.clamp(min=0)
        density = k0 * lam.log() - lam - aten.lgamma(k0 + 1)
        height = (v * inverse_alpha / (a / (side * side) + b)).log()
        below = aten.logical_and(aten.le(height, density), aten.logical_not(outside))
        return k, aten.logical_or(inside, below)

    if not bool(aten.any(large).item()):
        return few
    return aten.where(large, _first_accepted(lam, propose), few)


def _count_until(rate: Tensor, generator: Generator | None) -> Tensor:
    """Exponential waits that fit into a time of `rate`."""
    time, count = aten.zeros_like(rate), aten.zeros_like(rate)
    while True:
        time = time - _uniform(rate, generator).log()
        within = aten.le(time, rate)
        if not bool(aten.any(within).item()):
            return count
        count = count + aten.to(within, count.dtype)


@surface(method=False)
@parsed()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes of `count` tries of probability `prob`, broadcast; of the dtype of `count`."""
    if not count.is_floating_point():
        kind = scalar_name(count.dtype)
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {kind}")
    refuse_batches(count, prob)
    _refuse_halves(count, "binomial_cpu")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"expected scalar type {count.dtype} but found {prob.dtype}")
    n, p = aten.broadcast_tensors(count.detach(), prob.detach())
    if n.device.type == "meta":
        return aten.empty_like(n)
    if BUILT and n.device.type == "cpu":
        single = count.dtype is not dt.float64
        hits = sequential.binomial(_source(generator), _host(n), _host(p), single)
        return aten.to(from_array(hits), count.dtype)
    n, p = aten.to(n, wide(n)), aten.to(p, wide(p))
    flipped = aten.gt(p, 0.5)
    chance = aten.where(flipped, 1 - p, p).clamp(min=0)  # above 1 all succeed, below 0 none
    draws = _binomial(aten.floor(n), chance, generator)
    draws = aten.where(flipped, n - draws, draws)
    return aten.to(draws.masked_fill(aten.isnan(p), float("nan")), count.dtype)


def _binomial(n: Tensor, p: Tensor, generator: Generator | None) -> Tensor:
    large = aten.ge(n * p, 10)
    few = _gaps_within(aten.where(large, 0.0, n), aten.where(large, 0.5, p), generator)
    if not bool(aten.any(large).item()):
        return few
    n, p = aten.where(large, n, 40.0), aten.where(large, p, 0.5)
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = 0.0248 * b + 0.01 * p - 0.0873
    alpha, bound = (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b
    mode, odds = aten.floor((n + 1) * p), (p / (1 - p)).log()
    ways = aten.lgamma(mode + 1) + aten.lgamma(n - mode + 1)

    def propose() -> tuple[Tensor, Tensor]:
        u, v = _uniform(n, generator) - 0.5, _uniform(n, generator)
        side = (0.5 - u.abs()).clamp(min=dt.finfo(n.dtype).tiny)
        k = aten.floor((2 * a / side + b) * u + n * p + 0.5)
        inside = aten.logical_and(aten.ge(side, 0.07), aten.le(v, bound))
        possible = aten.logical_and(aten.ge(k, 0), aten.le(k, n))
        k0 = aten.where(possible, k, mode)
        density = ways - aten.lgamma(k0 + 1) - aten.lgamma(n - k0 + 1) + (k0 - mode) * odds
        height = (v * alpha / (a / (side * side) + b)).log()
        below = aten.logical_and(aten.le(height, density), possible)
        return k, aten.logical_or(aten.logical_and(inside, possible), below)

    return aten.where(large, _first_accepted(n, propose), few)


def _gaps_within(n: Tensor, p: Tensor, generator: Generator | None) -> Tensor:
    """Successes in `n` tries: gaps between them, which are geometric, while they fit."""
    place, count = aten.zeros_like(n), aten.zeros_like(n)
    scale = aten.log1p(-p)
    while True:
        place = place + aten.ceil(_uniform(n, generator).log() / scale)
        within = aten.le(place, n)
        if not bool(aten.any(within).item()):
            return count
        count = count + aten.to(within, count.dtype)
