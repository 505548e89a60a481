"""Rows of pointwise arithmetic of two operands beyond add, sub, mul and div."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rules import pointwise
from .samples import FLOATS, Arg, Sample, binary
from .spec import aten, call, composite, op, scalar


def _int_power(self: Any, exponent: Any) -> Any:
    negative = exponent < 0
    with_zero = np.where(negative, 0, exponent)
    found = np.power(self, with_zero.astype(self.dtype))
    if not np.any(negative):
        return found
    # An integer to a negative power: only 1 and -1 are not zero, as in torch.
    sign = np.where(exponent % 2 == 0, 1, self)
    small = np.where(self == 1, 1, np.where(self == -1, sign, 0))
    return np.where(negative, small, found).astype(self.dtype)


def _pow(self: Any, exponent: Any) -> Any:
    if self.dtype.kind in "iu":
        return _int_power(self, exponent)
    if self.dtype == bool:
        return np.power(self.astype(np.int8), exponent.astype(np.int8)).astype(bool)
    if exponent.ndim == 0:
        if exponent == 2:
            return self * self
        if exponent == 0.5:
            return np.sqrt(self)
    return np.power(self, exponent)


def _pow_grad_self(grad: Any, self: Any, exponent: Any) -> Any:
    if not hasattr(exponent, "_geom"):
        if exponent == 0:
            return aten.zeros_like(grad)
        slope = aten.mul(aten.pow(aten.conj_of(self), exponent - 1), exponent)
        return aten.mul(grad, slope)
    slope = aten.mul(aten.conj_of(exponent), aten.pow(aten.conj_of(self), aten.sub(exponent, 1)))
    return aten.mul(grad, aten.where(aten.eq(exponent, 0), 0.0, slope))


def _pow_grad_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    logarithm = aten.mul(aten.conj_of(result), aten.log(aten.conj_of(self)))
    at_zero = aten.logical_and(aten.eq(self, 0), aten.ge(exponent, 0))
    return aten.mul(grad, aten.where(at_zero, 0.0, logarithm))


def _pow_samples() -> list[Sample]:
    found = [Sample((Arg((3, 4), d, 0.3, 2), Arg((3, 4), d, -1, 2))) for d in FLOATS]
    found += [Sample((Arg((3, 4), d), e)) for d in ("float32", "float64") for e in (2, 3, 0, 1)]
    found += [Sample((Arg((2, 3), "float32", 0.3, 2), e)) for e in (0.5, -0.5, -1, 2.5)]
    found += [Sample((Arg((4,), "int64", -3, 3), 3)), Sample((Arg((2, 3), "int32", 1, 3), 2.0))]
    return [*found, Sample((Arg((2, 1), "float32", 0.3, 2), Arg((3,), "float32", -1, 2)))]


op(
    "pow(Tensor self, Tensor|Scalar exponent) -> Tensor",
    infer=pointwise(),
    cpu=_pow,
    aclnn=(
        call("aclnnPowTensorScalar", "self", "exponent", "out", when=scalar("exponent")),
        call("aclnnPowTensorTensor", "self", "exponent", "out"),
    ),
    grad={"self": _pow_grad_self, "exponent": _pow_grad_exponent},
    samples=_pow_samples,
    surface="none",
    inplace=True,
)
op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    infer=lambda self, exponent: _scalar_first(self, exponent),
    cpu=lambda self, exponent, *, out: _pow(
        np.asarray(self).astype(_wide(out)), exponent.astype(_wide(out))
    ),
    aclnn=call("aclnnPowScalarTensor", "self", "exponent", "out"),
    grad={
        "exponent": lambda grad, self, result: aten.mul(
            grad, aten.mul(result, _log_of(self)) if self else aten.zeros_like(result)
        )
    },
    samples=lambda: [
        Sample((b, Arg((3, 4), d, -1, 2))) for b in (2, 0.5) for d in ("float32", "float64")
    ],
    oracle=lambda torch: torch.pow,
)


def _log_of(number: Any) -> Any:
    import cmath
    import math

    if isinstance(number, complex):
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


def _wide(out: Any) -> Any:
    from .rules import opmath

    return opmath(out.dtype).np


def _scalar_first(self: Any, exponent: Any) -> Any:
    from .rules import preserved, result_type

    return preserved(exponent, result_type((self, exponent)))


def _divides_by_zero(self: Any, other: Any) -> None:
    if self.dtype.kind in "iu" and not np.all(other):
        raise RuntimeError("ZeroDivisionError")


def _remainder(self: Any, other: Any) -> Any:
    _divides_by_zero(self, other)
    if self.dtype.kind in "iu":
        return np.remainder(self, other)
    # The sign follows the divisor; an infinite divisor of another sign gives itself.
    rest = np.fmod(self, other)
    return np.where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest)


def _fmod(self: Any, other: Any) -> Any:
    _divides_by_zero(self, other)
    return np.fmod(self, other)


def _no_bool(self: Any, mode: str) -> None:
    if self.dtype == bool:
        raise NotImplementedError(f"\"div_{mode}_cpu\" not implemented for 'Bool'")


def _floor_divide(self: Any, other: Any) -> Any:
    _no_bool(self, "floor")
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
    found = [Sample((Arg((3, 4), d, -5, 5), Arg((3, 4), d, 1, 3))) for d in ("float32", "float64")]
    found += [Sample((Arg((3, 4), d, 1, 9), Arg((4,), d, 1, 3))) for d in ("int64", "int8")]
    return [*found, Sample((Arg((2, 3), "float32", -5, 5), 1.5)),
            Sample((Arg((2, 3), "int64", -5, 5), -2))]  # fmt: skip


def _whole_quotient_grad(grad: Any, self: Any, other: Any, mode: str) -> Any:
    return aten.mul(grad, aten.neg(aten.div(self, other, rounding_mode=mode)))


op(
    "remainder(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise(),
    cpu=_remainder,
    aclnn=(
        call("aclnnRemainderTensorScalar", "self", "other", "out", when=scalar("other")),
        call("aclnnRemainderTensorTensor", "self", "other", "out"),
    ),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: _whole_quotient_grad(grad, self, other, "floor"),
    },
    samples=_quotient_samples,
    tolerance="rounded",
    inplace=True,
)
op(
    "fmod(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise(),
    cpu=_fmod,
    aclnn=(
        call("aclnnFmodScalar", "self", "other", "out", when=scalar("other")),
        call("aclnnFmodTensor", "self", "other", "out"),
    ),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: _whole_quotient_grad(grad, self, other, "trunc"),
    },
    samples=_quotient_samples,
    tolerance="rounded",
    inplace=True,
)
op(
    "floor_divide(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise(),
    cpu=_floor_divide,
    aclnn=(
        call("aclnnFloorDivides", "self", "other", "out", when=scalar("other")),
        call("aclnnFloorDivide", "self", "other", "out"),
    ),
    grad={},
    samples=_quotient_samples,
    tolerance="exact",
    inplace=True,
)


def _trunc_divide(self: Any, other: Any) -> Any:
    _no_bool(self, "trunc")
    _divides_by_zero(self, other)
    if self.dtype.kind not in "iu":
        return np.trunc(self / other)
    whole = np.abs(self) // np.abs(other)
    return np.where((self < 0) != (other < 0), -whole, whole).astype(self.dtype)


_MODE = {"floor": 2, "trunc": 1}  # aclnnDivMod document: 0 none, 1 trunc, 2 floor

op(
    "div.mode(Tensor self, Tensor|Scalar other, *, str rounding_mode) -> Tensor",
    infer=pointwise(),
    cpu=lambda self, other, rounding_mode: (
        _trunc_divide if rounding_mode == "trunc" else _floor_divide
    )(self, other),
    aclnn=(
        call("aclnnDivMods", "self", "other", lambda a: _MODE[a["rounding_mode"]], "out",
             when=scalar("other")),
        call("aclnnDivMod", "self", "other", lambda a: _MODE[a["rounding_mode"]], "out"),
    ),
    grad={
        "self": lambda grad: aten.zeros_like(grad),
        "other": lambda grad: aten.zeros_like(grad),
    },
    samples=lambda: [
        Sample(s.args, {"rounding_mode": m}) for s in _quotient_samples() for m in _MODE
    ],
    tolerance="exact",
    inplace=True,
)  # fmt: skip


def _picked(grad: Any, wins: Any, ties: Any) -> Any:
    """The gradient where this side wins, half of it at ties, as torch splits it."""
    share = aten.add(aten.to(wins, grad.dtype), aten.mul(aten.to(ties, grad.dtype), 0.5))
    return aten.mul(grad, share)


def _extreme(name: str, cpu: Any, aclnn: str, wins: str, loses: str) -> None:
    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        infer=pointwise(),
        cpu=cpu,
        aclnn=call(aclnn, "self", "other", "out"),
        grad={
            "self": lambda grad, self, other: _picked(
                grad, getattr(aten, wins)(self, other), aten.eq(self, other)
            ),
            "other": lambda grad, self, other: _picked(
                grad, getattr(aten, loses)(self, other), aten.eq(self, other)
            ),
        },
        samples=lambda: [s for s in binary()() if all(isinstance(a, Arg) for a in s.args)],
        tolerance="exact",
    )


_extreme("maximum", np.maximum, "aclnnMaximum", "gt", "lt")
_extreme("minimum", np.minimum, "aclnnMinimum", "lt", "gt")
op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float"),
    cpu=np.arctan2,
    aclnn=call("aclnnAtan2", "self", "other", "out"),
    grad={
        "self": lambda grad, self, other: aten.mul(grad, aten.div(other, _norm2(self, other))),
        "other": lambda grad, self, other: aten.mul(
            grad, aten.neg(aten.div(self, _norm2(self, other)))
        ),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d, 0.2, 2), Arg((4,), d, -2, 2))) for d in ("float32", "float64")
    ],
    inplace=True,
)


def _norm2(a: Any, b: Any) -> Any:
    return aten.add(aten.mul(a, a), aten.mul(b, b))


op(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float"),
    cpu=np.logaddexp,
    aclnn=call("aclnnLogAddExp", "self", "other", "out"),
    grad={
        "self": lambda grad, self, other: aten.mul(grad, aten.sigmoid(aten.sub(self, other))),
        "other": lambda grad, self, other: aten.mul(grad, aten.sigmoid(aten.sub(other, self))),
    },
    samples=lambda: [Sample((Arg((3, 4), d), Arg((4,), d))) for d in ("float32", "float64")],
)


def _xlogy(self: Any, other: Any) -> Any:
    return np.where(np.isnan(other), other, np.where(self == 0, 0, self * np.log(other)))


op(
    "xlogy(Tensor self, Tensor other) -> Tensor",
    infer=pointwise("float"),
    cpu=_xlogy,
    aclnn=call("aclnnXLogYTensor", "self", "other", "out"),
    grad={
        "self": lambda grad, self, other: aten.mul(
            grad, aten.where(aten.logical_and(aten.eq(self, 0), aten.le(other, 0)), 0.0,
                             aten.log(other))
        ),
        "other": lambda grad, self, other: aten.mul(grad, aten.div(self, other)),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d, 0.2, 2), Arg((4,), d, 0.2, 2))) for d in ("float32", "float64")
    ],
)  # fmt: skip


def _rsub(self: Any, other: Any, alpha: Any = 1) -> Any:
    if hasattr(other, "_geom"):
        return aten.sub(other, self, alpha=alpha)
    return aten.add(aten.mul(self, -alpha), other)


composite("rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", _rsub)


def _square(self: Any) -> Any:
    return aten.mul(self, self)


composite("square(Tensor self) -> Tensor", _square, inplace=True)
composite(
    "hypot(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.sqrt(_norm2(self, other)),
)
composite("absolute(Tensor self) -> Tensor", lambda self: aten.abs(self), inplace=True)
composite("negative(Tensor self) -> Tensor", lambda self: aten.neg(self), inplace=True)
composite("positive(Tensor self) -> Tensor", lambda self: self)
composite("fix(Tensor self) -> Tensor", lambda self: aten.trunc(self), inplace=True)
composite(
    "true_divide(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: aten.div(self, other),
    inplace=True,
)
composite(
    "multiply(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: aten.mul(self, other),
    inplace=True,
)
composite(
    "subtract(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha=1: aten.sub(self, other, alpha=alpha),
    inplace=True,
)
