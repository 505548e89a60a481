"""Rows that sort, rank, accumulate along a dimension, and find."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan, prod

from ...._compat.unsupported_dtypes import Refusal
from ...complex_parts import below_double, is_real
from ...rules import REAL_NUMBERS, Dynamic, broadcast, preserved, reduced, refuse_dtype
from ...samples import FLOATS
from ...words import *
from .statistics import evenly, one_of_line, place, placed

DTYPES = ("float32", "float64", "float16", "int64")


def _along_rule(self: Geometry, dim: int, *_: object, dtype: Dtype | None = None) -> Geometry:
    wrap_dim(dim, self.ndim)
    if dtype is None and self.dtype.category < dt.FLOAT:
        dtype = dt.int64
    return self.fresh(None, dtype)


# What torch's cpu accumulates in (ATen's `acc_type`).
_WIDER = {
    dt.float32: dt.float64, dt.complex64: dt.complex128,
    dt.float16: dt.float32, dt.bfloat16: dt.float32,
}  # fmt: skip


def _cumulative(kernel: Callable[..., Array]) -> Callable[..., Any]:
    def run(self: Array, dim: int, dtype: Dtype | None, *, out: Geometry) -> Array:
        wide = _WIDER.get(out.dtype, out.dtype).np
        return kernel(self, axis=dim, dtype=wide) if self.ndim else self.astype(wide)

    return run


def _reverse_cumsum(grad: Tensor, dim: int) -> Tensor:
    if not grad.ndim:
        return grad
    return aten.flip(aten.cumsum(aten.flip(grad, (dim,)), dim), (dim,))


def _no_truths(args: Mapping[str, Any]) -> bool:
    """Whether a call neither takes nor gives bool, which CANN's operators take to int64 at most."""
    return dt.bool not in (args["self"].dtype, args["out"].dtype)


def _of_truths(name: str) -> Callable[..., Tensor]:
    """The same of bools as numbers, and bools of numbers, each 0 or 1."""

    def lower(self: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
        ones = aten.to(aten.to(self, dt.bool), dt.int64)
        result: Tensor = aten.to(getattr(aten, name)(ones, dim), dtype or dt.int64)
        return result

    return lower


op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    summary="Running sum along `dim`.",
    infer=lambda self, dim, dtype=None: _along_rule(self, dim, dtype=dtype),
    cpu=_cumulative(np.cumsum),
    aclnn=call("aclnnCumsum", "self", "dim", lambda a: a["out"].dtype, "out",
               when=lambda a: _no_truths(a) or a["out"].dtype is dt.int64),
    lower=_of_truths("cumsum"),
    grad={"self": lambda grad, dim: _reverse_cumsum(grad, dim)},
    samples=lambda: [
        *(Sample((Arg((3, 4), d), 1)) for d in (*DTYPES, "bool")), Sample((Arg((2, 3, 4)), 0)),
        Sample((Arg(()), 0)),
    ],
    tolerance="accumulated", rule="statistic", out="decides",
    inplace=True,
    autocast="float32 on npu",
)  # fmt: skip


def _cumprod_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """Right where `self` has no zeros; where it has, by products without each element."""
    if not self.ndim or not self.numel() or self.shape[dim] == 1:
        return grad
    slopes = grad * aten.conj_of(result)
    if self.device.type == "meta" or not bool(aten.any(self == 0).item()):
        return _reverse_cumsum(slopes, dim) / aten.conj_of(self)
    if slopes.requires_grad:  # a derivative of this one is wanted, which masks would hide
        return _cumprod_grad_zeros(grad, aten.conj_of(self), dim)
    return _cumprod_grad_masked(grad, slopes, self, result, dim)


def _cumprod_grad_masked(
    grad: Tensor, slopes: Tensor, self: Tensor, result: Tensor, dim: int
) -> Tensor:
    """One pass each: before the first zero by division, at it by products of what follows, then 0.

    Nothing past the second zero is read, so that a NaN there reaches nobody, as in torch.
    """
    zeros = aten.cumsum(self == 0, dim)
    before, between = zeros == 0, zeros == 1
    early = _reverse_cumsum(aten.where(before, slopes, 0.0), dim) / aten.conj_of(self)
    at = aten.argmax(between.to(dt.uint8), dim, True)
    first = aten.logical_and(self == 0, between)
    tail = aten.where(aten.logical_and(between, aten.logical_not(first)), aten.conj_of(self), 1.0)
    after = aten.where(between, grad, 0.0) * aten.cumprod(tail, dim)
    head = aten.gather(aten.conj_of(result), dim, aten.clamp(at - 1, min=0))
    head = aten.where(at == 0, 1.0, head)
    late = aten.where(first, aten.sum(after, dim, True) * head, 0.0)
    return aten.where(before, early, late)


def _cumprod_grad_zeros(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    n = self.shape[dim]
    parts = []
    for k in range(n):
        head = aten.narrow(self, dim, 0, k)
        before = aten.prod_dim(head, dim, True)
        tail = aten.narrow(self, dim, k + 1, n - k - 1)
        one = aten.ones_like(before)
        after = aten.cumprod(aten.cat([one, tail], dim), dim)
        picked = aten.narrow(grad, dim, k, n - k) * after
        parts.append(before * aten.sum(picked, dim, True))
    return aten.cat(parts, dim)


def _products_otherwise(self: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    """Of complex numbers, in log2(n) products of all with those that stand 1, 2, 4 … before."""
    if (dtype or self.dtype).category != dt.COMPLEX:
        return _of_truths("cumprod")(self, dim, dtype)
    result = aten.clone(self) if dtype is None else aten.to(self, dtype)
    size, step = self.shape[dim] if self.ndim else 1, 1
    while step < size:
        head = aten.narrow(result, dim, 0, step)
        tail = aten.narrow(result, dim, step, size - step)
        result = aten.cat([head, tail * aten.narrow(result, dim, 0, size - step)], dim)
        step *= 2
    return result


op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    summary="Running product along `dim`.",
    infer=lambda self, dim, dtype=None: _along_rule(self, dim, dtype=dtype),
    cpu=_cumulative(np.cumprod),
    aclnn=call(
        "aclnnCumprod",
        "self",
        "dim",
        lambda a: a["out"].dtype,
        "out",
        when=lambda a: (
            (_no_truths(a) or a["out"].dtype is dt.int64) and a["out"].dtype.category != dt.COMPLEX
        ),
    ),
    lower=_products_otherwise,
    grad={"self": _cumprod_grad},
    samples=lambda: [
        *(Sample((Arg((3, 4), d, 0.5, 1.5), 1)) for d in ("float32", "float64", "int64")),
        Sample((Arg((2, 3), values=((1.0, 0.0, 2.0), (0.5, 3.0, 1.5))), 1)),
    ],
    tolerance="accumulated",
    rule="product",
    out="decides",
    inplace=True,
    autocast="float32 on npu",
)


def _sorted_rule(self: Geometry, dim: int = -1, *_: object) -> tuple[Geometry, Geometry]:
    wrap_dim(dim, self.ndim)
    return preserved(self), preserved(self, dt.int64)


def _running_rule(self: Geometry, dim: int, name: str) -> tuple[Geometry, Geometry]:
    if not self.ndim and dim not in (-1, 0):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    wrap_dim(dim, self.ndim)
    return self.fresh(), self.fresh(None, dt.int64)


def _running(name: str, kernel: np.ufunc, aclnn: str) -> None:
    def cpu(self: Array, dim: int) -> tuple[Any, Any]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        values = kernel.accumulate(self, axis=dim)
        steps = np.arange(self.shape[dim]).reshape(
            [-1 if d == dim % self.ndim else 1 for d in range(self.ndim)]
        )
        fresh = (self == values) | ((values != values) & (self != self))
        return values, np.maximum.accumulate(np.where(fresh, steps, 0), axis=dim)

    op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        summary=f"Running {name[3:]}imum along `dim`, and its indices.",
        infer=lambda self, dim: _running_rule(self, dim, name),
        cpu=cpu,
        compute="raw",
        aclnn=call(aclnn, "self", "dim", "values", "indices"),
        unsupported={"complex": f"{name}_cpu"},
        grad={
            "self": lambda grad_values, self_geom, indices, dim: aten.scatter_add(
                aten.zeros(
                    self_geom.shape, dtype=grad_values.dtype, device=grad_values.device
                ),
                dim, indices, grad_values,
            )
        },
        samples=lambda: [Sample((Arg((3, 4), d), 1)) for d in ("float32", "float64", "int64")],
        rule="extremum", out="expected scalar_type {Want} but found {Got}",
        surface="both",
    )  # fmt: skip


_running("cummax", np.maximum, "aclnnCummax")
_running("cummin", np.minimum, "aclnnCummin")


def _order(self: Array, dim: int, descending: bool) -> Array:
    if self.dtype.name == "bfloat16":
        self = self.astype(np.float32)  # numpy puts NaN last only in its own types
    if not descending:
        return np.argsort(self, axis=dim, kind="stable")
    # Stable and descending: sort the reversed array, then turn positions round.
    flipped = np.flip(self, dim)
    n = self.shape[dim]
    return n - 1 - np.flip(np.argsort(flipped, axis=dim, kind="stable"), dim)


def _sort(self: Array, dim: int, descending: bool, stable: bool | None) -> tuple[Any, Any]:
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    index = _order(self, dim, descending)
    return np.take_along_axis(self, index, dim), index


def _sorts(args: dict[str, Any]) -> bool:
    """Whether CANN's Sort is called: not of nothing, nor of float64, which its document does not
    list, while that of aclnnTopk does."""
    self = args["self"]
    return bool(self.numel) and self.dtype is not dt.float64


def _sort_otherwise(
    self: Tensor, dim: int, descending: bool, stable: bool | None
) -> tuple[Tensor, Tensor]:
    if not self.numel():
        return aten.clone(self), aten.to(self, dt.int64)
    size = self.shape[dim] if self.ndim else 1
    values, indices = aten.topk(self, size, dim, descending)
    if not stable or size < 2:
        return values, indices
    # Equals in the order of their places: whole numbers, which are sorted without moving groups.
    after, before = aten.narrow(values, dim, 1, size - 1), aten.narrow(values, dim, 0, size - 1)
    differ = aten.logical_and(after != before, aten.logical_or(after == after, before == before))
    first = aten.zeros_like(aten.narrow(indices, dim, 0, 1))
    groups = aten.cumsum(aten.cat([first, aten.to(differ, dt.int64)], dim), dim) * size
    return values, aten.sort(groups + indices, dim)[0] - groups


op(
    "sort(Tensor self, int dim=-1, bool descending=False, bool? stable=None)"
    " -> (Tensor values, Tensor indices)",
    summary="Elements sorted along `dim`, and their indices.",
    infer=_sorted_rule,
    cpu=_sort,
    compute="raw",
    aclnn=call(
        "aclnnSort",
        "self",
        True,
        "dim",
        "descending",
        "values",
        "indices",
        when=_sorts,
    ),
    lower=_sort_otherwise,
    grad={
        "self": lambda grad_values, self_geom, indices, dim: place(
            grad_values, self_geom, indices, dim, True
        )
    },
    unsupported={"complex": Refusal(" Sort does not support complex dtypes on CPU")},
    samples=lambda: [
        *(Sample((Arg((3, 7), d), 1)) for d in (*FLOATS, "int64", "uint8")),
        Sample((Arg((3, 4, 5)), 0, True)),
        Sample((Arg((9,), "int64", 0, 3), 0, True)),
    ],
    oracle=lambda torch: (
        lambda x, dim=-1, descending=False, stable=True: torch.sort(
            x, dim=dim, descending=descending, stable=True
        )
    ),
    rule="extremum",
    ties=True,
    out="expected",
    surface="both",
)


def _topk_rule(
    self: Geometry, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Geometry, Geometry]:
    if self.dtype not in REAL_NUMBERS:
        kind = "bool" if self.dtype is dt.bool else "complex"
        space = " " * self.dtype.is_complex  # as torch writes it
        raise RuntimeError(f"{space}topk does not support {kind} dtypes on CPU")
    at = wrap_dim(dim, self.ndim)
    size = self.shape[at] if self.ndim else 1
    if k < 0 or k > size:
        raise RuntimeError("selected index k out of range")
    shape = tuple(k if d == at else n for d, n in enumerate(self.shape))
    return self.fresh(shape), self.fresh(shape, dt.int64)


def _topk(self: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    index = _order(self, dim, largest)
    if largest and self.dtype.kind in "fV":
        index = _nan_first(self, index, dim)
    index = np.take(index, np.arange(k), axis=dim)
    return np.take_along_axis(self, index, dim), index


def _nan_first(self: Array, index: Array, dim: int) -> Array:
    is_nan = np.isnan(np.take_along_axis(self, index, dim))
    return np.take_along_axis(index, np.argsort(~is_nan, axis=dim, kind="stable"), dim)


op(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)"
    " -> (Tensor values, Tensor indices)",
    summary="The `k` largest (or smallest) elements along `dim`, and their indices.",
    infer=_topk_rule,
    cpu=_topk,
    compute="raw",
    aclnn=call("aclnnTopk"),
    grad={
        "self": lambda grad_values, self_geom, indices, dim: place(
            grad_values, self_geom, indices, dim, True
        )
    },
    samples=lambda: [
        *(Sample((Arg((3, 7), d), 3)) for d in FLOATS),
        Sample((Arg((3, 4, 5)), 2, 0, False)),
        Sample((Arg((5,), "int64", values=(3, 1, 4, 9, 5)), 2)),
    ],
    rule="extremum",
    ties=True,
    surface="both",
)


def refuse_empty(name: str, size: int, dim: int) -> None:
    """IndexError in torch's words where nothing is to be chosen from."""
    if not size:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _kth_rule(self: Geometry, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Geometry, ...]:
    refuse_dtype(self.dtype, "kthvalue_cpu", REAL_NUMBERS)
    at = wrap_dim(dim, self.ndim)
    size = self.shape[at] if self.ndim else 1
    refuse_empty("kthvalue", size, at)
    if not 0 < k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    shape = reduced(self.shape, (at,), keepdim) if self.ndim else ()
    return self.fresh(shape), self.fresh(shape, dt.int64)


def _kth(self: Array, k: int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    index = np.take(_order(self, dim, False), [k - 1], axis=dim)
    values = np.take_along_axis(self, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _kth_by_topk(self: Tensor, k: int, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values, indices = aten.topk(self, k, dim, False)
    if self.ndim:
        last = [aten.narrow(part, dim, k - 1, 1) for part in (values, indices)]
        values, indices = (aten.clone(p if keepdim else aten.squeeze(p, dim)) for p in last)
    return values, indices


op(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)"
    " -> (Tensor values, Tensor indices)",
    summary="The k-th smallest element along `dim`, and its index.",
    infer=_kth_rule,
    cpu=_kth,
    compute="raw",
    aclnn=call("aclnnKthvalue", when=below_double("self")),
    lower=_kth_by_topk,
    grad={"self": placed},
    samples=lambda: (
        [Sample((Arg((3, 7), d), 3)) for d in ("float32", "float64")]
        + [Sample((Arg((3, 4)), 1, 0, True))]
    ),
    rule="extremum",
    ties=True,
    out="output values must be of same type as input",
    surface="both",
)


def _median(self: Tensor) -> Tensor:
    if not self.numel():
        whole = self.dtype.category < dt.FLOAT
        return aten.full((), 0 if whole else nan, dtype=self.dtype, device=self.device)
    return _middle(aten.reshape(self, (-1,)), 0, False)[0]


def _median_cpu(self: Array) -> Array:
    if not self.size:
        return np.asarray(nan if self.dtype.kind == "f" else 0, self.dtype)
    flat = self.reshape(-1)
    if flat.dtype.kind == "f" and np.isnan(flat).any():
        return np.asarray(nan, flat.dtype)
    at = (flat.size - 1) // 2
    return np.asarray(np.partition(flat, at)[at])


def _middle(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median, or the first NaN where there is one, as torch has it."""
    size = self.shape[dim] if self.ndim else 1
    values, indices = aten.kthvalue(self, (size + 1) // 2, dim, keepdim)
    if self.dtype.category < dt.FLOAT or not self.ndim:
        return values, indices
    missing = aten.isnan(self)
    hidden = aten.any(missing, dim, keepdim)
    first = aten.argmax(aten.to(missing, dt.int32), dim, keepdim)
    return aten.where(hidden, nan, values), aten.where(hidden, first, indices)


op(
    "median(Tensor self) -> Tensor",
    summary="Median: the lower one of an even number of elements.",
    infer=lambda self: self.fresh(()),
    cpu=_median_cpu,
    lower=_median,
    grad={"self": evenly},
    unsupported={"bool complex": "median_cpu"},
    samples=calls((Arg((3, 5)),), (Arg((4,), "int64"),), (Arg(()),)),
    surface="both",
)
op(
    "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    summary="Lower median along `dim`, or nan where there is one, and its index.",
    infer=one_of_line("median"),
    lower=_middle,
    grad={"self": placed},
    unsupported={"bool complex": "median_out"},
    samples=calls((Arg((3, 5)), 1), (Arg((4, 3)), 0, True)),
    oracle=lambda torch: torch.median,
)
composite(
    "argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
    lambda self, dim=-1, descending=False, stable=False: aten.sort(self, dim, descending, stable)[
        1
    ],
    summary="Indices that sort `self` along `dim`.",
    unsupported={"complex": Refusal(" Sort does not support complex dtypes on CPU")},
    samples=calls(
        (Arg((3, 7)),), (Arg((3, 4)), 0, True), (Arg((4,), "int64", values=(3, 1, 2, 0)),)
    ),
)


def _masked_select_rule(self: Geometry, mask: Geometry) -> Dynamic:
    if mask.dtype is not dt.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return Dynamic(self.dtype, self.device, (prod(broadcast(mask.shape, self.shape)),))


def _of_one_shape(self: Array, mask: Array) -> tuple[Array, Array]:
    if self.shape == mask.shape:  # to ask numpy takes longer than to select a few
        return self, mask
    shape = np.broadcast_shapes(self.shape, mask.shape)
    return np.broadcast_to(self, shape), np.broadcast_to(mask, shape)


def _masked_select(self: Array, mask: Array) -> Array:
    self, mask = _of_one_shape(self, mask)
    return self[mask]


def _picked(self: Tensor, mask: Tensor) -> Tensor:
    shape = broadcast(self.shape, mask.shape)
    self, mask = (aten.reshape(aten.expand(t, shape), (-1,)) for t in (self, mask))
    return aten.index_select(self, 0, aten.reshape(aten.nonzero(mask), (-1,)))


op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    summary="Elements where `mask` is true: `[N]`.",
    infer=_masked_select_rule,
    cpu=_masked_select,
    compute="raw",
    aclnn=call("aclnnMaskedSelect", when=is_real),
    lower=_picked,
    grad={
        "self": lambda grad, self_geom, mask: aten.masked_scatter(
            aten.zeros(
                broadcast(self_geom.shape, mask.shape), dtype=grad.dtype, device=grad.device
            ),
            mask, grad,
        )
    },
    samples=lambda: [
        Sample((Arg((3, 4), d), Arg((4,), "bool")))
        for d in ("float32", "int64", "float64", "complex64")
    ],
    out="{name}(): self and result must have the same scalar type",
    apart=True,
)  # fmt: skip


def _masked_scatter_rule(self: Geometry, mask: Geometry, source: Geometry) -> Geometry:
    if mask.dtype is not dt.bool:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype"
            f" {scalar_name(mask.dtype)}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(self.dtype)} and {scalar_name(source.dtype)}"
        )
    return self.fresh(broadcast(mask.shape, self.shape))


def _masked_scatter(self: Array, mask: Array, source: Array) -> Array:
    self, full_mask = _of_one_shape(self, mask)
    result = self.copy()
    count = int(np.count_nonzero(full_mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    result[full_mask] = source.reshape(-1)[:count]
    return result


def _masked_scatter_device(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """By counting: the k-th true place takes the k-th element of source."""
    mask = aten.expand(mask, broadcast(self.shape, mask.shape))
    # Only a source of fewer elements than the mask can be too short: only then they are counted.
    if source.numel() < mask.numel() and int(aten.sum(mask).item()) > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    if not source.numel():
        return aten.clone(aten.expand(self, mask.shape))
    flat = aten.reshape(mask, (-1,))
    nth = aten.clamp(aten.cumsum(flat, 0) - 1, 0, source.numel() - 1)
    picked = aten.index_select(aten.reshape(source, (-1,)), 0, nth)
    return aten.where(mask, aten.reshape(picked, mask.shape), self)


def _fills_alike(a: dict[str, Any]) -> bool:
    """Whether the operator takes them: of one shape, with elements for every place."""
    target, mask, source = a["self"], a["mask"], a["source"]
    return is_real(a) and target.shape == mask.shape and source.numel >= target.numel


op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    summary="Elements of `source`, in order, where `mask` is true.",
    infer=_masked_scatter_rule,
    cpu=_masked_scatter,
    compute="raw",
    lower=_masked_scatter_device,
    aclnn=call(
        "aclnnInplaceMaskedScatter", "self", "mask", "source", inplace=True, when=_fills_alike
    ),
    grad={
        "self": lambda grad, mask: aten.masked_fill(grad, mask, 0),
        "source": lambda grad, mask, source_geom: _masked_source(grad, mask, source_geom),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d), Arg((3, 4), "bool"), Arg((3, 4), d))) for d in ("float32", "int64")
    ],
    inplace=True,
)


def _masked_source(grad: Tensor, mask: Tensor, geom: Geometry) -> Tensor:
    if grad.device.type == "meta":
        return aten.empty(geom.shape, dtype=grad.dtype, device=grad.device)
    values = aten.masked_select(grad, mask)
    rest = geom.numel - values.numel()
    if rest:
        pad = aten.zeros((rest,), dtype=grad.dtype, device=grad.device)
        values = aten.cat([values, pad], 0)
    return aten.reshape(values, geom.shape)
