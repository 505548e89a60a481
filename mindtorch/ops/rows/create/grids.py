"""Rows that make evenly spaced numbers and identity matrices."""

from __future__ import annotations

from ...._tensor.device import device as Device
from ...._tensor.device import resolve
from ...._tensor.geometry import contiguous
from ...words import *


def _line(
    start: float,
    end: float,
    steps: int,
    dtype: Dtype | None = None,
    device: Device | str | int | None = None,
) -> Geometry:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None:
        complex_ends = isinstance(start, complex) or isinstance(end, complex)
        dtype = dt.get_default_dtype()
        dtype = dtype.to_complex() if complex_ends else dtype
    return contiguous((steps,), dtype, resolve(device))


def _linspace(
    start: float,
    end: float,
    steps: int,
    dtype: Dtype | None,
    device: Device | None,
    *,
    out: Any,
) -> Any:
    if steps < 2:
        return np.full(steps, start, out.dtype.np)
    if out.dtype.category <= dt.INTEGER:
        return np.linspace(float(start), float(end), steps).astype(out.dtype.np)
    # From both ends towards the middle, so that the last value is `end` itself.
    wide = np.float32 if out.dtype.itemsize == 2 else out.dtype.np
    kind = np.dtype(wide).type
    step = kind((kind(end) - kind(start)) / kind(steps - 1))
    index = np.arange(steps)
    # torch rounds the product and the sum of float32 together.
    exact = np.dtype(np.float64 if kind is np.float32 else wide).type
    low = exact(kind(start)) + exact(step) * index.astype(exact)
    high = exact(kind(end)) - exact(step) * (steps - 1 - index).astype(exact)
    return np.where(index < steps // 2, low, high).astype(out.dtype.np)


op(
    "linspace(Number start, Number end, int steps, *, ScalarType? dtype=None, Device? device=None)"
    " -> Tensor",
    summary="`steps` values from `start` to `end`, both included: `[steps]`.",
    infer=_line,
    cpu=_linspace,
    compute="raw",
    aclnn=call("aclnnLinspace", "start", "end", "steps", "out"),
    grad={},
    unsupported={"bool": "linspace_cpu"},
    samples=lambda: [Sample(a) for a in ((0.0, 1.0, 5), (-2, 3, 7), (1.5, 1.5, 1), (0, 10, 0))],
    tolerance="composite",
    surface="function",
)


def _eye(
    n: int, m: int | None = None, dtype: Dtype | None = None, device: Device | None = None
) -> Geometry:
    m = n if m is None else m
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return contiguous((n, m), dtype or dt.get_default_dtype(), resolve(device))


op(
    "eye(int n, int? m=None, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    summary="Identity matrix: `[n, m]`.",
    infer=_eye,
    cpu=lambda n, m, dtype, device, *, out: np.eye(n, m, dtype=out.dtype.np),
    compute="raw",
    aclnn=call("aclnnEye", "n", lambda a: a["n"] if a["m"] is None else a["m"], "out"),
    grad={},
    samples=lambda: [Sample(a) for a in ((3,), (3, 3), (2, 4), (0, 2))],
    tolerance="exact",
)


def _exponents(dtype: Dtype | None) -> Dtype | None:
    """The dtype in which the exponents of powers are spaced: whole powers from float64."""
    whole = dtype is not None and dt.resolve(dtype, "logspace").category <= dt.INTEGER
    return dt.float64 if whole else dtype


def _powers(
    start: float, end: float, steps: int, base: float, dtype: Dtype | None, device: Device | None
) -> Tensor:
    line = aten.linspace(start, end, steps, dtype=_exponents(dtype), device=device)
    powers = aten.pow(base, line)
    return powers if dtype is None else aten.to(powers, dtype)


def _powers_cpu(
    start: float, end: float, steps: int, base: float, dtype: Dtype | None, device: Device | None,
    *, out: Geometry,
) -> Array:  # fmt: skip
    kind = _exponents(out.dtype)
    line = _linspace(start, end, steps, kind, device, out=_line(start, end, steps, kind, device))
    half = line.dtype.itemsize == 2
    return np.asarray(np.power(base, line.astype(np.float32) if half else line))


op(
    "logspace(Number start, Number end, int steps, float base=10.0, *, ScalarType? dtype=None,"
    " Device? device=None) -> Tensor",
    infer=lambda start, end, steps, base=10.0, dtype=None, device=None: _line(
        start, end, steps, dtype, device
    ),
    cpu=_powers_cpu,
    compute="raw",
    lower=_powers,
    grad={},
    summary="`base` to the power of `steps` evenly spaced numbers.",
    samples=calls((0.0, 2.0, 5), (-1, 1, 3, 2.0)),
    tolerance="composite",
    surface="function",
)


def _below(row: int, col: int, offset: int) -> int:
    """How many elements of a matrix lie on or below a diagonal."""
    first = min(row, max(0, -offset))  # the rows before have none of them
    whole = min(row, max(first, col - offset - 1))  # the rows from here on lie below it
    growing = (whole - first) * (first + whole + 2 * offset + 1) // 2
    return growing + (row - whole) * col


def _triangle(name: str, keep: str) -> None:
    below = keep == "tril"

    def shape(
        row: int, col: int, offset: int, dtype: Dtype | None, device: Device | None
    ) -> Geometry:
        for side, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{side} must be non-negative, got{size}")
        if dtype is not None and dtype not in (dt.int32, dt.int64):
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.legacy}'")
        count = _below(row, col, offset) if below else row * col - _below(row, col, offset - 1)
        return contiguous((2, count), dtype or dt.int64, resolve(device))

    def lowered(
        row: int, col: int, offset: int, dtype: Dtype | None, device: Device | None
    ) -> Tensor:
        mask = getattr(aten, keep)(aten.ones((row, col), device=device), offset)
        places = aten.contiguous(aten.transpose(aten.nonzero(mask), 0, 1))
        return places if dtype is None else aten.to(places, dtype)

    def places(row: int, col: int, offset: int, *_: object) -> Array:
        mask = np.tri(row, col, offset if below else offset - 1, bool)
        return np.array((mask if below else ~mask).nonzero())

    op(
        f"{name}(int row, int col, int offset=0, *, ScalarType? dtype=None, Device? device=None)"
        " -> Tensor",
        infer=shape,
        cpu=places,
        lower=lowered,
        compute="raw",
        grad={},
        samples=calls((3, 4), (3, 3, 1), (2, 4, -1), (5, 2, -3), (2, 5, 3)),
        tolerance="exact",
    )


_triangle("tril_indices", "tril")
_triangle("triu_indices", "triu")
