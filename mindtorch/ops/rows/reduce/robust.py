"""Rows of statistics that leave out NaN, and of frequencies: nanmean, mode."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import Refusal
from ...words import *
from .counting import quantile
from .statistics import evenly, one_of_line, placed

_HOLES = Arg((2, 3), values=((1.0, float("nan"), 3.0), (4.0, 5.0, float("nan"))), grad=False)


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    unsupported={
        "complex": Refusal("nansum on CPU does not support complex inputs", cpu_alone=True)
    },
    samples=calls((_HOLES,), (_HOLES, 1)),
    tolerance="accumulated",
)
def nanmean(
    self: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> Tensor:
    """The mean of what is not NaN."""
    if self.dtype.category < dt.FLOAT:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got"
            f" {self.dtype.legacy.split('.')[-1].removesuffix('Tensor')}"
        )
    known = aten.logical_not(aten.isnan(self))
    total = aten.nansum(self, dim, keepdim, dtype=dtype)
    count = aten.sum(aten.to(known, total.dtype), dim, keepdim)
    return total / count


def _last_nan(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The lower median of what is not NaN, which sorting puts last."""
    values, indices = aten.sort(self, dim)
    known = aten.sum(aten.logical_not(aten.isnan(self)), dim, True)
    at = aten.clamp(aten.div(known - 1, 2, rounding_mode="floor"), 0, None)
    values, indices = aten.gather(values, dim, at), aten.gather(indices, dim, at)
    if keepdim:
        return values, indices
    return aten.squeeze(values, dim), aten.squeeze(indices, dim)


def _nanmedian(self: Tensor) -> Tensor:
    """The median of all that is not NaN."""
    if not self.is_floating_point() or not self.numel():
        return aten.median(self)
    return _last_nan(aten.reshape(self, (-1,)), 0, False)[0]


op(
    "nanmedian(Tensor self) -> Tensor",
    summary="Median of the elements that are not nan.",
    infer=lambda self: self.fresh(()),
    lower=_nanmedian,
    grad={"self": evenly},
    unsupported={"bool complex": "median_cpu"},
    samples=calls((_HOLES,), (Arg((4,), "int64"),)),
    surface="both",
)


def _nanmedian_along(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    """Medians along a dimension of what is not NaN."""
    if not self.is_floating_point() or not self.ndim:
        return aten.median_dim(self, dim, keepdim)
    return _last_nan(self, wrap_dim(dim, self.ndim), keepdim)


op(
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    summary="Lower median along `dim` of the elements that are not nan, and its index.",
    infer=one_of_line("median"),
    lower=_nanmedian_along,
    grad={"self": placed},
    unsupported={"bool complex": "median_out"},
    samples=calls((_HOLES, 1), (_HOLES, 0, True)),
    oracle=lambda torch: torch.nanmedian,
)


@composite(
    "nanquantile(Tensor self, Tensor|Scalar q, int? dim=None, bool keepdim=False, *,"
    " str interpolation='linear') -> Tensor",
    autocast="float32 on cpu",
    samples=calls((_HOLES, 0.3), (_HOLES, 0.5, 1)),
    tolerance="accumulated",
    out="{name}() out tensor must be same dtype as the input tensor",
)
def nanquantile(
    self: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:  # fmt: skip
    """The q-th quantiles of what is not NaN."""
    return quantile(self, q, dim, keepdim, interpolation, True)


def _mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent value along a dimension, the smallest of equals, and where it is last."""
    at = wrap_dim(dim, self.ndim)
    if not self.ndim:
        return aten.clone(self), aten.zeros((), dtype=dt.int64, device=self.device)
    ahead = aten.movedim(self, at, -1)
    moved = aten.reshape(ahead, (-1, ahead.shape[-1]))  # pairs take one dim more
    values, indices = aten.sort(moved, -1, False, True)
    same = aten.unsqueeze(values, -1) == aten.unsqueeze(values, -2)
    counts = aten.sum(aten.to(same, dt.int64), -1)
    first = aten.argmax(counts, -1, True)
    last = first + aten.gather(counts, -1, first) - 1
    last = aten.clamp(last, 0, moved.shape[-1] - 1)
    shape = (*ahead.shape[:-1], 1)
    values = aten.reshape(aten.gather(values, -1, last), shape)
    indices = aten.reshape(aten.gather(indices, -1, last), shape)
    values, indices = aten.movedim(values, -1, at), aten.movedim(indices, -1, at)
    return (values, indices) if keepdim else (aten.squeeze(values, at), aten.squeeze(indices, at))


op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    summary="Most frequent value along `dim`, the smallest of equals, and its last index.",
    infer=one_of_line("mode"),
    lower=_mode,
    grad={"self": placed},
    unsupported={"complex": "mode_cpu"},
    samples=calls((Arg((3, 5), "int64", 0, 2),), (Arg((4,)),)),
    out="expected scalar type '{Want}' but got '{Got}' for values output",
)


@composite(
    "msort(Tensor self) -> Tensor",
    unsupported={"complex": Refusal(" Sort does not support complex dtypes on CPU")},
    samples=calls((Arg((3, 4)),)),
    out="expected",
)
def msort(self: Tensor) -> Tensor:
    """Sorted along the first dimension."""
    return aten.sort(self, 0)[0]


def _by_pairs(self: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sum of exponentials, by a tree of pairs: no sum overflows."""
    if not self.ndim or not self.shape[dim]:
        return aten.clone(self)
    size, step, total = self.shape[dim], 1, self
    while step < size:
        head = aten.narrow(total, dim, 0, step)
        paired = aten.logaddexp(
            aten.narrow(total, dim, step, size - step), aten.narrow(total, dim, 0, size - step)
        )
        total, step = aten.cat([head, paired], dim), step * 2
    return total if step > 1 else aten.clone(total)


def _later(logs: Tensor, dim: int) -> Tensor:
    """The same from the end."""
    if not logs.ndim:
        return logs
    return aten.flip(aten._logcumsumexp(aten.flip(logs, (dim,)), dim), (dim,))


def _logcumsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """What is above zero and what is below it, summed in logarithms, so that none overflows."""
    parts = []
    for part in (grad, -grad):
        logs = aten.log(aten.where(part > 0, part, 1.0))
        logs = aten.where(part > 0, logs, dt.finfo(self.dtype).min) - result
        parts.append(aten.exp(_later(logs, dim) + self))
    return parts[0] - parts[1]


op(
    "_logcumsumexp(Tensor self, int dim) -> Tensor",
    infer=lambda self, dim: self.fresh(),
    lower=_by_pairs,
    grad={"self": _logcumsumexp_grad},
    samples=calls((Arg((3, 4)), 1), (Arg((3, 4), "float64"), 0)),
    oracle=lambda torch: torch.logcumsumexp,
    tolerance="composite",
)


@composite(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    samples=calls((Arg((3, 4)), 1), (Arg((3, 4), "float64"), 0)),
    tolerance="composite",
    out="expected scalar_type {Want} but found {Got}",
)
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sum of exponentials."""
    at = wrap_dim(dim, self.ndim)
    if not self.is_floating_point() and not self.is_complex():
        raise NotImplementedError(
            f"\"logcumsumexp_out_cpu\" not implemented for '{scalar_name(self.dtype)}'"
        )
    return _by_pairs(self, at) if self.is_complex() else aten._logcumsumexp(self, at)


def _nonzero_static(self: Tensor, size: int, fill_value: int = -1) -> Tensor:
    """The places of what is not zero, cut or filled to `size` rows; on the device throughout."""
    flat = aten.reshape(self != 0, (-1,))
    count = flat.shape[0]
    rank = aten.cumsum(aten.to(flat, dt.int64), 0) - 1
    places = aten.full((size + 1,), -1, dtype=dt.int64, device=self.device)
    goes = aten.logical_and(flat, rank < size)
    to = aten.where(goes, rank, aten.full_like(rank, size))
    linear = aten.arange(0, count, dtype=dt.int64, device=self.device)
    places = aten.narrow(aten.scatter(places, 0, to, linear), 0, 0, size)
    columns = []
    for n in reversed(self.shape):
        columns.append(aten.where(places < 0, fill_value, aten.remainder(places, max(n, 1))))
        places = aten.where(places < 0, places, aten.div(places, max(n, 1), rounding_mode="floor"))
    if not columns:
        return aten.zeros((size, 0), dtype=dt.int64, device=self.device)
    return aten.stack(columns[::-1], 1)


def _static_infer(self: Geometry, size: int, fill_value: int = -1) -> Geometry:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return self.fresh((size, self.ndim), dt.int64)


def _static_cpu(self: Array, size: int, fill_value: int) -> Array:
    built = np.empty((size, self.ndim), np.int64)
    places = self.nonzero() if self.ndim else ()
    count = min(size, len(places[0])) if places else 0
    for column, place in zip(built.T, places, strict=True):
        column[:count] = place[:count]
    built[count:] = fill_value
    return built


op(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    infer=_static_infer,
    cpu=_static_cpu,
    compute="raw",
    lower=_nonzero_static,
    grad={},
    summary="Indices of elements that are not 0, cut or filled to `size` rows.",
    samples=calls(Sample((Arg((3,), "int64", 0, 2),), {"size": 2})),
    out="{name}: Expected out tensor to have scalar type {Want} but got scalar type{Got}",
)


@composite(
    "unravel_index(Tensor indices, Any shape) -> Tensor[]",
    samples=calls((Arg((3,), "int64", 0, 5), (2, 3))),
    surface="function",
)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Places in a flattened tensor as coordinates, one tensor for each dimension."""
    if indices.dtype.category != dt.INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, Tensor) or not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    places, columns = tuple(indices.shape), []
    indices = aten.to(indices, dt.int64)
    indices = aten.reshape(indices, (-1,))  # columns lie side by side in one dim more
    for n in reversed(sizes):
        columns.append(aten.remainder(indices, max(n, 1)))
        indices = aten.div(indices, max(n, 1), rounding_mode="floor")
    if not columns:
        return ()
    table = aten.reshape(aten.stack(columns[::-1], -1), (*places, len(columns)))
    return tuple(aten.unbind(table, -1))
