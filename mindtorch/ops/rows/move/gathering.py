"""Rows that read and write along one dimension by index."""

from __future__ import annotations

from collections.abc import Mapping

from ...._compat.warn_once import warn_once
from ...complex_parts import filled, gathered, in_pairs, is_real, is_real_below_double
from ...costs import lookup
from ...limits import converted, fits, in_dtype
from ...rules import broadcast, preserved
from ...samples import FLOATS
from ...words import *

INDEX = (dt.int32, dt.int64)


def _index_dtype(name: str, index: Geometry) -> None:
    if index.numel and index.dtype not in INDEX:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def indexed(args: Mapping[str, Any]) -> bool:
    """Whether CANN takes the dtype of the indices; torch takes any where there are none."""
    return args["index"].dtype in INDEX


def counted(index: Tensor) -> Tensor:
    """No indices, in a dtype that CANN takes."""
    result: Tensor = aten.to(index, dt.int64)
    return result


def checked(index: Array, size: int, dim: int) -> Array:
    """`index`, after torch's check of its values."""
    if index.size and (index.min() < 0 or index.max() >= size):
        bad = first_outside(index, 0, size)
        at = dim % max(index.ndim, 1)
        raise RuntimeError(f"index {bad} is out of bounds for dimension {at} with size {size}")
    return index


def first_outside(index: Array, low: int, size: int) -> int:
    """The first index below `low` or not below `size`, which torch's kernels name."""
    return int(index[(index < low) | (index >= size)].reshape(-1)[0])


def along(self: Geometry, dim: int, index: Geometry, *_: Any) -> list[tuple[int, int, int]]:
    """`bounds` of a row whose argument 2 has indices along `dim`."""
    return [(2, 0, self.shape[dim] if self.ndim else 1)]


def along_either_way(self: Geometry, dim: int, *_: Any) -> list[tuple[int, int, int]]:
    """`bounds` where they may count from the end."""
    size = self.shape[dim] if self.ndim else 1
    return [(2, -size, size)]


def _gather_infer(self: Geometry, dim: int, index: Geometry, sparse_grad: bool = False) -> Geometry:
    _index_dtype("gather", index)
    at = wrap_dim(dim, self.ndim)
    if not index.numel:
        return self.fresh(index.shape)
    if max(self.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (n, m) in enumerate(zip(self.shape, index.shape, strict=False)):
        if d != at and m > n:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be"
                f" no larger than self {list(self.shape)} apart from dimension {at}"
            )
    return self.fresh(index.shape)


def within(self: Geometry, at: int, index: Geometry, src: Geometry | None) -> None:
    """RuntimeError in torch's words for an index that is larger than self or src."""
    if not index.numel:
        return
    others = [("self", self, at), *([("src", src, -1)] if src.__class__ is Geometry else [])]
    for name, g, free in others:
        if name == "src" and 0 < g.ndim < index.ndim and self.ndim == index.ndim:
            wrap_dim(g.ndim, g.ndim)
        if max(g.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError(
                f"Index tensor must have the same number of dimensions as {name} tensor"
            )
        sizes = zip(index.shape or (1,), g.shape or (1,), strict=True)
        if any(n > m for d, (n, m) in enumerate(sizes) if d != free):
            text = f"Expected index {list(index.shape)} to be no larger than self"
            text += f" {list(self.shape)} apart from dimension {at}"
            if src.__class__ is Geometry:
                text += f" and to be no larger size than src {list(src.shape)}"
            raise RuntimeError(text)


def _grid(index: Array, dim: int) -> tuple[Any, ...]:
    """Index arrays that address `index`'s elements, with `index` itself along `dim`."""
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = index
    return tuple(grid)


def _gather(self: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    if not self.ndim:
        checked(index, 1, 0)
        return np.broadcast_to(self, index.shape).copy()
    if not index.size:
        return np.zeros(index.shape, self.dtype)
    if not index.ndim:
        return self[checked(index, self.shape[0], 0)]
    return self[_grid(checked(index, self.shape[dim], dim), dim)]


op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    summary="Elements at `index` along `dim`; the result has the shape of `index`.",
    infer=_gather_infer,
    bounds=along,
    cpu=_gather,
    compute="raw",
    aclnn=call(
        "aclnnGather", "self", "dim", "index", "out", when=lambda a: indexed(a) and is_real(a)
    ),
    lower=lambda self, dim, index, sparse_grad=False: (
        in_pairs(gathered)(self, dim, index)
        if self.is_complex()
        else aten.gather(self, dim, counted(index))
    ),
    grad={
        "self": lambda grad, self_geom, dim, index: aten.scatter_add(
            aten.zeros(self_geom.shape, dtype=grad.dtype, device=grad.device), dim, index, grad
        )
    },
    samples=lambda: [
        *(Sample((Arg((3, 4), d), 1, Arg((3, 2), "int64", 0, 3))) for d in (*FLOATS, "int64")),
        Sample((Arg((3, 4)), 0, Arg((2, 4), "int64", 0, 2))),
        Sample((Arg((3, 4)), 0, Arg((2, 3), "int64", 0, 2))),
    ],
    out="expected",
    cost=lookup,
    apart=True,
)


def _scatter_infer(
    self: Geometry, dim: int, index: Geometry, src: Geometry, reduce: bool | None = None
) -> Geometry:
    _index_dtype("scatter", index)
    at = wrap_dim(dim, self.ndim)
    if src.__class__ is Geometry and src.dtype is not self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    within(self, at, index, src)
    return self.fresh()


def _write(
    self: Array, dim: int, index: Array, src: Array | Number, how: Callable[..., None]
) -> Array:
    result = self.copy()
    if not index.size:
        return result
    if not (self.ndim and index.ndim):
        result, index = result.reshape(-1), index.reshape(-1)
        src = np.reshape(src, -1)
    where = _grid(checked(index, result.shape[dim], dim), dim)
    part = tuple(slice(n) for n in index.shape)
    values = src[part] if isinstance(src, np.ndarray) and src.ndim else src
    how(result, where, values)
    return result.reshape(self.shape)


def _set(result: Array, where: tuple[Array, ...], values: Array | Number) -> None:
    result[where] = values


def _wide_add(result: Array, where: tuple[Array, ...], values: Array | Number) -> None:
    if result.dtype == bool:
        np.logical_or.at(result, where, values)
    else:
        np.add.at(result, where, values)


# aclnnScatter document: reduce 0 replaces, 1 adds, 2 multiplies.
op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    summary="`self` with elements of `src` at `index` along `dim`.",
    infer=_scatter_infer,
    bounds=along,
    cpu=lambda self, dim, index, src: _write(self, dim, index, src, _set),
    compute="raw",
    aclnn=call("aclnnScatter", "self", "dim", "index", "src", 0, "out", when=indexed),
    lower=lambda self, dim, index, src: aten.scatter_src(self, dim, counted(index), src),
    grad={
        "self": lambda grad, dim, index: aten.scatter_value(grad, dim, index, 0),
        "src": lambda grad, dim, index, src_geom: _into(
            aten.gather(grad, dim, index), src_geom
        ),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d), 1, Arg((3, 2), "int64", values=((0, 3), (2, 1), (1, 0))),
                Arg((3, 2), d, 0, 1)))
        for d in ("float32", "float64", "float16", "int64")
    ],
    oracle=lambda torch: torch.scatter,
    out="expected",
    inplace=True, 
    apart=True,
)  # fmt: skip
op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    summary="`self` with `value` at `index` along `dim`.",
    infer=_scatter_infer,
    bounds=along,
    cpu=lambda self, dim, index, value: _write(
        self, dim, index, np.asarray(value).astype(self.dtype), _set
    ),
    compute="raw",
    aclnn=call(
        "aclnnScatterValue", "self", "dim", "index", in_dtype("value"), 0, "out", when=indexed
    ),
    lower=lambda self, dim, index, value: aten.scatter_value(self, dim, counted(index), value),
    refuses=converted(3),
    grad={"self": lambda grad, dim, index: aten.scatter_value(grad, dim, index, 0)},
    samples=lambda: [
        Sample((Arg((3, 4), d), 1, Arg((3, 2), "int64", 0, 3), 2)) for d in ("float32", "int64")
    ],
    oracle=lambda torch: torch.scatter,
    out="expected",
    inplace=True,
    apart=True,
)


def _meeting(reduce: str) -> str:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return "sum" if reduce == "add" else "prod"


def _scatter_reduced(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Tensor:
    kind = _meeting(reduce)
    warn_once(
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in"
        " a future PyTorch release. Use torch.scatter_reduce instead for more reduction options."
    )
    return aten.scatter_reduce(self, dim, index, src, kind)


def _scatter_value_reduced(
    self: Tensor, dim: int, index: Tensor, value: Number, reduce: str
) -> Tensor:
    src = aten.full(index.shape, value, dtype=self.dtype, device=self.device)
    return aten.scatter_reduce(self, dim, index, src, _meeting(reduce))


composite(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    _scatter_reduced,
    samples=calls(
        Sample(
            (Arg((3, 4)), 1, Arg((3, 5), "int64", 0, 3), Arg((3, 5), grad=False)),
            {"reduce": "add"},
        )
    ),
    oracle=lambda torch: torch.scatter,
    tolerance="accumulated",
    rule="products",
    out="expected",
    inplace=True,
)
composite(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
    " -> Tensor",
    _scatter_value_reduced,
    samples=calls(Sample((Arg((3, 4)), 1, Arg((3, 5), "int64", 0, 3), 2.0), {"reduce": "add"})),
    oracle=lambda torch: torch.scatter,
    tolerance="accumulated",
    out="expected",
    inplace=True,
)


def _into(grad: Tensor, geom: Geometry) -> Tensor:
    """`grad` at the start of zeros of `geom`'s shape, where index was smaller than src."""
    if grad.shape == geom.shape:
        return grad
    pads = [p for n, m in zip(reversed(geom.shape), reversed(grad.shape), strict=True)
            for p in (0, n - m)]  # fmt: skip
    return aten.constant_pad_nd(grad, tuple(pads), 0)


op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    summary="`self` plus elements of `src` at `index` along `dim`.",
    infer=_scatter_infer,
    bounds=along,
    cpu=lambda self, dim, index, src: _write(self, dim, index, src, _wide_add),
    aclnn=call("aclnnScatterAdd", when=indexed),
    lower=lambda self, dim, index, src: aten.scatter_add(self, dim, counted(index), src),
    grad={
        "self": lambda grad: grad,
        "src": lambda grad, dim, index, src_geom: _into(aten.gather(grad, dim, index), src_geom),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d), 1, Arg((3, 5), "int64", 0, 3), Arg((3, 5), d)))
        for d in ("float32", "float64", "int64", "float16")
    ],
    tolerance="accumulated",
    rule="stored",
    out="expected",
    inplace=True,
    apart=True,
)


def _select_infer(self: Geometry, dim: int, index: Geometry) -> Geometry:
    if index.dtype not in INDEX:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    at = wrap_dim(dim, self.ndim)
    if not self.ndim:
        if index.numel != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {index.numel} value(s)"
            )
        return self.fresh()
    if index.numel and not self.shape[at]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return self.fresh((*self.shape[:at], index.numel, *self.shape[at + 1 :]))


_UNSIGNED = {np.dtype(np.int64): np.uint64, np.dtype(np.int32): np.uint32}


def _leads_outside(index: Array, size: int) -> bool:
    """Whether an index is negative, and so above all as an unsigned one, or past the size."""
    kind = _UNSIGNED.get(index.dtype)
    if kind is None or size >> 31:
        return bool(index.size and (index.min() < 0 or index.max() >= size))
    return bool(index.size and index.view(kind).max() >= size)


def _select(self: Array, dim: int, index: Array) -> Array:
    if not self.ndim:
        return self.copy()
    size = self.shape[dim]
    if _leads_outside(index, size):
        if self.ndim > 1 and (dim % self.ndim == 1 or not self.size):  # torch's other check
            bad = first_outside(index, 0, size)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={size}")
        raise IndexError("index out of range in self")
    if self.flags.c_contiguous:
        return self.take(index.reshape(-1), dim)
    return self[(slice(None),) * (dim % self.ndim) + (index.reshape(-1),)]  # take would copy all


op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    summary="Slices at `index` (a vector) along `dim`.",
    infer=_select_infer,
    bounds=along,
    cpu=_select,
    compute="raw",
    aclnn=call("aclnnIndexSelect"),
    grad={
        "self": lambda grad, self_geom, dim, index: aten.index_add(
            aten.zeros(self_geom.shape, dtype=grad.dtype, device=grad.device), dim, index, grad
        )
    },
    samples=lambda: [
        *(Sample((Arg((3, 4), d), 1, Arg((5,), "int64", 0, 3))) for d in (*FLOATS, "int64")),
        Sample((Arg((3, 4)), 0, Arg((2,), "int32", 0, 2))),
    ],
    out="{name}(): self and result must have the same scalar type",
    cost=lookup,
    apart=True,
)


def _wrapped(index: Array, size: int, dim: int) -> Array:
    """Indices that count from the end made to count from the start; IndexError past either."""
    if index.size and (index.min() < -size or index.max() >= size):
        bad = first_outside(index, -size, size)
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    return np.where(index < 0, index + size, index)


def _along(
    self: Array, dim: int, index: Array, source: Array | Number, how: Callable[..., None]
) -> Array:
    if not self.ndim:
        return _along(self.reshape(1), 0, index, np.reshape(source, -1), how).reshape(())
    result = self.copy()
    where: list[Any] = [slice(None)] * max(self.ndim, 1)
    where[dim] = index.reshape(-1)
    how(result, tuple(where), source)
    return result


def _fill(self: Array, dim: int, index: Array, value: Number) -> None:
    line = self if self.ndim else self.reshape(1)
    where = _wrapped(index, line.shape[dim], dim).reshape(-1)
    line[(slice(None),) * (dim % line.ndim) + (where,)] = np.asarray(value).astype(self.dtype)


def _filled(self: Array, dim: int, index: Array, value: Number) -> Array:
    result = self.copy()
    _fill(result, dim, index, value)
    return result


def _fill_infer(self: Geometry, dim: int, index: Geometry, value: Number) -> Geometry:
    wrap_dim(dim, self.ndim)
    if index.dtype is not dt.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if value.__class__ is complex and self.dtype.category != dt.COMPLEX:
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return preserved(self)


def along_fits(name: str, self: Geometry, at: int, index: Geometry, source: Geometry) -> None:
    """RuntimeError or IndexError in torch's words where index or source fits no slices of self."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with"
            f" type: {scalar_name(index.dtype)} and size: {list(index.shape)}"
        )
    if index.dtype not in INDEX:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {scalar_name(index.dtype)}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(self.dtype)}) and source"
            f" ({scalar_name(source.dtype)}) must have the same scalar type"
        )
    size = (source.shape[at] if at < source.ndim else 0) if source.ndim else 1
    miscounted = RuntimeError(
        f"{name}(): Number of indices ({index.numel}) should be equal to"
        f" source.size(dim): ({size}), for dim: {at}"
    )
    if self.ndim and not source.ndim and index.numel != 1:
        raise IndexError(f"Dimension specified as {at} but tensor has no dimensions")
    if name == "index_add_" and source.ndim and index.numel != size:
        raise miscounted
    shapes = [[n for d, n in enumerate(g.shape) if d != at] for g in (self, source)]
    if self.ndim != source.ndim or shapes[0] != shapes[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension."
            f" Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )
    if index.numel != size:
        raise miscounted


def _add_infer(
    self: Geometry, dim: int, index: Geometry, source: Geometry, alpha: Number = 1
) -> Geometry:
    at = wrap_dim(dim, self.ndim)
    along_fits("index_add_", self, at, index, source)
    return self.fresh()


def _copy_infer(self: Geometry, dim: int, index: Geometry, source: Geometry) -> Geometry:
    at = wrap_dim(dim, self.ndim)
    name = "index_copy_()"
    if index.ndim > 1:
        raise IndexError(f"{name}: Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim and self.ndim and self.ndim != source.ndim:
        raise IndexError(
            f"{name}: When source and destination are not scalars, their dimensionality must"
            f" match. Source dimensionality ({source.ndim}), destination dimensionality"
            f" ({self.ndim})"
        )
    if index.dtype is not dt.int64:
        raise RuntimeError(
            f"{name}: Expected a long tensor for index, but got {scalar_name(index.dtype)}"
        )
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}: self and source expected to have the same dtype, but got (self)"
            f" {scalar_name(self.dtype)} and (source) {scalar_name(source.dtype)}"
        )
    if not source.ndim and index.numel != 1:
        raise IndexError(
            f"{name}: When source is scalar, index should have one element (got {index.numel})"
        )
    ours, theirs = ([n for d, n in enumerate(g.shape) if d != at] for g in (self, source))
    if ours != theirs:
        shapes = [" ".join(map(str, s)) for s in (ours, theirs)]
        raise RuntimeError(
            f"{name}: Source/destination tensor must have same slice shapes. Destination slice"
            f" shape: {shapes[0]} at dimension {at} and source slice shape: {shapes[1]} at"
            " dimension 0."
        )
    if source.ndim and source.shape[at] != index.numel:
        raise IndexError(
            f"{name}: Number of indices ({index.numel}) should be equal to source.size(dim)"
            f" ({source.shape[at]})"
        )
    return self.fresh()


def _beyond(index: Array, self: Array, dim: int, form: str, kind: type[Exception]) -> Array:
    """The indices; `kind` in torch's words for one that is negative or past the dimension."""
    size = self.shape[dim] if self.ndim else 1
    if _leads_outside(index, size):
        bad = first_outside(index, 0, size)
        raise kind(
            form.format(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        )
    return index


def _added(self: Array, dim: int, index: Array, source: Array, alpha: Number) -> Array:
    if self.ndim < 2:
        _beyond(index, self, dim, "index out of range in self", IndexError)
    elif self.size:
        _beyond(index, self, dim, "{}", RuntimeError)
    else:
        return self.copy()
    return _along(self, dim, index, source * np.asarray(alpha).astype(self.dtype), _wide_add)


def _copied(self: Array, dim: int, index: Array, source: Array) -> Array:
    return _along(
        self, dim, _beyond(index, self, dim, "index_copy_(): {}", IndexError), source, _set
    )


def _indexed_samples() -> list[Sample]:
    index = Arg((2,), "int64", values=(2, 0))
    return [
        Sample((Arg((3, 4), d), 0, index, Arg((2, 4), d, 0, 1)))
        for d in ("float32", "float64", "int64")
    ]


def _add_parts(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Number = 1) -> Tensor:
    """index_add of complex numbers, which CANN's operator does not take: of both parts at once."""
    parts, added = aten.view_as_real(self), aten.view_as_real(source * alpha)
    return aten.view_as_complex(aten.index_add(parts, dim % max(self.ndim, 1), index, added))


op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    summary="`self` plus `alpha * source` at `index` along `dim`.",
    infer=_add_infer,
    bounds=along,
    cpu=_added,
    aclnn=call("aclnnIndexAdd", when=lambda a: a["self"].dtype.category != dt.COMPLEX),
    lower=_add_parts,
    grad={
        "self": lambda grad: grad,
        "source": lambda grad, dim, index, alpha: aten.index_select(grad, dim, index) * alpha,
    },
    samples=lambda: [*_indexed_samples(),
                     Sample((Arg((3, 4)), 1, Arg((3,), "int64", values=(1, 1, 3)), Arg((3, 3))),
                            {"alpha": 2})],
    tolerance="accumulated", rule="stored", out="expected",
    inplace=True,
    apart=True,
)  # fmt: skip
op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    summary="`self` with slices of `source` at `index` along `dim`.",
    infer=_copy_infer,
    bounds=along,
    cpu=_copied,
    compute="raw",
    aclnn=call("aclnnInplaceIndexCopy", "self", "dim", "index", "source", inplace=True),
    grad={
        "self": lambda grad, dim, index: aten.index_fill(grad, dim, index, 0),
        "source": lambda grad, dim, index: aten.index_select(grad, dim, index),
    },
    samples=_indexed_samples,
    out="expected",
    inplace=True,
    apart=True,
)


def _mask_along(self: Tensor, dim: int, index: Tensor) -> Tensor:
    plain = aten.zeros(self.shape, dtype=dt.bool, device=self.device)
    mask: Tensor = aten.index_fill(plain, dim, index, True)
    return mask


def _fill_by_mask(self: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    if self.is_complex():
        return in_pairs(filled)(self, dim, index, value)
    return aten.masked_fill(self, _mask_along(self, dim, index), value)


op(
    "index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    summary="`self` with `value` at `index` along `dim`.",
    infer=_fill_infer,
    bounds=along_either_way,
    cpu=_filled,
    cpu_inplace=_fill,
    compute="raw",
    aclnn=call(
        "aclnnIndexFill",
        "self",
        "dim",
        "index",
        in_dtype("value"),
        "out",
        when=is_real_below_double,
    ),
    lower=_fill_by_mask,
    refuses=converted(3),
    grad={"self": lambda grad, dim, index: aten.index_fill(grad, dim, index, 0)},
    samples=lambda: [
        Sample((Arg((3, 4), d), 0, Arg((2,), "int64", values=(2, 0)), 5))
        for d in ("float32", "int64", "bool")
    ],
    inplace=True,
    overlaps="tensor[mask] = scalar",
)


@composite(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    samples=calls((Arg((3, 4)), 0, Arg((2,), "int64", values=(2, 0)), Arg(()))),
    oracle=lambda torch: torch.index_fill,
    inplace=True,
)
def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """Elements at indices along a dimension replaced by a 0-d tensor."""
    if value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with"
            f" {value.ndim} dimension(s)."
        )
    if value.device.type == "cpu":
        fits(value.item(), self.dtype)
    return aten.where(_mask_along(self, dim, index), value.to(self.dtype), self)


@composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 1), "int64", 0, 3), 1),
        (Arg((6,)), Arg((2,), "int64", 0, 5)),
        (Arg((1, 4)), Arg((3, 2), "int64", 0, 3), 1),
        (Arg((2, 3)), Arg((2, 2), "int64", -7, 8), 1),
    ),
    out="expected",
    cost=lookup,
)
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements at indices, modulo its size, along a dimension; the others are broadcast."""
    if dim is None:
        if indices.dtype not in (dt.int64, dt.int32):
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        indices = aten.to(indices, dt.int64)
        flat = aten.reshape(self, (-1,))
        return aten.gather(flat, 0, aten.reshape(indices, (-1,)))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions,"
            f" but got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if indices.dtype is not dt.int64:
        got = indices.dtype.legacy
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {got}")
    at = wrap_dim(dim, self.ndim)
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    rest, index_shape = list(self.shape), list(indices.shape)
    rest[at], index_shape[at] = 1, 1
    shape = list(broadcast(tuple(rest), tuple(index_shape)))
    ours, theirs = [*shape], [*shape]
    ours[at], theirs[at] = self.shape[at], indices.shape[at]
    self, indices = aten.expand(self, tuple(ours)), aten.expand(indices, tuple(theirs))
    return aten.gather(self, at, aten.remainder(indices, self.shape[at]))


def outside(index: Tensor, flat: Tensor) -> IndexError:
    """What torch says of a place that a flattened tensor does not have."""
    bad = next((i for i in index.reshape(-1).tolist() if not -len(flat) <= i < len(flat)), None)
    return IndexError(
        f"out of range: tried to access index {bad} on a tensor of {len(flat)} elements."
    )


@composite(
    "take(Tensor self, Tensor index) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((2, 2), "int64", 0, 11)),
        (Arg((3, 4)), Arg((2,), "int64", values=(-1, 3))),
    ),
    out="{name}(): self and out expected to have the same dtype, but got self.dtype = {Want} and"
    " out.dtype = {Got}",
    cost=lookup,
    apart=True,
)
def take(self: Tensor, index: Tensor) -> Tensor:
    """Elements at places in the flattened order."""
    if index.dtype is not dt.int64:
        raise RuntimeError(
            "take(): Expected a long tensor for index, but got"
            f" {index.dtype.legacy.split('.')[-1].removesuffix('Tensor')}"
        )
    if index.numel() and not self.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    if not index.numel():
        return aten.zeros(tuple(index.shape), dtype=self.dtype, device=self.device)
    try:
        return aten._take(self, index)
    except IndexError:
        raise outside(index, aten.reshape(self, (-1,))) from None


def _take(self: Tensor, index: Tensor) -> Tensor:
    flat = aten.reshape(self, (-1,))
    places = aten.reshape(index, (-1,))
    places = aten.where(places < 0, places + len(flat), places)
    return aten.view(aten.index_select(flat, 0, places), index.shape)


op(
    "_take(Tensor self, Tensor index) -> Tensor",
    infer=lambda self, index: self.fresh(index.shape),
    bounds=lambda self, index: [(1, -self.numel, self.numel)],
    cpu=lambda self, index: self.reshape(-1).take(index),
    compute="raw",
    lower=_take,
    grad={
        "self": lambda grad, self_geom, index: aten.put(
            aten.zeros(self_geom.shape, dtype=grad.dtype, device=grad.device), index, grad, True
        )
    },
    unsampled="take is held against torch",
    cost=lookup,
)
