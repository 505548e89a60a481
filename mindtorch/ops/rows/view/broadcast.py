"""Rows of views that grow, pair or cut tensors: broadcasting, grids, ranks, tensor_split."""

from __future__ import annotations

from itertools import pairwise

from ...._compat.class_names import class_name
from ...._compat.invalid_arguments import invalid_combination
from ...._compat.warn_once import warn_once
from ...._tensor.dtype import int64
from ...._tensor.recording import unrepeatable
from ...limits import refuse_views
from ...rules import broadcast_all
from ...samples import views as view_samples
from ...stream_text import streamed
from ...words import *

composite(
    "broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
    lambda self, size: aten.expand(self, tuple(size)),
    summary="A view in which dimensions of size 1 repeat.",
    samples=view_samples(((3, 1), (2, 3, 4)), ((), (2,))),
)


@composite(
    "broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]",
    variadic="alone",
    samples=calls(([Arg((3, 1)), Arg((2,))],)),
    oracle=lambda torch: lambda tensors: torch.broadcast_tensors(*tensors),
)
def broadcast_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """All tensors in the shape that they broadcast to: views, or the tensor where it has it."""
    shape = tuple(broadcast_all(t.shape for t in tensors))
    return tuple(t if tuple(t.shape) == shape else aten.expand(t, shape) for t in tensors)


@composite(
    "meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]",
    variadic=True,
    samples=calls(
        Sample(([Arg((3,)), Arg((2,))],), {"indexing": "ij"}),
        Sample(([Arg((3,)), Arg((2,)), Arg((2,))],), {"indexing": "xy"}),
        Sample(([Arg((3,))],), {"indexing": "yx"}, error=True),
    ),
    oracle=lambda torch: lambda tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing),
)
def meshgrid(tensors: tuple[Tensor, ...], indexing: str | None = None) -> Any:
    """Coordinate grids of 1-d tensors; "xy" swaps the first two dimensions."""
    if indexing is None:
        unrepeatable()
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing"
            " argument."
        )
        indexing = "ij"
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    if any(t.dtype is not tensors[0].dtype for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if any(t.device is not tensors[0].device for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                + streamed(t)
            )
    swap = indexing == "xy" and len(tensors) > 1
    order = (tensors[1], tensors[0], *tensors[2:]) if swap else tuple(tensors)
    shape = tuple(t.numel() for t in order)
    grids = []
    for i, t in enumerate(order):
        line = [1] * len(order)
        line[i] = t.numel()
        grids.append(aten.expand(aten.reshape(t, tuple(line)), shape))
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


def _at_least(rank: int, x: Tensor) -> Tensor:
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return aten.unsqueeze(x, -1)
    if rank == 3 and x.ndim == 1:
        return aten.reshape(x, (1, -1, 1))
    return aten.reshape(x, (1,) * (rank - x.ndim) + tuple(x.shape))


def _ranked(rank: int, what: str) -> None:
    """torch gives one tensor for one tensor, and a tuple for several or for a list."""

    def body(tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
        if isinstance(tensors, Tensor):
            return _at_least(rank, tensors)
        if not isinstance(tensors, list | tuple):
            options = ("(Tensor input)", "(tuple of Tensors tensors)")
            raise TypeError(invalid_combination(f"atleast_{rank}d()", (tensors,), {}, options))
        for at, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"expected Tensor as element {at} in argument 0, but got {class_name(t)}"
                )
        return tuple(_at_least(rank, t) for t in tensors)

    body.__doc__ = f"Each tensor, with {what}."
    composite(
        f"atleast_{rank}d(Any tensors) -> Tensor[]",
        body,
        variadic=True,
        samples=calls(*((Arg(shape),) for shape in ((), (3,), (2, 3))), ([Arg(()), Arg((2,))],)),
    )


_ranked(1, "one dimension where it has none")
_ranked(2, "leading dimensions up to two")
_ranked(3, "dimensions up to three: `[1, n, 1]`, `[n, m, 1]`")


def _require_dimension(self: Tensor) -> None:
    if not self.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )


def _cut(self: Tensor, indices: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views cut at the indices given."""
    _require_dimension(self)
    size = self.shape[wrap_dim(dim, self.ndim)]
    cuts = [0, *(slice(c).indices(size)[1] for c in indices), size]
    return tuple([aten.slice(self, dim, start, end) for start, end in pairwise(cuts)])


def _nearly_equal(self: Tensor, sections: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of nearly equal size; the first ones have one more."""
    if sections < 1:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    _require_dimension(self)
    refuse_views(sections)
    small, more = divmod(self.shape[wrap_dim(dim, self.ndim)], sections)
    return _cut(self, [i * small + min(i, more) for i in range(1, sections)], dim)


def _cut_or_divided(self: Any, places: Any, dim: int = 0) -> Any:
    if places.dtype is not int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got"
            f" {places.dtype.legacy}"
        )
    if places.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or"
            f" one-dimensional tensor, but got a tensor with {places.ndim} dims"
        )
    places = places.tolist()
    if isinstance(places, list):
        return _cut(self, places, dim)
    return _nearly_equal(self, places, dim)


for _overload, _argument, _body, _samples in (
    ("sections", "int sections", _nearly_equal, (((7, 2), 3), ((2, 5), 2, 1))),
    ("indices", "int[] indices", _cut, (((7, 2), (2, 5)), ((2, 5), (1, 9), 1))),
):
    composite(
        f"tensor_split.{_overload}(Tensor(a) self, {_argument}, int dim=0) -> Tensor(a)[]",
        _body,
        samples=view_samples(*_samples),
        oracle=lambda torch: torch.tensor_split,
    )
composite(
    "tensor_split.places(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0)"
    " -> Tensor(a)[]",
    _cut_or_divided,
    samples=calls(
        (Arg((7, 2)), Arg((2,), "int64", values=(2, 5))), (Arg((7,)), Arg((), "int64", values=3))
    ),
    oracle=lambda torch: lambda x, places, dim=0: torch.tensor_split(x, places.cpu(), dim),
)


def _fill_diagonal(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal; of a tall matrix again and again with `wrap`.

    RuntimeError in torch's words for vectors, and for more dimensions that are not of one length.
    """
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    shape, strides = self.shape, self.stride()
    aten.as_strided(self, (min(shape),), (sum(strides),), self.storage_offset()).fill_(fill_value)
    step = shape[1] + 1
    if wrap and self.ndim == 2:
        for start in range(step, shape[0], step):
            aten.diagonal(aten.narrow(self, 0, start, shape[0] - start)).fill_(fill_value)
    return self


composite(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    _fill_diagonal,
    samples=calls(
        (Arg((3, 4), grad=False), 5.0),
        (Arg((3, 3), "int64"), 2),
        (Arg((8, 3), grad=False), 1.0, True),
        (Arg((3, 3, 3), grad=False), 2.0),
    ),
    layout_bound=True,
    surface="method",
)
