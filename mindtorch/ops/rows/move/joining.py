"""Rows that join, repeat, reorder and cut: elements move, none is computed."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ...._compat.unsupported_dtypes import kernel
from ...._tensor.dtype import int32, int64
from ...._tensor.geometry import format_strides
from ...complex_parts import in_pairs, is_real_below_double, rolled
from ...rules import LAST, as_images, channels_last, data_dependent, preserved
from ...samples import FLOATS
from ...spec import NoNumbers
from ...words import *
from ..view.shape import view_strides


def _cat_shape(tensors: Sequence[Geometry], dim: int) -> tuple[int, list[int]]:
    real = [g for g in tensors if g.shape != (0,)] or list(tensors)
    first = real[0]
    at = wrap_dim(dim, first.ndim)
    shape = list(first.shape)
    shape[at] = 0
    for i, g in enumerate(tensors):
        if g.shape == (0,):
            continue
        if g.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {g.ndim}"
            )
        for d, (a, b) in enumerate(zip(first.shape, g.shape, strict=True)):
            if d != at and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {at}. Expected size {a} but"
                    f" got size {b} for tensor number {i} in the list."
                )
        shape[at] += g.shape[at]
    return at, shape


def _promoted(tensors: Sequence[Geometry]) -> Dtype:
    from ...rules import result_type

    return result_type(tensors)


def _cat_infer(tensors: Sequence[Geometry], dim: int = 0) -> Geometry:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if any(not g.ndim for g in tensors):
        at = next(i for i, g in enumerate(tensors) if not g.ndim)
        raise RuntimeError(f"zero-dimensional tensor (at position {at}) cannot be concatenated")
    real = [g for g in tensors if g.shape != (0,)]
    if not real:  # an old kind of empty tensor: of any rank
        return tensors[0].fresh((0,), _promoted(tensors))
    _, shape = _cat_shape(tensors, dim)
    return tensors[0].fresh(tuple(shape), _promoted(tensors), _cat_strides(tensors, tuple(shape)))


def _cat_strides(tensors: Sequence[Geometry], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Channels last where torch suggests it for all; None for the usual order."""
    if all(g.ndim == len(shape) and channels_last(g) for g in tensors):
        return format_strides(shape, LAST[len(shape)])
    return None


def _cat(tensors: tuple[Array, ...], dim: int, *, out: Geometry) -> Array:
    real = [t for t in tensors if t.shape != (0,)]
    if not real:
        return np.zeros(0, out.dtype.np)
    return np.concatenate([t.astype(out.dtype.np, copy=False) for t in real], axis=dim)


def _cat_grad(grad: Tensor, tensors_geom: tuple[Geometry, ...], dim: int) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for g in tensors_geom:
        if g.shape == (0,):
            parts.append(aten.zeros((0,), dtype=grad.dtype, device=grad.device))
            continue
        size = g.shape[dim]
        parts.append(aten.narrow(grad, dim, start, size))
        start += size
    return tuple(parts)


def _no_complex128(name: str) -> NoNumbers:
    return NoNumbers(lambda args: args[name].dtype is not dt.complex128)


def _cat_pairs(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    wide = [aten.to(t, dt.complex128) for t in tensors if t.ndim > 1 or t.numel()]
    pairs = [aten.view_as_real(aten.resolve_conj(t)) for t in wide]
    if not pairs:
        return aten.clone(tensors[0])
    return aten.view_as_complex(aten.cat(pairs, dim % wide[0].ndim))


op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    summary="Tensors joined along `dim`; other sizes agree.",
    infer=_cat_infer,
    cpu=_cat,
    compute="raw",
    aclnn=call("aclnnCat", when=_no_complex128("out")),
    lower=_cat_pairs,
    grad={"tensors": _cat_grad},
    samples=lambda: [
        *(Sample(([Arg((2, 3), d), Arg((4, 3), d)],)) for d in (*FLOATS, "int64", "bool")),
        Sample(([Arg((2, 3)), Arg((2, 1)), Arg((2, 0))], 1)),
        Sample(([Arg((2, 3)), Arg((2, 3), "float64")], -1)),
        Sample(([Arg((0,)), Arg((2, 3))],)),
    ],
    apart=True,
)


def _stack_infer(tensors: Sequence[Geometry], dim: int = 0) -> Geometry:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    at = wrap_dim(dim, len(shape) + 1)
    for i, g in enumerate(tensors):
        if g.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and"
                f" {list(g.shape)} at entry {i}"
            )
    return tensors[0].fresh(
        (*shape[:at], len(tensors), *shape[at:]), _promoted(tensors), _stack_strides(tensors, at)
    )


def _stack_strides(tensors: Sequence[Geometry], at: int) -> tuple[int, ...] | None:
    """Those of a dimension of joined tensors that is split, or of joined columns."""
    shape = tensors[0].shape
    if at == len(shape):
        columns = [g.at((*shape, 1), (*g.strides, 1), g.offset) for g in tensors]
        return _cat_strides(columns, (*shape, len(tensors)))
    joined = (*shape[:at], len(tensors) * shape[at], *shape[at + 1 :])
    whole = tensors[0].fresh(joined, strides=_cat_strides(tensors, joined))
    return view_strides(whole, (*shape[:at], len(tensors), *shape[at:]))


op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    summary="Tensors of one shape joined along a new dimension.",
    infer=_stack_infer,
    cpu=lambda tensors, dim, *, out: np.stack(
        [t.astype(out.dtype.np, copy=False) for t in tensors], axis=dim
    ),
    compute="raw",
    aclnn=call("aclnnStack"),
    grad={"tensors": lambda grad, dim: tuple(aten.unbind(grad, dim))},
    samples=lambda: [
        Sample(([Arg((2, 3)), Arg((2, 3), "float32", 0, 1)],)),
        Sample(([Arg((2, 3), "int64"), Arg((2, 3), "int64")], -1)),
        Sample(([Arg(()), Arg(())],)),
    ],
)


def members(name: str, tensors: Any) -> Sequence[Tensor]:
    """A list of tensors to stack: TypeError for what is no list, RuntimeError for an empty one."""
    if not isinstance(tensors, list | tuple):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not"
            f" {type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def _joined(name: str, at: int, least: Callable[..., Any]) -> None:
    def joined(tensors: Sequence[Tensor]) -> Any:
        parts = [least(t) for t in members(name, tensors)]
        return aten.cat(parts, at if tensors[0].ndim > at else 0)

    composite(
        f"{name}(Tensor[] tensors) -> Tensor",
        joined,
        summary=f"Tensors joined along {'rows' if name == 'vstack' else 'columns'}.",
        samples=calls(([Arg((2, 3)), Arg((2, 3), low=-1)],), ([Arg((3,)), Arg((3,), low=-1)],)),
    )


def _at_least_2d(t: Tensor) -> Tensor:
    return aten.reshape(t, (1, -1)) if t.ndim < 2 else t


def _at_least_1d(t: Tensor) -> Tensor:
    return aten.reshape(t, (1,)) if not t.ndim else t


_joined("vstack", 0, _at_least_2d)
_joined("hstack", 1, _at_least_1d)


def _repeat_infer(self: Geometry, repeats: tuple[int, ...]) -> Geometry:
    if len(repeats) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of"
            " tensor"
        )
    lead = len(repeats) - self.ndim
    padded = (1,) * lead + tuple(self.shape)
    return self.fresh(tuple(n * r for n, r in zip(padded, repeats, strict=True)))


def _repeat_grad(grad: Tensor, self_geom: Geometry, repeats: tuple[int, ...]) -> Tensor:
    lead = len(repeats) - self_geom.ndim
    split: list[int] = []
    dims: list[int] = []
    for i, r in enumerate(repeats):
        if r != 1 or i < lead:  # ACLNN takes 8 dimensions
            dims.append(len(split))
            split.append(r)
        if i >= lead:
            split.append(self_geom.shape[i - lead])
    return aten.sum(aten.reshape(grad, tuple(split)), tuple(dims)) if dims else grad


_MOST_PAIRS = 16  # of dims: older numpy has 32


def _repeated(self: Array, repeats: tuple[int, ...]) -> Array:
    """As np.tile, in one copy."""
    if len(repeats) > _MOST_PAIRS:
        return np.tile(self, repeats)
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    pairs = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    built = np.empty(pairs, self.dtype)
    built[...] = self.reshape([n for size in shape for n in (1, size)])
    return built.reshape([r * n for r, n in zip(repeats, shape, strict=True)])


op(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    summary="Copies side by side, `repeats` times along each dimension.",
    infer=_repeat_infer,
    cpu=_repeated,
    compute="raw",
    aclnn=call("aclnnRepeat"),
    grad={"self": _repeat_grad},
    samples=lambda: [Sample((Arg((2, 3), d), (2, 1, 3))) for d in ("float32", "int64", "bfloat16")],
    surface="method",
)


def _tile(self: Tensor, dims: tuple[int, ...]) -> Tensor:
    return aten.repeat(self, (1,) * (self.ndim - len(dims)) + tuple(dims))


def _each(
    self: Tensor, repeats: int, dim: int | None = None, output_size: int | None = None
) -> Tensor:
    """Each element `repeats` times in a row, flat or along a dimension."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        self, dim = aten.reshape(self, (-1,)), 0
    _refuse_total(self.shape[wrap_dim(dim, self.ndim)] * repeats, output_size)
    return aten._repeat_each(self, repeats, dim)


def _refuse_counts(repeats: Tensor) -> None:
    if repeats.dtype not in (int32, int64):
        dtype_name = scalar_name(repeats.dtype)
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{dtype_name}'")


def _refuse_total(total: int, output_size: int | None) -> None:
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )


def _each_by_counts(
    self: Tensor, repeats: Tensor, dim: int | None = None, output_size: int | None = None
) -> Tensor:
    """Element i `repeats[i]` times in a row; a single count is for all."""
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.device.type == "meta" and output_size is None:
        raise data_dependent(
            RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        )
    if repeats.numel() == 1:
        _refuse_counts(repeats)
        return _each(self, int(repeats.item()), dim, output_size)
    if dim is None:
        self, dim = aten.reshape(self, (-1,)), 0
    size = self.shape[wrap_dim(dim, self.ndim)]
    if size != repeats.shape[0]:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) ="
            f" {repeats.shape[0]} and input.size({dim}) = {size}"
        )
    _refuse_counts(repeats)
    ends = aten.cumsum(repeats, 0)
    if repeats.device.type == "meta" and output_size is not None:
        total = output_size  # without values it is taken at its word
    else:
        if repeats.numel() and aten.min(repeats).item() < 0:
            raise RuntimeError("repeats can not be negative")
        total = int(ends[-1].item()) if repeats.numel() else 0
        if output_size is not None and output_size != total:
            raise RuntimeError("allocated size does not match required size")
    places = aten.arange(0, total, dtype=ends.dtype, device=self.device)
    return aten.index_select(self, dim, aten.searchsorted(ends, places, right=True))


composite(
    "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None)"
    " -> Tensor",
    _each,
    samples=calls((Arg((2, 3)), 2), (Arg((2, 3)), 3, 1)),
)
composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *,"
    " int? output_size=None) -> Tensor",
    _each_by_counts,
    samples=calls(
        (Arg((2, 3)), Arg((2,), "int64", values=(2, 1)), 0),
        (Arg((3,)), Arg((3,), "int64", values=(0, 2, 1))),
    ),
    oracle=lambda torch: torch.repeat_interleave,
)
composite(
    "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
    lambda repeats, output_size=None: _each_by_counts(
        aten.arange(0, repeats.numel(), dtype=repeats.dtype, device=repeats.device),
        repeats,
        output_size=output_size,
    ),
    unsupported={"bool short half real complex": "repeat_interleave_cpu"},
    samples=calls((Arg((3,), "int64", values=(2, 0, 1)),)),
    oracle=lambda torch: torch.repeat_interleave,
)
composite(
    "tile(Tensor self, int[] dims) -> Tensor",
    _tile,
    summary="Copies side by side, `dims` times along each dimension.",
    samples=calls((Arg((2, 3)), (2,)), (Arg((3,)), (2, 2))),
)


def _each_infer(self: Geometry, repeats: int, dim: int) -> Geometry:
    if not self.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    shape = list(self.shape)
    shape[wrap_dim(dim, self.ndim)] *= repeats
    return self.fresh(tuple(shape))


def _each_grad(grad: Tensor, self_geom: Geometry, repeats: int, dim: int) -> Tensor:
    at = wrap_dim(dim, self_geom.ndim)
    shape = (*self_geom.shape[: at + 1], repeats, *self_geom.shape[at + 1 :])
    return aten.sum(aten.reshape(grad, shape), at + 1)


def _each_in_blocks(self: Tensor, repeats: int, dim: int) -> Tensor:
    """Through four dims, whatever the rank: kernels take eight at most."""
    shape, at = tuple(self.shape), wrap_dim(dim, self.ndim)
    outer, inner = prod(shape[:at]), prod(shape[at + 1 :])
    blocks = aten.reshape(self, (outer, shape[at], 1, inner))
    spread = aten.expand(blocks, (outer, shape[at], repeats, inner))
    spread = aten.clone(spread, memory_format="contiguous")
    return aten.reshape(spread, (*shape[:at], shape[at] * repeats, *shape[at + 1 :]))


op(
    "_repeat_each(Tensor self, int repeats, int dim) -> Tensor",
    infer=_each_infer,
    cpu=lambda self, repeats, dim: np.repeat(self, repeats, axis=dim),
    compute="raw",
    lower=_each_in_blocks,
    grad={"self": _each_grad},
    samples=calls((Arg((2, 3)), 2, 0), (Arg((2, 3)), 3, -1)),
)  # fmt: skip


def _flip_infer(self: Geometry, dims: tuple[int, ...]) -> Geometry:
    from ...rules import wrap_dims

    if dims:
        wrap_dims(dims, self.ndim)
    return preserved(self)


op(
    "flip(Tensor self, int[] dims) -> Tensor",
    summary="Elements in reverse order along `dims`.",
    infer=_flip_infer,
    cpu=lambda self, dims: np.flip(self, tuple(dims) if self.ndim else ()).copy(),
    compute="raw",
    aclnn=call("aclnnFlip"),
    grad={"self": lambda grad, dims: aten.flip(grad, dims)},
    samples=lambda: (
        [Sample((Arg((2, 3), d), (0,))) for d in ("float32", "int64", "bool", "bfloat16")]
        + [Sample((Arg((2, 3, 4)), (0, -1)))]
    ),
)


def _flipped(self: Tensor, dim: int) -> Tensor:
    if self.ndim <= dim:
        raise RuntimeError(f"Input must be >= {dim + 1}-d.")
    return aten.flip(self, (dim,))


composite(
    "fliplr(Tensor self) -> Tensor",
    lambda self: _flipped(self, 1),
    summary="Columns in reverse order.",
    samples=calls((Arg((2, 3)),), (Arg((3, 2, 2), "int64"),)),
)
composite(
    "flipud(Tensor self) -> Tensor",
    lambda self: _flipped(self, 0),
    summary="Rows in reverse order.",
    samples=calls((Arg((2, 3)),), (Arg((3, 2, 2), "int64"),)),
)


def _roll(self: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    if not self.size:
        return self.copy()
    return np.roll(self, shifts, tuple(dims)) if dims else np.roll(self, shifts[0])


def _roll_rule(self: Geometry, shifts: tuple[int, ...], dims: tuple[int, ...] = ()) -> Geometry:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    for dim in dims if self.ndim and self.numel else ():
        wrap_dim(dim, self.ndim)
    if dims and not self.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return as_images(self.shape, self) if dims else self.fresh()


def _roll_wide(self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """roll of float64, which aclnnRoll's document does not list."""
    shifts, dims = (((n,) if isinstance(n, int) else n) for n in (shifts, dims))
    if not dims:
        flat = _roll_wide(aten.reshape(self, (-1,)), shifts, (0,))
        return aten.reshape(flat, self.shape)
    for shift, dim in zip(shifts, dims if self.ndim and self.numel() else (), strict=False):
        size = self.shape[dim]
        first = size - shift % size
        parts = aten.narrow(self, dim, first, size - first), aten.narrow(self, dim, 0, first)
        self = aten.cat(parts, dim)
    return aten.clone(self) if not self.ndim or not self.numel() else self


op(
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    summary="Elements shifted along `dims`; those that leave come back at the other end.",
    infer=_roll_rule,
    cpu=_roll,
    compute="raw",
    aclnn=call("aclnnRoll", when=is_real_below_double),
    lower=lambda self, *args: (in_pairs(rolled) if self.is_complex() else _roll_wide)(self, *args),
    grad={
        "self": lambda grad, shifts, dims: aten.roll(grad, tuple(-s for s in shifts), dims)
    },
    samples=lambda: [
        Sample((Arg((3, 4)), (1,), (0,))), Sample((Arg((3, 4)), (1, -2), (0, 1))),
        Sample((Arg((3, 4), "int64"), 2)),
    ],
)  # fmt: skip


def _within(diagonal: int, shape: Sequence[int]) -> int:
    """The nearest diagonal beside the matrix for one that is further away."""
    return max(-shape[-2], min(diagonal, shape[-1]))


_SMALL_MATRIX = 1 << 14  # elements; masks of such are kept


@lru_cache(1 << 8)
def _lower_mask(rows: int, columns: int, diagonal: int) -> Array:
    return np.tri(rows, columns, diagonal, bool)


def lower_triangle(self: Array, diagonal: int = 0) -> Array:
    """np.tril, whose masks of small matrices are made once."""
    rows, columns = self.shape[-2:]
    if rows * columns > _SMALL_MATRIX:
        return np.tril(self, diagonal)
    return np.where(_lower_mask(rows, columns, diagonal), self, self.dtype.type(0))


def upper_triangle(self: Array, diagonal: int = 0) -> Array:
    """np.triu, whose masks of small matrices are made once."""
    rows, columns = self.shape[-2:]
    if rows * columns > _SMALL_MATRIX:
        return np.triu(self, diagonal)
    return np.where(_lower_mask(rows, columns, diagonal - 1), self.dtype.type(0), self)


def _triangle(name: str, cpu: Callable[..., Array], aclnn: str) -> None:
    def infer(self: Geometry, diagonal: int = 0) -> Geometry:
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return self.fresh()

    def by_mask(self: Tensor, diagonal: int = 0) -> Tensor:
        ones = aten.ones(self.shape[-2:], dtype=dt.bool, device=self.device)
        return aten.where(getattr(aten, name)(ones, diagonal), self, aten.zeros_like(self))

    op(
        f"{name}(Tensor self, int diagonal=0) -> Tensor",
        infer=infer,
        summary=f"{'Lower' if name == 'tril' else 'Upper'} triangle; zero elsewhere.",
        cpu=lambda self, diagonal: cpu(self, _within(diagonal, self.shape)),
        compute="raw",
        aclnn=call(
            aclnn,
            "self",
            lambda a: _within(a["diagonal"], a["self"].shape),
            "out",
            when=_no_complex128("self"),
        ),
        lower=by_mask,
        grad={"self": lambda grad, diagonal: getattr(aten, name)(grad, diagonal)},
        samples=lambda: (
            [
                Sample((Arg((3, 4), d), k))
                for d, k in (("float32", 0), ("int64", 1), ("bool", -1), ("float16", 2))
            ]
            + [Sample((Arg((2, 3, 3)),))]
        ),
        out="expected",
        inplace=True,
    )


_triangle("tril", lower_triangle, "aclnnTril")
_triangle("triu", upper_triangle, "aclnnTriu")


def _diag(self: Tensor, diagonal: int = 0) -> Tensor:
    if self.ndim == 2:
        return aten.clone(aten.diagonal(self, diagonal))
    if self.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    return aten.diag_embed(self, diagonal)


def _diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    ndim = self.ndim + 1
    if not self.ndim:
        wrap_dim(-2, ndim)  # which refuses
    n = self.shape[-1] + abs(offset)
    if n >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[{n}, {n}]")
    rows, columns = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if rows == columns:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rest = iter(self.shape[:-1])
    shape = tuple(n if d in (rows, columns) else next(rest) for d in range(ndim))
    matrices = aten.zeros(shape, dtype=self.dtype, device=self.device)
    aten.diagonal(matrices, offset, rows, columns).copy_(self)
    return matrices


composite(
    "diag(Tensor self, int diagonal=0) -> Tensor",
    _diag,
    summary="Diagonal matrix of a vector, or diagonal of a matrix.",
    samples=calls((Arg((3,)),), (Arg((3, 4)), 1), (Arg((2,)), -1)),
    out="expected",
)
composite(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    _diag_embed,
    summary="Matrices with the last dimension as diagonal.",
    samples=calls((Arg((2, 3)),), (Arg((2, 3)), 1, 0, 2)),
)


@composite(
    "trace(Tensor self) -> Tensor",
    autocast="float32 on cpu",
    unsupported={"bool": kernel("trace", cpu_alone=True)},
    samples=calls((Arg((3, 4)),), Sample((Arg((3,)),), error=True)),
    tolerance="accumulated",
)
def trace(self: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return aten.sum(aten.diagonal(self))


@composite(
    "column_stack(Tensor[] tensors) -> Tensor",
    samples=calls(([Arg((3,)), Arg((3, 2)), Arg((3,))],)),
)
def column_stack(tensors: tuple[Tensor, ...]) -> Tensor:
    """Tensors as columns, side by side; 0-d and 1-d ones are one column each."""
    columns = [
        x if x.ndim > 1 else aten.reshape(x, (x.numel(), 1))
        for x in members("column_stack", tensors)
    ]
    return aten.cat(columns, 1)


@composite(
    "cartesian_prod(Tensor[] tensors) -> Tensor",
    variadic="alone",
    samples=calls(([Arg((3,)), Arg((2,))],), ([Arg((3,))],)),
    oracle=lambda torch: lambda tensors: torch.cartesian_prod(*tensors),
)
def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    """All combinations of the elements of 1-d tensors, one a row."""
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([aten.reshape(g, (-1,)) for g in aten.meshgrid(tensors, indexing="ij")], 1)
