"""Rows that reduce what meets at an index: scatter_reduce, index_reduce, put, segments."""

from __future__ import annotations

from ...._compat.warn_once import warn_once
from ...._tensor.settings import alert_not_deterministic
from ...rules import HALVES
from ...words import *
from .gathering import INDEX, _grid, along, along_fits, checked, counted, indexed, outside, within

# aclnnScatterReduce document: how each reduction is numbered.
# "max" and "min" are older names, which have no gradient in torch.
REDUCTIONS = {"sum": 1, "prod": 2, "amax": 3, "amin": 4, "mean": 5, "max": 3, "min": 4}
_UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum,
           "amin": np.minimum, "max": np.maximum, "min": np.minimum}  # fmt: skip
_STARTS = {"sum": 0, "mean": 0, "prod": 1}


def _infer(
    self: Geometry, dim: int, index: Geometry, src: Geometry, reduce: str, include_self: bool = True
) -> Geometry:
    if index.numel and index.dtype not in INDEX:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if self.dtype is not src.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    within(self, wrap_dim(dim, self.ndim), index, src)
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    return self.fresh()


def start_of(dtype: np.dtype[Any], reduce: str) -> float:
    """The value that any other replaces, or that changes none."""
    if reduce in _STARTS:
        return _STARTS[reduce]
    if dtype.kind == "b":
        return reduce in ("amin", "min")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce in ("amax", "max") else limits.max
    return -np.inf if reduce in ("amax", "max") else np.inf


def _reduced(
    self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> Array:
    built = self.copy()
    if not index.size:
        return built
    if not self.ndim:
        built, index, src = built.reshape(1), index.reshape(1), src.reshape(1)
    dim %= built.ndim
    where = _grid(checked(index, built.shape[dim], dim), dim)
    values = src[tuple(slice(n) for n in index.shape)]
    if not include_self:
        built[where] = start_of(built.dtype, reduce)
    with np.errstate(all="ignore"):
        ufunc = np.logical_or if built.dtype == bool and reduce == "sum" else _UFUNCS[reduce]
        ufunc.at(built, where, values)
        if reduce == "mean":
            count = np.full(built.shape, int(include_self), np.int64)
            np.add.at(count, where, 1)
            built = divided(built, np.maximum(count, 1))
    return built.reshape(self.shape)


def divided(total: Array, count: Array) -> Array:
    """A mean: a sum over how many it has, of whole numbers the next lower one."""
    if total.dtype.kind in "iu":
        return np.floor_divide(total, count.astype(total.dtype))
    return total / count.astype(total.dtype)


def _reduce_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, result: Tensor, reduce: str,
    include_self: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if reduce not in _BACKWARD:
        raise RuntimeError(
            "Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got"
            f" {reduce}."
        )
    by_self, by_src = _BACKWARD[reduce](grad, self, dim, index, src, result, include_self)
    if not include_self:
        by_self = aten.scatter_value(by_self, dim, index, 0)
    return by_self, by_src


def _sum_back(
    grad: Tensor, self: Any, dim: int, index: Tensor, src: Any, result: Any, include_self: bool
) -> tuple[Tensor, Tensor]:
    return grad, aten.gather(grad, dim, index)


def _mean_back(
    grad: Tensor, self: Any, dim: int, index: Tensor, src: Tensor, result: Any, include_self: bool
) -> tuple[Tensor, Tensor]:
    wide = dt.float32 if grad.dtype in HALVES else grad.dtype  # halves count to 2048 or 256
    count = (aten.ones_like if include_self else aten.zeros_like)(grad, dtype=wide)
    count = aten.scatter_add(count, dim, index, aten.ones_like(src, dtype=wide))
    spread = aten.to(grad / aten.clamp_min(count, 1), grad.dtype)
    return spread, aten.gather(spread, dim, index)


def _prod_back(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, result: Tensor,
    include_self: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    nonzero = aten.masked_fill(self, self == 0, 1)
    whole = aten.scatter_reduce(nonzero, dim, index, src, "prod", include_self=include_self)
    by_self = grad * whole / nonzero
    zero = src == 0
    zeros = aten.scatter_add(aten.zeros_like(self), dim, index, aten.to(zero, self.dtype))
    alone = aten.logical_and(zero, aten.gather(zeros, dim, index) == 1)
    filled = aten.masked_fill(src, alone, 1)
    without = aten.scatter_reduce(self, dim, index, filled, "prod", include_self=include_self)
    plain = aten.gather(grad * result, dim, index) / aten.masked_fill(src, zero, 1)
    return by_self, aten.where(alone, aten.gather(grad * without, dim, index), plain)


def _extreme_back(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, result: Tensor,
    include_self: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    ours = aten.to(self == result, self.dtype)
    theirs = aten.to(src == aten.gather(result, dim, index), src.dtype)
    spread = grad / aten.scatter_add(ours, dim, index, theirs)
    return aten.where(ours == 0, 0.0, spread), aten.where(
        theirs == 0, 0.0, aten.gather(spread, dim, index)
    )


_BACKWARD: dict[str, Any] = {
    "sum": _sum_back, "mean": _mean_back, "prod": _prod_back, "amax": _extreme_back,
    "amin": _extreme_back,
}  # fmt: skip
_INDEX = Arg((3, 5), "int64", 0, 3)

op(
    "_scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce,"
    " bool include_self=True) -> Tensor",
    infer=_infer,
    bounds=along,
    cpu=_reduced,
    aclnn=call("aclnnScatterReduce", "self", "dim", "index", "src",
               lambda a: REDUCTIONS[a["reduce"]], "include_self", "out", when=indexed),
    lower=lambda self, dim, index, src, reduce, include_self=True: aten._scatter_reduce(
        self, dim, counted(index), src, reduce, include_self
    ),
    grad={("self", "src"): _reduce_grad},
    unsampled="scatter_reduce is held against torch",
    tolerance="accumulated",
)  # fmt: skip


@composite(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *,"
    " bool include_self=True) -> Tensor",
    samples=lambda: [
        Sample((Arg((3, 4), low=0.5), 1, _INDEX, Arg((3, 5), low=0.5), reduce))
        for reduce in _BACKWARD
    ],
    tolerance="accumulated",
    rule="stored",
    out="expected",
    surface="both",
    inplace=True,
    apart=True,
)
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """Elements of `src` put together with those of `self` that `index` names."""
    if src.ndim and tuple(src.shape) != tuple(index.shape) and src.ndim == index.ndim:
        within(self._geom, dim % max(self.ndim, 1), index._geom, src._geom)
        for d, n in enumerate(index.shape):
            src = aten.narrow(src, d, 0, n)
    if index.numel() and not (self.ndim and index.ndim) and max(self.ndim, index.ndim) == 1:
        line, places, values = (aten.reshape(t, (-1,)) for t in (self, index, src))
        line = aten._scatter_reduce(line, dim, places, values, reduce, include_self)
        return aten.reshape(line, tuple(self.shape))  # a number is as a vector of one
    return aten._scatter_reduce(self, dim, index, src, reduce, include_self)


def _spread(dim: int, index: Tensor, source: Tensor | Geometry) -> Tensor:
    """An index for each element of `source`, of one for each of its slices."""
    shape = [1] * max(source.ndim, 1)
    shape[dim] = index.numel()
    spread = aten.expand(aten.to(aten.reshape(index, tuple(shape)), dt.int64),
                         tuple(source.shape) or (1,))  # fmt: skip
    return spread if source.ndim else aten.reshape(spread, ())


op(
    "_index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce,"
    " bool include_self=True) -> Tensor",
    infer=lambda self, dim, index, source, reduce, include_self=True: self.fresh(),
    bounds=along,
    lower=lambda self, dim, index, source, reduce, include_self=True: aten._scatter_reduce(
        self, dim, _spread(dim, index, source), source, reduce, include_self
    ),
    grad={
        ("self", "source"): lambda grad, self, dim, index, source, result, reduce, include_self: (
            _reduce_grad(
                grad, self, dim, _spread(dim, index, source), source, result, reduce, include_self
            )
        )
    },
    unsampled="index_reduce is held against torch",
    tolerance="accumulated",
)


_INDEX_NAMES = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}


@composite(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *,"
    " bool include_self=True) -> Tensor",
    samples=calls(
        (Arg((3, 4), low=0.5), 0, Arg((2,), "int64", values=(2, 0)), Arg((2, 4), low=0.5), "prod"),
        (Arg((3, 4), low=0.5), 0, Arg((2,), "int64", values=(2, 2)), Arg((2, 4), low=0.5), "mean"),
    ),
    tolerance="accumulated",
    out="expected",
    surface="both",
    inplace=True,
    apart=True,
)
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """Slices of `source` put together with the slices of `self` that `index` names."""
    if reduce not in _INDEX_NAMES:
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got"
            f" {reduce}."
        )
    warn_once("index_reduce() is in beta and the API may change at any time.")
    at = wrap_dim(dim, self.ndim)
    along_fits("index_reduce_", self._geom, at, index._geom, source._geom)
    try:
        return aten._index_reduce(self, at, index, source, reduce, include_self)
    except RuntimeError as error:
        if "out of bounds" in str(error):
            raise IndexError("index out of range in self") from None
        raise


@composite(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    samples=calls((Arg((3, 4)), Arg((2,), "int64", values=(5, -1)), Arg((2,)))),
    tolerance="rounded",
    rule="stored",
    surface="both",
    inplace=True,
    apart=True,
)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`self` with elements of `source` at places in its flattened order."""
    if index.dtype is not dt.int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.legacy.split('.')[-1]}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype ="
            f" {scalar_name(self.dtype)} and source.dtype = {scalar_name(source.dtype)}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got"
            f" source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    if not accumulate:
        alert_not_deterministic("put_")
    if index.numel() and not self.numel():
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    flat = aten.reshape(self, (-1,))
    places, values = (t if t.ndim == 1 else aten.reshape(t, (-1,)) for t in (index, source))
    try:
        built = aten.index_put(flat, [places], values, accumulate)
    except IndexError:
        raise outside(index, flat) from None
    return aten.reshape(built, tuple(self.shape))


def _clamped(self: Tensor, indices: Sequence[Tensor | None]) -> list[Any]:
    """Indices within their dimensions."""
    return [
        i if i is None else aten.clamp(i, -self.shape[d], self.shape[d] - 1)
        for d, i in enumerate(indices)
    ]


@composite(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    samples=calls((Arg((4,)), Arg((3,), "bool"), [Arg((3,), "int64", values=(3, 0, 2))], 0)),
    surface="function",
)
def _unsafe_masked_index(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Number | None
) -> Tensor:
    """Elements at indices, `fill` where the mask is false."""
    result = aten.index(self, _clamped(self, indices))
    return aten.where(mask, result, aten.full_like(result, fill))


@composite(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices,"
    " Tensor values) -> Tensor",
    samples=calls(
        (Arg((4,)), Arg((3,), "bool"), [Arg((3,), "int64", values=(3, 0, 2))], Arg((3,)))
    ),
    tolerance="accumulated",
    surface="function",
)
def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """`self` with values added at indices, where the mask is true."""
    masked_values = aten.where(mask, values, aten.zeros_like(values))
    return aten.index_put(self, _clamped(self, indices), masked_values, True)


_SEGMENTS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}


@composite(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None,"
    " Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    unsupported={"bool whole complex": "_segment_reduce_cpu"},
    samples=calls(Sample((Arg((5, 2)), "sum"), {"lengths": Arg((2,), "int64", values=(2, 3))})),
    tolerance="accumulated",
    surface="function",
)
def segment_reduce(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Runs along a dimension, by their lengths or offsets, each reduced to one element."""
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _SEGMENTS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if offsets is not None:
        size = offsets.shape[-1] - 1
        lengths = aten.narrow(offsets, -1, 1, size) - aten.narrow(offsets, -1, 0, size)
    if lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.ndim < lengths.ndim:
        raise RuntimeError(
            "Expected data.dim() >= lengths_value.dim() to be true, but got false.  (Could this"
            " error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if axis != lengths.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}."
        )
    if offsets is None and not unsafe and lengths.device.type != "meta":
        if int(lengths.min()) < 0:
            raise RuntimeError("lengths contains negative value!")
        if bool((lengths.sum(-1) != data.shape[lengths.ndim - 1]).any()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to"
                " data.size(lengths.dim()-1) when !unsafe."
            )
    starts = None if offsets is None else offsets.reshape(-1, size + 1)[:, 0].tolist()
    return _segments(data, reduce, lengths, axis, initial, starts)


def _segments(
    data: Tensor, reduce: str, lengths: Tensor, axis: int, initial: float | None,
    begins: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    starts = {"sum": 0.0, "mean": float("nan"), "prod": 1.0, "max": float("-inf"),
              "min": float("inf")}  # fmt: skip
    if data.device.type == "meta":
        shape = (*lengths.shape, *data.shape[axis + 1 :])
        return aten.zeros(tuple(shape), dtype=data.dtype, device=data.device)
    rows = lengths.reshape(-1, lengths.shape[-1]).tolist()
    flat = aten.reshape(data, (-1, *data.shape[axis:]))
    built = []
    for number, row in enumerate(rows):
        at, part = begins[number] if begins else 0, aten.select(flat, 0, number)
        for n in row:
            built.append(_segment(aten.narrow(part, 0, at, n), reduce, initial, starts[reduce]))
            at += n
    shape = (*lengths.shape, *data.shape[axis + 1 :])
    return aten.reshape(aten.stack(built, 0), tuple(shape))


def _segment(part: Tensor, reduce: str, initial: float | None, start: float) -> Tensor:
    if not part.shape[0]:
        value = start if initial is None else float(initial)
        return aten.full(tuple(part.shape[1:]), value, dtype=part.dtype, device=part.device)
    if initial is not None:
        first = aten.full((1, *part.shape[1:]), float(initial), dtype=part.dtype,
                          device=part.device)  # fmt: skip
        count = part.shape[0]
        part = aten.cat([first, part], 0)
        if reduce == "mean":
            return aten.sum(part, 0) / count
    if reduce == "prod":
        return aten.prod_dim(part, 0)
    return getattr(aten, _SEGMENTS[reduce])(part, 0)


composite(
    "_segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None,"
    " Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    segment_reduce,
    unsupported={"bool whole complex": "_segment_reduce_cpu"},
    samples=calls(Sample((Arg((5, 2)), "sum"), {"lengths": Arg((2,), "int64", values=(2, 3))})),
    oracle=lambda torch: torch.segment_reduce,
    tolerance="accumulated",
    surface="function",
)
