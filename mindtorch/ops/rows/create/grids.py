"""Rows that make evenly spaced numbers and identity matrices."""

from __future__ import annotations

from ...._tensor.device import device as Device, resolve
from ...._tensor.geometry import contiguous
from ...rules import opmath
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


def _exactly(values: Any) -> Any:
    """Numbers in a wider type, in which a product of two is exact or nearly so."""
    wider = {"float32": np.float64, "float64": np.longdouble, "complex64": np.complex128}
    return values.astype(wider.get(values.dtype.name, values.dtype))


def _from_both_ends(first: Any, last: Any, step: Any, steps: int) -> Array:
    """Numbers towards the middle, so that the last is `last` itself; all of one type."""
    index, half = np.arange(steps).astype(first.dtype), steps // 2
    return np.concatenate((first + step * index[:half], last - step * index[::-1][half:]))


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
    ends = np.array([out.dtype.np.type(bound) for bound in (start, end)])
    if out.dtype.category <= dt.INTEGER:
        ends = ends.astype(np.float64)  # whole ones, with steps between them
    first, last = ends
    step = (last - first) / ends.dtype.type(steps - 1)
    if out.dtype.itemsize > 2:  # torch rounds the product and the sum together, but of halves
        first, last, step = (_exactly(v) for v in (first, last, step))
    line = _from_both_ends(first, last, step, steps)
    return line.astype(ends.dtype).astype(out.dtype.np)


def _complex_line(
    start: complex, end: complex, steps: int, dtype: Dtype | None, device: Device
) -> Tensor:
    ends = [(n.real, n.imag) for n in map(complex, (start, end))]
    parts = (aten.linspace(a, b, steps, device=device) for a, b in zip(*ends, strict=True))
    line: Tensor = aten.to(aten.complex(*parts), dtype or dt.complex64)
    return line


op(
    "linspace(Number start, Number end, int steps, *, ScalarType? dtype=None, Device? device=None)"
    " -> Tensor",
    summary="`steps` values from `start` to `end`, both included: `[steps]`.",
    infer=_line,
    cpu=_linspace,
    compute="raw",
    aclnn=call(
        "aclnnLinspace",
        "start",
        "end",
        "steps",
        "out",
        when=lambda a: a["out"].dtype.category != dt.COMPLEX,
    ),
    lower=_complex_line,
    grad={},
    unsupported={"bool": "linspace_cpu"},
    samples=lambda: [Sample(a) for a in ((0.0, 1.0, 5), (-2, 3, 7), (1.5, 1.5, 1), (0, 10, 0))],
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
    cpu=lambda n, m, dtype, device, *, out: np.eye(n, m, dtype=opmath(out.dtype).np),
    compute="raw",
    aclnn=call(
        "aclnnEye",
        "n",
        lambda a: a["n"] if a["m"] is None else a["m"],
        "out",
        when=lambda a: a["out"].dtype.category != dt.COMPLEX and a["out"].dtype is not dt.float64,
    ),
    lower=lambda n, m, dtype, device: aten.to(
        aten.eye(n, m, dtype=dt.float32, device=device), dtype or dt.get_default_dtype()
    ),
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
    wide = np.complex128 if out.dtype.is_complex else np.float64  # in which torch has powers
    if steps < 2:
        return np.full(steps, wide(base) ** start).astype(out.dtype.np)
    first, last = (wide(out.dtype.np.type(bound)) for bound in (start, end))
    span = wide(out.dtype.np.type(last - first))
    line = _from_both_ends(first, last, span / (steps - 1), steps)
    powers = np.asarray(np.power(base, line))
    return (powers.astype(np.float32) if out.dtype.itemsize == 2 else powers).astype(out.dtype.np)


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
