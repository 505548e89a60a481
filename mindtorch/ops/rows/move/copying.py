"""Rows that copy, fill and convert."""

from __future__ import annotations

from ...._compat.warn_once import warn_once
from ...._tensor.device import device as Device
from ...._tensor.dtype import COMPLEX
from ...._tensor.eight_bits import fitting, readable
from ...._tensor.geometry import follows, format_name
from ...limits import converted, in_dtype
from ...rules import broadcast_in_place, laid_out, preserved
from ...samples import unary
from ...spec import scalar
from ...words import *


def _clone(self: Geometry, memory_format: str | None = None) -> Geometry:
    return laid_out(self, memory_format)


op(
    "clone(Tensor self, *, str? memory_format=None) -> Tensor",
    summary="A copy with storage of its own.",
    infer=_clone,
    cpu=lambda self, memory_format: self.copy(order="C" if memory_format == "contiguous" else "K"),
    compute="raw",
    aclnn=call("aclnnInplaceCopy", "out", "self"),
    grad={"self": lambda grad: grad},
    samples=unary(dtypes=("float32", "int64", "bool", "bfloat16")),
)


def _contiguous(self: Tensor, memory_format: object | None = None) -> Tensor:
    name = "contiguous" if memory_format is None else format_name(memory_format)
    fits = (
        self._geom.contiguous if name in ("contiguous", "preserve") else follows(self._geom, name)
    )
    if name == "preserve" and not fits:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if fits else aten.clone(self, memory_format=name)


composite(
    "contiguous(Tensor self, *, str? memory_format=None) -> Tensor",
    _contiguous,
    summary="The tensor itself where it is contiguous, else a copy that is.",
    surface="method",
    samples=calls((Arg((2, 3)),), (Arg((2, 3), layout="transposed"),)),
)


def _copy_infer(self: Geometry, src: Geometry, non_blocking: bool = False) -> Geometry:
    broadcast_in_place(self.shape, src.shape)
    if src.dtype.is_complex and not self.dtype.is_complex and self.dtype is not dt.bool:
        warn_once("Casting complex values to real discards the imaginary part")
    return preserved(self)


_copy_infer.__dict__["crosses_devices"] = True

op(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    infer=_copy_infer,
    cpu=lambda self, src, non_blocking: src,
    compute="raw",
    grad={
        "self": lambda grad: aten.zeros_like(grad),
        "src": lambda grad, src_geom: aten.to(
            aten.sum_to_size(grad, src_geom.shape), src_geom.device, src_geom.dtype
        ),
    },
    rule="conversion",
    surface="none",
    inplace=True,
    casts_inplace=True,
    samples=calls((Arg((2, 3)), Arg((3,))), (Arg((2, 3)), Arg((2, 3), "int64"))),
)


def _to_copy(
    self: Geometry, dtype: Dtype | None, device: Device, memory_format: str | None = None
) -> Geometry:
    geom = laid_out(self, memory_format, dtype)
    return geom if device is None else geom.on(device)


_PLAIN_KINDS = frozenset("biuf")  # of numpy, which it casts as torch does


def _cast(self: Array, *_: object, out: Geometry) -> Array:
    dtype = out.dtype.np
    if self.dtype.kind in _PLAIN_KINDS and dtype.kind in "biufc":
        return self.astype(dtype)
    self = self if self.dtype == dtype else readable(self)
    if self.dtype.kind == "c" and dtype.kind not in "cb" and not dtype.names:
        self = self.real
    fit = fitting(self, dtype)
    return fit if fit is not self and fit.dtype == dtype else fit.astype(dtype)


_to_copy.__dict__["crosses_devices"] = True


op(
    "_to_copy(Tensor self, ScalarType? dtype, Device? device, str? memory_format=None) -> Tensor",
    infer=_to_copy,
    cpu=_cast,
    compute="raw",
    grad={
        "self": lambda grad, self_geom: aten.to(
            aten.real(grad)
            if grad.dtype.category == COMPLEX and self_geom.dtype.category != COMPLEX
            else grad,
            self_geom.device,
            self_geom.dtype,
        )
    },
    rule="conversion",
    samples=calls(
        Sample((Arg((2, 3)),), {"dtype": "float64", "device": None}),
        Sample((Arg((2, 3), "int64"),), {"dtype": "float16", "device": None}),
    ),
    oracle=lambda torch: lambda self, dtype, device: self.to(dtype),
)


def _fill_rule(self: Geometry, value: Geometry | Number) -> Geometry:
    if isinstance(value, Geometry) and value.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with"
            f" {value.ndim} dimensions."
        )
    return preserved(self)


def _fill(self: Array, value: Number) -> Array:
    lone = np.asarray(value)  # np.broadcast_to takes five times as long
    if lone.dtype != self.dtype and lone.dtype.kind != "c":
        lone = fitting(lone, self.dtype).astype(self.dtype)
    if self.flags.c_contiguous and lone.dtype == self.dtype:
        whole: Array = np.empty(self.shape, self.dtype)
        whole.fill(lone)
        return whole
    return np.ndarray(self.shape, lone.dtype, lone, 0, (0,) * self.ndim)


op(
    "fill(Tensor self, Tensor|Scalar value) -> Tensor",
    summary="`value` in the shape of `self`.",
    infer=_fill_rule,
    cpu=_fill,
    compute="raw",
    aclnn=call(
        "aclnnInplaceFillScalar", "self", in_dtype("value"), inplace=True, when=scalar("value")
    ),
    lower=lambda self, value: aten.expand(aten.to(value, self.device, self.dtype), self.shape),
    refuses=converted(1),
    grad={
        "self": lambda grad: aten.zeros_like(grad),
        "value": lambda grad: aten.sum(grad),
    },
    samples=lambda: [Sample((Arg((2, 3), d), 2)) for d in ("float32", "int64", "bool")],
    surface="function",
    inplace=True,
    overlaps=True,
)
op(
    "zero(Tensor self) -> Tensor",
    infer=lambda self: preserved(self),
    cpu=lambda self: np.zeros(self.shape, self.dtype),
    cpu_inplace=lambda self: self.fill(0),
    compute="raw",
    aclnn=call("aclnnInplaceZero", "self", inplace=True),
    grad={"self": lambda grad: aten.zeros_like(grad)},
    samples=unary(dtypes=("float32", "int64")),
    surface="none",
    inplace=True,
    overlaps=True,
)
