"""Owns going between layouts: coordinates, compressed rows and columns, blocks, all elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import mindtorch

from .._functional.queries import layout, sparse_bsc, sparse_coo, sparse_csc, sparse_csr, strided
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ._tensor import BLOCKED, BY_ROWS, LAYOUT_NAMES, SparseTensor, make


def arange(n: int, device: Device) -> Tensor:
    """0 … n - 1, int64."""
    return mindtorch.arange(n, dtype=mindtorch.int64, device=device)


def flat(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Coordinates [dims, nnz] of a box of `sizes` as row-major numbers [nnz]."""
    total = mindtorch.zeros(indices.shape[1], dtype=mindtorch.int64, device=indices.device)
    for dim, size in enumerate(sizes):
        total = total * size + indices[dim]
    return total


def unflat(numbers: Tensor, sizes: Sequence[int]) -> Tensor:
    """Row-major numbers [nnz] of a box of `sizes` as coordinates [dims, nnz]."""
    rows = []
    for size in reversed(sizes):
        rows.append(numbers % max(size, 1))
        numbers = mindtorch.div(numbers, max(size, 1), rounding_mode="floor")
    if not rows:
        return numbers.new_zeros((0, numbers.shape[0]))
    return mindtorch.stack(rows[::-1])


def gathered(total: int, where: Tensor, values: Tensor) -> Tensor:
    """Values [nnz, …] added up in `total` places."""
    if values.dtype is mindtorch.bool:
        return gathered(total, where, values.to(mindtorch.int32)) != 0
    empty = mindtorch.zeros((total, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return empty.index_add(0, where, values)


def coalesced(tensor: SparseTensor) -> SparseTensor:
    """Coordinates sorted, each once, with the sums of their values; itself where that holds."""
    if tensor._coalesced:
        return tensor
    (indices,), values = tensor._parts, tensor._vals
    sizes = tensor.shape[: indices.shape[0]]
    if not tensor._nnz():
        return make(sparse_coo, (indices,), values, tensor.shape, True)
    if not sizes:
        total = values.sum(0, keepdim=True)
        return make(sparse_coo, (indices[:, :1],), total, tensor.shape, True)
    numbers, where = mindtorch.unique(flat(indices, sizes), sorted=True, return_inverse=True)
    summed = gathered(numbers.shape[0], where, values)
    return make(sparse_coo, (unflat(numbers, sizes),), summed, tensor.shape, True)


def to_coo(tensor: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """Coordinates of any layout; of an ordinary tensor those of what is not zero."""
    if isinstance(tensor, SparseTensor):
        return _expanded(tensor)
    dims = tensor.dim() if sparse_dim is None else sparse_dim
    if not 0 <= dims <= tensor.dim():
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{tensor.dim()}] range, but"
            f" {dims} is given"
        )
    if tensor.dim() and not dims:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    nonzero = tensor.detach() != 0
    if dims < tensor.dim():
        nonzero = nonzero.flatten(dims).any(dims)
    indices = mindtorch.nonzero(nonzero).t().contiguous()
    if not tensor.dim():
        values = tensor.reshape(1)[: indices.shape[1]]
    else:
        values = tensor.flatten(0, dims - 1) if dims > 1 else tensor
        values = values.index_select(0, flat(indices, tensor.shape[:dims]))
    return make(sparse_coo, (indices,), values, tensor.shape, True)


def _expanded(tensor: SparseTensor) -> SparseTensor:
    """Coordinates of compressed ones."""
    if tensor._layout is sparse_coo:
        return tensor
    if tensor._layout in BLOCKED:
        return to_coo(dense(tensor))
    compressed, plain = tensor._parts
    counts = compressed[1:] - compressed[:-1]
    outer = mindtorch.repeat_interleave(arange(counts.shape[0], plain.device), counts.long())
    inner = plain.long()
    by_rows = tensor._layout in BY_ROWS
    indices = mindtorch.stack((outer, inner) if by_rows else (inner, outer))
    result = make(sparse_coo, (indices,), tensor._vals, tensor.shape, by_rows)
    return result if by_rows else coalesced(result)


def dense(tensor: SparseTensor) -> Tensor:
    """All elements, in row-major order."""
    if tensor._layout in BLOCKED:
        return _from_blocks(tensor)
    tensor = _expanded(tensor)
    indices, values = tensor._parts[0], tensor._vals
    sizes = tensor.shape[: indices.shape[0]]
    return gathered(prod(sizes), flat(indices, sizes), values).reshape(tuple(tensor.shape))


def _from_blocks(tensor: SparseTensor) -> Tensor:
    compressed, plain = tensor._parts
    values = tensor._vals
    rows, columns = tensor.shape
    high, wide = values.shape[1:]
    counts = (compressed[1:] - compressed[:-1]).long()
    outer = mindtorch.repeat_interleave(arange(counts.shape[0], plain.device), counts)
    pair = (outer, plain.long()) if tensor._layout in BY_ROWS else (plain.long(), outer)
    grid = (rows // high, columns // wide)
    blocks = gathered(prod(grid), flat(mindtorch.stack(pair), grid), values)
    blocks = blocks.reshape((*grid, high, wide)).permute(0, 2, 1, 3)
    return blocks.reshape((rows, columns))


def _to_compressed(tensor: Tensor, kind: layout, blocksize: Sequence[int], call: str) -> Tensor:
    if isinstance(tensor, SparseTensor) and tensor._layout is kind:
        return tensor
    if tensor.dim() > 2:
        raise RuntimeError(
            f"to_sparse_{str(kind)[-3:]}: mindtorch compresses matrices, got {tensor.dim()} dims"
        )
    if kind in BLOCKED:
        return _to_blocks(tensor, kind, blocksize, call)
    source = coalesced(to_coo(tensor))
    indices, values = source._parts[0], source._vals
    outer, inner = (0, 1) if kind is sparse_csr else (1, 0)
    if kind is sparse_csc:
        order = mindtorch.argsort(indices[1], stable=True)
        indices, values = indices.index_select(1, order), values.index_select(0, order)
    compressed = starts(indices[outer], tensor.shape[outer])
    return make(kind, (compressed, indices[inner].contiguous()), values, tensor.shape, True)


def starts(outer: Tensor, size: int) -> Tensor:
    """Where each of `size` rows begins among the sorted rows `outer` [nnz], and the end."""
    counts = gathered(size, outer, mindtorch.ones_like(outer))
    return mindtorch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _to_blocks(tensor: Tensor, kind: layout, blocksize: Sequence[int], call: str) -> Tensor:
    high, wide = blocksize
    whole = dense(tensor) if isinstance(tensor, SparseTensor) else tensor
    rows, columns = whole.shape
    if rows % high or columns % wide:
        raise RuntimeError(
            f"{call}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize"
            f" ({high},{wide})"
        )
    blocks = whole.reshape((rows // high, high, columns // wide, wide)).permute(0, 2, 1, 3)
    if kind is sparse_bsc:
        blocks = blocks.transpose(0, 1)
    there = (blocks.detach() != 0).flatten(2).any(2)
    outer, inner = mindtorch.nonzero(there).t()
    grid = tuple(there.shape)
    block_index = flat(mindtorch.stack((outer, inner)), grid)
    values = blocks.reshape((prod(grid), high, wide)).index_select(0, block_index)
    return make(kind, (starts(outer, grid[0]), inner.contiguous()), values, tensor.shape, True)


def _call(source: Tensor, kind: layout, to: str) -> str:
    """The function of torch that goes from a layout to another."""
    if not isinstance(source, SparseTensor):
        return f"dense_{to}"
    if source._layout is kind:
        return to
    if source._layout is not sparse_coo:
        return f"sparse_compressed_{to}"
    return f"sparse_coo_{to}" if to == "to_sparse" else f"coo_{to}"


def _refuse(
    source: Tensor, kind: layout, blocksize: Sequence[int] | None, dense_dim: int | None, call: str
) -> None:
    """RuntimeError, or IndexError for less than two dims, in torch's words."""
    sparse = source if isinstance(source, SparseTensor) else None
    before = sparse._layout if sparse is not None else strided
    names = {**LAYOUT_NAMES, strided: "Strided"}

    def refuse(why: str) -> None:
        text = f"{call}: conversion from {names[before]} to {names[kind]}"
        raise RuntimeError(f"{text} {why} is not supported")

    if sparse is not None and before is sparse_coo is not kind and sparse._parts[0].shape[0] != 2:
        refuse("for input tensors with sparse_dim()!=2")
    if dense_dim is not None:
        if before is not strided:
            refuse("with dense_dim argument given")
        if kind is not sparse_coo and not 0 <= dense_dim <= source.dim() - 2:
            raise RuntimeError(
                f"{call}: dense_dim argument must be in [0,{source.dim() - 2}] range, but"
                f" {dense_dim} is given"
            )
        if kind is sparse_coo and dense_dim == source.dim() > 0:
            raise RuntimeError(f"{call}: dense_dim argument must be !=self.dim() when self.dim()>0")
    if (blocksize is not None) != (kind in BLOCKED):
        refuse(f"with{'out' * (blocksize is None)} blocksize argument given")
    if blocksize is not None:
        sizes = list(blocksize)
        if len(sizes) != 2:
            raise RuntimeError(
                f"{call}: blocksize needs to be a tuple of size 2, but got {len(sizes)}"
            )
        if min(sizes) <= 0:
            raise RuntimeError(f"{call}: blocksize needs to be positive, but got {sizes}")
        if sparse is not None and before in BLOCKED and list(sparse._vals.shape[1:]) != sizes:
            refuse(f"with blocksize changed from {list(sparse._vals.shape[1:])} to {sizes}")
    elif before in BLOCKED and kind in (sparse_csr, sparse_csc):
        raise RuntimeError(
            f"sparse_compressed_to_sparse_{str(kind)[-3:]}: expected SparseCsr or SparseCsc layout"
            f" but got {names[before]}"
        )
    if before is strided and source.dim() == 1 and kind not in (strided, sparse_coo):
        if kind is sparse_csr:
            nonzero = mindtorch.count_nonzero(source).item()
            raise IndexError(
                f"select(): index 1 out of range for tensor of size [{nonzero}, 1] at dimension 1"
            )
        dim = -2 if kind in BLOCKED else 1
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got {dim})"
        )


def convert(
    tensor: Tensor, kind: layout, blocksize: Sequence[int] | int | None = None,
    dense_dim: int | None = None, to: str = "to_sparse",
) -> Tensor:  # fmt: skip
    """The tensor in another layout; `to` is the function that is asked for it."""
    sizes = [blocksize] * 2 if isinstance(blocksize, int) else blocksize
    call = _call(tensor, kind, to)
    _refuse(tensor, kind, sizes, dense_dim, call)
    if kind is strided:
        return dense(tensor) if isinstance(tensor, SparseTensor) else tensor
    if kind is sparse_coo:
        return to_coo(tensor, None if dense_dim is None else tensor.dim() - dense_dim)
    return _to_compressed(tensor, kind, sizes or (), call)
