"""Rows of pointwise arithmetic of two operands beyond add, sub, mul and div."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

from ...._compat.unsupported_dtypes import Refusal, kernel
from ...._tensor.dtype import FLOAT, INTEGER, INTEGERS, get_default_dtype
from ...complex_parts import below_double
from ...rules import NUMBERS, REAL, REAL_NUMBERS, Pointwise, pointwise, result_type
from ...samples import FLOATS, INTS, binary, unary
from ...spec import SHORT_FLOATS, in_dtypes, scalar
from ...words import *
from .arithmetic import refuse_bools

_FLOATS = tuple(d for d in dt.ALL if d.category == FLOAT)


def _int_power(self: Array, exponent: Array) -> Array:
    negative = exponent < 0
    with_zero = np.where(negative, 0, exponent)
    power = np.power(self, with_zero.astype(self.dtype))
    if not np.any(negative):
        return power
    # An integer to a negative power: only 1 and -1 are not zero, as in torch.
    sign = np.where(exponent % 2 == 0, 1, self)
    small = np.where(self == 1, 1, np.where(self == -1, sign, 0))
    return np.where(negative, small, power).astype(self.dtype)


def _pow(self: Array, exponent: Array, *, out: Geometry) -> Array:
    if self.dtype.kind in "iu":
        return _int_power(self, exponent)
    if self.dtype == bool:
        return np.power(self.astype(np.int8), exponent.astype(np.int8)).astype(bool)
    if exponent.ndim == 0:
        power = exponent.item()
        if power in (2, 3, -2):  # as torch, which rounds each product of bfloat16
            square = self * self
            if power == 2:
                return square
            if out.dtype is dt.bfloat16:
                square = square.astype(out.dtype.np).astype(self.dtype)
            return square * self if power == 3 else np.reciprocal(square)
        if power in (0.5, -0.5):
            root = np.sqrt(self)
            return root if power == 0.5 else np.reciprocal(root)
    return np.power(self, exponent)


def _pow_grad_self(grad: Tensor, self: Any, exponent: Tensor | Number) -> Tensor:
    if not hasattr(exponent, "_geom"):
        if exponent == 0:
            return aten.zeros_like(grad)
        slope = aten.pow(self, exponent - 1) * exponent
        return grad * aten.conj_of(slope)
    slope = aten.conj_of(exponent * aten.pow(self, exponent - 1))
    return aten.where(exponent == 0, 0.0, grad * slope)


def _pow_grad_exponent(grad: Tensor, self: Any, exponent: Any, result: Tensor) -> Tensor:
    base = aten.to(self, result.dtype) if result.is_complex() else self
    logarithm = aten.conj_of(result * aten.log(base))
    rises = exponent
    if hasattr(exponent, "_geom") and exponent.is_complex():
        rises = aten.where(aten.imag(exponent) == 0, aten.real(exponent), -1.0)
    at_zero = aten.logical_and(self == 0, rises >= 0)
    return grad * aten.where(at_zero, 0.0, logarithm)


def _no_fractions(args: tuple[Any, ...], outs: tuple[Any, ...]) -> Callable[..., None] | None:
    """torch refuses a whole number to the power of a negative one that is no tensor."""
    if args[1].__class__ not in (int, bool) or outs[0].dtype.category > INTEGER:
        return None

    def look(self: Tensor, exponent: Any) -> None:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")

    return look


def _pow_samples() -> list[Sample]:
    samples = [Sample((Arg((3, 4), d, 0.3, 2), Arg((3, 4), d, -1, 2))) for d in FLOATS]
    samples += [Sample((Arg((3, 4), d), e)) for d in ("float32", "float64") for e in (2, 3, 0, 1)]
    samples += [Sample((Arg((2, 3), "float32", 0.3, 2), e)) for e in (0.5, -0.5, -1, 2.5)]
    samples += [Sample((Arg((4,), "int64", -3, 3), 3)), Sample((Arg((2, 3), "int32", 1, 3), 2.0))]
    return [*samples, Sample((Arg((2, 1), "float32", 0.3, 2), Arg((3,), "float32", -1, 2)))]


op(
    "pow(Tensor self, Tensor|Scalar exponent) -> Tensor",
    summary="`self` to the power `exponent`.",
    infer=pointwise(),
    cpu=_pow,
    aclnn=(call("aclnnPowTensorScalar", when=scalar("exponent")), call("aclnnPowTensorTensor")),
    refuses=_no_fractions,
    grad={"self": _pow_grad_self, "exponent": _pow_grad_exponent},
    # To the power of True or False torch copies or fills.
    unsupported={"bool": replace(kernel("pow"), unless=lambda args: args[1].__class__ is bool)},
    samples=_pow_samples,
    surface="both",
    inplace=True,
    autocast="float32 on npu",
    rule="power",
)
op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    infer=lambda self, exponent: _scalar_first(self, exponent),
    cpu=lambda self, exponent, *, out: _pow(
        np.asarray(self).astype(_wide(out)), exponent.astype(_wide(out)), out=out
    ),
    aclnn=call("aclnnPowScalarTensor"),
    grad={
        "exponent": lambda grad, self, exponent, result: (
            grad * aten.conj_of(result * _log_of(self, result.is_complex()))
            if self
            else _pow_grad_exponent(grad, aten.zeros_like(result), exponent, result)
        )
    },
    samples=lambda: [
        Sample((b, Arg((3, 4), d, -1, 2))) for b in (2, 0.5) for d in ("float32", "float64")
    ],
    oracle=lambda torch: torch.pow,
    autocast="float32 on npu",
    unsupported={
        "bool": replace(kernel("pow"), unless=lambda args: args[0].__class__ is not bool),
    },
    rule="power",
)


def _log_of(number: Number, as_complex: bool) -> complex:
    import cmath
    import math

    if as_complex or isinstance(number, complex):
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


def _wide(out: Geometry) -> np.dtype[Any]:
    from ...rules import opmath

    return opmath(out.dtype).np


def _scalar_first(self: float, exponent: Geometry) -> Geometry:
    """Contiguous, whatever the strides of the exponent, as torch has it."""
    return exponent.fresh(dtype=result_type((self, exponent)))


def _refuse_zero(args: tuple[Any, ...], outs: tuple[Any, ...]) -> Callable[..., None] | None:
    """Whole numbers divided by a number: what is known to be zero needs no device to say so."""
    out = outs[0] if outs else None
    whole = out.__class__ is Geometry and out.dtype.category == INTEGER and out.numel
    if not whole or args[1].__class__ not in NUMBERS:
        return None

    def check(self: Tensor, other: Number, *_: object) -> None:
        if not other:
            raise RuntimeError("ZeroDivisionError")

    return check


def _above_zero(self: Any, other: Any, *_: Any) -> list[tuple[int, int, float]]:
    """`bounds` of divisors of whole numbers; the cpu kernel lets those below zero pass."""
    pair = (self, other)
    whole = other.__class__ is Geometry and result_type(pair).category == INTEGER
    return [(1, 1, inf)] if whole else []


def _divides_by_zero(self: Array, other: Array) -> None:
    if self.size and self.dtype.kind in "iu" and not np.all(other):
        raise RuntimeError("ZeroDivisionError")


def _remainder(self: Array, other: Array) -> Array:
    _divides_by_zero(self, other)
    if self.dtype.kind in "iu":
        return np.remainder(self, other)
    # The sign follows the divisor; an infinite divisor of another sign gives itself.
    rest = np.fmod(self, other)
    return np.where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest)


def _fmod(self: Array, other: Array) -> Array:
    _divides_by_zero(self, other)
    return np.fmod(self, other)


def _floor_divide(self: Array, other: Array) -> Array:
    _divides_by_zero(self, other)
    if self.dtype.kind in "iu":
        return np.floor_divide(self, other)
    # By the exact remainder: the rounded quotient may be a whole number that is one too large.
    rest = np.fmod(self, other)
    quotient = (self - rest) / other
    quotient = np.where((rest != 0) & ((other < 0) != (rest < 0)), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(0, self / other), whole)
    return np.where(other == 0, self / other, whole).astype(self.dtype)


def _quotient_samples() -> list[Sample]:
    samples = [
        Sample((Arg((3, 4), d, -5, 5), Arg((3, 4), d, 1, 3))) for d in ("float32", "float64")
    ]
    samples += [Sample((Arg((3, 4), d, 1, 9), Arg((4,), d, 1, 3))) for d in ("int64", "int8")]
    return [*samples, Sample((Arg((2, 3), "float32", -5, 5), 1.5)),
            Sample((Arg((2, 3), "int64", -5, 5), -2))]  # fmt: skip


def _whole_quotient_grad(grad: Tensor, self: Tensor, other: Tensor, mode: str) -> Tensor:
    return grad * -aten.div(self, other, rounding_mode=mode)


op(
    "remainder(Tensor self, Tensor|Scalar other) -> Tensor",
    summary="Remainder with the sign of the divisor.",
    infer=pointwise(only=("remainder_cpu", REAL_NUMBERS)),
    cpu=_remainder,
    aclnn=(
        call("aclnnRemainderTensorScalar", when=scalar("other")),
        call("aclnnRemainderTensorTensor"),
    ),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: _whole_quotient_grad(grad, self, other, "floor"),
    },
    refuses=_refuse_zero,
    bounds=_above_zero,
    samples=_quotient_samples,
    tolerance="rounded",
    number_first=True,
    inplace=True,
)
op(
    "fmod(Tensor self, Tensor|Scalar other) -> Tensor",
    summary="Remainder with the sign of the dividend.",
    infer=pointwise(only=("fmod_cpu", REAL_NUMBERS)),
    cpu=_fmod,
    aclnn=(call("aclnnFmodScalar", when=scalar("other")), call("aclnnFmodTensor")),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: _whole_quotient_grad(grad, self, other, "trunc"),
    },
    refuses=_refuse_zero,
    bounds=_above_zero,
    samples=_quotient_samples,
    tolerance="rounded",
    inplace=True,
)
op(
    "floor_divide(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise(),
    cpu=_floor_divide,
    unsupported={"bool complex": "div_floor_cpu"},
    aclnn=(call("aclnnFloorDivides", when=scalar("other")), call("aclnnFloorDivide")),
    refuses=_refuse_zero,
    bounds=_above_zero,
    samples=_quotient_samples,
    tolerance="exact",
    number_first=True,
    exact_scalar=True,
    inplace=True,
)


def _trunc_divide(self: Array, other: Array) -> Array:
    _divides_by_zero(self, other)
    if self.dtype.kind not in "iu":
        return np.trunc(self / other)
    # The smallest integer has no absolute value: round the floor up where signs differ.
    whole = self // other
    return whole + ((whole * other != self) & ((self < 0) != (other < 0))).astype(whole.dtype)


_MODE = {None: 0, "floor": 2, "trunc": 1}  # aclnnDivMod document
_ROUNDED: dict[str | None, Any] = {
    None: np.true_divide,
    "floor": _floor_divide,
    "trunc": _trunc_divide,
}


class _PointwiseDivision(Pointwise):
    """Pointwise; without rounding, integers become the default dtype."""

    def common(self, args: Sequence[Any]) -> Dtype:
        if args[2] not in _MODE:
            raise RuntimeError(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found"
                f" '{args[2]}'"
            )
        dtype = super().common(args)
        return get_default_dtype() if args[2] is None and dtype.category < FLOAT else dtype


op(
    "div.mode(Tensor self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
    infer=_PointwiseDivision(),
    cpu=lambda self, other, rounding_mode: _ROUNDED[rounding_mode](self, other),
    refuses=_refuse_zero,
    bounds=lambda self, other, mode: _above_zero(self, other) if mode else [],
    unsupported={
        "bool complex": kernel("div_floor_cpu", unless=lambda args: args[2] != "floor"),
        "complex bool": kernel("div_trunc_cpu", unless=lambda args: args[2] != "trunc"),
    },
    aclnn=(
        call("aclnnDivMods", "self", "other", lambda a: _MODE[a["rounding_mode"]], "out",
             when=scalar("other")),
        call("aclnnDivMod", "self", "other", lambda a: _MODE[a["rounding_mode"]], "out"),
    ),
    grad={
        "self": lambda grad, other, rounding_mode: (
            aten.zeros_like(grad) if rounding_mode else grad / aten.conj_of(other)
        ),
        "other": lambda grad, self, other, rounding_mode: (
            aten.zeros_like(grad) if rounding_mode
            else -grad * aten.conj_of(self / other / other)
        ),
    },
    samples=lambda: [
        *(Sample(s.args, {"rounding_mode": m}) for s in _quotient_samples() for m in _MODE if m),
        Sample((Arg((2, 3)), Arg((3,), low=0.5)), {"rounding_mode": None}),
        Sample((Arg((2,)), 2.0), {"rounding_mode": "up"}, error=True),
    ],
    tolerance="exact", rule="complex_quotient", number_first=True, exact_scalar=True,
    inplace=True,
)  # fmt: skip


def _picked(grad: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    """The gradient where this side wins, half of it at ties, as torch splits it."""
    share = aten.to(wins, grad.dtype) + aten.to(ties, grad.dtype) * 0.5
    return grad * share


class _Ordered(Pointwise):
    """Pointwise, but for complex numbers, which have no order."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def common(self, args: Sequence[Any]) -> Dtype:
        dtype = super().common(args)
        if dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{self.name} not implemented for complex tensors.")
        return dtype


def _extreme(name: str, cpu: object, aclnn: str, wins: str, loses: str) -> None:
    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        infer=_Ordered(name),
        summary=f"The {name} of two elements; nan where one is nan.",
        cpu=cpu,
        aclnn=call(aclnn, "self", "other", "out"),
        grad={
            "self": lambda grad, self, other: _picked(
                grad, getattr(aten, wins)(self, other), self == other
            ),
            "other": lambda grad, self, other: _picked(
                grad, getattr(aten, loses)(self, other), self == other
            ),
        },
        samples=lambda: [s for s in binary()() if all(isinstance(a, Arg) for a in s.args)],
        tolerance="exact",
        rule="extremum",
    )


_extreme("maximum", np.maximum, "aclnnMaximum", "gt", "lt")
_extreme("minimum", np.minimum, "aclnnMinimum", "lt", "gt")
op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float", only=("atan2_cpu", REAL)),
    cpu=np.arctan2,
    aclnn=call("aclnnAtan2"),
    grad={
        "self": lambda grad, self, other: grad * _turn(other, self, other),
        "other": lambda grad, self, other: grad * -_turn(self, self, other),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d, 0.2, 2), Arg((4,), d, -2, 2))) for d in ("float32", "float64")
    ],
    inplace=True,
    rule="atan2",
)


def _turn(part: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """part / (a² + b²); 0 at the origin, where an angle has no derivative, as in torch."""
    square = a * a + b * b
    return aten.masked_fill(part / square, square == 0, 0.0)


def _logaddexp(self: Array, other: Array) -> Array:
    """log(exp(a) + exp(b)); for complex numbers from the one of the larger real part."""
    if self.dtype.kind != "c":
        return np.logaddexp(self, other)
    self, other = np.broadcast_arrays(self, other)
    first = self.real >= other.real
    high, low = np.where(first, self, other), np.where(first, other, self)
    none = np.isneginf(high.real)
    return np.where(none, high, high + np.log1p(np.exp(low - np.where(none, 0, high))))


_is_short_float = in_dtypes("out", *SHORT_FLOATS)


def _added_exponentials(self: Tensor, other: Tensor) -> Tensor:
    """The larger one, and what the smaller one adds; equal infinities are themselves."""
    if self.is_complex():
        first = aten.real(self) >= aten.real(other)
        larger, apart = (
            aten.where(first, self, other),
            aten.where(first, self - other, other - self),
        )
        return larger + aten.log1p(aten.exp(-apart))
    larger = aten.maximum(self, other)
    apart = aten.where(self == other, 0.0, aten.abs(self - other))
    result: Tensor = larger + aten.log1p(aten.exp(-apart))
    return result


op(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float"),
    cpu=_logaddexp,
    aclnn=call("aclnnLogAddExp", when=_is_short_float),
    lower=_added_exponentials,
    grad={
        "self": lambda grad, self, other: grad * aten.conj_of(aten.sigmoid(self - other)),
        "other": lambda grad, self, other: grad * aten.conj_of(aten.sigmoid(other - self)),
    },
    unsupported={"bool whole": "logaddexp_cpu"},
    samples=lambda: [Sample((Arg((3, 4), d), Arg((4,), d))) for d in ("float32", "float64")],
    rule="unbounded",
)


def _logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    common = result_type((self._geom, other._geom))
    self, other = aten.to(self, common), aten.to(other, common)
    return aten.logaddexp(self * log(2), other * log(2)) / log(2)


op(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float"),
    cpu=np.logaddexp2,
    aclnn=call("aclnnLogAddExp2", when=below_double()),
    lower=_logaddexp2,
    grad={
        "self": lambda grad, self, other: grad * aten.sigmoid((self - other) * log(2)),
        "other": lambda grad, self, other: grad * aten.sigmoid((other - self) * log(2)),
    },
    unsupported={"bool whole complex": "logaddexp2_cpu"},
    samples=lambda: [Sample((Arg((3, 4), d), Arg((4,), d))) for d in ("float32", "float64")],
    rule="unbounded",
)


class Heaviside(Pointwise):
    """Broadcast without promotion."""

    def __call__(self, *args: Any) -> Geometry:
        if args[0].dtype is not args[1].dtype:
            raise RuntimeError(
                "heaviside is not yet implemented for tensors with different dtypes."
            )
        return super().__call__(*args)


op(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    infer=Heaviside(),
    cpu=lambda self, values: np.where(self == 0, values, self > 0).astype(self.dtype),
    aclnn=call("aclnnHeaviside", when=_is_short_float),
    lower=lambda self, values: aten.where(self == 0, values, aten.to(self > 0, self.dtype)),
    unsupported={"complex": Refusal("heaviside is not yet implemented for complex tensors.")},
    samples=lambda: [Sample((Arg((3, 4), d, -1, 1), Arg((4,), d))) for d in ("float32", "float16")],
    tolerance="exact",
    inplace=True,
)
op(
    "gcd(Tensor self, Tensor other) -> Tensor",
    infer=pointwise(only=("gcd_cpu", INTEGERS)),
    cpu=np.gcd,
    aclnn=call("aclnnGcd"),
    grad={},
    samples=lambda: [Sample((Arg((3, 4), d, 0, 60), Arg((4,), d, 0, 60))) for d in INTS],
    tolerance="exact",
    inplace=True,
)


def _xlogy(self: Array, other: Array) -> Array:
    return np.where(np.isnan(other), other, np.where(self == 0, 0, self * np.log(other)))


def _xlogy_grad(grad: Tensor, self: Tensor, other: Tensor | Number) -> Tensor:
    by: Tensor = (
        other
        if isinstance(other, Tensor)
        else aten.scalar_tensor(other, dtype=grad.dtype, device=grad.device)
    )
    return grad * aten.where(aten.logical_and(self == 0, by <= 0), 0.0, aten.log(by))


def _times_logarithm(self: Tensor, other: Tensor | Number) -> Tensor:
    by = aten.full_like(self, other) if not isinstance(other, Tensor) else other
    zero = aten.logical_and(self == 0, by == by)
    result: Tensor = aten.where(zero, 0.0, self * aten.log(by))
    return result


op(
    "xlogy(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise("float"),
    cpu=_xlogy,
    aclnn=(
        call("aclnnXLogYScalarOther", when=scalar("other").and_where(below_double())),
        call("aclnnXLogYTensor", when=below_double())
    ),
    lower=_times_logarithm,
    grad={
        "self": _xlogy_grad,
        "other": lambda grad, self, other: grad * (self / other),
    },
    unsupported={"complex": "xlogy_cpu"}, samples=lambda: [
        *(Sample((Arg((3, 4), d, 0.2, 2), Arg((4,), d, 0.2, 2))) for d in ("float32", "float64")),
        Sample((Arg((3, 4), "float32", -1, 2), 2.5)), Sample((Arg((3,), "int64"), 3)),
    ], rule="unbounded", number_first=True, inplace=True,
)  # fmt: skip


def _rsub(self: Any, other: Any, alpha: Any = 1) -> Any:
    if hasattr(other, "_geom"):
        return aten.sub(other, self, alpha=alpha)
    refuse_bools(self, other)
    if aten._watched() and alpha == 1:
        return aten._asked_recorded("rsub.Scalar", _reversed, (self, other))
    return _reversed(self, other, alpha)


def _reversed(self: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = result_type((self._geom, other))
    # Rounded once, as torch does: products of 16-bit floats are exact in float32.
    wide = dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype
    return aten.to(aten.to(self, wide) * -alpha + other, dtype)


composite(
    "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    _rsub,
    summary="Difference `other - alpha * self`.",
    samples=calls(
        (Arg((2, 3)), Arg((3,), low=-1)),
        (Arg((2, 3)), 2.0),
        Sample((Arg((2,), "int64"), 3), {"alpha": 2}),
    ),
    tolerance="rounded",
    rule="sum",
)


def _square(self: Tensor) -> Tensor:
    if self.dtype is dt.bool:  # torch says pow(self, 2), which counts
        return aten.to(self, dt.int64)
    return aten.pow(self, 2) if aten._watched() or aten._recorded(self) else self * self


composite(
    "square(Tensor self) -> Tensor",
    _square,
    summary="Square of each element.",
    inplace=True,
    samples=unary(),
    tolerance="rounded",
)


def _hypot(self: Tensor, other: Tensor) -> Tensor:
    """The larger one's size times what the smaller one adds: no square leaves the range."""
    dtype = result_type((self._geom, other._geom))
    wide = dt.float32 if dtype.itemsize == 2 else dtype
    a, b = (aten.abs(aten.to(aten.to(t, dtype), wide)) for t in (self, other))
    high, low = aten.maximum(a, b), aten.minimum(a, b)
    ratio = low / aten.where(high == 0, 1.0, high)
    whole = high * aten.sqrt(1 + ratio * ratio)
    infinite = aten.logical_or(aten.isinf(a), aten.isinf(b))
    return aten.to(aten.where(infinite, inf, whole), dtype)


op(
    "hypot(Tensor self, Tensor other) -> Tensor",
    infer=pointwise(only=("hypot_cpu", _FLOATS)),
    cpu=np.hypot,
    lower=_hypot,
    grad={
        "self": lambda grad, self, result: grad * (self / result),
        "other": lambda grad, other, result: grad * (other / result),
    },
    samples=lambda: [
        Sample((Arg((2, 3), low=0.1), Arg((3,), low=0.5))),
        Sample((Arg((4,), "float64"), Arg((4,), "float64", 1))),
        Sample((Arg((2,), low=1), Arg((2,), "int64", values=(4, 3)))),
    ],
    rule="composed",
    inplace=True,
)
composite(
    "positive(Tensor(a) self) -> Tensor(a)",
    lambda self: self,
    unsupported={"bool": Refusal("The `+` operator, on a bool tensor is not supported.")},
    samples=unary(),
)


def _first(number: Tensor | Number, self: Tensor) -> Tensor:
    """A number as the first operand: 0-d, of the dtype that it makes with `self`."""
    if isinstance(number, Tensor):
        return number
    whole = aten.tensor(number, dtype=dt.float64 if number.__class__ is float else None)
    return aten.to(whole, result_type((number, self._geom)))


def _reflected(name: str, body: Callable[..., Any], *samples: Any, rule: str = "") -> None:
    """`number <operator> self`, for the operators that don't commute."""
    composite(
        f"__{name}__(Tensor self, Tensor|Scalar other) -> Tensor",
        body,
        samples=calls(*samples),
        oracle=lambda torch: getattr(torch.Tensor, f"__{name}__"),
        tolerance="elementary",
        rule=rule,
    )


_WHOLE = (Arg((5,), "int64", values=(1, 2, 3, 2, 1)), 7)
_REAL = (Arg((2, 3), low=0.5), 3.0)
_reflected(
    "rtruediv", lambda self, other: aten.reciprocal(self) * other, _REAL, _WHOLE, rule="composed"
)
_reflected("rfloordiv", lambda self, other: aten.floor_divide(_first(other, self), self), _WHOLE)
_reflected("rmod", lambda self, other: aten.remainder(_first(other, self), self), _REAL, _WHOLE)
_reflected("rpow", lambda self, other: aten.pow(other, self), _REAL, _WHOLE)
for _shift in ("left", "right"):
    _reflected(
        f"r{_shift[0]}shift",
        lambda self, other, name=f"bitwise_{_shift}_shift": getattr(aten, name)(
            _first(other, self), self
        ),
        _WHOLE,
    )
