"""Owns torch.sparse_coo_tensor and the compressed constructors: what they take, and its checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch

from .._autograd.node import Node
from .._compat.argument_errors import parsed
from .._compat.warn_once import warn_once
from .._functional.queries import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._tensor.device import DeviceLike
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.rules import scalar_name
from ._convert import flat
from ._tensor import BLOCKED, BY_ROWS, COMPRESSED, LAYOUT_NAMES, make


class check_sparse_tensor_invariants:  # noqa: N801 - torch's name
    """Whether constructors look at every index; as a context or decorator, inside it."""

    _on = False
    _explicit = False  # whether the program ever said which

    def __init__(self, enable: bool = True):
        self.state = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Look at every index from now on."""
        check_sparse_tensor_invariants._on = check_sparse_tensor_invariants._explicit = True

    @staticmethod
    def disable() -> None:
        """Look at sizes alone from now on."""
        check_sparse_tensor_invariants._on = False
        check_sparse_tensor_invariants._explicit = True

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        (self.enable if self.state else self.disable)()

    def __exit__(self, *exc: object) -> None:
        check_sparse_tensor_invariants._on = self._before.pop()

    def __call__(self, mth: Any) -> Any:
        @functools.wraps(mth)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return inside


def _checking(check: bool | None) -> bool:
    if check is not None:
        return check
    if not check_sparse_tensor_invariants._explicit:
        warn_once(
            "Sparse invariant checks are implicitly disabled. Memory errors (e.g. SEGFAULT) will"
            " occur when operating on a sparse tensor which violates the invariants, but checks"
            " incur performance overhead. To silence this warning, explicitly opt in or out. See"
            " `torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance. "
        )
    return check_sparse_tensor_invariants.is_enabled()


def _values(
    values: Any, dtype: Dtype | None, device: DeviceLike | None, requires_grad: bool
) -> Tensor:
    if isinstance(values, Tensor):
        values = values.to(device=device or values.device, dtype=dtype or values.dtype)
        if requires_grad:
            return values.detach().requires_grad_()
        # A tensor with a history of its own: its gradient is that of the values given.
        return values.view_as(values) if values.requires_grad else values
    return mindtorch.tensor(values, dtype=dtype, device=device, requires_grad=requires_grad)


def _indices(indices: Any, values: Tensor) -> Tensor:
    if isinstance(indices, int | Tensor) or hasattr(indices, "__array__"):
        indices = mindtorch.as_tensor(indices)
        return indices.detach().to(device=values.device, dtype=mindtorch.int64)
    return mindtorch.tensor(indices, device=values.device).to(mindtorch.int64)


@parsed()
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *,
    dtype: Dtype | None = None, device: DeviceLike | None = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of `values` [nnz, *dense] at `indices` [dims, nnz]; of zeros from a size alone.

    Places that come twice count together. RuntimeError where sizes do not fit.
    """
    if values is None:
        if indices is None and size is None:
            raise TypeError(
                "sparse_coo_tensor() received an invalid combination of arguments: it needs indices"
                " and values, or a size"
            )
        _checking(check_invariants)
        shape = indices if size is None else size
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        empty = mindtorch.empty(0, dtype=dtype, device=device, requires_grad=requires_grad)
        none = mindtorch.empty((len(shape), 0), dtype=mindtorch.int64, device=empty.device)
        return make(sparse_coo, (none,), empty, shape, True)
    values = _values(values, dtype, device, requires_grad)
    indices = _indices(indices, values)
    if indices.dim() == 1 and size is not None:
        indices = indices[:, None]
    if not values.dim():
        values = values.reshape(1)
    if indices.dim() != 2:
        raise RuntimeError("indices must be sparse_dim x nnz, but got: " + str(list(indices.shape)))
    checking = _checking(check_invariants)
    sparse_dim, nnz = indices.shape
    dense = values.shape[1:]
    if size is None:
        _check_coordinates(indices)
        ends = indices.amax(1) + 1 if nnz else indices.new_zeros(sparse_dim)
        size = (*ends.tolist(), *dense)
    if len(size) != sparse_dim + len(dense):
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) ="
            f" {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {len(dense)}"
        )
    if nnz != values.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices:"
            f" {nnz}, nnz from values: {values.shape[0]}"
        )
    if tuple(size[sparse_dim:]) != tuple(dense):
        raise RuntimeError(
            f"values has incorrect size, expected {[nnz, *size[sparse_dim:]]}, got"
            f" {list(values.shape)}"
        )
    if checking:
        _check_coordinates(indices, size)
        if is_coalesced:
            places = flat(indices, size)
            if not bool((places[1:] > places[:-1]).all()):
                raise RuntimeError(
                    "cannot set is_coalesced to true if indices correspond to uncoalesced COO"
                    " tensor"
                )
    tensor = make(sparse_coo, (indices,), values, tuple(size), bool(is_coalesced))
    if isinstance(values._fn, Node):
        values._fn.label = "SparseCooTensorWithDimsAndTensorsBackward0"
    if is_coalesced is False:
        tensor._coalesced = False
    return tensor


def _check_coordinates(indices: Tensor, size: Sequence[int] | None = None) -> None:
    if not indices.numel():
        return
    lowest, highest = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, (low, high) in enumerate(zip(lowest, highest, strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if size is not None and high >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found"
                f" index {high}"
            )


@parsed()
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int] | None = None,
    *, dtype: Dtype | None = None, layout: layout | None = None,
    device: DeviceLike | None = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A matrix, or a batch of matrices, of compressed rows or columns, as `layout` says.

    RuntimeError for other layouts.
    """
    if layout not in COMPRESSED:
        kind = "none" if layout is None else LAYOUT_NAMES.get(layout, "Strided")
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got " + kind
        )
    values = _values(values, dtype, device, requires_grad)
    compressed, plain = _compressed(compressed_indices, values), _compressed(plain_indices, values)
    if size is None:
        size = _estimated(layout, compressed, plain, values)
    if _checking(check_invariants):
        _check_compressed(layout, compressed, plain, values, size)
    if isinstance(values._fn, Node):
        values._fn.label = "SparseCompressedTensorBackward0"
    return make(layout, (compressed, plain), values, tuple(size), True)


def _compressed(indices: Any, values: Tensor) -> Tensor:
    if isinstance(indices, Tensor) or hasattr(indices, "__array__"):
        indices = mindtorch.as_tensor(indices)
        return indices.detach().to(values.device)
    return mindtorch.tensor(indices, dtype=mindtorch.int64, device=values.device)


def _estimated(kind: layout, compressed: Tensor, plain: Tensor, values: Tensor) -> tuple[int, ...]:
    batch, blocked = compressed.dim() - 1, kind in BLOCKED
    outer = compressed.shape[-1] - 1
    inner = int(plain.max().item()) + 1 if plain.numel() else 0
    rows, columns = (outer, inner) if kind in BY_ROWS else (inner, outer)
    high, wide = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    dense = values.shape[batch + 1 + 2 * blocked :]
    return *compressed.shape[:-1], rows * high, columns * wide, *dense


def _check_sizes(
    kind: layout, parts: tuple[Tensor, Tensor], values: Tensor, size: Sequence[int]
) -> tuple[int, int]:
    """How many rows are compressed, and how long they are; RuntimeError where sizes do not fit."""

    def need(right: bool, why: str) -> None:
        if not right:
            raise RuntimeError(why)

    compressed, plain = parts
    first, second = _NAMES[kind in BY_ROWS]
    batch, base = compressed.dim() - 1, 2 * (kind in BLOCKED)
    need(batch >= 0, f"{first}_indices must have dimensionality >= 1 but got {batch + 1}")
    need(
        batch + 1 == plain.dim(),
        f"{first}_indices and {second}_indices dimensionalities must be equal but got {batch + 1}"
        f" and {plain.dim()}, respectively",
    )
    dense = values.dim() - batch - base - 1
    need(
        dense >= 0,
        "values must have dimensionality > sum of batch and block dimensionalities"
        f" (={batch} + {base}) but got {values.dim()}",
    )
    need(
        len(size) == batch + 2 + dense,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities"
        f" (={batch} + 2 + {dense}) but got {len(size)}",
    )
    block = tuple(values.shape[batch + 1 : batch + 3]) if base else (1, 1)
    for at, (whole, part) in enumerate(zip(size[batch : batch + 2], block, strict=True)):
        need(
            not part or whole % part == 0,
            f"tensor shape[{batch + at}] (={whole}) must be divisible with blocksize[{at}]"
            f" (={part}) as defined by values shape",
        )
    batches = [list(part.shape[:batch]) for part in (compressed, plain, values)]
    batch_sizes = list(size[:batch])
    need(
        batches == [batch_sizes] * 3,
        f"all batch dimensions of {first}_indices (={batches[0]}), {second}_indices"
        f" (={batches[1]}), and values (={batches[2]}) must be equal to tensor batch dimensions"
        f" (={batch_sizes})",
    )
    grid = [
        whole // max(part, 1) for whole, part in zip(size[batch : batch + 2], block, strict=True)
    ]
    outer, inner = grid if kind in BY_ROWS else grid[::-1]
    rows = "row" if kind in BY_ROWS else "column"
    need(
        compressed.shape[-1] == outer + 1,
        f"{first}_indices.shape[-1] must be equal to the number of {rows}"
        f"{' blocks' if base else 's'} + 1 (={outer + 1}), but got {compressed.shape[-1]}",
    )
    nnz = values.shape[batch]
    need(
        plain.shape[-1] == nnz,
        f"{second}_indices.shape[-1] must be equal to nnz (={nnz}) as defined by"
        f" values.shape[{batch}], but got {plain.shape[-1]}",
    )
    names = [scalar_name(part.dtype) for part in parts]
    both = f"{first}_indices and {second}_indices"
    need(
        names[0] == names[1],
        f"{both} must have the same dtype, bot got {names[0]} and {names[1]}, respectively",
    )
    need(names[0] in ("Int", "Long"), f"{both} dtype must be Int or Long, but got {names[0]}")
    return outer, inner


_NAMES = (("ccol", "row"), ("crow", "col"))


def _check_compressed(
    kind: layout, compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int]
) -> None:
    first, second = _NAMES[kind in BY_ROWS]
    outside, inside = ("rows", "cols") if kind in BY_ROWS else ("cols", "rows")
    _, inner = _check_sizes(kind, (compressed, plain), values, size)
    nnz = plain.shape[-1]
    steps = compressed[..., 1:] - compressed[..., :-1]
    # Places that follow another of the same row, in each matrix of a batch.
    after = mindtorch.arange(1, max(nnz, 1), device=plain.device)
    rows = mindtorch.searchsorted(
        compressed.contiguous(), after.expand(*plain.shape[:-1], -1).contiguous()
    )
    within = compressed.gather(-1, rows.clamp(max=compressed.shape[-1] - 1)) != after
    broken = {
        f"0 <= {second}_indices < n{inside}": (plain < 0) | (plain >= inner),
        f"{first}_indices[..., 0] == 0": compressed[..., 0] != 0,
        f"{first}_indices[..., -1] == nnz": compressed[..., -1] != nnz,
        f"0 <= {first}_indices[..., 1:] - {first}_indices[..., :-1] <= n{inside}": (
            (steps < 0) | (steps > inner)
        ),
        f"{second}_indices[..., {first}_indices[..., i - 1]:{first}_indices[..., i]] for all i = 1,"
        f" ..., n{outside} are sorted and distinct along the last dimension values": (
            (plain[..., 1:] <= plain[..., :-1]) & within
        ),
    }
    for what, where in broken.items():
        if bool(where.any()):
            raise RuntimeError(f"`{what}` is not satisfied.")


def _constructor(kind: layout, name: str) -> Callable[..., Tensor]:
    """The constructor of one layout, which takes its indices by their own names too."""
    names = [f"{side}_indices" for side in _NAMES[kind in BY_ROWS]]

    def construct(*args: Any, **options: Any) -> Tensor:
        indices = [options.pop(part) for part in names if part in options]
        return sparse_compressed_tensor(*args, *indices, layout=kind, **options)

    what = "rows" if kind in BY_ROWS else "columns"
    construct.__doc__ = f"A matrix of compressed {what}; options as of sparse_compressed_tensor."
    return parsed(name)(construct)


sparse_csr_tensor = _constructor(sparse_csr, "sparse_csr_tensor")
sparse_csc_tensor = _constructor(sparse_csc, "sparse_csc_tensor")
sparse_bsr_tensor = _constructor(sparse_bsr, "sparse_bsr_tensor")
sparse_bsc_tensor = _constructor(sparse_bsc, "sparse_bsc_tensor")


def zeros_of_layout(
    size: Sequence[int], kind: layout, dtype: Dtype | None, device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:  # fmt: skip
    """No places, by coordinates or compressed rows or columns; RuntimeError for others."""
    if kind is sparse_coo:
        return sparse_coo_tensor(
            tuple(size),
            dtype=dtype,
            device=device,
            requires_grad=requires_grad,
            check_invariants=False,
        )
    if kind not in (sparse_csr, sparse_csc):
        raise RuntimeError(
            "zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got"
            f" {LAYOUT_NAMES.get(kind, 'Jagged')}"
        )
    if len(size) < 2:
        raise RuntimeError(
            "torch.zeros: Only batched sparse compressed (non-block) tensors are supported, but"
            f" got size {list(size)}"
        )
    outer = size[-2] if kind in BY_ROWS else size[-1]
    places = mindtorch.zeros((*size[:-2], outer + 1), dtype=mindtorch.int64, device=device)
    shape = (*size[:-2], 0)
    values = mindtorch.empty(shape, dtype=dtype, device=device, requires_grad=requires_grad)
    return make(kind, (places, places.new_zeros(shape)), values, tuple(size), True)
