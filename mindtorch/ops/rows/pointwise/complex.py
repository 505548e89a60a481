"""Rows of complex numbers: their parts as views, and the way back."""

from __future__ import annotations

from math import isnan

from ...._tensor.eight_bits import fitting
from ...._tensor.geometry import geometry
from ...complex_parts import below_double
from ...rules import opmath, pointwise, preserved
from ...words import *

_COMPLEX = ("complex64", "complex128")
_PARTS = (dt.float16, dt.float32, dt.float64)


def _as_real(self: Geometry) -> Geometry:
    if self.dtype.category != dt.COMPLEX:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    strides = (*(s * 2 for s in self.strides), 1)
    shape = (*self.shape, 2)
    return geometry(shape, strides, self.offset * 2, self.dtype.to_real(), self.device)


def _as_complex(self: Geometry) -> Geometry:
    if self.dtype not in _PARTS:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a"
            f" tensor of scalar type: {self.dtype.legacy}"
        )
    if not self.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in self.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    strides = tuple(s // 2 for s in self.strides[:-1])
    return geometry(
        self.shape[:-1], strides, self.offset // 2, self.dtype.to_complex(), self.device
    )


op(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    summary="A view `[*] → [*, 2]` of real and imaginary parts.",
    infer=_as_real,
    grad={"self": lambda grad: aten.view_as_complex(aten.contiguous(grad))},
    samples=lambda: [Sample((Arg((2, 3), d),)) for d in _COMPLEX],
    tolerance="exact",
    surface="none",
)
op(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    summary="A view `[*, 2] → [*]` as complex numbers.",
    infer=_as_complex,
    autocast="float32 on cpu",
    grad={"self": lambda grad: aten.view_as_real(aten.contiguous(grad))},
    samples=lambda: [Sample((Arg((3, 2)),)), Sample((Arg((2, 3)),), error=True)],
    tolerance="exact",
    surface="function",
)


def _mirrored(self: Tensor) -> Tensor:
    both = aten.view_as_real(self)
    parts = [aten.select(both, -1, 0), -aten.select(both, -1, 1)]
    return aten.complex(*parts)


op(
    "_conj_physical(Tensor self) -> Tensor",
    infer=lambda self: preserved(self),
    cpu=np.conjugate,
    lower=_mirrored,
    compute="raw",
    grad={"self": lambda grad: aten.conj(grad)},
    samples=lambda: [Sample((Arg((2, 3), d),)) for d in _COMPLEX],
    tolerance="exact",
    oracle=lambda torch: torch.conj_physical,
)
composite(
    "conj_physical(Tensor self) -> Tensor",
    lambda self: aten._conj_physical(self) if self.is_complex() else self,
    summary="The complex conjugate; real numbers as they are given.",
    samples=lambda: [Sample((Arg((2, 3), d),)) for d in (*_COMPLEX, "float32")],
    tolerance="exact",
    out="found",
    inplace=True,
)


def _complex_cpu(real: Array, imag: Array, *, out: Geometry) -> Array:
    built = np.empty(out.shape, opmath(out.dtype).np)
    built.real, built.imag = real, imag
    return fitting(built, out.dtype.np)


def _paired(real: Tensor, imag: Tensor) -> Tensor:
    """By pairs in memory: flat, since tensors of CANN have eight dims at most."""
    parts = aten.broadcast_tensors((real, imag))
    pairs = aten.stack([aten.reshape(part, (-1,)) for part in parts], -1)
    result: Tensor = aten.reshape(aten.view_as_complex(pairs), parts[0].shape)
    return result


op(
    "complex(Tensor real, Tensor imag) -> Tensor",
    summary="Complex numbers from real and imaginary parts.",
    infer=lambda real, imag: pointwise_complex(real, imag),
    cpu=_complex_cpu,
    aclnn=call("aclnnComplex", when=below_double()),
    lower=_paired,
    compute="raw",
    grad={
        "real": lambda grad: aten.real(grad),
        "imag": lambda grad: aten.imag(grad),
    },
    samples=lambda: [Sample((Arg((2, 3)), Arg((2, 3), high=2.5)))],
    tolerance="exact",
    out="Expected object of scalar type {Want} but got scalar type {Got} for argument 'out'",
    surface="function",
)


def pointwise_complex(real: Geometry, imag: Geometry) -> Geometry:
    """The Geometry of `complex(real, imag)`; RuntimeError for other than equal float types."""
    if real.dtype not in _PARTS or imag.dtype not in _PARTS:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got"
            f" {real.dtype.legacy} and {imag.dtype.legacy}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype.legacy} but got scalar type"
            f" {imag.dtype.legacy} for second argument"
        )
    rule = pointwise()
    rule.bind((0, 1))
    infer = rule(real, imag)
    return infer.fresh(infer.shape, infer.dtype.to_complex(), infer.strides)


def _part(number: int) -> Callable[..., Any]:
    def part(self: Tensor) -> Tensor:
        if not self.is_complex():
            if number == 0:
                return self
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        result: Tensor = aten.select(aten.view_as_real(self), -1, number)
        if number and "_conjugated" in self.__dict__:
            result.__dict__["_negated"] = True  # what `is_neg` answers by
        return result

    return part


def _conj(self: Tensor) -> Tensor:
    if self._geom.dtype.category != dt.COMPLEX:
        return self
    conjugated: Tensor = aten._conj_physical(self)
    if "_conjugated" not in self.__dict__:  # what `is_conj` answers by
        conjugated.__dict__["_conjugated"] = True
    return conjugated


def _resolved(self: Tensor) -> Tensor:
    return aten.clone(self) if "_conjugated" in self.__dict__ else self


def _angle(self: Tensor) -> Tensor:
    if self.is_complex():
        return aten.atan2(aten.imag(self), aten.real(self))
    wide = self if self.is_floating_point() else aten.to(self, dt.get_default_dtype())
    zero, pi = aten.zeros_like(wide), aten.full_like(wide, 3.141592653589793)
    return aten.where(aten.isnan(wide), wide, aten.where(wide < 0, pi, zero))


composite(
    "real(Tensor(a) self) -> Tensor(a)",
    _part(0),
    surface="function",
    samples=calls((Arg((2, 3), "complex64"),)),
    tolerance="exact",
    oracle=lambda torch: torch.real,
)
composite(
    "imag(Tensor(a) self) -> Tensor(a)",
    _part(1),
    surface="function",
    samples=calls((Arg((2, 3), "complex64"),)),
    tolerance="exact",
    oracle=lambda torch: torch.imag,
)
composite(
    "conj(Tensor self) -> Tensor",
    _conj,
    summary="Complex conjugate.",
    samples=calls((Arg((2, 3), "complex64"),)),
    tolerance="exact",
    oracle=lambda torch: torch.conj_physical,
)
composite(
    "resolve_conj(Tensor(a) self) -> Tensor(a)",
    _resolved,
    samples=calls((Arg((2, 3)),)),
    tolerance="exact",
)


def _angle_grad(grad: Tensor, self: Tensor) -> Tensor:
    """Across a complex number, over its size; 0 at the origin, and of real numbers."""
    if not self.is_complex():
        return aten.zeros_like(grad)
    a, b = aten.real(self), aten.imag(self)
    share = grad / aten.masked_fill(a * a + b * b, self == 0, 1)
    return aten.masked_fill(aten.complex(-b * share, a * share), self == 0, 0)


def _angle_infer(self: Geometry) -> Geometry:
    if self.dtype.category == dt.COMPLEX:
        return preserved(self, self.dtype.to_real())
    return preserved(self, self.dtype if self.dtype.is_floating_point else dt.get_default_dtype())


def _angle_cpu(self: Array) -> Array:
    if self.dtype.kind == "c":
        return np.arctan2(self.imag, self.real)
    angles = (self < 0).astype(self.dtype if self.dtype.kind == "f" else np.float64)
    angles *= angles.dtype.type(np.pi)
    if self.dtype.kind == "f" and isnan(np.vdot(self, self)):  # sooner than each is asked
        angles = np.where(np.isnan(self), self, angles)
    return angles


op(
    "angle(Tensor self) -> Tensor",
    infer=_angle_infer,
    cpu=_angle_cpu,
    lower=_angle,
    grad={"self": _angle_grad},
    summary="Argument of each complex number, in radians.",
    samples=calls((Arg((2, 3), "complex64"),), (Arg((2, 3)),)),
)


def _polar(abs: Tensor, angle: Tensor) -> Tensor:
    return aten.complex(abs * aten.cos(angle), abs * aten.sin(angle))


def _polar_cpu(abs: Array, angle: Array, *, out: Geometry) -> Array:
    built = np.empty(out.shape, out.dtype.np)
    np.multiply(abs, np.cos(angle), out=built.real)
    np.multiply(abs, np.sin(angle), out=built.imag)
    return built


def _polar_grad(grad: Tensor, abs: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    real, imag, cos, sin = aten.real(grad), aten.imag(grad), aten.cos(angle), aten.sin(angle)
    return real * cos + imag * sin, (imag * cos - real * sin) * abs


op(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    autocast="float32 on cpu",
    infer=lambda abs, angle: pointwise_complex(abs, angle),
    cpu=_polar_cpu,
    lower=_polar,
    compute="raw",
    grad={("abs", "angle"): _polar_grad},
    tolerance="elementary",
    summary="Complex numbers from modulus and argument.",
    surface="function",
    samples=calls((Arg((2, 3), low=0.5), Arg((2, 3)))),
    out="Expected object of scalar type {Want} but got scalar type {Got} for argument 'out'",
)
