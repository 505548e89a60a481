"""Rows of reductions."""

from __future__ import annotations

from functools import cache

from ...._tensor.dtype import FLOAT
from ...rules import reduction, wrap_dims
from ...samples import reduction as reduction_samples
from ...words import *


@cache
def axes(dim: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """numpy's axis for torch's `dim`: None and () mean all."""
    return wrap_dims((dim,) if isinstance(dim, int) else dim, ndim)


def sum_cpu(
    self: Array, dim: tuple[int, ...] | None, keepdim: bool, dtype: Dtype | None, *, out: Geometry
) -> Array:
    """In float32 for halves, else in the result's dtype."""
    d = out.dtype
    wide = np.float32 if d.itemsize == 2 and d.category == FLOAT else d.np
    if dim is None and not keepdim:
        return np.add.reduce(self, None, wide)
    return np.add.reduce(self, axes(dim, self.ndim), wide, None, keepdim)  # type: ignore[call-overload]


def grow(grad: Tensor, geom: Geometry, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """`grad` of a reduction, expanded to the shape that was reduced."""
    if dim is None and not keepdim:
        return aten.expand(grad, geom.shape)
    if geom.ndim and not keepdim:
        dims = axes(dim, geom.ndim)
        if grad.ndim or len(dims) != geom.ndim:
            for d in sorted(dims):
                grad = aten.unsqueeze(grad, d)
    return aten.expand(grad, geom.shape)


op(
    "sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    summary="Sum of all elements, or along `dim`.",
    infer=reduction("sum"),
    cpu=sum_cpu,
    aclnn=call(
        "aclnnReduceSum",
        "self",
        lambda a: axes(a["dim"], a["self"].ndim),
        "keepdim",
        lambda a: a["out"].dtype,
        "out",
    ),
    grad={"self": lambda grad, self_geom, dim, keepdim: grow(grad, self_geom, dim, keepdim)},
    samples=reduction_samples(),
    tolerance="accumulated",
    out="decides",
    autocast="float32 on npu",
)


def _sum_to_size(self: Tensor, size: tuple[int, ...]) -> Tensor:
    shape = self.shape
    if shape == tuple(size):
        return self
    lead = len(shape) - len(size)
    pairs = list(zip(shape[lead:], size, strict=True)) if lead >= 0 else [(0, 2)]
    if any(n not in (1, m) for m, n in pairs):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [i + lead for i, (m, n) in enumerate(pairs) if n == 1 and m != 1]
    if not lead:
        return aten.sum(self, tuple(dims), True)
    if dims:
        self = aten.sum(self, tuple(dims), True)
    return aten.sum(self, tuple(range(lead)), False)


composite(
    "sum_to_size(Tensor self, int[] size) -> Tensor",
    _sum_to_size,
    summary="Sum over dimensions that broadcast from `size`.",
    surface="method",
    samples=calls((Arg((2, 3)), (1, 3)), (Arg((4, 2, 3)), (2, 1))),
    tolerance="accumulated",
)
