"""Owns the shape, dtype and stride rules that rows share; refuses to touch data.

A rule is called with the op's arguments in schema order, each tensor replaced by its Geometry,
and returns the Geometry of each new result. It may look at the class of a `Scalar` or
`Tensor|Scalar` argument, never at its value: plans are found by class.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, TypeVar

from .._tensor import dtype as dt
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import (
    Geometry,
    contiguous_strides,
    format_name,
    format_strides,
    geometry,
)
from .._tensor.tensor import MOST_DIMS, TOO_MANY_DIMS, Tensor
from .._tensor.types import Number

_Error = TypeVar("_Error", bound=Exception)
NUMBERS = frozenset((bool, int, float, complex))


def data_dependent(error: _Error) -> _Error:
    """The error, as one of a call whose result depends on values, which meta has none of."""
    error.__dict__["data_dependent"] = True
    return error


def refuse_meta(name: str) -> NoReturn:
    """NotImplementedError in torch's words for an operator that needs values, on meta."""
    text = _WITHOUT_META.format(DYNAMIC_NAMES.get(name, name))
    raise data_dependent(NotImplementedError(_NONZERO if name == "nonzero" else text))


_NONZERO = (
    "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct"
    " data-independent implementation does not exist. This implementation returns a fake value,"
    " assuming all elements of the tensor are non-zero. To enable this registration, please set"
    " 'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' to True."
)
_WITHOUT_META = (
    "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta"
    " kernel registered. You may have run into this message while using an operator with PT2"
    " compilation APIs (torch.compile/torch.export); in order to use this operator with those APIs"
    " you'll need to add a fake impl. Please see the following for next steps: "
    " https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)


def needs_values(error: Exception) -> bool:
    """Whether a call was refused on meta because its result depends on values."""
    return "data_dependent" in vars(error)


# torch's operators whose results have a shape by values, where rows have names of their own.
DYNAMIC_NAMES = {
    "_unique_dim": "unique_dim", "_unique_rows": "unique_consecutive", "_unique_sorted": "_unique2",
}  # fmt: skip


class Dynamic:
    """A result whose shape only the kernel knows (nonzero, masked_select).

    `room` is the largest shape it can have: a device needs it to allocate before it runs.
    """

    __slots__ = ("column_major", "device", "dtype", "room")

    def __init__(
        self, dtype: Dtype, device: Device, room: tuple[int, ...] = (), column_major: bool = False
    ):
        self.dtype = dtype
        self.device = device
        self.room = room
        self.column_major = column_major

    def geometry(self, shape: tuple[int, ...]) -> Geometry:
        """The Geometry of a result of this shape."""
        return _laid_out_anew(shape, self.dtype, self.device, self.column_major)


@lru_cache(1 << 10)
def _laid_out_anew(
    shape: tuple[int, ...], dtype: Dtype, device: Device, column_major: bool
) -> Geometry:
    strides = contiguous_strides(shape)
    if column_major:
        strides = tuple(reversed(contiguous_strides(tuple(reversed(shape)))))
    return geometry(shape, strides, 0, dtype, device)


# What a row gives: geometries, some of them known only after the kernel has run.
Results: TypeAlias = Sequence[Geometry | Dynamic]


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape both broadcast to; RuntimeError in torch's words."""
    if a == b:
        return tuple(a)
    rank = max(len(a), len(b))
    pad_a = (1,) * (rank - len(a)) + tuple(a)
    pad_b = (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for dim in range(rank - 1, -1, -1):
        m, n = pad_a[dim], pad_b[dim]
        if m != n and m != 1 and n != 1:
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at"
                f" non-singleton dimension {dim}"
            )
        shape.append(n if m == 1 else m)
    return tuple(reversed(shape))


def broadcast_in_place(self: Sequence[int], other: Sequence[int]) -> None:
    """RuntimeError in torch's words where `other` does not expand to `self`'s shape."""
    shape = broadcast(self, other)
    if shape != tuple(self):
        raise RuntimeError(
            f"output with shape {list(self)} doesn't match the broadcast shape {list(shape)}"
        )


def refuse_growth(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """RuntimeError in torch's words for a shape that does not expand to the wanted one."""
    if len(shape) > len(expected):
        return
    lead = len(expected) - len(shape)
    for at in range(len(shape) - 1, -1, -1):
        if shape[at] not in (1, expected[lead + at]):
            raise RuntimeError(
                f"The expanded size of the tensor ({expected[lead + at]}) must match the existing"
                f" size ({shape[at]}) at non-singleton dimension {lead + at}.  Target sizes:"
                f" {list(expected)}.  Tensor sizes: {list(shape)}"
            )


def broadcast_all(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The shape all broadcast to."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        result = broadcast(result, shape)
    return result


def result_type(operands: Iterable[Any]) -> Dtype:
    """torch.result_type over Geometries and Python numbers.

    Tensors with dimensions outrank 0-d tensors, which outrank Python numbers, unless the lower
    one is of a higher category (bool < integer < float < complex).
    """
    by_rank: list[Dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Geometry):
            level, dtype = (0 if operand.ndim else 1), operand.dtype
        else:
            level, dtype = 2, dt.SCALAR_DTYPES[operand.__class__]()
        strongest = by_rank[level]
        by_rank[level] = dtype if strongest is None else dt.promote_types(strongest, dtype)
    dims, zero, wrapped = by_rank
    return _combine(dims, _combine(zero, wrapped))  # type: ignore[return-value]


def _combine(higher: Dtype | None, lower: Dtype | None) -> Dtype | None:
    if higher is None:
        return lower
    if lower is None or lower.category <= higher.category:
        return higher
    if lower.category == dt.COMPLEX and higher.category == dt.FLOAT:
        return higher.to_complex() if higher.itemsize > 1 else dt.complex64
    return dt.promote_types(higher, lower)


def opmath(d: Dtype) -> Dtype:
    """The dtype that cpu kernels compute in: halves go through float32, as torch's do."""
    if d is dt.complex32:
        return dt.complex64
    return dt.float32 if d is dt.float16 or d is dt.bfloat16 else d


def elementwise_strides(
    shape: tuple[int, ...], operands: Sequence[Geometry], numbers: bool = False
) -> tuple[int, ...]:
    """Strides of a pointwise result: inputs' order of dimensions, made dense.

    A number is an operand of another shape, so that strides of dims of one element count.
    Source: TensorIterator (reorder_dimensions), described in torch's developer notes.
    """
    same = [g for g in operands if g.shape == shape]
    if len(same) == len(operands) and not numbers:
        if all(g.contiguous for g in same):
            return contiguous_strides(shape)
        first = same[0]
        if first.dense and all(g.strides == first.strides for g in same):
            return first.strides
    rows = [_broadcast_strides(g, shape) for g in operands if g.ndim]
    return _dense_in_order(shape, _order(shape, rows))


def _broadcast_strides(g: Geometry, shape: tuple[int, ...]) -> list[int]:
    lead = len(shape) - g.ndim
    strides = [
        0 if n == 1 and shape[lead + i] != 1 else s
        for i, (n, s) in enumerate(zip(g.shape, g.strides, strict=True))
    ]
    return [0] * lead + strides


def _order(shape: tuple[int, ...], rows: list[list[int]]) -> list[int]:
    perm = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(perm)):
        high = i
        for low in range(i - 1, -1, -1):
            verdict = _compare(perm[low], perm[high], shape, rows)
            if verdict > 0:
                perm[low], perm[high] = perm[high], perm[low]
                high = low
            elif verdict < 0:
                break
    return perm


def _compare(a: int, b: int, shape: tuple[int, ...], rows: list[list[int]]) -> int:
    for strides in rows:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return -1 if strides[a] < strides[b] else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def _dense_in_order(shape: tuple[int, ...], perm: list[int]) -> tuple[int, ...]:
    strides = [0] * len(shape)
    step = 1
    for dim in perm:
        strides[dim] = step
        step *= shape[dim] if shape[dim] > 1 else 1
    return tuple(strides)


def preserved(g: Geometry, dtype: Dtype | None = None) -> Geometry:
    """A new storage laid out like `g` where `g` is dense, else dense in `g`'s order."""
    return g.fresh(g.shape, dtype, elementwise_strides(g.shape, [g]))


def as_images(shape: tuple[int, ...], *sources: Geometry, dtype: Dtype | None = None) -> Geometry:
    """A new storage [N, C, ...] for what is computed from images: channels last where one of the
    sources is. CANN's operators take results in any order of strides.
    """
    first = sources[0]
    name = LAST.get(len(shape))
    if name is None or not any(map(channels_last, sources)):
        return first.fresh(shape, dtype)
    return first.fresh(shape, dtype, format_strides(shape, name))


LAST = {4: "channels_last", 5: "channels_last_3d"}


def channels_last(g: Geometry) -> bool:
    """Whether strides grow from the channel over space to the batch; of a lone channel that the
    usual order would suit as well, they do not (torch's `suggest_memory_format`)."""
    if g.ndim not in LAST or not g.numel or not g.strides[1]:
        return False
    least = 0
    for d in (1, *range(g.ndim - 1, 1, -1), 0):
        if g.strides[d] < least or (d == 0 and least == g.strides[1]):
            return False
        least = g.strides[d] * max(g.shape[d], 1)
    return True


def laid_out(g: Geometry, memory_format: object, dtype: Dtype | None = None) -> Geometry:
    """A new storage for `g`'s shape in a memory format; None preserves `g`'s order."""
    name = "preserve" if memory_format is None else format_name(memory_format)
    if name == "preserve":
        return g.fresh(g.shape, dtype, g.strides) if g.dense and g.numel else preserved(g, dtype)
    return g.fresh(g.shape, dtype, format_strides(g.shape, name))


class Pointwise:
    """Broadcast and promote; `kind` says what becomes of the common dtype.

    "same": it is the result's. "float": integers become the default dtype. "bool": the result is
    bool (comparisons). "real": complex becomes its real type (abs). `skip` counts leading
    tensor arguments that take part in the shape and not in the dtype (where's condition).
    `alpha` is the position of a factor whose class must suit the dtype. `only` are the common
    dtypes that torch has a kernel for, beside that kernel's name, which its error gives.
    """

    mixes_devices = True

    def __init__(
        self,
        kind: str = "same",
        skip: int = 0,
        alpha: int | None = None,
        only: tuple[str, Container[Dtype]] | None = None,
    ):
        self.kind = kind
        self.skip = skip
        self.alpha = alpha
        self.only = only
        self.positions: tuple[int, ...] = ()

    def bind(self, positions: tuple[int, ...]) -> None:
        """Told by the op: which positions hold tensors or `Tensor|Scalar`."""
        self.positions = positions

    def operands(self, args: Sequence[Any]) -> list[Any]:
        return [args[i] for i in self.positions if args[i] is not None]

    def common(self, args: Sequence[Any]) -> Dtype:
        """The dtype that inputs are converted to before computing."""
        dtype = result_type(self.operands(args)[self.skip :])
        if self.kind == "float" and dtype.category < dt.FLOAT:
            return dt.get_default_dtype()
        return dtype

    def __call__(self, *args: Any) -> Geometry:
        geoms = [a for a in self.operands(args) if a.__class__ is Geometry]
        if len(geoms) == 1:
            shape: tuple[int, ...] = geoms[0].shape
        else:
            shape = broadcast_all(g.shape for g in geoms)
        dtype = self.common(args)
        if self.only is not None:
            refuse_dtype(dtype, *self.only)
        if self.alpha is not None:
            _check_alpha(args[self.alpha], dtype)
        if self.kind == "bool":
            dtype = dt.bool
        elif self.kind == "real":
            dtype = dtype.to_real()
        numbers = len(self.operands(args)) > len(geoms)
        strides = elementwise_strides(shape, geoms, numbers)
        return geometry(shape, strides, 0, dtype, common_device(geoms))


def _check_alpha(alpha: Number, dtype: Dtype) -> None:
    if isinstance(alpha, bool) and dtype is not dt.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and dtype.category == dt.FLOAT:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, float | complex) and dtype.category <= dt.INTEGER:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )


def scalar_name(dtype: Dtype) -> str:
    """What torch calls a dtype in errors: `Long` for int64."""
    return dtype.legacy


# What autocast may make of each other before a product.
HALVES = frozenset((dt.float16, dt.bfloat16))


# What TypeMeta calls dtypes (c10/util/typeid.h).
_C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>", "uint16": "short unsigned int", "uint32": "unsigned int",
    "uint64": "long unsigned int",
}  # fmt: skip


def type_name(dtype: Dtype) -> str:
    """The type of cpu tensors of a dtype, as torch's errors give it: `torch.FloatTensor`."""
    newer = dtype.category == dt.COMPLEX or dtype in (dt.bool, dt.bfloat16)
    return f"CPU{scalar_name(dtype)}Type" if newer else f"torch.{scalar_name(dtype)}Tensor"


def c_name(dtype: Dtype) -> str:
    """A dtype by the C++ type of its elements, as torch's errors give it."""
    name = str(dtype).removeprefix("torch.")
    return _C_NAMES.get(name, name)


def refuse_dtype(dtype: Dtype, kernel: str, known: Container[Dtype]) -> None:
    """NotImplementedError in torch's words for a dtype that its kernel lacks."""
    if dtype not in known:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


# Dtypes that torch's kernels of ordering and rounding know.
REAL = tuple(d for d in dt.ALL if d.category < dt.COMPLEX)
REAL_NUMBERS = tuple(d for d in REAL if d is not dt.bool)
ANY_NUMBERS = tuple(d for d in dt.ALL if d is not dt.bool)
WHOLE = tuple(d for d in dt.ALL if d.category < dt.FLOAT)
BITS = (*WHOLE, *dt.UNSIGNED)


def pointwise(
    kind: str = "same",
    skip: int = 0,
    alpha: int | None = None,
    only: tuple[str, Container[Dtype]] | None = None,
) -> Pointwise:
    """The rule of pointwise rows; see Pointwise."""
    return Pointwise(kind, skip, alpha, only)


def common_device(geoms: Sequence[Geometry]) -> Device:
    """The device of the result: a 0-d cpu tensor goes where the others are."""
    for g in geoms:
        if g.ndim or g.device.type != "cpu":
            return g.device
    return geoms[0].device


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension in 0..ndim-1; IndexError in torch's words. 0-d tensors count as 1-d."""
    rank = ndim or 1
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}],"
            f" but got {dim})"
        )
    return dim + rank if dim < 0 else dim


def refuse_vector(ndim: int, name: str) -> None:
    """RuntimeError in torch's words where matrices are wanted; torch lets 0-d tensors pass."""
    if ndim == 1:
        raise RuntimeError(
            f"{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )


def wrap_dims(dims: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions in order given; None or () means all; RuntimeError for a repeated one."""
    if ndim > MOST_DIMS:
        raise RuntimeError(TOO_MANY_DIMS)
    if not dims:
        return tuple(range(ndim))
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def reduced(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """The shape after reducing wrapped `dims`."""
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def reduction(kind: str = "same") -> Callable[..., Any]:
    """Rule of `(self, dim, keepdim, *, dtype)` reductions.

    "same" keeps the dtype, "sum" turns bool and integers into int64, "float" refuses them,
    "bool" gives bool.
    """

    def infer(
        self: Geometry,
        dim: tuple[int, ...] | None = None,
        keepdim: bool = False,
        dtype: Dtype | None = None,
    ) -> Geometry:
        dims = wrap_dims(
            None if dim is None else (dim,) if isinstance(dim, int) else dim, self.ndim
        )
        if dtype is None:
            dtype = self.dtype
            if kind == "sum" and dtype.category < dt.FLOAT:
                dtype = dt.int64
            elif kind == "bool":
                dtype = dt.bool
        return self.fresh(reduced(self.shape, dims, keepdim), dtype)

    return infer


def without_derivative(argument: str) -> Callable[..., Any]:
    """The derivative by an argument for which torch has none: refused when it is wanted."""

    def refuse(grad: Tensor) -> Tensor:
        raise NotImplementedError(f"the derivative for '{argument}' is not implemented.")

    return refuse
