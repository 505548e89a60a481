"""Rows of resizing that averages what it shrinks: each output is a weighted sum of a support that
widens with the scale (as Pillow resizes)."""

from __future__ import annotations

from math import pi, sin

from ...._compat.unsupported_dtypes import halves_elsewhere
from ...._tensor.dtype import float32, int32, uint8
from ...limits import reserve
from ...words import *


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float) -> float:
    """Keys' cubic with a = -0.5, Pillow's choice; interpolation without antialias takes -0.75."""
    a, x = -0.5, abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _lanczos(x: float) -> float:
    """_sinc(x) _sinc(x / 3), 0 from 3 on."""
    return _sinc(x) * _sinc(x / 3) if abs(x) < 3 else 0.0


def _sinc(x: float) -> float:
    return sin(pi * x) / (pi * x) if x else 1.0


# mode → its filter and half of its support at scale 1
FILTERS: dict[str, tuple[Callable[[float], float], float]] = {
    "bilinear": (_triangle, 1.0),
    "bicubic": (_cubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}


def _weights(size: int, out: int, step: float, mode: str) -> list[list[float]]:
    """What each output takes of each input, `[out, size]`; rows sum to 1."""
    shape, reach = FILTERS[mode]
    widened = max(step, 1.0)
    rows = []
    for i in range(out):
        centre = step * (i + 0.5)
        low = max(int(centre - reach * widened + 0.5), 0)
        high = min(int(centre + reach * widened + 0.5), size)
        row = [0.0] * size
        for j in range(low, high):
            row[j] = shape((j - centre + 0.5) / widened)
        total = sum(row)
        rows.append([w / total for w in row] if total else row)
    return rows


def _step(size: int, out: int, scale: float | None, align_corners: bool) -> float:
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale else size / out


def shrunk(
    x: Tensor, dim: int, out: int, scale: float | None, mode: str, align_corners: bool
) -> Tensor:
    """One dimension resized to `out`."""
    size = x.size(dim)
    step = _step(size, out, scale, align_corners)
    weights = aten.tensor(_weights(size, out, step, mode), dtype=x.dtype, device=x.device)
    return aten.transpose(aten.matmul(aten.transpose(x, dim, -1), weights.t()), dim, -1)


def _in_fixed_point(weights: list[list[float]]) -> tuple[list[list[int]], int]:
    """Weights as 16-bit integers, and by how many bits they are shifted: as many as fit."""
    most, bits = max(map(max, weights)), 0
    while bits < 22 and int(0.5 + most * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return [
        [int(w * (1 << bits) + (0.5 if w >= 0 else -0.5)) for w in row] for row in weights
    ], bits


def shrunk_bytes(
    x: Tensor, dim: int, out: int, scale: float | None, mode: str, align_corners: bool
) -> Tensor:
    """One dimension of an image of bytes resized, in fixed point as torch and Pillow do.

    A weight's upper and lower byte are multiplied apart, so that float32 holds each sum exactly.
    """
    size = x.size(dim)
    if size == out:
        return x
    step = _step(size, out, scale, align_corners)
    weights, bits = _in_fixed_point(_weights(size, out, step, mode))
    values = aten.transpose(aten.to(x, float32), dim, -1)

    def sums(part: Callable[[int], int]) -> Tensor:
        rows = aten.tensor([[part(w) for w in row] for row in weights], dtype=float32)
        return aten.to(aten.matmul(values, aten.to(rows, x.device).t()), int32)

    total = sums(lambda w: w >> 8) * 256 + sums(lambda w: w & 255) + ((1 << bits) >> 1)
    result = aten.clamp(aten.bitwise_right_shift(total, bits), 0, 255)
    image: Tensor = aten.contiguous(aten.transpose(aten.to(result, uint8), dim, -1))
    return image


def rounded(resized: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """One dimension of an image of bytes resized: in float32, rounded, held to 0..255."""

    def run(x: Tensor, *rest: Any) -> Tensor:
        values = aten.floor(resized(aten.to(x, float32), *rest) + 0.5)
        return aten.to(aten.clamp(values, 0, 255), uint8)

    return run


def _row(mode: str) -> None:
    def body(
        self: Tensor,
        output_size: tuple[int, ...] | None,
        align_corners: bool,
        scales_h: float | tuple[float, ...] | None = None,
        scales_w: float | None = None,
        scale_factors: tuple[float, ...] | None = None,
    ) -> Any:
        if isinstance(scales_h, tuple | list):
            scales_h, scale_factors = None, scales_h
        if output_size is None:
            output_size, scales_h, scales_w = _by_factors(self, scale_factors)
        if min(*self.shape[2:], *output_size) < 1:
            raise RuntimeError(
                "Input and output sizes should be greater than 0, but got input"
                f" (H: {self.shape[2]}, W: {self.shape[3]}) output (H: {output_size[0]},"
                f" W: {output_size[1]})"
            )
        reserve((*self.shape[:2], *output_size), self)
        resized = shrunk_bytes if self.dtype is uint8 else shrunk
        x = resized(self, 3, output_size[1], scales_w, mode, align_corners)
        return resized(x, 2, output_size[0], scales_h, mode, align_corners).contiguous()

    name = f"_upsample_{mode}2d_aa"
    composite(
        # aten's overload `vec` too: sizes or factors, of which one is None.
        f"{name}(Tensor self, int[]? output_size, bool align_corners, Any scales_h=None,"
        " float? scales_w=None, *, Any scale_factors=None) -> Tensor",
        body,
        unsupported=halves_elsewhere("bool signed complex", "compute_index_ranges_weights"),
        samples=calls(
            (Arg((1, 2, 6, 5)), (3, 7), False),
            (Arg((1, 2, 6, 5), "float64"), (2, 2), True),
            (Arg((1, 2, 6, 5)), None, False, (0.5, 1.5)),
        ),
        tolerance="chained",
        surface="none",
    )


def _by_factors(self: Tensor, factors: tuple[float, ...] | None) -> tuple[Any, float, float]:
    """The size that factors of both sides make, and the factors; RuntimeError without them."""
    if factors is None:
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    height, width = factors
    return (int(self.shape[2] * height), int(self.shape[3] * width)), height, width


for _mode in FILTERS:
    _row(_mode)
