"""Rows of view ops: new geometry over the same storage, and the gradient of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dtype import dtype as Dtype
from .._geometry import Geometry, contiguous_strides, geometry
from .rules import wrap_dim, wrap_dims
from .samples import views as view_samples
from .spec import aten, composite, op


def resolve_size(size: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """`size` with its -1 filled in; RuntimeError in torch's words when it does not fit."""
    known, free = 1, None
    for i, n in enumerate(size):
        if n == -1:
            if free is not None:
                raise RuntimeError("only one dimension can be inferred")
            free = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n}")
        else:
            known *= n
    if known == numel and free is None:
        return size
    if free is None or (known == 0 and numel) or (known and numel % known):
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified"
            " dimension size -1 can be any value and is ambiguous"
        )
    return (*size[:free], numel // known, *size[free + 1 :])


def view_strides(g: Geometry, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that show `g`'s elements as `shape` without a copy, None if there are none.

    Walks runs of dimensions that are contiguous with each other, as torch's computeStride does.
    """
    if g.numel == 0:
        return g.strides if g.shape == shape else contiguous_strides(shape)
    if g.contiguous or not g.ndim:
        return contiguous_strides(shape)
    strides = [0] * len(shape)
    at = len(shape) - 1
    base, old_run, new_run = g.strides[-1], 1, 1
    for d in range(g.ndim - 1, -1, -1):
        old_run *= g.shape[d]
        if d and (g.shape[d - 1] == 1 or g.strides[d - 1] == old_run * base):
            continue
        while at >= 0 and (new_run < old_run or shape[at] == 1):
            strides[at] = new_run * base
            new_run *= shape[at]
            at -= 1
        if new_run != old_run:
            return None
        if d:
            base, old_run, new_run = g.strides[d - 1], 1, 1
    return tuple(strides) if at == -1 else None


def _view(self: Geometry, size: tuple[int, ...]) -> Geometry:
    shape = resolve_size(size, self.numel)
    strides = view_strides(self, shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one"
            " dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return self.at(shape, strides)


op(
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    infer=_view,
    grad={"self": lambda grad, self_geom: aten.reshape(grad, self_geom.shape)},
    samples=view_samples(((2, 3), (3, 2)), ((6,), (2, -1)), ((4, 1), (2, 2))),
    tolerance="exact",
    surface="none",
)


def _view_dtype(self: Geometry, dtype: Dtype) -> Geometry:
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return geometry(self.shape, self.strides, self.offset, dtype, self.device)
    if not self.ndim:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {self.dtype.legacy} as {dtype.legacy} (different"
            " element sizes)"
        )
    if self.strides[-1] != 1:
        raise RuntimeError(
            f"self.stride(-1) must be 1 to view {self.dtype.legacy} as {dtype.legacy} (different"
            f" element sizes), but got {self.strides[-1]}"
        )
    last = self.shape[-1] * old // new
    strides = (*(s * old // new for s in self.strides[:-1]), 1)
    shape = (*self.shape[:-1], last)
    return geometry(shape, strides, self.offset * old // new, dtype, self.device)


op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    infer=_view_dtype,
    grad={},
    tolerance="exact",
    surface="none",
)

op(
    "alias(Tensor(a) self) -> Tensor(a)",
    infer=lambda self: self,
    grad={"self": lambda grad: grad},
    tolerance="exact",
    surface="none",
)


def _embed_infer(
    grad: Geometry, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Geometry:
    return grad.fresh(size)


def _embed(grad: Any, size: Any, stride: Any, offset: int) -> Any:
    whole = np.zeros(size, grad.dtype)
    step = grad.dtype.itemsize
    if grad.size:
        part = np.lib.stride_tricks.as_strided(
            whole.reshape(-1)[offset:], grad.shape, [s * step for s in stride]
        )
        part[...] = grad
    return whole


def _embed_below(grad: Any, size: Any, stride: Any, offset: int) -> Any:
    whole = aten.zeros(size, dtype=grad.dtype, device=grad.device)
    aten.as_strided(whole, grad.shape, stride, offset).copy_(grad)
    return whole


op(
    "_embed(Tensor grad, int[] size, int[] stride, int offset) -> Tensor",
    infer=_embed_infer,
    cpu=_embed,
    compute="raw",
    lower=_embed_below,
    grad={
        "grad": lambda grad, grad_geom, stride, offset: aten.as_strided(
            aten.contiguous(grad), grad_geom.shape, stride, offset
        )
    },
    tolerance="exact",
    surface="none",
)


def embed(grad: Any, whole: Geometry, part: Geometry) -> Any:
    """Zeros shaped like `whole` with `grad` at the place of `part`, which has no overlaps."""
    shift = part.offset - whole.offset
    if whole.contiguous:
        return aten._embed(grad, whole.shape, part.strides, shift)
    flat = whole.fresh()
    return aten._embed(
        grad,
        whole.shape,
        _restride(whole, part, flat.strides),
        _reoffset(whole, shift, flat.strides),
    )


def _restride(whole: Geometry, part: Geometry, strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(_reoffset(whole, s, strides) for s in part.strides)


def _reoffset(whole: Geometry, distance: int, strides: tuple[int, ...]) -> int:
    """A distance in the storage of `whole`, as the distance in its contiguous copy."""
    found = 0
    for dim in sorted(range(whole.ndim), key=lambda d: -whole.strides[d]):
        step = whole.strides[dim]
        if step and whole.shape[dim] > 1 and distance >= step:
            found += distance // step * strides[dim]
            distance %= step
    return found


def _transpose(self: Geometry, dim0: int, dim1: int) -> Geometry:
    a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if not self.ndim:
        return self
    order = list(range(self.ndim))
    order[a], order[b] = b, a
    return _permuted(self, order)


def _permuted(g: Geometry, order: Any) -> Geometry:
    return g.at(tuple(g.shape[d] for d in order), tuple(g.strides[d] for d in order))


op(
    "transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    infer=_transpose,
    grad={"self": lambda grad, dim0, dim1: aten.transpose(grad, dim0, dim1)},
    samples=view_samples(((2, 3), 0, 1), ((2, 3, 4), -1, 0)),
    tolerance="exact",
)


def _t(self: Geometry) -> Geometry:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self if self.ndim < 2 else _permuted(self, (1, 0))


op(
    "t(Tensor(a) self) -> Tensor(a)",
    infer=_t,
    grad={"self": lambda grad: aten.t(grad)},
    samples=view_samples(((2, 3),), ((3,),)),
    tolerance="exact",
)


def _permute(self: Geometry, dims: tuple[int, ...]) -> Geometry:
    if len(dims) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the"
            f" length of the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not"
            f" equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, self.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permuted(self, order)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    order = [d % len(dims) for d in dims]
    return tuple(order.index(i) for i in range(len(order)))


op(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    infer=_permute,
    grad={"self": lambda grad, dims: aten.permute(grad, _inverse(dims))},
    samples=view_samples(((2, 3, 4), (2, 0, 1))),
    tolerance="exact",
)


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
    infer=_select,
    grad={
        "self": lambda grad, self_geom, dim, index: embed(
            grad, self_geom, _select(self_geom, dim, index)
        )
    },
    samples=view_samples(((2, 3), 0, 1), ((2, 3), -1, -1)),
    tolerance="exact",
)


def _slice(
    self: Geometry, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    if not self.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
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
            grad, self_geom, _slice(self_geom, dim, start, end, step)
        )
    },
    samples=view_samples(((5, 3), 0, 1, 4, 2), ((5, 3), 1, -2, None, 1)),
    tolerance="exact",
    surface="none",
)


def _expand(self: Geometry, size: tuple[int, ...], implicit: bool = False) -> Geometry:
    lead = len(size) - self.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.{self.dtype.legacy}Tensor{{{list(self.shape)}}}, size={list(size)}):"
            f" the number of sizes provided ({len(size)}) must be greater or equal to the number of"
            f" dimensions in the tensor ({self.ndim})"
        )
    shape, strides = [], []
    for i, n in enumerate(size):
        have = self.shape[i - lead] if i >= lead else 1
        if n == -1 and i < lead:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing"
                f" dimension {i}"
            )
        n = have if n == -1 else n
        if have not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at"
                f" non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes:"
                f" {list(self.shape)}"
            )
        shape.append(n)
        kept = i >= lead and have == n
        strides.append(self.strides[i - lead] if kept else 0)
    return self.at(tuple(shape), tuple(strides))


op(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    infer=_expand,
    grad={"self": lambda grad, self_geom: aten.sum_to_size(grad, self_geom.shape)},
    samples=view_samples(((2, 1), (2, 3)), ((3,), (2, -1))),
    tolerance="exact",
    surface="method",
)


def _squeeze(self: Geometry, dim: Any = None) -> Geometry:
    dims = range(self.ndim) if dim is None else {wrap_dim(d, self.ndim) for d in dim}
    kept = [i for i in range(self.ndim) if i not in dims or self.shape[i] != 1]
    return self.at(tuple(self.shape[i] for i in kept), tuple(self.strides[i] for i in kept))


op(
    "squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)",
    infer=_squeeze,
    grad={"self": lambda grad, self_geom: aten.reshape(grad, self_geom.shape)},
    samples=view_samples(((2, 1, 3, 1),), ((2, 1, 3), 1), ((2, 1, 1), (0, 2))),
    tolerance="exact",
)


def _unsqueeze(self: Geometry, dim: int) -> Geometry:
    rank = self.ndim + 1
    if not -rank <= dim < rank:
        wrap_dim(dim, rank)
    dim %= rank
    stride = self.shape[dim] * self.strides[dim] if dim < self.ndim else 1
    return self.at(
        (*self.shape[:dim], 1, *self.shape[dim:]),
        (*self.strides[:dim], stride, *self.strides[dim:]),
    )


op(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    infer=_unsqueeze,
    grad={"self": lambda grad, dim: aten.squeeze(grad, dim)},
    samples=view_samples(((2, 3), 0), ((2, 3), -1), ((2, 3), 1)),
    tolerance="exact",
)


def _diagonal(self: Geometry, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = self.shape[a], self.shape[b]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    start = offset * self.strides[b] if offset >= 0 else -offset * self.strides[a]
    kept = [i for i in range(self.ndim) if i not in (a, b)]
    return self.at(
        (*(self.shape[i] for i in kept), max(length, 0)),
        (*(self.strides[i] for i in kept), self.strides[a] + self.strides[b]),
        self.offset + (start if length > 0 else 0),
    )


op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    infer=_diagonal,
    grad={
        "self": lambda grad, self_geom, offset, dim1, dim2: embed(
            grad, self_geom, _diagonal(self_geom, offset, dim1, dim2)
        )
    },
    samples=view_samples(((3, 4),), ((3, 4), 1), ((2, 3, 4), -1, 1, 2)),
    tolerance="exact",
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
    stride = self.strides[dim] if self.ndim else 1
    count = (have - size) // step + 1
    shape, strides = list(self.shape), list(self.strides)
    if self.ndim:
        shape[dim], strides[dim] = count, stride * step
    return self.at((*shape, size), (*strides, stride))


op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    infer=_unfold,
    grad={
        "self": lambda grad, self_geom, dimension, size, step: aten._scatter_view(
            grad, self_geom, _unfold(self_geom, dimension, size, step)
        )
    },
    samples=view_samples(((5, 3), 0, 2, 1), ((6,), 0, 2, 2)),
    tolerance="exact",
    surface="method",
)


def _as_strided(
    self: Geometry, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: Any = None
) -> Geometry:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    offset = self.offset if storage_offset is None else storage_offset
    made = self.at(size, stride, offset)
    return made


op(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    infer=_as_strided,
    grad={
        "self": lambda grad, self_geom, size, stride, storage_offset: aten._scatter_view(
            grad, self_geom, _as_strided(self_geom, size, stride, storage_offset)
        )
    },
    samples=view_samples(((6,), (2, 2), (3, 1), 1), ((6,), (3, 2), (1, 1), 0)),
    tolerance="exact",
)


def _split_with_sizes(self: Geometry, split_sizes: tuple[int, ...], dim: int = 0) -> Any:
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, self.ndim)
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got"
            f" split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != self.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} (input"
            f" tensor's size at dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    made, start = [], 0
    for n in split_sizes:
        made.append(_slice(self, dim, start, start + n))
        start += n
    return made


op(
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
    infer=_split_with_sizes,
    grad={"self": lambda grads, dim: aten.cat(grads, dim)},
    samples=view_samples(((5, 3), (2, 3), 0), ((2, 4), (1, 1, 2), -1)),
    tolerance="exact",
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
    return [
        _slice(self, dim, i * split_size, min((i + 1) * split_size, size)) for i in range(count)
    ]


op(
    "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
    infer=_split,
    grad={"self": lambda grads, dim: aten.cat(grads, dim)},
    samples=view_samples(((5, 3), 2), ((5, 4), 3, 1)),
    tolerance="exact",
    surface="none",
)


def _unbind(self: Geometry, dim: int = 0) -> Any:
    if not self.ndim:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    return [_select(self, dim, i) for i in range(self.shape[dim])]


op(
    "unbind(Tensor(a) self, int dim=0) -> Tensor(a)[]",
    infer=_unbind,
    grad={"self": lambda grads, dim: aten.stack(grads, dim)},
    samples=view_samples(((3, 2),), ((3, 2), -1)),
    tolerance="exact",
)


def _chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    size = self.shape[wrap_dim(dim, self.ndim)]
    step = (size + chunks - 1) // chunks
    if step == 0:
        return aten.split_with_sizes(self, (0,) * chunks, dim)
    return aten.split_Tensor(self, step, dim)


composite("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]", _chunk)


def _reshape(self: Any, shape: Any) -> Any:
    g = self._geom
    size = resolve_size(tuple(shape), g.numel)
    if g.contiguous or view_strides(g, size) is not None:
        return aten.view(self, size)
    return aten.view(aten.clone(self, memory_format="contiguous"), size)


composite("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", _reshape)


def _flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.ndim:
        return aten.reshape(self, (1,))
    if first == last:
        return self
    shape = self.shape
    size = 1
    for n in shape[first : last + 1]:
        size *= n
    return aten.reshape(self, (*shape[:first], size, *shape[last + 1 :]))


composite("flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", _flatten)


def _unflatten(self: Any, dim: int, sizes: Any) -> Any:
    dim = wrap_dim(dim, self.ndim)
    size = resolve_size(tuple(sizes), self.shape[dim])
    return aten.view(self, (*self.shape[:dim], *size, *self.shape[dim + 1 :]))


composite("unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", _unflatten)


def _narrow(self: Any, dim: int, start: Any, length: int) -> Any:
    if not self.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, self.ndim)
    size = self.shape[at]
    start = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size}], but got"
            f" {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return aten.slice(self, at, start, start + length, 1)


composite("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", _narrow)


def _movedim(self: Any, source: Any, destination: Any) -> Any:
    sources = wrap_dims((source,) if isinstance(source, int) else source, self.ndim)
    targets = wrap_dims((destination,) if isinstance(destination, int) else destination, self.ndim)
    rest = iter(d for d in range(self.ndim) if d not in sources)
    order = [sources[targets.index(i)] if i in targets else next(rest) for i in range(self.ndim)]
    return aten.permute(self, tuple(order))


for _name in ("movedim", "moveaxis"):
    composite(f"{_name}(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)", _movedim)
for _name in ("swapaxes", "swapdims"):
    composite(
        f"{_name}(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        lambda self, dim0, dim1: aten.transpose(self, dim0, dim1),
    )
composite("adjoint(Tensor(a) self) -> Tensor(a)", lambda self: aten.transpose(self, -2, -1))
composite(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.view(self, other.shape),
    surface="method",
)
composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.reshape(self, other.shape),
    surface="method",
)
composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.expand(self, other.shape),
    surface="method",
)
composite(
    "ravel(Tensor(a) self) -> Tensor(a)", lambda self: aten.reshape(aten.contiguous(self), (-1,))
)
