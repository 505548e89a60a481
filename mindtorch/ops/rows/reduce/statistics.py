"""Rows of means, products, extremes, variances, norms and truth reductions."""

from __future__ import annotations

from functools import cache
from math import prod as product

from ...._compat.unsupported_dtypes import Refusal
from ...._compat.warn_once import warn
from ...complex_parts import below_double, is_real
from ...rules import REAL, reduced, reduction, refuse_dtype, wrap_dims
from ...samples import FLOATS, reduction as reduction_samples
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *
from .sums import axes, grow, sum_cpu

_EXTREMES = {"max": "Largest", "min": "Smallest"}
_SPREADS = {"var": "Variance", "std": "Standard deviation"}


def _np_axes(dim: tuple[int, ...] | None, self: Array) -> tuple[int, ...]:
    return axes(dim, self.ndim)


def _float_only(name: str) -> Callable[..., Any]:
    rule = reduction("same")

    def infer(
        self: Geometry,
        dim: tuple[int, ...] | None = None,
        keepdim: bool = False,
        dtype: Dtype | None = None,
    ) -> Geometry:
        dtype_out = dtype or self.dtype
        if dtype_out.category < dt.FLOAT:
            source = "Optional" if dtype else "Input"
            raise RuntimeError(
                f"{name}(): could not infer output dtype. {source} dtype must be either a floating"
                f" point or complex dtype. Got: {dtype_out.legacy}"
            )
        return rule(self, dim, keepdim, dtype)

    return infer


def _mean(
    self: Array, dim: tuple[int, ...] | None, keepdim: bool, dtype: Dtype | None, *, out: Geometry
) -> Array:
    wide = np.dtype(np.float32) if out.dtype.itemsize == 2 else out.dtype.np
    axes = _np_axes(dim, self)
    count = product(self.shape[d] for d in axes)
    return self.sum(axes, wide, keepdims=keepdim) / wide.type(count)


def _count(geom: Geometry, dim: tuple[int, ...] | None) -> int:
    return product(geom.shape[d] for d in axes(dim, geom.ndim))


op(
    "mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    summary="Mean of all elements, or along `dim`.",
    infer=_float_only("mean"),
    cpu=_mean,
    aclnn=call(
        "aclnnMean", "self", lambda a: axes(a["dim"], a["self"].ndim), "keepdim",
        lambda a: a["out"].dtype, "out", when=lambda a: a["self"].dtype is not dt.bool,
    ),
    lower=lambda self, dim=None, keepdim=False, dtype=None: aten.mean(
        aten.to(self, dtype), dim, keepdim
    ),
    grad={
        "self": lambda grad, self_geom, dim, keepdim: (
            grow(grad, self_geom, dim, keepdim) / _count(self_geom, dim)
        )
    },
    samples=reduction_samples(("float32", "float64", "float16", "bfloat16")),
    tolerance="accumulated", rule="statistic",
)  # fmt: skip


def _extreme(name: str, cpu: Callable[..., Array], aclnn: str) -> None:
    def infer(self: Geometry, dim: tuple[int, ...] = (), keepdim: bool = False) -> Geometry:
        refuse_dtype(self.dtype, f"{name[1:]}_values_cpu", REAL)
        dims = wrap_dims((dim,) if isinstance(dim, int) else dim, self.ndim)
        empty = [d for d in dims if not self.shape[d]]
        if empty and dim not in ((), None):
            raise IndexError(f"{name}(): Expected reduction dim {empty[0]} to have non-zero size.")
        if empty:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                " Specify the reduction dim with the 'dim' argument."
            )
        return self.fresh(reduced(self.shape, dims, keepdim))

    op(
        f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        summary=f"{_EXTREMES[name[1:]]} element along `dim`.",
        infer=infer,
        cpu=lambda self, dim, keepdim: cpu(self, axis=_np_axes(dim, self), keepdims=keepdim),
        compute="raw",
        aclnn=call(aclnn, "self", lambda a: axes(a["dim"], a["self"].ndim), "keepdim", "out"),
        grad={
            "self": lambda grad, self, result, dim, keepdim: _share(
                grad, self, result, dim, keepdim
            )
        },
        samples=reduction_samples(("float32", "float64", "int64")),
        rule="extremum",
        out="Expected the dtype for input and out to match, but got {Want} for input's dtype"
        " and {Got} for out's dtype.",
    )


def _share(
    grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...] | None, keepdim: bool
) -> Tensor:
    """The gradient split evenly among the elements equal to the extreme."""
    mask = self == grow(result, self._geom, dim, keepdim)
    count = aten.sum(aten.to(mask, grad.dtype), axes(dim, self.ndim), True)
    spread = grow(grad, self._geom, dim, keepdim)
    return spread / count * aten.to(mask, grad.dtype)


def evenly(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The gradient of one element told of all, split among those equal to it, NaN to NaN."""
    mask = self == result
    if self.is_floating_point():
        mask = aten.logical_or(mask, aten.logical_and(aten.isnan(self), aten.isnan(result)))
    weights = aten.to(mask, grad.dtype)
    return weights * (grad / aten.sum(weights))


_extreme("amax", np.max, "aclnnAmax")
_extreme("amin", np.min, "aclnnAmin")


def _whole_extreme(name: str, cpu: Callable[..., Array], aclnn: str) -> None:
    def infer(self: Geometry) -> Geometry:
        if not self.numel:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                " Specify the reduction dim with the 'dim' argument."
            )
        return self.fresh(())

    op(
        f"{name}(Tensor self) -> Tensor",
        infer=infer,
        cpu=lambda self: np.asarray(cpu(self)),
        summary=f"{_EXTREMES[name]} element; along `dim` with its index.",
        compute="raw",
        aclnn=call(aclnn, "self", "out"),
        grad={"self": evenly},
        unsupported={"complex": f"{name}_all"},
        samples=lambda: [
            Sample((Arg(s, d),)) for s in ((3, 4), ()) for d in (*FLOATS, "int64", "uint8")
        ],
        rule="extremum",
        surface="both",
    )


_whole_extreme("max", np.max, "aclnnMax")
_whole_extreme("min", np.min, "aclnnMin")


def one_of_line(name: str) -> Callable[..., Any]:
    """Rule of `(self, dim, keepdim)` for an element of each line along `dim`, and its place."""

    def infer(self: Geometry, dim: int, keepdim: bool = False) -> tuple[Geometry, Geometry]:
        if self.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}(): does not support complex input")
        at = wrap_dim(dim, self.ndim)
        if self.ndim and not self.shape[at]:
            raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")
        shape = reduced(self.shape, (at,), keepdim) if self.ndim else ()
        return self.fresh(shape), self.fresh(shape, dt.int64)

    return infer


def _gathered(self: Array, index: Array | int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    wide = np.expand_dims(index, dim)
    values = np.take_along_axis(self, wide, dim)
    return (values, wide) if keepdim else (values.squeeze(dim), index)


def place(grad: Tensor, geom: Geometry, indices: Tensor, dim: int, keepdim: bool) -> Tensor:
    """`grad` put where `indices` point along `dim`, zero elsewhere."""
    zeros = aten.zeros(geom.shape, dtype=grad.dtype, device=grad.device)
    if not geom.ndim:
        return zeros + grad
    if not keepdim:
        grad, indices = aten.unsqueeze(grad, dim), aten.unsqueeze(indices, dim)
    return aten.scatter_src(zeros, dim, indices, grad)


def placed(
    grad_values: Tensor, self_geom: Geometry, indices: Tensor, dim: int, keepdim: bool
) -> Tensor:
    """The gradient of elements that were chosen along `dim`."""
    return place(grad_values, self_geom, indices, dim, keepdim)


def _arg_first(find: Callable[..., Array]) -> Callable[..., Any]:
    """np.argmax's rule for NaN holds torch's too: the first NaN wins."""
    return lambda self, dim: find(self.astype(np.int8) if self.dtype == bool else self, axis=dim)


def _dim_extreme(name: str, find: Callable[..., Array], aclnn: str) -> None:
    def picked(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
        indices = getattr(aten, f"arg{name}")(self, dim, True)
        values = aten.gather(self, dim, indices) if self.ndim else aten.clone(self)
        if keepdim or not self.ndim:
            return values, indices
        return aten.squeeze(values, dim), aten.squeeze(indices, dim)

    op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        summary=f"{_EXTREMES[name]} element along `dim` and its index.",
        infer=one_of_line(name),
        cpu=lambda self, dim, keepdim: _gathered(
            self, find(self, dim) if self.ndim else 0, dim, keepdim
        ),
        compute="raw",
        aclnn=call(aclnn, "self", "dim", "keepdim", "values", "indices", when=below_double("self")),
        lower=picked,
        grad={"self": placed},
        samples=lambda: [
            *(Sample((Arg((3, 4), d), 1)) for d in ("float32", "float64", "int64")),
            Sample((Arg((2, 3, 4)), 0, True)),
            Sample((Arg((2, 3, 4)), -2)),
        ],
        oracle=lambda torch: getattr(torch, name),
        rule="extremum",
    )
    composite(
        f"{name}.other(Tensor self, Tensor other) -> Tensor",
        lambda self, other: getattr(aten, f"{name}imum")(self, other),
        samples=calls(
            (Arg((2, 3)), Arg((3,), low=-1)), (Arg((2,), "int64"), Arg((2,), "int64", 0))
        ),
        oracle=lambda torch: getattr(torch, name),
        rule="extremum",
    )


_dim_extreme("max", _arg_first(np.argmax), "aclnnMaxDim")
_dim_extreme("min", _arg_first(np.argmin), "aclnnMinDim")


def _arg(name: str, find: Callable[..., Any], aclnn: str) -> None:
    unsupported = {
        kind: Refusal(f"{name}(): does not support {kind} input") for kind in ("bool", "complex")
    }

    def infer(self: Geometry, dim: int, keepdim: bool = False) -> Geometry:
        at = wrap_dim(dim, self.ndim)
        if self.ndim and not self.shape[at]:
            raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")
        return self.fresh(reduced(self.shape, (at,) if self.ndim else (), keepdim), dt.int64)

    def cpu(self: Array, dim: int, keepdim: bool) -> Array:
        if not self.ndim:
            return np.zeros((), np.int64)
        places = find(self, dim)
        return np.expand_dims(places, dim) if keepdim else places

    def index(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is not None:
            return along()(self, dim, keepdim)
        if not self.numel():
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
            )
        flat = along()(aten.reshape(self, (-1,)), 0, False)
        return aten.reshape(flat, (1,) * self.ndim) if keepdim else flat

    op(
        f"{name}.along(Tensor self, int dim, bool keepdim=False) -> Tensor",
        surface="none",
        infer=infer,
        cpu=cpu,
        compute="raw",
        aclnn=call(aclnn, "self", "dim", "keepdim", "out"),
        grad={},
        unsupported=unsupported,
        samples=calls(
            (Arg((3, 4)), 1),
            (Arg((2, 3, 4)), 0, True),
            (Arg((3, 4), "int64"), -1),
            Sample((Arg((3, 0)), 1), error=True),
        ),
        oracle=lambda torch: getattr(torch, name),
    )
    along = cache(lambda: getattr(aten, f"{name}_along"))
    composite(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        index,
        summary=f"Index of the {_EXTREMES[name[3:]].lower()} element along `dim`, or of all.",
        unsupported=unsupported,
        samples=calls((Arg((3, 4)),), (Arg((3, 4)), 1), Sample((Arg((2, 3)),), {"keepdim": True})),
        grad={},
        out="expected",
    )


_arg("argmax", _arg_first(np.argmax), "aclnnArgMax")
_arg("argmin", _arg_first(np.argmin), "aclnnArgMin")


def _truth(name: str, cpu: Callable[..., Array], aclnn: str) -> None:
    def infer(
        self: Geometry, dim: tuple[int, ...] | None = None, keepdim: bool = False
    ) -> Geometry:
        dtype = dt.uint8 if self.dtype is dt.uint8 else dt.bool
        if dim == ():
            return self.fresh(self.shape, dtype)
        dims = wrap_dims((dim,) if isinstance(dim, int) else dim, self.ndim)
        return self.fresh(reduced(self.shape, dims, keepdim), dtype)

    op(
        f"{name}(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        infer=infer,
        summary=f"Whether {name} of the elements is true, along `dim`.",
        cpu=lambda self, dim, keepdim: cpu(
            self.astype(bool), axis=() if dim == () else _np_axes(dim, self), keepdims=keepdim
        ),
        compute="raw",
        aclnn=(
            # No dimensions are none here, not all of them.
            call("aclnnNeScalar", "self", 0, "out", when=lambda a: a["dim"] == ()),
            call(
                aclnn,
                "self",
                lambda a: axes(a["dim"], a["self"].ndim),
                "keepdim",
                "out",
                when=is_real,
            ),
        ),
        lower=lambda self, dim=None, keepdim=False: getattr(aten, name)(
            aten.ne(self, 0), dim, keepdim
        ),
        grad={},
        samples=lambda: [
            *reduction_samples(("bool", "float32", "int64"))(),
            Sample((Arg((2, 3), low=-1, high=1), ())),
            Sample((Arg((2, 3), "bool"), (), True)),
        ],
        out="truth",
    )


_truth("all", np.all, "aclnnAll")
_truth("any", np.any, "aclnnAny")


def _variance(self: Array, dim: tuple[int, ...] | None, correction: Number, keepdim: bool) -> Array:
    axes = _np_axes(dim, self)
    count = product(self.shape[d] for d in axes)
    if not count:  # numpy's mean warns
        return self.real.sum(axis=axes, keepdims=keepdim) + np.nan
    wide = np.complex128 if self.dtype.kind == "c" else np.float64
    mean = self.mean(axis=axes, keepdims=True, dtype=wide)
    spread = (np.abs(self - mean) ** 2).sum(axis=axes, keepdims=keepdim)
    return spread / max(count - correction, 0)


def _var_rule(
    name: str,
    self: Geometry,
    dim: int | Sequence[int] | None = None,
    correction: float | None = None,
    keepdim: bool = False,
) -> Geometry:
    if self.dtype.category < dt.FLOAT:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    result = reduction("same")(self, dim, keepdim, self.dtype.to_real())
    if result.numel and self.numel // result.numel <= one_less(correction):
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the"
            " reduction factor (input numel divided by output numel).",
        )
    return result


def _var_grad(
    grad: Tensor,
    self: Tensor,
    dim: tuple[int, ...] | None,
    correction: float | None,
    keepdim: bool,
) -> Tensor:
    correction, count = one_less(correction), _count(self._geom, dim)
    centred = self - aten.mean(self, axes(dim, self.ndim), True)
    scale = 2.0 / (count - correction) if count != correction else float("nan")
    return grow(grad * scale, self._geom, dim, keepdim) * centred


def _std_grad(
    grad: Tensor,
    self: Tensor,
    result: Tensor,
    dim: tuple[int, ...] | None,
    correction: int,
    keepdim: bool,
) -> Tensor:
    slope = grad / (result * 2)
    slope = aten.masked_fill(slope, result == 0, 0)
    return _var_grad(slope, self, dim, correction, keepdim)


def _var_samples() -> list[Sample]:
    samples = [Sample((Arg((3, 4), d), 1)) for d in ("float32", "float64", "float16")]
    return [*samples, Sample((Arg((2, 3, 4)), (0, 2)), {"keepdim": True}),
            Sample((Arg((3, 4)), 1), {"correction": 0}), Sample((Arg((3, 4)),)),
            Sample((Arg((3, 4)), 1), {"correction": 0.5})]  # fmt: skip


def one_less(correction: float | None) -> float:
    """What is taken from the count: one, where nothing else is said."""
    return 1 if correction is None else correction


def _spread_lower(
    name: str, self: Tensor, dim: tuple[int, ...] | None, correction: float, keepdim: bool
) -> Tensor:
    """var or std where CANN's operator lacks the dtype, or the correction is no whole number."""
    count = _count(self._geom, dim)
    rest = max(count - correction, 0)
    if in_dtypes("self", *SHORT_FLOATS)({"self": self}):
        scale = count / rest if rest else float("inf")
        whole = getattr(aten, name)(self, dim, correction=0, keepdim=keepdim)
        return whole * (scale if name == "var" else scale**0.5)
    dims = axes(dim, self.ndim)
    centred = aten.abs(self - aten.sum(self, dims, True) / count)
    spread = aten.sum(centred * centred, dims, keepdim) / rest
    return spread if name == "var" else aten.sqrt(spread)


def _spread(name: str, cpu: Callable[..., Any], aclnn: str, grad: Callable[..., Any]) -> None:
    op(
        f"{name}(Tensor self, int[1]? dim=None, *, Number? correction=None, bool keepdim=False)"
        " -> Tensor",
        summary=f"{_SPREADS[name]} along `dim`, with a divisor of N - correction.",
        infer=lambda *args: _var_rule(name, *args),
        cpu=lambda self, dim, correction, keepdim: cpu(self, dim, one_less(correction), keepdim),
        aclnn=call(
            aclnn,
            "self",
            lambda a: axes(a["dim"], a["self"].ndim),
            lambda a: int(one_less(a["correction"])),
            "keepdim",
            "out",
            when=lambda a: (
                in_dtypes("self", *SHORT_FLOATS)(a)
                and one_less(a["correction"]) == int(one_less(a["correction"]))
            ),
        ),
        lower=lambda self, dim=None, correction=None, keepdim=False: _spread_lower(
            name, self, dim, one_less(correction), keepdim
        ),
        grad={"self": grad},
        samples=_var_samples,
        tolerance="accumulated",
        rule="statistic",
    )


_spread("var", _variance, "aclnnVarCorrection", _var_grad)
_spread("std", lambda *a: np.sqrt(_variance(*a)), "aclnnStd", _std_grad)


def _prod_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    if not self.ndim:
        return grad
    if not self.shape[dim]:
        return aten.zeros_like(self)
    if not keepdim:
        grad, result = aten.unsqueeze(grad, dim), aten.unsqueeze(result, dim)
    return _product_slopes(grad, self, result, dim, _zeros_of(self))


def _whole_prod_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if not self.ndim:
        return grad
    zeros = _zeros_of(self)
    if zeros is not None and zeros > 1:
        return aten.zeros_like(self)
    if zeros == 0:
        return grad * aten.conj_of(result / self)
    flat = aten.reshape(self, (-1,))
    return aten.view(_product_slopes(grad, flat, result, 0, zeros), self.shape)


def _product_slopes(
    grad: Tensor, self: Tensor, result: Tensor, dim: int, zeros: int | None
) -> Tensor:
    """By division where nothing is zero, so that a NaN spreads as in torch; else by `_others`."""
    if zeros == 0:
        return grad * aten.conj_of(result / self)
    return _others(grad, self, dim)


def _zeros_of(self: Tensor) -> int | None:
    """How many elements are zero; None where values cannot be looked at."""
    if self.__class__ is not Tensor or self.device.type == "meta":
        return None
    return int(aten.sum(self == 0).item())


def _others(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    """Products of all other elements, from cumulative products both ways: zeros are right too."""
    n = self.shape[dim]
    if not n:
        return aten.zeros_like(self)
    one = aten.ones_like(aten.narrow(self, dim, 0, 1))
    before = aten.cat([one, aten.cumprod(aten.narrow(self, dim, 0, n - 1), dim)], dim)
    flipped = aten.flip(aten.narrow(self, dim, 1, n - 1), (dim,))
    after = aten.flip(aten.cat([one, aten.cumprod(flipped, dim)], dim), (dim,))
    return grad * aten.conj_of(before * after)


def _prod_dtype(self: Geometry, dtype: Dtype | None) -> Dtype:
    return dtype or (dt.int64 if self.dtype.category < dt.FLOAT else self.dtype)


op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    summary="Product of all elements.",
    infer=lambda self, dtype=None: self.fresh((), _prod_dtype(self, dtype)),
    cpu=lambda self, dtype, *, out: np.asarray(np.prod(self.astype(_wide(out)))),
    aclnn=call("aclnnProd", "self", lambda a: a["out"].dtype, "out"),
    grad={
        "self": _whole_prod_grad,
    },
    samples=lambda: [Sample((Arg((3, 4), d, 0.5, 1.5),)) for d in ("float32", "float64", "int64")],
    tolerance="accumulated",
    rule="product",
    out="decides",
    surface="both",
    autocast="float32",
)
op(
    "prod.dim(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    summary="Product along `dim`.",
    infer=lambda self, dim, keepdim=False, dtype=None: self.fresh(
        reduced(self.shape, (wrap_dim(dim, self.ndim),)[: self.ndim], keepdim),
        _prod_dtype(self, dtype),
    ),
    cpu=lambda self, dim, keepdim, dtype, *, out: np.prod(
        self.astype(_wide(out)), axis=dim if self.ndim else None, keepdims=keepdim
    ),
    aclnn=call("aclnnProdDim", "self", "dim", "keepdim", lambda a: a["out"].dtype, "out"),
    grad={"self": _prod_grad},
    samples=lambda: [
        Sample((Arg((3, 4), "float32", 0.5, 1.5), 1)), Sample((Arg((2, 3), "int64"), 0, True)),
    ],
    oracle=lambda torch: torch.prod,
    tolerance="accumulated", rule="product", out="decides",
    autocast="float32", 
)  # fmt: skip


def _wide(out: Geometry) -> Geometry:
    from ...rules import opmath

    return opmath(out.dtype).np


def _norm_rule(
    x: Geometry,
    ord: Number = 2,
    dim: tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> Geometry:
    """Norms are real, of complex elements too; `dtype` is what the elements become."""
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got"
            f" {scalar_name(x.dtype)}"
        )
    if dtype is not None and dtype.category < dt.FLOAT:
        raise RuntimeError(
            "linalg.vector_norm: dtype should be floating point or complex, but got"
            f" {scalar_name(dtype)}"
        )
    if dtype is not None and dtype.is_complex is not x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got"
            f" {scalar_name(dtype)}"
        )
    if dtype is not None and dt.promote_types(x.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({scalar_name(x.dtype)}) should be"
            f" convertible without narrowing to the specified dtype ({scalar_name(dtype)})"
        )
    if x.numel == 0 and not isinstance(ord, complex) and (ord < 0 or ord == float("inf")):
        _refuse_no_identity(x, ord, dim)
    return reduction("same")(x, dim, keepdim, (dtype or x.dtype).to_real())


def _refuse_no_identity(x: Geometry, ord: Number, dim: tuple[int, ...] | None) -> None:
    """RuntimeError in torch's words where the largest or smallest of no elements is asked for."""
    start = f"linalg.vector_norm cannot compute the {ord:g} norm on"
    if not dim:
        raise RuntimeError(
            f"{start} an empty tensor because the operation does not have an identity"
        )
    for d in dim:
        if x.shape[d] == 0:
            raise RuntimeError(
                f"{start} the dimension {d}because this dimension is empty and the operation does"
                " not have an identity"
            )


def _norm(
    self: Array,
    ord: Number,
    dim: tuple[int, ...] | None,
    keepdim: bool,
    dtype: Dtype | None,
    *,
    out: Geometry,
) -> Array:
    values = self if dtype is None else self.astype(dtype.np)
    axes = _np_axes(dim, self)
    if ord == 2 and not dim and not keepdim and values.dtype.kind == "f":
        flat = values.astype(np.float64).ravel()
        return np.sqrt(np.asarray(np.dot(flat, flat)))
    x = np.abs(values).astype(np.float64)
    if not x.size:
        return np.sum(x, axis=axes, keepdims=keepdim)
    if ord == float("inf"):
        return np.max(x, axis=axes, keepdims=keepdim, initial=0)
    if ord == float("-inf"):
        return np.min(x, axis=axes, keepdims=keepdim)
    if ord == 2:
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdim))
    if ord == 0:
        return np.sum(x != 0, axis=axes, keepdims=keepdim).astype(np.float64)
    norm = np.sum(x**ord, axis=axes, keepdims=keepdim) ** (1 / ord)
    result: Array = norm.astype(out.dtype.np)
    return result


def _norm_lower(
    x: Tensor,
    ord: float = 2,
    dim: tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> Tensor:
    size, dims = aten.abs(x if dtype is None else aten.to(x, dtype)), axes(dim, x.ndim)
    if not x.numel():
        return aten.sum(size, dims, keepdim)
    if ord in (float("inf"), float("-inf")):
        return aten.amax(size, dims, keepdim) if ord > 0 else aten.amin(size, dims, keepdim)
    if ord == 0:
        return aten.sum(aten.to(size != 0, size.dtype), dims, keepdim)
    if ord == 2:
        return aten.sqrt(aten.sum(size * size, dims, keepdim))
    return aten.pow(aten.sum(aten.pow(size, ord), dims, keepdim), 1 / ord)


def norm_grad(
    grad: Tensor, x: Tensor, result: Tensor, ord: Number, dim: tuple[int, ...] | None, keepdim: bool
) -> Tensor:
    grad, size = grow(grad, x._geom, dim, keepdim), grow(result, x._geom, dim, keepdim)
    none = size == 0
    if ord == 2:
        return grad * aten.masked_fill(x / size, none, 0)
    if ord == 1:
        return aten.sgn(x) * grad
    if ord == 0:
        return aten.zeros_like(x)
    if ord in (float("inf"), float("-inf")):
        mask = aten.to(aten.abs(x) == size, grad.dtype)
        count = aten.sum(mask, axes(dim, x.ndim), True)
        return aten.sgn(x) * (mask / count * grad)
    assert not isinstance(ord, complex)
    if ord < 1:
        slope = aten.masked_fill(aten.pow(aten.abs(x), ord - 1), x == 0, 0)
        return aten.sgn(x) * slope * grad * aten.pow(size, 1 - ord)
    slope = aten.sgn(x) * aten.pow(aten.abs(x), ord - 1)
    if ord > 2:
        slope = x * aten.pow(aten.abs(x), ord - 2)
    return slope * aten.masked_fill(grad / aten.pow(size, ord - 1), none, 0)


op(
    "linalg_vector_norm(Tensor x, Number ord=2, int[1]? dim=None, bool keepdim=False, *,"
    " ScalarType? dtype=None) -> Tensor",
    summary="Norm of order `ord` of the elements along `dim`.",
    infer=_norm_rule,
    cpu=_norm,
    aclnn=call(
        "aclnnLinalgVectorNorm", "x", "ord", lambda a: axes(a["dim"], a["x"].ndim),
        "keepdim", lambda a: a["out"].dtype, "out",
        when=lambda a: a["x"].numel and all(in_dtypes(n, *SHORT_FLOATS)(a) for n in ("x", "out")),
    ),
    lower=_norm_lower,
    grad={"x": norm_grad},
    unsupported={"bool whole": Refusal(
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype}")},
    samples=lambda: [
        *(Sample((Arg((3, 4), d), 2, 1)) for d in ("float32", "float64", "float16")),
        *(Sample((Arg((3, 4)), o)) for o in (1, 3, float("inf"), 2)),
        Sample((Arg((2, 3, 4)), 2, (0, 2), True)),
        Sample((Arg((3, 4), "complex64"), 2, 1)),
        Sample((Arg((3,), "complex64"), 2), {"dtype": "complex128"}),
        Sample((Arg((3,), "complex64"), 2), {"dtype": "float64"}, error=True),
        Sample((Arg((3,), "int64"),), error=True),
    ],
    tolerance="accumulated", rule="statistic", out="expected",
    autocast="float32 on npu",
)  # fmt: skip


def _logsumexp_infer(self: Any, dim: Any, keepdim: bool = False) -> Any:
    if dim in ((), []) and self.shape and 0 not in self.shape and not keepdim:
        wide = [1] * len(self.shape)  # torch adds the maxima in place, with no dimension taken off
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {wide}")
    kind = None if self.dtype.category >= dt.FLOAT else dt.get_default_dtype()
    return reduction("same")(self, dim, keepdim, kind)


def _logsumexp(self: Array, dim: tuple[int, ...], keepdim: bool, *, out: Any) -> Array:
    self = self.astype(out.dtype.np, copy=False)  # torch takes integers, too
    axes = _np_axes(dim, self)
    top = np.max(self.real, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(self - top), axis=axes, keepdims=True)) + top
    return total if keepdim else total.squeeze(axes)


def _logsumexp_lower(self: Tensor, dim: tuple[int, ...], keepdim: bool = False) -> Tensor:
    dims = axes(dim, self.ndim)
    x = self if self.dtype.category >= dt.FLOAT else aten.to(self, dt.get_default_dtype())
    if not x.numel():
        return aten.log(aten.sum(x, dims, keepdim))
    top = aten.amax(aten.real(x) if x.is_complex() else x, dims, True)
    top = aten.where(aten.isfinite(top), top, aten.zeros_like(top))
    total = aten.log(aten.sum(aten.exp(x - top), dims, True)) + top
    return total if keepdim else aten.squeeze(total, dims)


op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    summary="log(sum(exp(x))) along `dim`, without overflow.",
    infer=_logsumexp_infer,
    cpu=_logsumexp,
    aclnn=call(
        "aclnnLogSumExp",
        "self",
        lambda a: axes(a["dim"], a["self"].ndim),
        "keepdim",
        "out",
        when=lambda a: in_dtypes("out", *SHORT_FLOATS)(a) and 0 not in a["self"].shape,
    ),
    lower=_logsumexp_lower,
    grad={
        "self": lambda grad, self, result, dim, keepdim: (
            grow(grad, self._geom, dim, keepdim)
            * aten.conj_of(aten.exp(self - grow(result, self._geom, dim, keepdim)))
        )
    },
    samples=lambda: [
        Sample((Arg((3, 4)), 1)),
        Sample((Arg((2, 3, 4), "float64"), (0, 2), True)),
    ],
    tolerance="accumulated",
    rule="statistic",
    autocast="float32 on npu",
)


def _nansum(
    self: Tensor,
    dim: tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> Tensor:
    if self.is_floating_point():
        self = aten.masked_fill(self, aten.isnan(self), 0)
    return aten.sum(self, dim, keepdim, dtype=dtype)


def _nansum_cpu(
    self: Array, dim: tuple[int, ...] | None, keepdim: bool, dtype: Dtype | None, *, out: Geometry
) -> Array:
    """The sum, if it is a number; else that of what is one, in a second pass."""
    if self.dtype.kind in "biu" or out.dtype.is_floating_point:
        total = sum_cpu(self, dim, keepdim, dtype, out=out)
        if self.dtype.kind in "biu":
            return total
        if not (total != total if np.ndim(total) == 0 else np.isnan(total).any()):
            return total
    zero = self.dtype.type(0)
    return sum_cpu(np.where(np.isnan(self), zero, self), dim, keepdim, dtype, out=out)


op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    summary="Sum that counts nan as 0.",
    infer=reduction("sum"),
    cpu=_nansum_cpu,
    lower=_nansum,
    grad={
        "self": lambda grad, self, dim, keepdim: aten.masked_fill(
            grow(grad, self._geom, dim, keepdim), aten.isnan(self), 0
        )
    },
    unsupported={
        "complex": Refusal("nansum on CPU does not support complex inputs", cpu_alone=True)
    },
    samples=calls(
        (Arg((2, 3)),),
        (Arg((3,), values=(1.0, float("nan"), 2.0), grad=False),),
        (Arg((2, 3)), 1, True),
    ),
    tolerance="accumulated",
    out="decides",
)
op(
    "count_nonzero(Tensor self, int[1]? dim=None) -> Tensor",
    infer=lambda self, dim=None: reduction("sum")(self, dim, False, dtype=dt.int64),
    cpu=lambda self, dim: np.count_nonzero(self, axes(dim, self.ndim) if dim else None),
    lower=lambda self, dim=None: aten.sum(self != 0, dim),
    grad={},
    summary="Number of elements that are not 0.",
    samples=calls((Arg((2, 3), "int64", 0, 1),), (Arg((2, 3), "int64", 0, 1), 1)),
)
