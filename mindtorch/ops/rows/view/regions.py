"""Rows of views that show a part of a tensor: select, slice, diagonal, unfold, as_strided."""

from __future__ import annotations

from math import prod

from ...samples import Arg, calls, views as view_samples
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *


def _embed_infer(
    grad: Geometry, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Geometry:
    reach = offset + sum((n - 1) * s for n, s in zip(grad.shape, stride, strict=True))
    if grad.numel and not 0 <= reach < prod(size):
        raise RuntimeError(
            f"_embed: sizes {list(grad.shape)}, strides {list(stride)}, offset {offset} reach"
            f" element {reach} of a tensor of {prod(size)} elements"
        )
    return grad.fresh(size)


def _embed(grad: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Array:
    whole = np.zeros(size, grad.dtype)
    step = grad.dtype.itemsize
    if grad.size:
        part = np.lib.stride_tricks.as_strided(
            whole.reshape(-1)[offset:], grad.shape, [s * step for s in stride]
        )
        part[...] = grad
    return whole


def _embed_below(
    grad: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Tensor:
    whole = aten.zeros(size, dtype=grad.dtype, device=grad.device)
    aten.as_strided(whole, grad.shape, stride, offset).copy_(grad)
    return whole


def _part(whole: Tensor, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    """The elements that `_embed` wrote, wherever `whole` lies in its storage."""
    whole = aten.contiguous(whole)
    return aten.as_strided(whole, shape, stride, whole.storage_offset() + offset)


op(
    "_embed(Tensor grad, int[] size, int[] stride, int offset) -> Tensor",
    infer=_embed_infer,
    cpu=_embed,
    compute="raw",
    lower=_embed_below,
    grad={
        "grad": lambda grad, grad_geom, stride, offset: _part(grad, grad_geom.shape, stride, offset)
    },
    layout_bound=True,
    samples=calls((Arg((2, 3)), (3, 4), (4, 1), 1), (Arg((3,)), (6,), (2,), 0)),
)


def embed(grad: Tensor, whole: Geometry, part_of: Callable[[Geometry], Geometry]) -> Tensor:
    """Zeros shaped like `whole` with `grad` where the view `part_of` shows its elements.

    The place is found on a contiguous tensor of that shape: strides of `whole` may be 0.
    """
    part = part_of(whole.fresh())
    return aten._embed(grad, whole.shape, part.strides, part.offset)


def _select(self: Geometry, dim: int, index: int) -> Geometry:
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size"
            f" {list(self.shape)} at dimension {dim}"
        )
    index %= size
    return self.at(
        self.shape[:dim] + self.shape[dim + 1 :],
        self.strides[:dim] + self.strides[dim + 1 :],
        self.offset + index * self.strides[dim],
    )


op(
    "select(Tensor(a) self, int dim, int index) -> Tensor(a)",
    summary="A view without dimension `dim`, at `index`.",
    infer=_select,
    grad={
        "self": lambda grad, self_geom, dim, index: embed(
            grad, self_geom, lambda g: _select(g, dim, index)
        )
    },
    samples=view_samples(((2, 3), 0, 1), ((2, 3), -1, -1)),
)


def _slice(
    self: Geometry, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    if not self.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, self.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = self.shape[dim]
    first, last, _ = slice(start, end, step).indices(size)
    length = max(0, (last - first + step - 1) // step)
    return self.at(
        (*self.shape[:dim], length, *self.shape[dim + 1 :]),
        (*self.strides[:dim], self.strides[dim] * step, *self.strides[dim + 1 :]),
        self.offset + first * self.strides[dim],
    )


op(
    "slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    infer=_slice,
    grad={
        "self": lambda grad, self_geom, dim, start, end, step: embed(
            grad, self_geom, lambda g: _slice(g, dim, start, end, step)
        )
    },
    samples=view_samples(((5, 3), 0, 1, 4, 2), ((5, 3), 1, -2, None, 1)),
    surface="none",
)


def _diagonal(self: Geometry, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = self.shape[a], self.shape[b]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    start = offset * self.strides[b] if offset >= 0 else -offset * self.strides[a]
    dims = [i for i in range(self.ndim) if i not in (a, b)]
    return self.at(
        (*(self.shape[i] for i in dims), max(length, 0)),
        (*(self.strides[i] for i in dims), self.strides[a] + self.strides[b]),
        self.offset + (start if length > 0 else 0),
    )


op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    summary="A view of a diagonal, as the last dimension.",
    infer=_diagonal,
    grad={
        "self": lambda grad, self_geom, offset, dim1, dim2: embed(
            grad, self_geom, lambda g: _diagonal(g, offset, dim1, dim2)
        )
    },
    samples=view_samples(((3, 4),), ((3, 4), 1), ((2, 3, 4), -1, 1, 2)),
)


def _unfold(self: Geometry, dimension: int, size: int, step: int) -> Geometry:
    dim = wrap_dim(dimension, self.ndim)
    have = self.shape[dim] if self.ndim else 1
    if size > have:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {have} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    stride = self.strides[dim] if self.ndim else 1
    count = (have - size) // step + 1
    shape, strides = list(self.shape), list(self.strides)
    if self.ndim:
        shape[dim], strides[dim] = count, stride * step
    return self.at((*shape, size), (*strides, stride))


op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    summary="A view of windows of `size` along `dimension`: `[*, windows, *, size]`.",
    infer=_unfold,
    grad={
        "self": lambda grad, self_geom, dimension, size, step: aten._unfold_grad(
            grad, self_geom.shape, wrap_dim(dimension, self_geom.ndim), size, step
        )
    },
    samples=view_samples(((5, 3), 0, 2, 1), ((6,), 0, 2, 2)),
    surface="method",
)


def _refolded(grad: Tensor, sizes: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    whole = grad._geom.fresh(tuple(sizes))
    result: Tensor = aten._scatter_view(grad, whole, _unfold(whole, dim, size, step))
    return result


def _refolds(args: dict[str, Any]) -> bool:
    """Whether aclnnUnfoldGrad takes the call: its document's dtypes and ranks."""
    return _is_short(args) and args["size"] > 0 and 0 < len(args["sizes"]) < 8


_is_short = in_dtypes("grad", *SHORT_FLOATS)
op(
    "_unfold_grad(Tensor grad, int[] sizes, int dim, int size, int step) -> Tensor",
    infer=lambda grad, sizes, dim, size, step: grad.fresh(tuple(sizes)),
    aclnn=call("aclnnUnfoldGrad", when=_refolds),
    lower=_refolded,
    grad={"grad": lambda grad, dim, size, step: aten.unfold(grad, dim, size, step)},
    samples=calls(
        (Arg((4, 3, 2)), (5, 3), 0, 2, 1),
        (Arg((2, 2), "float64"), (7,), 0, 2, 3),
        (Arg((2, 3, 3)), (2, 5), 1, 3, 1),
    ),
    oracle=lambda torch: torch.ops.aten.unfold_backward,
    tolerance="accumulated",
)


def _as_strided(
    self: Geometry,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int | None = None,
) -> Geometry:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and"
            f" strides={list(stride)}"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides:"
            f" {list(stride)}"
        )
    return self.at(size, stride, storage_offset)


op(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    summary="A view of the storage with these sizes and strides.",
    infer=_as_strided,
    grad={
        "self": lambda grad, self_geom, size, stride, storage_offset: aten._scatter_view(
            grad, self_geom, _as_strided(self_geom, size, stride, storage_offset)
        )
    },
    samples=view_samples(((6,), (2, 2), (3, 1), 1), ((6,), (3, 2), (1, 1), 0)),
    unbounded=True,
    layout_bound=True,
    inplace=True,
)
