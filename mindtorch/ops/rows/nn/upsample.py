"""Rows of interpolation by weights (linear to trilinear, bicubic) and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._tensor.geometry import Geometry
from ...._tensor.tensor import Tensor
from ...._tensor.types import Array
from ...samples import FLOATS, Arg, Sample
from ...spec import SHORT_FLOATS, Derivative, aten, call, in_dtypes, op
from .resample import Taps, _cubic, _linear_taps, _sources, _weighted_sum

Sizes = tuple[int, ...]
Scales = tuple[float | None, ...]
_KINDS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_LETTERS = ("d", "h", "w")


def upsample_row(mode: str) -> str:
    """The row of a mode of interpolate."""
    return f"upsample_{mode}{_KINDS[mode]}d"


def _taps(cubic: bool, size: int, out: int, align: bool, scale: float | None) -> list[Taps]:
    """What each output of one dimension is summed from."""
    pick = _cubic if cubic else _linear_taps
    return [pick(place, size) for place in _sources(size, out, scale, align, cubic=cubic)]


def _matrix(taps: list[Taps], size: int, dtype: np.dtype[Any]) -> Array:
    """`[out, size]`: the weight of each input in each output."""
    weights = np.zeros((len(taps), size), np.float64)
    for row, tap in zip(weights, taps, strict=True):
        for at, weight in tap:
            row[at] += weight
    return weights.astype(dtype)


def _resampled(x: Array, dim: int, taps: list[Taps]) -> Array:
    total = None
    spread = (len(taps), *[1] * (x.ndim - 1 - dim))
    for k in range(len(taps[0])):
        weights = np.array([tap[k][1] for tap in taps], x.dtype).reshape(spread)
        term = x.take([tap[k][0] for tap in taps], axis=dim)
        term *= weights
        total = term if total is None else total + term
    return np.asarray(total)


def _row(mode: str) -> None:
    n, cubic = _KINDS[mode], mode == "bicubic"
    name = upsample_row(mode)
    ascend = "aclnnUpsample" + name.removeprefix("upsample_").capitalize()
    scales = ["scales"] if n == 1 else [f"scales_{letter}" for letter in _LETTERS[-n:]]
    told = ", ".join(f"float? {scale}=None" for scale in scales)
    zeros = tuple((lambda a, scale=scale: float(a[scale] or 0)) for scale in scales)
    settings = ("output_size", "align_corners", *scales)

    def each(size: Sizes, to: Sizes, align: bool, factors: Scales) -> list[list[Taps]]:
        parts = zip(size, to, factors, strict=True)
        return [_taps(cubic, s, o, align, scale) for s, o, scale in parts]

    def forward(x: Array, to: Sizes, align: bool, *factors: float | None) -> Array:
        for dim, taps in enumerate(each(x.shape[2:], to, align, factors)):
            x = _resampled(x, dim + 2, taps)
        return x

    def lowered(x: Tensor, to: Sizes, align: bool, *factors: float | None) -> Tensor:
        for dim, taps in enumerate(each(x.shape[2:], to, align, factors)):
            x = _weighted_sum(x, dim + 2, taps)
        return x

    def backward(grad: Array, to: Sizes, size: Sizes, align: bool, *factors: float | None) -> Array:
        for dim, taps in reversed(list(enumerate(each(size[2:], to, align, factors)))):
            weights = _matrix(taps, size[dim + 2], grad.dtype)
            grad = np.moveaxis(np.moveaxis(grad, dim + 2, -1) @ weights, -1, dim + 2)
        return grad.copy()

    def lowered_backward(
        grad: Tensor, to: Sizes, size: Sizes, align: bool, *factors: float | None
    ) -> Tensor:
        for dim, taps in reversed(list(enumerate(each(size[2:], to, align, factors)))):
            matrix = _matrix(taps, size[dim + 2], np.dtype(np.float32))
            weights = aten.tensor(matrix.tolist(), dtype=grad.dtype, device=grad.device)
            grad = aten.transpose(aten.transpose(grad, dim + 2, -1) @ weights, dim + 2, -1)
        return aten.contiguous(grad)

    def shape(self: Geometry, to: Sizes, *rest: object) -> Geometry:
        return self.fresh((*self.shape[:2], *to))

    def slope(grad: Tensor, self_geom: Geometry, to: Sizes, align: bool, *factors: Any) -> Tensor:
        result: Tensor = getattr(aten, f"{name}_backward")(
            grad, to, tuple(self_geom.shape), align, *factors
        )
        return result

    def again(grad: Tensor, to: Sizes, align: bool, *factors: Any) -> Tensor:
        result: Tensor = getattr(aten, name)(grad, to, align, *factors)
        return result

    small, large = (1, 2, *(4, 3, 5)[:n]), (6, 4, 3)[:n]
    forms: Sequence[tuple[Any, ...]] = (
        (large, False, *[None] * n), (large, True, *[None] * n),
        (tuple(2 * s for s in small[2:]), False, *[2.0] * n),
    )  # fmt: skip

    op(
        f"{name}(Tensor self, int[{n}] output_size, bool align_corners, {told}) -> Tensor",
        infer=shape,
        cpu=forward,
        lower=lowered,
        aclnn=call(
            ascend,
            "self",
            "output_size",
            "align_corners",
            *zeros,
            "out",
            when=in_dtypes("self", *SHORT_FLOATS),
        ),
        grad={"self": Derivative(slope, ("grad", "self_geom", *settings))},
        samples=lambda: [Sample((Arg(small, d), *form)) for form in forms for d in FLOATS],
        oracle=lambda torch: getattr(torch.ops.aten, name),
        tolerance="composite",
        surface="none",
        fixed_shape=True,
    )
    op(
        f"{name}_backward(Tensor grad_output, int[{n}] output_size, int[{n + 2}] input_size,"
        f" bool align_corners, {told}) -> Tensor",
        infer=lambda grad_output, out, size, *rest: grad_output.fresh(tuple(size)),
        cpu=backward,
        lower=lowered_backward,
        aclnn=call(
            f"{ascend}Backward", "grad_output", "output_size", "input_size", "align_corners",
            *zeros, "out", when=in_dtypes("grad_output", *SHORT_FLOATS),
        ),
        grad={"grad_output": Derivative(again, ("grad", *settings))},
        samples=lambda: [
            Sample((Arg((1, 2, *form[0]), d), form[0], small, *form[1:]))
            for form in forms for d in FLOATS
        ],
        oracle=lambda torch: getattr(torch.ops.aten, f"{name}_backward"),
        tolerance="composite",
        surface="none",
        fixed_shape=True,
    )  # fmt: skip


for _mode in _KINDS:
    _row(_mode)
