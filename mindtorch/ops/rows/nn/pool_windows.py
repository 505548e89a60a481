"""Owns what windows hold as views, of numbers that CANN's pools and columns do not take.

Float64, whole numbers and, of columns, complex128: padding, a view of the windows, a reduction. The
functions are `lower` of rows, by their numbers of spatial dimensions.
"""

from __future__ import annotations

from math import inf, prod

from ...._tensor.dtype import FLOAT
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *
from .conv_windows import padded, windows_of
from .pool_sizes import counts_of, covered, expanded, extent_of

Sizes = tuple[int, ...]
Edges = Sequence[tuple[int, int]]

on_cann = in_dtypes("self", *SHORT_FLOATS)


class _Windows:
    """Where the windows of a pooling over `space` lie: `out` of them, `edges` around the space."""

    def __init__(self, space: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
                 dilation: Sizes = (1,), ceil_mode: bool = False):  # fmt: skip
        n = len(space)
        self.space, self.k = space, expanded(kernel, n)
        self.s, self.p = expanded(stride, n, self.k), expanded(padding, n)
        self.d = expanded(dilation, n)
        steps = zip(space, self.k, self.s, self.p, self.d, strict=True)
        self.out = tuple(extent_of(*step, ceil_mode) for step in steps)
        self.edges: Edges = covered(space, self.out, self.k, self.s, self.p, self.d)

    def seen(self, x: Tensor, fill: Number) -> Tensor:
        """Of `[N, C, *space]` what each window holds, `[N, C, *out, *k]`; `fill` around it."""
        before, after = zip(*self.edges, strict=True)
        return windows_of(padded(x, before, after, fill), self.k, self.s, self.d, self.out)

    def added_up(self, part: Callable[[Sizes], Tensor], lead: Sizes, like: Tensor) -> Tensor:
        """The adjoint of `seen`, `[*lead, *space]`: `part(place)` `[*lead, *out]` of each place of
        the kernel, added where the windows have it."""
        sizes = [n + a + b for n, (a, b) in zip(self.space, self.edges, strict=True)]
        whole = aten.zeros((*lead, *sizes), dtype=like.dtype, device=like.device)
        n, c, *steps = whole.stride()
        moves = (n, c, *(step * by for step, by in zip(steps, self.s, strict=True)))
        for place in np.ndindex(*self.k):
            start = sum(step * at * by for step, at, by in zip(steps, place, self.d, strict=True))
            aten.as_strided(whole, (*lead, *self.out), moves, start).add_(part(place))
        for axis, size in enumerate(self.space):
            whole = aten.narrow(whole, 2 + axis, self.edges[axis][0], size)
        return aten.contiguous(whole)


def max_pool(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """The largest of each window and its place in the input."""

    def lower(
        self: Tensor, kernel_size: Sizes, stride: Sizes = (), padding: Sizes = (0,),
        dilation: Sizes = (1,), ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        x = self if self.ndim == n + 2 else aten.unsqueeze(self, 0)
        at = _Windows(tuple(x.shape[2:]), kernel_size, stride, padding, dilation, ceil_mode)
        lowest: Number = -inf if x.dtype.category == FLOAT else dt.iinfo(x.dtype).min
        rows = (*x.shape[:2], *at.out, prod(at.k))
        values, best = aten.max(aten.reshape(at.seen(x, lowest), rows), -1)
        plane = aten.reshape(aten.arange(0, prod(at.space), device=x.device), (1, 1, *at.space))
        places = aten.expand(aten.reshape(at.seen(plane, 0), (1, 1, *rows[2:])), rows)
        places = aten.squeeze(aten.gather(places, -1, aten.unsqueeze(best, -1)), -1)
        if x is self:
            return values, places
        return aten.squeeze(values, 0), aten.squeeze(places, 0)

    return lower


def avg_pool(n: int) -> Callable[..., Tensor]:
    """The mean of each window."""

    def lower(
        self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
        include: bool, override: int | None,
    ) -> Tensor:  # fmt: skip
        x = self if self.ndim == n + 2 else aten.unsqueeze(self, 0)
        at = _Windows(tuple(x.shape[2:]), kernel_size, stride, padding, (1,), ceil_mode)
        total = aten.sum(at.seen(x, 0), tuple(range(2 + n, 2 + 2 * n)), dtype=x.dtype)
        result = _shared(total, at, include, override)
        return result if x is self else aten.squeeze(result, 0)

    return lower


def avg_pool_back(n: int) -> Callable[..., Tensor]:
    """Of each mean's gradient an equal share to each element of its window."""

    def lower(
        grad_output: Tensor, self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes,
        ceil_mode: bool, include: bool, override: int | None,
    ) -> Tensor:  # fmt: skip
        g = grad_output if self.ndim == n + 2 else aten.unsqueeze(grad_output, 0)
        at = _Windows(tuple(self.shape[-n:]), kernel_size, stride, padding, (1,), ceil_mode)
        share = _shared(g, at, include, override)
        whole = at.added_up(lambda place: share, tuple(g.shape[:2]), self)
        return whole if self.ndim == n + 2 else aten.squeeze(whole, 0)

    return lower


def _shared(total: Tensor, at: _Windows, include: bool, override: int | None) -> Tensor:
    counts = counts_of(at.space, at.out, at.k, at.s, at.p, include, override)
    counts = np.asarray(counts).astype(total.dtype.np)
    by: Any = counts.flat[0].item()
    if (counts != by).any():
        by = aten.to(aten.from_numpy(counts), total.device)
    mode = None if total.dtype.category == FLOAT else "trunc"
    result: Tensor = aten.div(total, by, rounding_mode=mode)
    return result


def columns(
    self: Tensor, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Tensor:
    """im2col: `[N, C K, P]` of `[N, C, H, W]`, or both without N."""
    x = self if self.ndim == 4 else aten.unsqueeze(self, 0)
    at = _Windows(tuple(x.shape[2:]), kernel_size, stride, padding, dilation)
    rows = (x.shape[0], x.shape[1] * prod(at.k), prod(at.out))
    result: Tensor = aten.reshape(aten.permute(at.seen(x, 0), (0, 1, 4, 5, 2, 3)), rows)
    return result if x is self else aten.squeeze(result, 0)


def from_columns(
    self: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes,
    stride: Sizes,
) -> Tensor:  # fmt: skip
    """col2im: `[N, C, H, W]` of `[N, C K, P]`, or both without N."""
    x = self if self.ndim == 3 else aten.unsqueeze(self, 0)
    at = _Windows(expanded(output_size, 2), kernel_size, stride, padding, dilation)
    lead = (x.shape[0], x.shape[1] // prod(at.k))
    parts = aten.reshape(x, (*lead, *at.k, *at.out))
    whole = at.added_up(lambda place: parts[(slice(None), slice(None), *place)], lead, x)
    return whole if x is self else aten.squeeze(whole, 0)
