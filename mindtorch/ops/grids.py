"""Rows that make evenly spaced numbers and identity matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype as dt
from .._device import resolve
from .._geometry import Geometry, contiguous
from .samples import Sample
from .spec import call, op


def _line(start: Any, end: Any, steps: int, dtype: Any = None, device: Any = None) -> Geometry:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None:
        complex_ends = isinstance(start, complex) or isinstance(end, complex)
        dtype = dt.get_default_dtype()
        dtype = dtype.to_complex() if complex_ends else dtype
    return contiguous((steps,), dtype, resolve(device))


def _linspace(start: Any, end: Any, steps: int, dtype: Any, device: Any, *, out: Any) -> Any:
    if steps < 2:
        return np.full(steps, start, out.dtype.np)
    if out.dtype.category <= dt.INTEGER:
        return np.linspace(float(start), float(end), steps).astype(out.dtype.np)
    # From both ends towards the middle, so that the last value is `end` itself.
    wide = np.float32 if out.dtype.itemsize == 2 else out.dtype.np
    kind = np.dtype(wide).type
    step = kind((kind(end) - kind(start)) / kind(steps - 1))
    index = np.arange(steps)
    low = kind(start) + step * index.astype(wide)
    high = kind(end) - step * (steps - 1 - index).astype(wide)
    return np.where(index < steps // 2, low, high).astype(out.dtype.np)


op(
    "linspace(Number start, Number end, int steps, *, ScalarType? dtype=None, Device? device=None)"
    " -> Tensor",
    infer=_line,
    cpu=_linspace,
    compute="raw",
    aclnn=call("aclnnLinspace", "start", "end", "steps", "out"),
    grad={},
    samples=lambda: [Sample(a) for a in ((0.0, 1.0, 5), (-2, 3, 7), (1.5, 1.5, 1), (0, 10, 0))],
    tolerance="elementary",
    surface="none",
)


def _eye(n: int, m: int, dtype: Any = None, device: Any = None) -> Geometry:
    for size in (n, m):
        if size < 0:
            raise RuntimeError(f"n must be greater or equal to 0, got {size}")
    return contiguous((n, m), dtype or dt.get_default_dtype(), resolve(device))


op(
    "eye.m(int n, int m, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    infer=_eye,
    cpu=lambda n, m, dtype, device, *, out: np.eye(n, m, dtype=out.dtype.np),
    compute="raw",
    aclnn=call("aclnnEye", "n", "m", "out"),
    grad={},
    samples=lambda: [Sample(a) for a in ((3, 3), (2, 4), (0, 2))],
    oracle=lambda torch: torch.eye,
    tolerance="exact",
)
