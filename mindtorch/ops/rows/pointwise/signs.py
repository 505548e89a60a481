"""Rows of signs, neighbours and parts of floating-point numbers, and of extremes without NaN."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import Refusal
from ...._tensor.dtype import INTEGERS
from ...rules import pointwise, preserved, result_type
from ...samples import binary
from ...words import *

_SIGNED = pointwise("float")


def _copysign(self: Tensor, other: Any) -> Tensor:
    pair = self._geom, other._geom if isinstance(other, Tensor) else other
    size = aten.abs(aten.to(self, _SIGNED(*pair).dtype))
    if not isinstance(other, Tensor):
        return -size if np.signbit(float(other)) else aten.clone(size)
    return aten.where(aten.signbit(other), -size, size)


def _copysign_slope(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * aten.where(self == 0, 0.0, result / aten.where(self == 0, 1.0, self))


op(
    "copysign(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=_SIGNED,
    cpu=np.copysign,
    lower=_copysign,
    grad={"self": _copysign_slope, "other": lambda grad: aten.zeros_like(grad)},
    unsupported={"complex": "copysign_cpu"},
    samples=binary(dtypes=("float32", "float64")),
    tolerance="exact",
    surface="both",
    inplace=True,
)


_BITS = {4: dt.int32, 8: dt.int64, 2: dt.int16}


def _nextafter(self: Tensor, other: Tensor) -> Tensor:
    """One step of the bits as an integer, up or down by which side `other` is on."""
    dtype = result_type((self._geom, other._geom))
    kind = _BITS[dtype.itemsize]
    self, other = (aten.to(t, dtype) for t in aten.broadcast_tensors(self, other))
    bits = aten.contiguous(self).view(kind)
    away = aten.eq(other > self, self > 0)
    moved = aten.where(away, bits + 1, bits - 1).view(self.dtype)
    tiny = aten.full_like(bits, 1).view(self.dtype)
    moved = aten.where(self == 0, aten.where(other > 0, tiny, -tiny), moved)
    moved = aten.where(self == other, other, moved)
    unknown = aten.logical_or(aten.isnan(self), aten.isnan(other))
    return aten.where(unknown, self + other, moved)


op(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    infer=pointwise(only=("nextafter_cpu", (dt.float32, dt.float64, dt.bfloat16, dt.float16))),
    cpu=np.nextafter,
    compute="raw",
    lower=_nextafter,
    grad={
        "self": lambda grad, self, other: grad.masked_fill(aten.eq(self, other), 0.0),
        "other": lambda grad: aten.zeros_like(grad),
    },
    samples=calls((Arg((3, 4)), Arg((4,), high=2.5))),
    tolerance="exact",
    inplace=True,
)


def _lcm(self: Tensor, other: Tensor) -> Tensor:
    """In int32 at least, as C multiplies: what overflows wraps before its modulus is taken."""
    dtype = result_type((self._geom, other._geom))
    wide = dt.int32 if dtype.itemsize < dt.int32.itemsize else dtype
    self, other = aten.to(self, wide), aten.to(other, wide)
    divisor = aten.gcd(self, other)
    safe = aten.where(divisor == 0, aten.ones_like(divisor), divisor)
    return aten.to(aten.abs(aten.div(self, safe, rounding_mode="trunc") * other), dtype)


def _lcm_cpu(self: Array, other: Array) -> Array:
    dtype = np.result_type(self, other)
    wide = np.promote_types(dtype, np.int32)
    if wide == dtype:
        return np.lcm(self, other)
    return np.lcm(self.astype(wide), other.astype(wide)).astype(dtype)


op(
    "lcm(Tensor self, Tensor other) -> Tensor",
    infer=pointwise(only=("lcm_cpu", INTEGERS)),
    cpu=_lcm_cpu,
    lower=_lcm,
    grad={},
    samples=calls(
        (Arg((3, 4), "int64", 1, 9), Arg((4,), "int64", -6, 9)),
        (Arg((3,), "int32", 1, 9), Arg((3,), "int32", 0, 6)),
    ),
    tolerance="exact",
    inplace=True,
)


def _extreme(name: str, kernel: np.ufunc, better: Any) -> None:
    """fmax, fmin: the other operand where one is NaN."""

    def first(self: Tensor, other: Tensor) -> Tensor:
        return aten.logical_or(better(self, other), aten.isnan(other))

    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        summary=("Larger" if name == "fmax" else "Smaller")
        + " element of two tensors; of nan and a number the number.",
        infer=pointwise(),
        cpu=kernel,
        lower=lambda self, other: aten.where(first(self, other), self, other),
        grad={
            "self": lambda grad, self, other: grad.masked_fill(~first(self, other), 0),
            "other": lambda grad, self, other: grad.masked_fill(first(self, other), 0),
        },
        unsupported={"complex": Refusal(f"{name} not implemented for complex tensors.")},
        samples=calls((Arg((3, 4)), Arg((3, 4), high=2.5))),
        tolerance="exact",
        surface="both",
    )


_extreme("fmax", np.fmax, lambda a, b: a >= b)
_extreme("fmin", np.fmin, lambda a, b: a <= b)


_REACH = {4: 320, 8: 2240}  # bytes -> beyond it powers of two make any element 0 or inf


@composite(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), high=2.5)),
        (Arg((3,)), Arg((3,), "int64", values=(9, 0, 5))),
        (Arg((3,), grad=False), Arg((3,), "int64", values=(40, 0, -20))),
        (Arg((3,), "bfloat16"), Arg((3,), "int32", values=(2, 1, 3))),
    ),
    tolerance="composite",
    inplace=True,
)
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """self · 2^other; of real numbers and integers without a power that leaves the range."""
    dtype, whole = self.dtype, other.dtype.category
    if dtype.category != dt.FLOAT or whole > dt.INTEGER:
        return self * aten.pow(2.0, other)
    if whole == dt.BOOL:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    wide = dt.float32 if dtype.itemsize == 2 else dtype
    far = _REACH[wide.itemsize]
    rest = aten.clamp(
        aten.to(other, dt.int32 if other.dtype.itemsize < 4 else other.dtype), -far, far
    )
    scaled = aten.to(self, wide)
    for parts in (3, 2, 1):
        part = aten.div(rest, parts, rounding_mode="trunc")
        scaled, rest = scaled * aten.pow(2.0, aten.to(part, wide)), rest - part
    return aten.to(scaled, dtype)


def _frexp_infer(self: Geometry) -> tuple[Geometry, Geometry]:
    if self.dtype.category != dt.FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return preserved(self), preserved(self, dt.int32)


def _frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    wide = aten.to(self, dt.float32) if self.dtype.itemsize == 2 else self
    size = aten.abs(wide)
    known = aten.logical_and(aten.isfinite(size), size > 0)
    exponent = aten.floor(aten.log2(aten.where(known, size, aten.ones_like(size)))) + 1
    # Half at a time: 2^-149 has no reciprocal in float32.
    half = aten.div(exponent, 2, rounding_mode="floor")
    mantissa = wide * aten.exp2(-half) * aten.exp2(half - exponent)
    for test, factor, step in (
        (aten.abs(mantissa) >= 1, 0.5, 1),
        (aten.abs(mantissa) < 0.5, 2, -1),
    ):
        mantissa = aten.where(test, mantissa * factor, mantissa)
        exponent = aten.where(test, exponent + step, exponent)
    mantissa = aten.where(known, mantissa, wide)
    exponent = aten.where(known, exponent, aten.zeros_like(exponent))
    return aten.to(mantissa, self.dtype), aten.to(exponent, dt.int32)


def _frexp_cpu(self: Array) -> tuple[Array, Array]:
    mantissa, exponent = np.frexp(self)
    return mantissa, np.where(np.isfinite(self), exponent, 0)


op(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    summary="Mantissa in [0.5, 1) and exponent of two of each element.",
    infer=_frexp_infer,
    cpu=_frexp_cpu,
    lower=_frexp,
    grad={
        "self": lambda grad_mantissa, exponent: grad_mantissa / aten.pow(2.0, exponent),
    },
    samples=calls((Arg((3, 4)),), (Arg((3,), "float64"),)),
    tolerance="exact",
    out="torch.frexp() expects mantissa to have dtype {want} but got {got}",
    surface="both",
)


@composite(
    "float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
    samples=calls((Arg((3,), low=0.5), Arg((3,))), (Arg((3,), low=0.5), 2)),
    surface="both",
    out="the output given to float_power has dtype {Got} but the operation's result requires dtype"
    " {Want}",
    absent={"npu": "aclnnPow has no float64 on every product"},
)
def float_power(self: Any, exponent: Any) -> Tensor:
    """A power in float64, or complex128 where an operand is complex."""
    both = (self, exponent)
    wide = any(v.is_complex() if isinstance(v, Tensor) else isinstance(v, complex) for v in both)
    kind = dt.complex128 if wide else dt.float64
    built = [aten.to(v, kind) if isinstance(v, Tensor) else v for v in both]
    return aten.pow(built[0], built[1])


@composite(
    "isreal(Tensor self) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2,), "complex64"),)),
    tolerance="exact",
)
def isreal(self: Tensor) -> Tensor:
    """Where the imaginary part is zero."""
    if self.is_complex():
        return aten.imag(self) == 0
    return aten.ones_like(self, dtype=dt.bool)


composite(
    "resolve_neg(Tensor(a) self) -> Tensor(a)",
    lambda self: aten.clone(self) if "_negated" in self.__dict__ else self,
    samples=calls((Arg((2, 3)),)),
    tolerance="exact",
)
