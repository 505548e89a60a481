"""Rows of views that cut a tensor: split, chunk, unbind, narrow."""

from __future__ import annotations

from ...limits import refuse_views
from ...samples import views as view_samples
from ...words import *
from .regions import _select, _slice


def _split_with_sizes(self: Geometry, split_sizes: tuple[int, ...], dim: int = 0) -> Any:
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis, dim = dim, wrap_dim(dim, self.ndim)
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got"
            f" split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != self.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} (input"
            f" tensor's size at dimension {axis}), but got split_sizes={list(split_sizes)}"
        )
    parts, start = [], 0
    for n in split_sizes:
        parts.append(_slice(self, dim, start, start + n))
        start += n
    return parts


op(
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
    summary="Views of consecutive parts of these sizes along `dim`.",
    infer=_split_with_sizes,
    grad={"self": lambda grads, dim: aten.cat(grads, dim)},
    samples=view_samples(((5, 3), (2, 3), 0), ((2, 4), (1, 1, 2), -1)),
)


def _split(self: Geometry, split_size: int, dim: int = 0) -> Any:
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if split_size == 0 and size:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )
    count = max(1, -(-size // split_size)) if split_size else 1
    refuse_views(count)
    return [
        _slice(self, dim, i * split_size, min((i + 1) * split_size, size)) for i in range(count)
    ]


op(
    "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
    summary="Views of parts of `split_size` along `dim`; the last may be smaller.",
    infer=_split,
    grad={"self": lambda grads, dim: aten.cat(grads, dim)},
    samples=view_samples(((5, 3), 2), ((5, 4), 3, 1)),
)


composite(
    "split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]",
    lambda self, split_size, dim=0: aten.split_with_sizes(self, tuple(split_size), dim),
    summary="Views of parts of these sizes along `dim`.",
    samples=view_samples(((5, 3), (2, 3)), ((2, 4), (1, 1, 2), -1)),
    oracle=lambda torch: torch.split,
)


def _unbind(self: Geometry, dim: int = 0) -> Any:
    dim = wrap_dim(dim, self.ndim)
    if not self.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    refuse_views(self.shape[dim])
    return [_select(self, dim, i) for i in range(self.shape[dim])]


op(
    "unbind(Tensor(a) self, int dim=0) -> Tensor(a)[]",
    summary="Views of each slice along `dim`.",
    infer=_unbind,
    grad={"self": lambda grads, dim: aten.stack(grads, dim)},
    samples=view_samples(((3, 2),), ((3, 2), -1)),
)


def _chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    size = self.shape[wrap_dim(dim, self.ndim)]
    step = (size + chunks - 1) // chunks
    if step == 0:
        refuse_views(chunks)
        return aten.split_with_sizes(self, (0,) * chunks, dim)
    return aten.split_Tensor(self, step, dim)


composite(
    "chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
    _chunk,
    summary="At most `chunks` views of equal parts along `dim`.",
    samples=view_samples(((5, 3), 2), ((4, 6), 4, 1)),
)


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    if not self.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, self.ndim)
    size = self.shape[at]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != dt.INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return aten.slice(self, at, start, start + length, 1)


composite(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    _narrow,
    summary="A view of `length` elements from `start` along `dim`.",
    samples=view_samples(((5, 3), 0, 1, 3), ((4, 6), 1, -2, 2)),
)
