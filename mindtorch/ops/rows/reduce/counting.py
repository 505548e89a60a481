"""Rows that count and rank: distinct elements, histograms, quantiles, places in sorted rows."""

from __future__ import annotations

from math import isfinite
from types import ModuleType

from ...._compat.unsupported_dtypes import kernel
from ...._compat.warn_once import warn_once
from ...._tensor.host_values import host_values
from ...fields import AclnnCall
from ...rules import (
    REAL,
    Dynamic,
    reduced,
    refuse_dtype,
    result_type,
    without_derivative,
    wrap_dims,
)
from ...samples import INTS
from ...spec import in_dtypes
from ...words import *

_REPEATED = Arg((2, 4), "int64", values=((3, 1, 3, 2), (1, 1, 2, 3)))
_ROWS = Arg((4, 2), "int64", values=((2, 1), (0, 5), (2, 1), (0, 4)))


def _requested(
    values: Tensor, inverse: object, counts: object, with_inverse: bool, with_counts: bool
) -> Any:
    results = [values] + ([inverse] if with_inverse else []) + ([counts] if with_counts else [])
    return results[0] if len(results) == 1 else tuple(results)


def _unique_dim_rule(self: Geometry, dim: int) -> tuple[Dynamic, Dynamic, Dynamic]:
    at = wrap_dim(dim, self.ndim)
    size = self.shape[at]
    return (
        Dynamic(self.dtype, self.device, self.shape),
        Dynamic(dt.int64, self.device, (size,)),
        Dynamic(dt.int64, self.device, (size,)),
    )


def _unique_dim(self: Array, dim: int) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return np.ascontiguousarray(values), inverse.reshape(-1), counts


op(
    "_unique_dim(Tensor self, int dim) -> (Tensor values, Tensor inverse, Tensor counts)",
    infer=_unique_dim_rule,
    cpu=_unique_dim,
    compute="raw",
    aclnn=call("aclnnUniqueDim", "self", True, True, "dim", "values", "inverse", "counts"),
    grad={"self": without_derivative("unique_dim")},
    unsupported={"complex": "unique_dim"},
    samples=calls((_ROWS, 0), (Arg((3, 2, 2), "int32", 0, 1), 0)),
    oracle=lambda torch: lambda x, dim: torch.unique(x, True, True, True, dim),
)


def _unique(self: Array, inverse: bool, counts: bool) -> tuple[Array, ...]:
    if inverse or counts:
        return np.unique(self, return_inverse=True, return_counts=True, equal_nan=False)
    ordered = np.sort(self)
    return _unique_consecutive(ordered, False, False)


def _unique_consecutive(self: Array, inverse: bool, counts: bool) -> tuple[Array, ...]:
    size = len(self)
    starts = np.ones(size, bool)
    changed = self[1:] != self[:-1]
    starts[1:] = changed if self.ndim == 1 else changed.any(tuple(range(1, self.ndim)))
    none = np.empty(0, np.int64)
    return (
        self[starts],
        np.cumsum(starts) - 1 if inverse else none,
        np.diff(np.flatnonzero(starts), append=size) if counts else none,
    )


def _distinct(
    name: str, operator: str, kernel: Callable[..., Any], call_: AclnnCall, *samples: Any
) -> None:
    """A row of (tensor, whether the inverse is wanted, whether the counts are): what is not is
    empty, or on npu given all the same."""
    op(
        f"{name}(Tensor self, bool return_inverse, bool return_counts)"
        " -> (Tensor values, Tensor inverse, Tensor counts)",
        infer=lambda self, inverse, counts: _unique_dim_rule(self, 0),
        cpu=kernel,
        compute="raw",
        aclnn=call_,
        grad={"self": without_derivative(operator)},
        unsupported={"complex": "unique"},
        samples=calls(*((sample, True, True) for sample in samples)),
        oracle=lambda torch: _oracle(torch, name),
        surface="none",
        fixed_shape=True,
    )


def _oracle(torch: ModuleType, name: str) -> Callable[..., Any]:
    if name == "_unique_sorted":
        return lambda x, inverse, counts: torch.unique(x, True, inverse, counts)
    return lambda x, inverse, counts: torch.unique_consecutive(x, inverse, counts, 0)


_LINE = Arg((8,), "int64", values=(3, 1, 3, 2, 2, 1, 1, 3))
_DISTINCT = ("values", "inverse", "counts")
_distinct(
    "_unique_sorted",
    "_unique2",
    _unique,
    call("aclnnUnique2", "self", True, True, True, *_DISTINCT),
    _LINE,
)
_distinct(
    "_unique_rows",
    "unique_consecutive",
    _unique_consecutive,
    call("aclnnUniqueConsecutive", "self", True, True, 0, *_DISTINCT),
    _LINE,
    Arg((4, 2), "int32", values=((2, 1), (2, 1), (0, 4), (2, 1))),
)


@composite(
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False,"
    " int? dim=None) -> Tensor",
    unsupported={"complex": "unique"},
    samples=calls(
        (_REPEATED,),
        (_REPEATED, True, True, True),
        (_ROWS, True, True, True, 0),
        (_ROWS, True, False, False, 1),
    ),
    # torch's `unique` is written in Python under a name that Tensor has too.
    oracle=lambda torch: torch.unique,
)
def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor:
    """The distinct elements in order, and if asked where each went and how many there were."""
    if dim is not None:
        _refuse_empty(self, dim)
        slices = aten.movedim(self, dim, 0)
        values, inverse, counts = aten._unique_dim(slices, 0)
        values = aten.movedim(values, 0, dim)
        return _requested(values, inverse, counts, return_inverse, return_counts)
    flat = aten.reshape(self, (-1,))
    values, inverse, counts = aten._unique_sorted(flat, return_inverse, return_counts)
    if return_inverse:
        inverse = aten.reshape(inverse, self.shape)
    return _requested(values, inverse, counts, return_inverse, return_counts)


def _refuse_empty(self: Tensor, dim: int) -> None:
    """RuntimeError in torch's words for slices without elements."""
    empty = self.shape.count(0)
    if self.ndim and not self.shape[wrap_dim(dim, self.ndim)]:
        if empty > 1:
            raise RuntimeError(
                "Number of zero sized dimensions is more than one, so unique cannot be applied "
            )
    elif empty:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )


@composite(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False,"
    " int? dim=None) -> Tensor",
    unsupported={"complex": "unique"},
    samples=calls(
        (_REPEATED,),
        (_REPEATED, True, True),
        (Arg((3, 2), "int64", values=((1, 2), (1, 2), (0, 2))), True, True, 0),
    ),
    oracle=lambda torch: torch.unique_consecutive,
)
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor:
    """The elements, or the slices along `dim`, without those equal to the one before."""
    if dim is not None:
        _refuse_empty(self, dim)
    line = aten.reshape(self, (-1,)) if dim is None else aten.movedim(self, dim, 0)
    values, inverse, counts = aten._unique_rows(line, return_inverse, return_counts)
    if dim is not None:
        values = aten.movedim(values, 0, dim)
    elif return_inverse:
        inverse = aten.reshape(inverse, self.shape)
    return _requested(values, inverse, counts, return_inverse, return_counts)


@composite(
    "quantile(Tensor self, Tensor|Scalar q, int? dim=None, bool keepdim=False, *,"
    " str interpolation='linear') -> Tensor",
    samples=calls(
        (Arg((3, 5)), 0.3),
        (Arg((3, 5)), Arg((2,), values=(0.25, 0.8), grad=False), 1, True),
        Sample((Arg((3, 4)), 0.3, 0), {"interpolation": "lower"}),
        Sample((Arg((3, 4)), 0.3, 0), {"interpolation": "other"}, error=True),
    ),
    tolerance="accumulated",
    out="{name}() out tensor must be same dtype as the input tensor",
    autocast="float32 on cpu",
)
def quantile(
    self: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
    ignore_nan: bool = False,
) -> Tensor:
    """The q-th quantiles (q in [0, 1], a number or a 1-d tensor) of all, or along a dimension."""
    number = None if isinstance(q, Tensor) or ignore_nan else float(q)
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        device = self.device if number is None else "cpu"
        q = aten.full((), float(q), dtype=self.dtype, device=device)
    _check_quantile(self, q, interpolation)
    at = 0 if dim is None else wrap_dim(dim, self.ndim)
    known = host_values(q)
    if known is not None and not bool(aten.all(aten.logical_and(known >= 0, known <= 1)).item()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    flat = aten.reshape(self, (-1,)) if dim is None or not self.ndim else self
    if flat.shape[at] > 2**24:
        raise RuntimeError("quantile() input tensor is too large")
    rows = aten.sort(aten.movedim(flat, at, -1), -1)[0]
    ways: dict[str, Any] = {"lower": aten.floor, "higher": aten.ceil, "nearest": aten.round}
    if number is not None:
        values = _at_rank(rows, number, interpolation)
    elif interpolation in ways:
        ranks = _ranks(rows, aten.reshape(q, (-1,)), ignore_nan)
        values = aten.gather(rows, -1, aten.to(ways[interpolation](ranks), dt.int64))
    else:
        ranks = _ranks(rows, aten.reshape(q, (-1,)), ignore_nan)
        low = aten.floor(ranks)
        ends = [aten.gather(rows, -1, aten.to(p, dt.int64)) for p in (low, aten.ceil(ranks))]
        weight = aten.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - low
        values = aten.lerp(ends[0], ends[1], weight)
    if keepdim and dim is None:
        values = aten.reshape(values, (*(1,) * self.ndim, values.shape[0]))
    elif keepdim and self.ndim:
        values = aten.unsqueeze(values, at)
    values = aten.movedim(values, -1, 0)
    return values if q.ndim else aten.squeeze(values, 0)


def _check_quantile(self: Tensor, q: Tensor, interpolation: str) -> None:
    ways = ("linear", "lower", "higher", "midpoint", "nearest")
    if interpolation not in ways:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest,"
            f" but got {interpolation}"
        )
    if not self.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self.dtype not in (dt.float32, dt.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if self.dtype is not q.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")


def _at_rank(rows: Tensor, q: float, interpolation: str) -> Tensor:
    """The quantile of sorted rows, `[…, 1]`, at a rank that the host computes; the last element
    where that is NaN."""
    kind = np.float32 if rows.dtype is dt.float32 else np.float64
    rank = kind(q) * kind(rows.shape[-1] - 1)
    ways: dict[str, Any] = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}
    if interpolation in ways:
        values = aten.narrow(rows, -1, int(ways[interpolation](rank)), 1)
    else:
        low = np.floor(rank)
        weight = 0.5 if interpolation == "midpoint" else float(rank - low)
        first, second = (aten.narrow(rows, -1, int(at), 1) for at in (low, np.ceil(rank)))
        values = aten.lerp(first, second, weight)
    last = aten.narrow(rows, -1, rows.shape[-1] - 1, 1)
    return aten.where(aten.isnan(last), last, values)


def _ranks(rows: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Where quantiles lie in sorted rows, `[…, Q]`: at the last element where that is NaN."""
    last = rows.shape[-1] - 1
    holes = aten.isnan(rows)
    if ignore_nan:
        known = aten.sum(aten.to(aten.logical_not(holes), rows.dtype), -1, True)
        return aten.clamp_min(q * (known - 1), 0)
    ranks = aten.expand(q * last, (*rows.shape[:-1], q.shape[0]))
    spoiled = aten.unsqueeze(aten.any(holes, -1), -1)
    return aten.where(spoiled, aten.full_like(ranks, last), ranks)


@composite(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    unsupported={"whole": kernel("histogram_cpu", cpu_alone=True)},
    samples=calls((Arg((20,), grad=False), 4), (Arg((3, 4), grad=False), 5, -1, 1)),
)
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts of elements in `bins` equal bins between `min` and `max` (the data's where equal)."""
    low, high = float(min), float(max)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high and self.numel() and self.is_complex():
        refuse_dtype(self.dtype, "aminmax_cpu", REAL)
    if low == high and self.numel() and self.device.type != "meta":
        low, high = float(aten.amin(self).item()), float(aten.amax(self).item())
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    return aten._histc(self, bins, float(low), float(high))


def _counted_in_parts(self: Tensor, bins: int, low: float, high: float) -> Tensor:
    flat = aten.reshape(self, (-1,))
    inside = aten.logical_and(flat >= low, flat <= high)
    place = aten.where(inside, aten.floor((flat - low) * (bins / (high - low))), 0)
    index = aten.to(aten.clamp(place, 0, bins - 1), dt.int64)
    counts = aten.zeros((bins,), dtype=self.dtype, device=self.device)
    return counts.scatter_add_(0, index, aten.to(inside, self.dtype))


op(
    "_histc(Tensor self, int bins, float low, float high) -> Tensor",
    infer=lambda self, bins, low, high: self.fresh((bins,)),
    lower=_counted_in_parts,
    aclnn=call("aclnnHistc", when=in_dtypes("self", "float32")),
    grad={},
    unsampled="histc is held against torch",
)


_NO_COUNTS = "bincount only supports 1-d non-negative integral inputs."


def _bincount_infer(self: Geometry, weights: Geometry | None = None, minlength: int = 0) -> Dynamic:
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.ndim != 1 or self.dtype.is_floating_point:
        raise RuntimeError(_NO_COUNTS)
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None:
        return Dynamic(dt.int64, self.device)
    return Dynamic(dt.float32 if weights.dtype is dt.float32 else dt.float64, self.device)


def _bincount_cpu(self: Array, weights: Array | None, minlength: int) -> Array:
    if self.size and self.min() < 0:
        raise RuntimeError(_NO_COUNTS)
    return np.bincount(self, weights, minlength)


def _bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    if self.numel() and int(aten.amin(self).item()) < 0:
        raise RuntimeError(_NO_COUNTS)
    size = max(minlength, int(aten.amax(self).item()) + 1 if self.numel() else 0)
    if weights is not None and weights.dtype is not dt.float32:
        weights = aten.to(weights, dt.float64)  # as torch sums them
    return aten._bincount(self, weights, size)


op(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    infer=_bincount_infer,
    cpu=_bincount_cpu,
    lower=_bincount,
    grad={},
    summary="How often each value occurs, or the sum of its weights.",
    unsupported={"bool half real complex": "bincount_cpu"},
    samples=calls(
        (Arg((6,), "int64", 0, 4),),
        Sample(
            (Arg((6,), "int64", 0, 4), Arg((6,), grad=False), 8),
            dtypes=("float32", "float64", "float16", "bfloat16"),
        ),
    ),
    tolerance="accumulated",
)


def _counted(self: Array, weights: Array | None, size: int) -> Array:
    return np.bincount(self, weights, size)


op(
    "_bincount(Tensor self, Tensor? weights, int size) -> Tensor",
    infer=lambda self, weights, size: self.fresh(
        (size,), dtype=dt.int64 if weights is None else weights.dtype
    ),
    cpu=_counted,
    aclnn=call("aclnnBincount"),
    grad={},
    samples=calls(
        (Arg((6,), "int64", 0, 4), None, 5), (Arg((6,), "int64", 0, 4), Arg((6,), grad=False), 8)
    ),
    oracle=lambda torch: torch.bincount,
    tolerance="accumulated",
    fixed_shape=True,
)


def _refuse_boundaries(edges: Tensor, values: Tensor | Number) -> None:
    """RuntimeError in torch's words where rows of boundaries and of values do not pair up."""
    if not edges.ndim and isinstance(values, Tensor) and values.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0"
            " dimension"
        )
    if not edges.ndim:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor"
            " dimension is 1, but we got boundaries tensor dim(0) and input value's dim("
            f"{values.ndim if isinstance(values, Tensor) else 0}) numel("
            f"{values.numel() if isinstance(values, Tensor) else 1})"
        )
    shape = values.shape if isinstance(values, Tensor) else ()
    if edges.ndim == 1 or (shape and edges.shape[:-1] == shape[:-1]):
        return
    if not shape:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor"
            f" dimension is 1, but we got boundaries tensor dim({edges.ndim}) and input value's"
            " dim(0) numel(1)"
        )
    raise RuntimeError(
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions"
        " of boundaries tensor and input value tensor must match, but we got boundaries tensor"
        f" {list(edges.shape)} and input value tensor {list(shape)}"
    )


@composite(
    "searchsorted(Tensor sorted_sequence, Tensor|Scalar self, *, bool out_int32=False,"
    " bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    unsupported={"bool complex": "searchsorted_out_cpu"},
    samples=calls(
        (
            Arg((5,), values=(1, 3, 3, 5, 7), grad=False),
            Arg((2, 2), values=((0, 3), (4, 9)), grad=False),
        ),
        Sample(
            (Arg((4,), values=(1, 3, 3, 5), grad=False), 3.0), {"right": True, "out_int32": True}
        ),
        # Integers that no double holds, and NaN, which lies behind all numbers.
        (
            Arg((4,), "int64", values=tuple(2**53 + n for n in (0, 1, 3, 5)), grad=False),
            Arg((4,), "int64", values=tuple(2**53 + n for n in (1, 2, 3, 4)), grad=False),
        ),
        (
            Arg((4,), values=(1, 3, 3, 5), grad=False),
            Arg((3,), values=(float("nan"), 4, 3), grad=False),
        ),
        Sample(
            (
                Arg((4,), values=(1, 3, 3, 5), grad=False),
                Arg((3,), values=(float("nan"), 4, 3), grad=False),
            ),
            {"right": True},
        ),
    ),
    out="places",
    surface="function",
)
def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor | Number,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where values would go into a sorted last dimension: before equal elements, or after."""
    _refuse_boundaries(sorted_sequence, self)
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left"
            " while right was True"
        )
    operands = (("input value", self), ("boundary", sorted_sequence), ("sorter", sorter))
    for what, t in operands:
        if isinstance(t, Tensor) and not t.is_contiguous():
            warn_once(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the"
                " performance due to extra data copy when converting non-contiguous tensor to"
                f" contiguous, please use contiguous {what} tensor if possible. This message will"
                " only appear once per program."
            )
    if sorter is not None:
        sorted_sequence = _in_order(sorted_sequence, sorter)
    if not isinstance(self, Tensor):
        sorted_sequence, self = _beside_number(sorted_sequence, self)
    places = aten._searchsorted(sorted_sequence, self, right or side == "right")
    return aten.to(places, dt.int32) if out_int32 else places


def _beside_number(edges: Tensor, number: Number) -> tuple[Tensor, Tensor]:
    """Edges and a number in their common dtype, into which the number wraps as torch's does."""
    common = result_type((edges._geom, number))
    real = dt.float64 if edges.device.type == "cpu" else dt.float32
    wide = real if isinstance(number, float) else dt.int64
    value = aten.to(aten.full((), number, dtype=wide, device=edges.device), common)
    return aten.to(edges, common), value


def _in_order(edges: Tensor, sorter: Tensor) -> Tensor:
    if sorter.shape != edges.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary"
            f" tensor {list(edges.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype is not dt.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype"
            f" {sorter.dtype.legacy}"
        )
    out = aten.logical_or(sorter < 0, sorter >= edges.shape[-1])
    if not sorter.is_meta and bool(aten.any(out)):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return aten.gather(edges, -1, sorter)


def _bisect(edges: Tensor, values: Tensor, above: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The first place whose edge is `above` a value, by halves: what is not sorted, NaN too, ends
    where torch's search ends."""
    size = edges.shape[-1]
    low = aten.zeros(values.shape, dtype=dt.int64, device=values.device)
    high = low + size
    for _ in range(size.bit_length()):
        middle = aten.bitwise_right_shift(low + high, 1)
        place = aten.clamp_max(middle, size - 1)
        seen = aten.take(edges, place) if edges.ndim == 1 else aten.gather(edges, -1, place)
        up = aten.logical_and(aten.logical_not(above(seen, values)), low < high)
        low, high = aten.where(up, middle + 1, low), aten.where(up, high, middle)
    return low


def _search(edges: Array, values: Array, right: bool) -> Array:
    """`_bisect` in numpy, whose own search is taken for one row that is sorted."""
    if edges.ndim == 1 and edges.dtype.kind != "c":
        ordered = bool((edges[1:] >= edges[:-1]).all()) and bool((edges[-1:] == edges[-1:]).all())
        if ordered:
            return np.asarray(np.searchsorted(edges, values, "right" if right else "left"))
    size, above = edges.shape[-1], np.greater if right else np.greater_equal
    low = np.zeros(values.shape, np.int64)
    high = low + size
    for _ in range(size.bit_length()):
        middle = (low + high) >> 1
        place = np.minimum(middle, size - 1)
        seen = edges[place] if edges.ndim == 1 else np.take_along_axis(edges, place, -1)
        up = ~above(seen, values) & (low < high)
        low, high = np.where(up, middle + 1, low), np.where(up, high, middle)
    return low


def _searched(edges: Tensor, values: Tensor, right: bool) -> Tensor:
    if values.dtype is dt.bfloat16:  # float32 holds its values in their order
        return aten._searchsorted(edges.to(dt.float32), values.to(dt.float32), right)
    return _bisect(edges, values, aten.gt if right else aten.ge)


# The search alone, after torch's checks; CANN's document lists the dtypes.
op(
    "_searchsorted(Tensor sorted_sequence, Tensor self, bool right) -> Tensor",
    infer=lambda sorted_sequence, self, right: self.fresh(dtype=dt.int64),
    cpu=_search,
    lower=_searched,
    aclnn=call(
        "aclnnSearchSorted", "sorted_sequence", "self", False, "right", None, "out",
        when=in_dtypes("self", "float16", "float32", "float64", *INTS),
    ),
    grad={},
    samples=calls(
        (Arg((5,), values=(1, 3, 3, 5, 7)), Arg((2, 3), low=0, high=8), True),
        (Arg((2, 3), values=((1, 3, 5), (2, 2, 4))), Arg((2, 4), low=0, high=6), False),
    ),
    oracle=lambda torch: lambda edges, x, right: torch.searchsorted(edges, x, right=right),
    fixed_shape=True,
)  # fmt: skip


@composite(
    "bucketize(Tensor|Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False)"
    " -> Tensor",
    unsupported={"bool complex": "searchsorted_out_cpu"},
    samples=calls((Arg((2, 3), grad=False), Arg((3,), values=(-1, 0, 1), grad=False))),
    out="places",
    surface="function",
)
def bucketize(
    self: Tensor | Number, boundaries: Tensor, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The index of the bucket that each element falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


def _hash_infer(
    self: Geometry, dim: tuple[int, ...] = (), keepdim: bool = False, mode: int = 0
) -> Geometry:
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if self.dtype.category == dt.COMPLEX or self.dtype in dt.STORED:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{self.dtype.legacy}'")
    dims = wrap_dims(dim, self.ndim)
    empty = [d for d in dims if not self.shape[d]]
    if empty and dim:
        raise IndexError(f"hash_tensor: Expected reduction dim {empty[0]} to have non-zero size.")
    if empty:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify"
            " the reduction dim with the 'dim' argument."
        )
    return self.fresh(reduced(self.shape, dims, keepdim), dt.uint64)


def _hash(self: Array, dim: tuple[int, ...], keepdim: bool, mode: int) -> Array:
    """The exclusive or of all elements: reals by their bits as doubles."""
    wide = self.astype(np.float64 if self.dtype.kind == "f" else np.int64)
    dims = wrap_dims(dim, self.ndim)
    result: Array = np.bitwise_xor.reduce(wide.view(np.uint64), axis=dims, keepdims=True)
    return result if keepdim else result.squeeze(dims)


op(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    infer=_hash_infer,
    cpu=_hash,
    grad={},
    unsampled="its result is uint64, which check and the laws do not compare",
    absent={"npu": "CANN has no kernel of 64 unsigned bits that reduces"},
    surface="both",
)
