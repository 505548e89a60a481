"""Rows of views' copies (`view_copy`), of writes into a region of a copy (`select_scatter`), and
of what torch keeps for graphs: `unsafe_split`, `narrow_copy`."""

from __future__ import annotations

from math import comb

from ...._tensor.tensor import wrap
from ...rules import result_type
from ...words import *
from .joining import members

_MATRIX = Arg((2, 3))


def _copied(name: str, params: str, sample: Sequence[Any], returns: str = "Tensor") -> None:
    """`name_copy`: what the view of that name gives, in memory of its own."""

    def body(*args: Any) -> Any:
        result = getattr(aten, name)(*args)
        if isinstance(result, Tensor):
            return aten.clone(result, memory_format="contiguous")
        return tuple(aten.clone(part, memory_format="contiguous") for part in result)

    composite(
        f"{name}_copy(Tensor self{params}) -> {returns}",
        body,
        samples=calls(sample),
        out="expected",
        surface="function",
        layout_bound=name == "as_strided",
    )


for _name, _params, _sample in (
    ("alias", "", (_MATRIX,)),
    ("as_strided", ", int[] size, int[] stride, int? storage_offset=None",
     (_MATRIX, (2, 2), (1, 1))),
    ("diagonal", ", int offset=0, int dim1=0, int dim2=1", (_MATRIX,)),
    ("expand", ", int[] size", (Arg((2, 1)), (2, 3))),
    ("permute", ", int[] dims", (_MATRIX, (1, 0))),
    ("select", ", int dim, int index", (_MATRIX, 1, 2)),
    ("t", "", (_MATRIX,)),
    ("transpose", ", int dim0, int dim1", (_MATRIX, 0, 1)),
    ("unfold", ", int dimension, int size, int step", (Arg((5,)), 0, 2, 1)),
    ("unsqueeze", ", int dim", (_MATRIX, 1)),
    ("view_as_complex", "", (Arg((3, 2), grad=False),)),
    ("view_as_real", "", (Arg((3,), "complex64"),)),
):  # fmt: skip
    _copied(_name, _params, _sample)
for _name, _params, _sample in (
    ("split", ", int split_size, int dim=0", (Arg((3, 2)), 2)),
    ("split_with_sizes", ", int[] split_sizes, int dim=0", (Arg((3, 2)), (1, 2))),
    ("unbind", ", int dim=0", (_MATRIX, 1)),
):
    _copied(_name, _params, _sample, "Tensor[]")


def _clone_of(view: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: aten.clone(view(self, *args), memory_format="contiguous")


# What torch says of a dtype that is not the input's.
_SAME = (
    "Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message"
    " be improved?  If so, please report an enhancement request to PyTorch.)"
)


def _narrowed(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    if self.ndim and dim >= self.ndim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. "
            " (Could this error message be improved?  If so, please report an enhancement request"
            " to PyTorch.)"
        )
    if length < 0:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({self.shape[dim]})."
        )
    return aten.narrow(self, dim, start, length)


for _text, _view, _sample in (
    ("detach_copy(Tensor self) -> Tensor", lambda self: self.detach(), (Arg((2, 3), grad=False),)),
    ("squeeze_copy(Tensor self, int[1]? dim=None) -> Tensor",
     lambda self, dim=None: aten.squeeze(self) if dim is None else aten.squeeze(self, dim),
     (Arg((2, 1)), 1)),
    ("view_copy(Tensor self, Any size) -> Tensor", lambda self, size: self.view(size),
     (_MATRIX, (3, 2))),
    ("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
     lambda self, dim, start, length: _narrowed(self, dim, start, length), (_MATRIX, 1, 0, 2)),
    ("slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
     lambda self, dim=0, start=None, end=None, step=1: aten.slice(self, dim, start, end, step),
     (_MATRIX, 1, 0, 2)),
):  # fmt: skip
    composite(
        _text,
        _clone_of(_view),
        samples=calls(_sample),
        out=_SAME if _text.startswith("narrow") else "expected",
        surface="both" if _text.startswith("narrow") else "function",
    )


def _put(self: Tensor, src: Tensor, view: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """A copy of `self` in which a view of it holds `src`; RuntimeError for another shape."""
    built = aten.clone(self)
    region = view(built)
    if tuple(region.shape) != tuple(src.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the {name} of self. src size ="
            f" {list(src.shape)}, {name} size = {list(region.shape)}"
        )
    region.copy_(src)
    return built


@composite(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    samples=calls((_MATRIX, Arg((2,)), 1, 0)),
    surface="both",
)
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`self` with `src` at `index` of a dimension."""
    return _put(self, src, lambda built: aten.select(built, dim, index), "slice")


@composite(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)"
    " -> Tensor",
    samples=calls((_MATRIX, Arg((2, 2)), 1, 0, 2)),
    out="expected",
    surface="both",
)
def slice_scatter(
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """`self` with `src` in a slice of a dimension."""
    return _put(self, src, lambda built: aten.slice(built, dim, start, end, step), "slice")


@composite(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    samples=calls((_MATRIX, Arg((2,)))),
    surface="both",
)
def diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """`self` with `src` on a diagonal."""
    return _put(self, src, lambda built: aten.diagonal(built, offset, dim1, dim2), "slice")


@composite(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride,"
    " int? storage_offset=None) -> Tensor",
    # torch gives `self` a gradient where it was overwritten; it is zero here.
    samples=calls((Arg((2, 3), grad=False), Arg((2, 2)), (2, 2), (2, 1))),
    layout_bound=True,
    surface="both",
)
def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """`self` with `src` in the elements that a stride reaches."""
    return _put(
        self, src, lambda built: aten.as_strided(built, size, stride, storage_offset), "slice"
    )


def _apart(view: Tensor) -> Tensor:
    """The same part, of which autograd does not know that it is a view: it may be written to."""
    part = wrap(view._geom, view._storage)
    part._fn, part._nr = view._fn, view._nr
    return part


for _name, _params, _sample in (
    ("unsafe_chunk", "int chunks, int dim=0", (Arg((5, 2)), 2)),
    ("unsafe_split", "Any split_size, int dim=0", (Arg((5, 2)), 2)),
    ("unsafe_split_with_sizes", "int[] split_sizes, int dim=0", (Arg((5, 2)), (2, 3))),
):
    composite(
        f"{_name}(Tensor(a) self, {_params}) -> Tensor(a)[]",
        lambda self, cuts, dim=0, _view=_name[7:]: tuple(
            map(_apart, getattr(self, _view)(cuts, dim))
        ),
        samples=calls(_sample),
        surface="both",
    )


def _cut(name: str, axis: Callable[[int], int], least: int) -> None:
    """hsplit, vsplit, dsplit: tensor_split along a dimension that the name says."""

    def body(self: Tensor, cuts: int | Sequence[int]) -> tuple[Tensor, ...]:
        if self.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor"
                f" with {self.ndim} dimensions!"
            )
        dim = axis(self.ndim)
        if isinstance(cuts, int) and (cuts < 1 or self.shape[dim] % cuts):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the"
                f" dimension {self.shape[dim]} is not divisible by the split_size {cuts}!"
            )
        return aten.tensor_split(self, cuts, dim)

    composite(
        f"{name}(Tensor(a) self, Any indices_or_sections) -> Tensor(a)[]",
        body,
        samples=calls((Arg((2, 4, 2)), 2), (Arg((4, 4, 4)), (1, 3))),
        surface="both",
    )


_cut("hsplit", lambda ndim: 0 if ndim == 1 else 1, 1)
_cut("vsplit", lambda ndim: 0, 2)
_cut("dsplit", lambda ndim: 2, 3)


@composite(
    "dstack(Tensor[] tensors) -> Tensor",
    samples=calls(([_MATRIX, _MATRIX],)),
    surface="function",
)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side along the third dimension, which they get where they lack it."""
    return aten.cat([aten.atleast_3d(t) for t in members("dstack", tensors)], 2)


@composite(
    "block_diag(Tensor[] tensors) -> Tensor",
    samples=calls(Sample(([_MATRIX, Arg((1, 2)), Arg((3,))],))),
    surface="function",
    variadic="alone",
    oracle=lambda torch: lambda tensors: torch.block_diag(*tensors),
)
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal of one; vectors and numbers count as rows."""
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has"
                f" {t.ndim} dimensions"
            )
    kind = result_type([t._geom for t in tensors])
    blocks = [aten.to(aten.atleast_2d(t), kind) for t in tensors]
    if not blocks:
        return aten.zeros((1, 0))
    width, before, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        after = width - before - b.shape[1]
        rows.append(aten.constant_pad_nd(b, (before, after), 0))
        before += b.shape[1]
    return aten.cat(rows, 0)


@composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    samples=calls((Arg((4,)),), (Arg((3,)), 2, True)),
    surface="both",
)
def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, `[count, r]`, in the order of their places."""
    from itertools import combinations as choose, combinations_with_replacement as repeat

    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.zeros((0,), dtype=self.dtype, device=self.device)
    _refuse_grid(self.shape[0], r)
    picks = list((repeat if with_replacement else choose)(range(self.shape[0]), r))
    columns = [aten.index_select(self, 0, _places(column, self)) for column in
               (zip(*picks, strict=True) if picks else [()] * r)]  # fmt: skip
    return aten.stack(columns, 1)


def _refuse_grid(n: int, r: int) -> None:
    """RuntimeError where torch's mask over all `n` ** `r` choices has no memory."""
    if n > 1 and (r > 62 or n**r >= 1 << 63):
        raise RuntimeError("numel: integer multiplication overflow")
    if r > _MOST_COLUMNS or (n > 1 and max(n**r >> 12, comb(n + r, r)) > _MOST_PICKED):
        raise RuntimeError(f"std::bad_alloc: {r} of {n} need more memory than there is")


# Columns of one tensor each, and choices that are written, of 4,096 that torch's mask holds.
_MOST_COLUMNS, _MOST_PICKED = 1 << 20, 1 << 28


def _places(places: Sequence[int], like: Tensor) -> Tensor:
    return aten.tensor(list(places), dtype=dt.int64, device=like.device)


@composite(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    samples=calls((Arg((2, 2)),), (Arg((3,)), 1)),
    surface="both",
)
def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return aten.diag_embed(aten.reshape(self, (-1,)), offset)


@composite(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    samples=calls((_MATRIX,), (_MATRIX, -1)),
    surface="both",
)
def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by `k` right angles in the plane of two dimensions."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    for dim in dims:
        wrap_dim(dim, self.ndim)
    first, second = dims
    if k % 4 == 1:
        return aten.transpose(aten.flip(self, (second,)), first, second)
    if k % 4 == 2:
        return aten.flip(self, (first, second))
    if k % 4 == 3:
        return aten.transpose(aten.flip(self, (first,)), first, second)
    return aten.clone(self, memory_format="contiguous")


def _chunked_dim(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> int:
    """The dimension from the front; RuntimeError in torch's words for what can't be chunked."""
    name = "_chunk_cat expects"
    if num_chunks < 1:
        raise RuntimeError(f"{name} positive num_chunks")
    if not tensors:
        raise RuntimeError(f"{name} a non-empty input tensor list")
    first = tensors[0]
    if dim < 0 and any(t.ndim != first.ndim for t in tensors):
        raise RuntimeError(f"{name} non-negative dim when input tensors have different ndims")
    at = dim + first.ndim if dim < 0 else dim
    for t in tensors:
        if not t.numel():
            raise RuntimeError(f"{name} non-empty tensor")
        if at >= t.ndim:
            raise RuntimeError(f"{name} dim < ndim for all input tensors")
        if t.shape[:at] != first.shape[:at]:
            raise RuntimeError(f"{name} same sizes of 0,...,dim-1 dimensions for all tensors")
    return at


@composite(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    samples=calls(Sample(([Arg((3, 2)), Arg((2, 3))], 0, 2))),
    surface="function",
)
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor cut into chunks along `dim` (zeros at its end), flattened, side by side."""
    dim = _chunked_dim(tensors, dim, num_chunks)
    parts = []
    for t in tensors:
        length = -(-t.shape[dim] // num_chunks)
        missing = length * num_chunks - t.shape[dim]
        padded = aten.constant_pad_nd(t, (0, 0) * (t.ndim - dim - 1) + (0, missing), 0)
        parts.append(aten.reshape(padded, (*t.shape[:dim], num_chunks, -1)))
    return aten.cat(parts, dim + 1)
