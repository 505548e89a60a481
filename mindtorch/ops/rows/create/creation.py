"""Rows that make tensors from numbers."""

from __future__ import annotations

from math import ceil, isfinite

from ...._tensor.device import DeviceLike, device as Device, resolve
from ...._tensor.geometry import contiguous, geometry
from ...limits import converted, fits
from ...words import *


def filled(size: tuple[int, ...], value: Number, out: Geometry) -> Array:
    """A fresh array of one value: np.full and np.ones take twice as long for a few elements."""
    array = np.empty(size, out.dtype.np)
    if isinstance(value, complex) and out.dtype.category != dt.COMPLEX:
        raise RuntimeError("value cannot be converted to type without overflow")
    if value.__class__ is int and array.dtype.kind == "u":
        value %= 1 << 8 * array.itemsize  # negative ones wrap, as in C
    array.fill((value.real, value.imag) if array.dtype.names else value)
    return array


def _shape(size: tuple[int, ...]) -> tuple[int, ...]:
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return size


def _full(
    size: tuple[int, ...],
    fill_value: Number,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Geometry:
    inferred = dtype is None
    dtype = dtype or dt.SCALAR_DTYPES[fill_value.__class__]()
    if dtype is dt.complex32 and inferred:
        dtype = dt.complex64
    return contiguous(_shape(size), dtype, resolve(device))


op(
    "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    infer=_full,
    cpu=lambda size, fill_value, dtype, device, *, out: filled(size, fill_value, out),
    compute="raw",
    aclnn=call("aclnnInplaceFillScalar", "out", "fill_value"),
    refuses=converted(1),
    grad={},
    tolerance="exact",
    surface="none",
    samples=calls(((2, 3), 1.5), ((2,), 3), ((), True)),
)

op(
    "zeros(int[] size, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    infer=lambda size, dtype, device: contiguous(
        _shape(size), dtype or dt.get_default_dtype(), resolve(device)
    ),
    cpu=lambda size, dtype, device, *, out: np.zeros(size, out.dtype.np),
    compute="raw",
    aclnn=call("aclnnInplaceZero", "out"),
    grad={},
    tolerance="exact",
    surface="none",
    samples=calls(((2, 3),), ((0, 2),), Sample(((2,),), {"dtype": "int32"})),
)

op(
    "ones(int[] size, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    infer=lambda size, dtype, device: contiguous(
        _shape(size), dtype or dt.get_default_dtype(), resolve(device)
    ),
    cpu=lambda size, dtype, device, *, out: filled(size, 1, out),
    compute="raw",
    aclnn=call("aclnnInplaceOne", "out", when=lambda a: not (a["dtype"] or dt.bool).is_complex),
    lower=lambda size, dtype=None, device=None: aten.full(size, 1, dtype=dtype, device=device),
    grad={},
    tolerance="exact",
    surface="none",
    samples=calls(((2, 3),), ((0, 2),), Sample(((2,),), {"dtype": "int32"})),
)


def _empty_strided(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: Dtype | None = None,
    device: Device | str | int | None = None,
) -> Geometry:
    return geometry(_shape(size), stride, 0, dtype or dt.get_default_dtype(), resolve(device))


op(
    "empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Device? device=None)"
    " -> Tensor",
    infer=_empty_strided,
    grad={},
    tolerance="random",
    layout_bound=True,
    surface="none",
    unsampled="its elements are whatever the memory held",
)


def _arange(
    start: float,
    end: float,
    step: float = 1,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
) -> Geometry:
    for value in (start, end, step):
        fits(value, dt.float64)
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, end, step))
        dtype = dt.int64 if whole else dt.get_default_dtype()
    # In whole numbers where they are: a quotient of floats is short of large ones.
    whole = all(isinstance(v, int) for v in (start, end, step))
    count = -((start - end) // step) if whole else (end - start) / step
    if not abs(count) < 1 << 63:
        raise RuntimeError("invalid size, possible overflow?")
    return contiguous((ceil(count),), dtype, resolve(device))


def _arange_values(
    start: float,
    end: float,
    step: float,
    dtype: Dtype | None,
    device: Device | None,
    *,
    out: Any,
) -> Array:
    if out.dtype.category <= dt.INTEGER:
        values = np.arange(out.numel) * np.int64(step) + np.int64(start)
        return values.astype(out.dtype.np)
    wide = np.longdouble if out.dtype.itemsize == 8 else np.float64  # products exact, or nearly
    values = np.arange(out.numel).astype(wide)
    values = (np.multiply(values, wide(step)) + wide(start)).astype(out.dtype.np)
    # torch counts in vectors of 32 bytes from their first numbers, but behind the last pair.
    lanes = 32 // out.dtype.itemsize
    vectors = values[: out.numel // (2 * lanes) * 2 * lanes].reshape(-1, lanes)
    vectors[:] = vectors[:, :1].astype(wide) + np.multiply(np.arange(lanes), wide(step))
    return values


op(
    "arange(Number start, Number end, Number step=1, *, ScalarType? dtype=None,"
    " Device? device=None) -> Tensor",
    infer=_arange,
    cpu=_arange_values,
    compute="raw",
    aclnn=call("aclnnArange", "start", "end", "step", "out"),
    grad={},
    unsupported={"bool complex": "arange_cpu"},
    tolerance="rounded",
    surface="none",
    samples=calls((0, 5), (1.0, 2.5, 0.5), (5, 0, -2), Sample((0, 3, 0), error=True)),
)
