"""Rows of views that show all of a tensor in another shape or order."""

from __future__ import annotations

from ...._tensor.geometry import contiguous_strides, geometry
from ...._tensor.tensor import wrap
from ...rules import refuse_vector, wrap_dims
from ...samples import views as view_samples
from ...words import *


def resolve_size(size: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """`size` with its -1 filled in; RuntimeError in torch's words when it does not fit."""
    known, free = 1, None
    for i, n in enumerate(size):
        if n == -1:
            if free is not None:
                raise RuntimeError("only one dimension can be inferred")
            free = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(size)}")
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
    summary="A view with another shape of as many elements; -1 stands for what is left.",
    infer=_view,
    grad={"self": lambda grad, self_geom: aten.reshape(grad, self_geom.shape)},
    samples=view_samples(((2, 3), (3, 2)), ((6,), (2, -1)), ((4, 1), (2, 2))),
    layout_bound=True,
    surface="method",
)


def _refuse_split(self: Geometry, dtype: Dtype) -> None:
    """RuntimeError in torch's words where larger elements would begin or end within old ones."""
    ratio = max(dtype.itemsize // self.dtype.itemsize, 1)
    names = f"to view {self.dtype.legacy} as {dtype.legacy} (different element sizes)"

    def refuse(parts: list[tuple[str, int]]) -> None:
        for what, number in parts:
            if number % ratio:
                raise RuntimeError(f"{what} must be divisible by {ratio} {names}, but got {number}")

    refuse([("self.size(-1)", self.shape[-1]), ("self.storage_offset()", self.offset)])
    if self.strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {names}, but got {self.strides[-1]}")
    refuse([(f"self.stride({d})", stride) for d, stride in enumerate(self.strides[:-1])])


def _view_dtype(self: Geometry, dtype: Dtype) -> Geometry:
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return geometry(self.shape, self.strides, self.offset, dtype, self.device)
    if not self.ndim:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {self.dtype.legacy} as {dtype.legacy} (different"
            " element sizes)"
        )
    _refuse_split(self, dtype)
    last = self.shape[-1] * old // new
    strides = (*(s * old // new for s in self.strides[:-1]), 1)
    shape = (*self.shape[:-1], last)
    return geometry(shape, strides, self.offset * old // new, dtype, self.device)


def _refuse_unresolved(args: object, outs: object) -> Callable[[Tensor, Dtype], None]:
    """A check of what torch would conjugate or negate when it is read, which has no other dtype."""

    def check(self: Tensor, dtype: Dtype) -> None:
        for mark, what in _UNRESOLVED.items():
            if mark in self.__dict__:
                raise RuntimeError(
                    f"torch.Tensor.view is not supported for {what} when converting to a different"
                    " dtype."
                )

    return check


_UNRESOLVED = {"_conjugated": "conjugate view tensors",
               "_negated": "tensors with negative bit set"}  # fmt: skip
op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    infer=_view_dtype,
    refuses=_refuse_unresolved,
    grad={},
    layout_bound=True,
    surface="method",
    samples=calls(
        Sample((Arg((2, 3)),), {"dtype": "int32"}),
        Sample((Arg((2, 4), "int16"),), {"dtype": "int32"}),
    ),
)

op(
    "alias(Tensor(a) self) -> Tensor(a)",
    infer=lambda self: self,
    grad={"self": lambda grad: grad},
    surface="none",
    samples=view_samples(((2, 3),), ((),)),
)


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
    summary="A view with two dimensions exchanged.",
    infer=_transpose,
    grad={"self": lambda grad, dim0, dim1: aten.transpose(grad, dim0, dim1)},
    samples=view_samples(((2, 3), 0, 1), ((2, 3, 4), -1, 0)),
    inplace=True,
)


def _t(self: Geometry) -> Geometry:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self if self.ndim < 2 else _permuted(self, (1, 0))


op(
    "t(Tensor(a) self) -> Tensor(a)",
    summary="A view of a matrix with its dimensions exchanged.",
    infer=_t,
    grad={"self": lambda grad: aten.t(grad)},
    samples=view_samples(((2, 3),), ((3,),)),
    inplace=True,
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
    summary="A view with the dimensions in another order.",
    infer=_permute,
    grad={"self": lambda grad, dims: aten.permute(grad, _inverse(dims))},
    samples=view_samples(((2, 3, 4), (2, 0, 1))),
)


def _refuse_expansion(self: Geometry, size: tuple[int, ...], lead: int) -> None:
    """RuntimeError in torch's words for the last size that does not fit."""
    for i in range(len(size) - 1, -1, -1):
        n, have = size[i], self.shape[i - lead] if i >= lead else 1
        if n == -1 and i < lead:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing"
                f" dimension {i}"
            )
        if have not in (1, n) and n != -1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at"
                f" non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes:"
                f" {list(self.shape)}"
            )
    if min(size, default=0) < -1:
        raise RuntimeError("numel: integer multiplication overflow")


def _expand(self: Geometry, size: tuple[int, ...], implicit: bool = False) -> Geometry:
    lead = len(size) - self.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.{self.dtype.legacy}Tensor{{{list(self.shape)}}}, size={list(size)}):"
            f" the number of sizes provided ({len(size)}) must be greater or equal to the number of"
            f" dimensions in the tensor ({self.ndim})"
        )
    _refuse_expansion(self, size, lead)
    shape, strides = [], []
    for i, n in enumerate(size):
        have = self.shape[i - lead] if i >= lead else 1
        n = have if n == -1 else n
        shape.append(n)
        keeps = i >= lead and have == n
        strides.append(self.strides[i - lead] if keeps else 0)
    for i in range(lead - 1, -1, -1):
        if shape[i] == 1 and self.ndim:  # as unsqueeze gives it
            strides[i] = shape[i + 1] * strides[i + 1] if i + 1 < len(shape) else 1
    return self.at(tuple(shape), tuple(strides))


op(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    summary="A view in which dimensions of size 1 repeat.",
    infer=_expand,
    grad={"self": lambda grad, self_geom: aten.sum_to_size(grad, self_geom.shape)},
    samples=view_samples(((2, 1), (2, 3)), ((3,), (2, -1))),
    surface="method",
)


def _squeeze(self: Geometry, dim: tuple[int, ...] | None = None) -> Geometry:
    dims = () if dim == () else wrap_dims(dim, self.ndim)
    dims_left = [i for i in range(self.ndim) if i not in dims or self.shape[i] != 1]
    return self.at(
        tuple(self.shape[i] for i in dims_left), tuple(self.strides[i] for i in dims_left)
    )


op(
    "squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)",
    summary="A view without dimensions of size 1.",
    infer=_squeeze,
    grad={"self": lambda grad, self_geom: aten.reshape(grad, self_geom.shape)},
    samples=view_samples(((2, 1, 3, 1),), ((2, 1, 3), 1), ((2, 1, 1), (0, 2))),
    inplace=True,
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
    summary="A view with a new dimension of size 1 at `dim`.",
    infer=_unsqueeze,
    grad={"self": lambda grad, dim: aten.squeeze(grad, dim)},
    samples=view_samples(((2, 3), 0), ((2, 3), -1), ((2, 3), 1)),
    inplace=True,
)


def _reshape(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    g = self._geom
    size = resolve_size(tuple(shape), g.numel)
    if g.contiguous or view_strides(g, size) is not None:
        return aten.view(self, tuple(shape))  # modes see it as it was asked for
    return aten._reshape_copy(self, size)


def _moved(self: Tensor, size: tuple[int, ...]) -> Tensor:
    copy = aten.clone(self, memory_format="contiguous")
    return wrap(copy._geom.at(size, contiguous_strides(size)), copy._storage)


op(
    "_reshape_copy(Tensor self, int[] size) -> Tensor",
    infer=lambda self, size: self.fresh(resolve_size(size, self.numel)),
    cpu=lambda self, size: self.reshape(size).copy(),
    compute="raw",
    lower=_moved,
    grad={"self": lambda grad, self_geom: aten.reshape(grad, self_geom.shape)},
    samples=view_samples(((2, 3), (3, 2)), ((2, 3, 2), (4, 3))),
)


composite(
    "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    _reshape,
    summary="The elements in another shape; a view where the strides allow it.",
    samples=view_samples(((2, 3), (3, 2)), ((6,), (2, -1)), ((), (1, 1))),
)


def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
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


composite(
    "flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    _flatten,
    summary="Dimensions `start_dim` to `end_dim` as one.",
    samples=view_samples(((2, 3, 4),), ((2, 3, 4), 1), ((),)),
)


def _unflatten(self: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    dim = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        size = resolve_size(tuple(sizes), self.shape[dim])
    except RuntimeError as error:
        if list(sizes).count(-1) > 1:
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim}"
            f" ({self.shape[dim]}) in the input tensor"
        ) from None
    return aten.view(self, (*self.shape[:dim], *size, *self.shape[dim + 1 :]))


composite(
    "unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
    _unflatten,
    summary="Dimension `dim` as several of these sizes.",
    samples=view_samples(((2, 6), 1, (2, 3)), ((6,), 0, (-1, 2))),
)


def _movedim(
    self: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Tensor:
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError("movedim(): source and destination are both ints, or both tuples")
    dims = [(d,) if isinstance(d, int) else tuple(d) for d in (source, destination)]
    if len(dims[0]) != len(dims[1]):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(dims[0])} dims) should "
            f"contain the same number of dims as destination ({list(dims[1])} dims)"
        )
    sources, targets = ([wrap_dim(d, self.ndim) for d in some] for some in dims)
    wrapped = (("source", sources, dims[0]), ("destination", targets, dims[1]))
    for name, some, message in wrapped:
        if len(set(some)) < len(some):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(message)})")
    if not self.ndim:
        return aten.alias(self)
    rest = iter(d for d in range(self.ndim) if d not in sources)
    order = [sources[targets.index(i)] if i in targets else next(rest) for i in range(self.ndim)]
    return aten.permute(self, tuple(order))


composite(
    "movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)",
    _movedim,
    summary="A view with dimensions at other places.",
    samples=view_samples(((2, 3, 4), 0, 2), ((2, 3, 4), (0, 1), (-1, 0))),
)


def _adjoint(self: Tensor) -> Tensor:
    refuse_vector(self.ndim, "tensor.adjoint()")
    return aten.conj_of(aten.transpose(self, -2, -1) if self.ndim else self)


composite(
    "adjoint(Tensor(a) self) -> Tensor(a)",
    _adjoint,
    summary="Conjugate transpose of the last two dimensions.",
    samples=view_samples(((2, 3),), ((2, 3, 4),)),
)
composite(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.view(self, other.shape),
    summary="A view in the shape of `other`.",
    surface="method",
    samples=calls((Arg((2, 3)), Arg((3, 2), grad=False))),
)
composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.reshape(self, other.shape),
    summary="The elements in the shape of `other`.",
    surface="method",
    samples=calls((Arg((2, 3)), Arg((3, 2), grad=False))),
)
composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.expand(self, other.shape),
    summary="A view in the shape of `other`, in which dimensions of size 1 repeat.",
    surface="method",
    samples=calls((Arg((3, 1)), Arg((2, 3, 4), grad=False))),
)
composite(
    "ravel(Tensor(a) self) -> Tensor(a)",
    lambda self: aten.reshape(aten.contiguous(self), (-1,)),
    summary="The elements as one dimension.",
    samples=view_samples(((2, 3),), ((),)),
)
