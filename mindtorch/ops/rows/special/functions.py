"""Rows of functions of one or two tensors: the normal distribution, entropy, zeta.

On cpu by scipy.special; on npu by the formulas of Abramowitz and Stegun, "Handbook of Mathematical
Functions" (1964), chapters 7, 23 and 26, in kernels that CANN has.
"""

from __future__ import annotations

from functools import cache
from math import exp, inf, lgamma, pi, sqrt

from ...rules import opmath, pointwise, result_type, without_derivative
from ...words import *
from ..pointwise.unary import pointwise_float, scipy_special

ROOT_HALF = sqrt(0.5)
Integrand = Callable[[Tensor, Tensor], Tensor]


def by_scipy(name: str) -> Callable[..., Array]:
    """A function of scipy.special, which is imported when first called."""

    def run(*args: Any) -> Array:
        wide = np.result_type(*args) if len(args) > 1 else args[0].dtype
        return np.asarray(scipy_special(name)(*args)).astype(wide, copy=False)

    return run


def in_float32(lower: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A formula whose 16-bit operands are computed in float32 and rounded once, as torch's are:
    terms and powers on the way leave the range of float16 where results do not."""

    def run(*args: Any) -> Tensor:
        seen = [a._geom if isinstance(a, Tensor) else a for a in args]
        dtype = result_type(seen)
        wide = opmath(dtype)
        if wide is dtype:
            return lower(*args)
        widened = (aten.to(a, wide) if isinstance(a, Tensor) else a for a in args)
        return aten.to(lower(*widened), dtype)

    return run


def unary(
    name: str,
    cpu: Callable[..., Any] | None,
    lower: Callable[..., Any] | None,
    grad: Callable[..., Any] | None,
    low: float = -2.0,
    high: float = 2.0,
    kernel: str = "",
    dtypes: str = "half complex",
    **fields: Any,
) -> None:
    """A row of torch.special of one tensor; integers become the default dtype.

    torch's `kernel`, by default the row's name with `_cpu`, lacks the groups `dtypes`. Without
    `grad` the result has no history.
    """
    fields["grad"] = {} if grad is None else {"self": grad}
    op(
        f"special_{name}(Tensor self) -> Tensor",
        infer=pointwise("float"),
        cpu=cpu or by_scipy(name),
        lower=lower and in_float32(lower),
        unsupported={dtypes: kernel or f"{name}_cpu"},
        samples=calls((Arg((3, 4), low=low, high=high),)),
        **fields,
    )


def _floating(self: Tensor) -> Tensor:
    return self if self.is_floating_point() else aten.to(self, dt.get_default_dtype())


@cache
def _legendre(count: int) -> tuple[list[float], list[float]]:
    """Gauss and Legendre's nodes and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return ((points + 1) / 2).tolist(), (weights / 2).tolist()


def _nodes(count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights on [0, 1], along a first dimension before those of `like`."""
    shape = (count, *(1,) * like.ndim)
    built = (aten.tensor(a, dtype=like.dtype, device=like.device) for a in _legendre(count))
    first, second = (aten.reshape(t, shape) for t in built)
    return first, second


def integral(f: Integrand, x: Tensor, high: Any, count: int = 64) -> Tensor:
    """∫ f(t, x) dt from 0 to `high`, a number or a tensor like `x`."""
    points, weights = _nodes(count, x)
    return aten.sum(f(points * high, x) * weights, 0) * high


def _density(x: Tensor) -> Tensor:
    """The density of the standard normal distribution."""
    return aten.exp(x * x * -0.5) * (1 / sqrt(2 * pi))


def _ndtr(self: Tensor) -> Tensor:
    return aten.erfc(_floating(self) * -ROOT_HALF) * 0.5


unary(
    "ndtr", None, _ndtr, lambda grad, self: grad * _density(self),
    kernel="erf_vml_cpu", dtypes="complex",
)  # fmt: skip


def _erfcx(self: Tensor) -> Tensor:
    """exp(x²) erfc(x); by its continued fraction (7.1.14) where erfc would underflow."""
    x = _floating(self)
    near = aten.minimum(x, aten.full_like(x, 2.0))
    product = aten.exp(near * near) * aten.erfc(near)
    far = aten.clamp_min(x, 2.0)
    rest = far
    for k in range(40, 0, -1):
        rest = far + (k / 2) / rest
    return aten.where(x < 2, product, (1 / sqrt(pi)) / rest)


unary(
    "erfcx", None, _erfcx,
    lambda grad, self, result: grad * (result * self * 2 - 2 / sqrt(pi)),
)  # fmt: skip


def _log_ndtr(self: Tensor) -> Tensor:
    x = _floating(self)
    left = aten.log(aten.special_erfcx(aten.clamp_max(x, -1.0) * -ROOT_HALF) * 0.5)
    right = aten.log1p(aten.erfc(aten.clamp_min(x, -1.0) * ROOT_HALF) * -0.5)
    return aten.where(x < -1, left - x * x * 0.5, right)


unary(
    "log_ndtr", None, _log_ndtr,
    lambda grad, self: grad * sqrt(2 / pi) / aten.special_erfcx(self * -ROOT_HALF),
)  # fmt: skip


def _ndtri(self: Tensor) -> Tensor:
    """The inverse of ndtr: erfinv, and Newton's steps by the tail that is not cancelled."""
    p = _floating(self)
    lower = aten.minimum(p, 1 - p)
    z = aten.erfinv(aten.clamp_max(lower * 2 - 1, 0.0)) * sqrt(2)
    z = aten.where(aten.isinf(z), aten.full_like(z, -5.0), z)
    for _ in range(4):
        z = z - (aten.erfc(z * -ROOT_HALF) * 0.5 - lower) / _density(z)
    z = aten.where(lower == 0, aten.full_like(z, -np.inf), z)
    z = aten.where(aten.logical_or(p < 0, p > 1), aten.full_like(z, np.nan), z)
    return aten.where(p > 0.5, -z, z)


unary(
    "ndtri", None, _ndtri,
    lambda grad, result: grad * sqrt(2 * pi) * aten.exp(result * result * 0.5), 0.05, 0.95,
)  # fmt: skip


def _entr(self: Tensor) -> Tensor:
    x = _floating(self)
    inside = -x * aten.log(aten.where(x > 0, x, aten.ones_like(x)))
    outside = aten.where(x < 0, aten.full_like(x, -np.inf), x)
    return aten.where(x > 0, inside, outside)


unary(
    "entr", None, _entr,
    lambda grad, self: grad * (-aten.log(self) - 1), 0.1, 2,
    dtypes="complex",
)  # fmt: skip


def _xlog1py(self: Any, other: Any) -> Tensor:
    """self · log1p(other), zero where `self` is, but of NaN."""
    if not isinstance(self, Tensor):
        self = aten.full((), self, dtype=_floating(other).dtype, device=other.device)
    if not isinstance(other, Tensor):
        other = aten.full((), other, dtype=_floating(self).dtype, device=self.device)
    dtype = result_type((self._geom, other._geom))
    self, other = aten.to(self, dtype), aten.to(other, dtype)
    hidden = aten.logical_and(self == 0, other == other)
    product = aten.masked_fill(self, hidden, 0.0) * aten.log1p(other)
    return aten.where(hidden, aten.zeros_like(product), product)


def _xlog1py_grad(grad: Tensor, self: Any, other: Any) -> Tensor:
    by = other if isinstance(other, Tensor) else aten.full_like(grad, other)
    hidden = aten.logical_and(aten.eq(self, 0), by <= -1)
    return grad * aten.masked_fill(aten.log1p(by), hidden, 0.0)


op(
    "special_xlog1py(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    infer=pointwise("float"),
    cpu=by_scipy("xlog1py"),
    lower=_xlog1py,
    grad={
        "self": _xlog1py_grad,
        "other": lambda grad, self, other: grad * (self / (other + 1)),
    },
    unsupported={"complex": "xlog1py_cpu"},
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-0.9)), (Arg((3,)), 0.5)),
)


# B_2k / (2k)! of the Euler-Maclaurin formula, as quotients (23.2.9).
_BERNOULLI = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1307674368000.0 / 691)


def _series(x: Tensor, q: Tensor) -> Tensor:
    """Σ (q + k)^-x for q > 0, by twelve terms and the Euler-Maclaurin formula."""
    terms = 12
    total = aten.pow(q, -x)
    for k in range(1, terms):
        total = total + aten.pow(q + k, -x)
    w = q + terms
    power = aten.pow(w, -x)
    total = total + power * w / (x - 1) + power * 0.5
    factor, power = x, power / w
    for i, quotient in enumerate(_BERNOULLI):
        term = aten.where(power == 0, power, factor * power)  # the factor may be infinite
        total = total + term / quotient
        factor = factor * (x + (2 * i + 1)) * (x + (2 * i + 2))
        power = power / (w * w)
    return total


def _zeta(self: Any, other: Any) -> Tensor:
    """Σ (other + k)^-self; the terms below zero are a difference of two such sums of -other."""
    like = self if isinstance(self, Tensor) else other
    x, q = (t if isinstance(t, Tensor) else aten.full((), t, dtype=_floating(like).dtype,
            device=like.device) for t in (self, other))  # fmt: skip
    x, q = aten.broadcast_tensors((_floating(x), _floating(q)))
    rest = -q - aten.floor(-q)
    positive = q > 0
    ahead, far, near = aten.unbind(
        _series(x, aten.stack((aten.where(positive, q, 1 - rest), 1 - q, rest)))
    )
    even = x == 2 * aten.floor(x / 2)
    both = aten.where(even, ahead + near - far, ahead - near + far)  # halves cancel exactly
    total = aten.where(positive, ahead, both)
    whole = aten.logical_and(q <= 0, q == aten.floor(q))
    total = aten.where(whole, aten.full_like(total, np.inf), total)
    unknown = aten.logical_and(q < 0, aten.logical_and(x != aten.floor(x), q != aten.floor(q)))
    unknown = aten.logical_or(aten.logical_or(unknown, x < 1), q == np.inf)
    total = aten.where(unknown, aten.full_like(total, np.nan), total)
    return aten.where(x == 1, aten.full_like(total, np.inf), total)


def _zeta_cpu(self: Array, other: Array) -> Array:
    zeta, kind = scipy_special("zeta"), np.result_type(self, other)
    result = np.asarray(zeta(self, other))
    if other.size and other.min() > 0 and other.max() < inf:
        return result.astype(kind, copy=False)
    result = np.where((other == inf) & (self != 1), np.nan, result)
    low = (other <= 0) & (self > 1)
    if low.any():  # scipy has no second argument below zero
        x, q = self.astype(np.float64), other.astype(np.float64)
        whole = np.floor(q)
        rest = -q - np.floor(-q)
        sign = 1 - 2 * (x % 2 != 0)
        total = zeta(x, 1 - rest) + sign * zeta(x, rest) - sign * zeta(x, 1 - q)
        total = np.where(q == whole, inf, np.where(x != np.floor(x), np.nan, total))
        result = np.where(low, total, result)
    return result.astype(kind)


op(
    "special_zeta(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    infer=pointwise("float"),
    cpu=_zeta_cpu,
    lower=in_float32(_zeta),
    grad={
        "self": without_derivative("zeta"),
        "other": lambda grad, self, other: grad * -self * aten.special_zeta(self + 1, other),
    },
    unsupported={"half complex": "zeta_cpu"},
    samples=calls(
        (Arg((3, 4), low=1.5, high=4, grad=False), Arg((3, 4), low=0.5, high=3)),
        (2.0, Arg((3,), low=1, high=3)),
    ),
)


def _factor(n: int, largest: float) -> float:
    """(-1)^(n+1) n!, infinite where it exceeds `largest`."""
    try:
        size = exp(lgamma(n + 1.0))
    except OverflowError:
        size = inf
    return (size if size <= largest else inf) * (1 if n % 2 else -1)


def _polygamma_of_zeta(n: int, self: Tensor) -> Tensor:
    """(-1)^(n+1) n! zeta(n + 1, x): Abramowitz and Stegun 6.4.10."""
    if n == 0:
        return aten.digamma(self)
    if self.dtype in (dt.float16, dt.bfloat16):  # zeta takes none
        return aten.to(_polygamma_of_zeta(n, aten.to(self, dt.float32)), self.dtype)
    zeta = aten.special_zeta(n + 1, self)
    if n == 1:
        zeta = aten.masked_fill(zeta, self == inf, 0.0)
    return zeta * _factor(n, float(np.finfo(np.float32).max))


def _polygamma(n: int, self: Array, *, out: Geometry) -> Array:
    self = self.astype(opmath(out.dtype).np, copy=False)  # torch takes integers, too
    if n == 0:
        return by_scipy("digamma")(self)
    zeta = _zeta_cpu(np.array(n + 1, self.dtype), self)
    if n == 1:  # torch sums the trigamma function by a series of its own: zero at infinity
        zeta = np.where(self == inf, 0, zeta)
    return zeta * self.dtype.type(_factor(n, float(np.finfo(self.dtype).max)))


def _polygamma_rule(n: int, self: Geometry) -> Geometry:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return pointwise_float(self)


op(
    "polygamma(int n, Tensor self) -> Tensor",
    summary="`n`-th derivative of the digamma function.",
    infer=_polygamma_rule,
    cpu=_polygamma,
    lower=_polygamma_of_zeta,
    grad={"self": lambda grad, n, self: grad * aten.polygamma(n + 1, self)},
    unsupported={"complex": "trigamma"},
    rule="unbounded",
    surface="function",
    samples=calls(
        (1, Arg((3,), low=0.5, high=3)),
        (2, Arg((2,), "float64", 1, 3)),
        (1, Arg((3,), "float16", 0.5, 3)),
    ),
    oracle=lambda torch: torch.polygamma,
)
