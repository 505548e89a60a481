"""Owns going between layouts: coordinates, compressed rows and columns, blocks, all elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import mindtorch

from .._functional.queries import layout, sparse_coo, sparse_csc, sparse_csr, strided
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ._tensor import (
    BLOCKED,
    BY_ROWS,
    HANDLERS,
    LAYOUT_NAMES,
    SparseTensor,
    batch_dim,
    block_of,
    make,
)


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


def _spread(tensor: SparseTensor) -> tuple[Tensor, Tensor]:
    """Where compressed places stand, [batch dims + 2, count], in blocks where there are blocks, and
    their values [count, *block, *dense dims]."""
    compressed, plain = tensor._parts
    counts = compressed[..., 1:] - compressed[..., :-1]
    outer = mindtorch.repeat_interleave(
        arange(counts.numel(), plain.device), counts.flatten().long()
    )
    batch = compressed.dim() - 1
    rows = unflat(outer, counts.shape) if batch else outer[None]
    pair = (rows[batch:], plain.reshape(1, -1).long())
    indices = mindtorch.cat((rows[:batch], *(pair if tensor._layout in BY_ROWS else pair[::-1])))
    return indices, tensor._vals.flatten(0, batch)


def _expanded(tensor: SparseTensor) -> SparseTensor:
    """Coordinates of compressed ones, whole blocks where there are blocks."""
    if tensor._layout is sparse_coo:
        return tensor
    indices, values = _spread(tensor)
    if tensor._layout in BLOCKED:
        block = values.shape[1:3]
        within = unflat(arange(prod(block), indices.device), block)
        pair = [indices[at - 2][:, None] * block[at] + within[at] for at in (0, 1)]
        rest = indices[:-2, :, None].expand(-1, -1, prod(block))
        indices = mindtorch.cat((rest, mindtorch.stack(pair))).flatten(1)
        values = values.flatten(0, 2)
    sorted_ = tensor._layout is sparse_csr
    result = make(sparse_coo, (indices,), values, tensor.shape, sorted_)
    return result if sorted_ else coalesced(result)


def dense(tensor: SparseTensor) -> Tensor:
    """All elements, in row-major order."""
    if tensor._layout in BLOCKED:
        indices, values = _spread(tensor)
        *batch, rows, columns = tensor.shape[: indices.shape[0]]
        block = values.shape[1:3]
        sizes = (*batch, rows // block[0], columns // block[1])
        blocks = gathered(prod(sizes), flat(indices, sizes), values)
        blocks = blocks.reshape((*sizes, *values.shape[1:]))
        return blocks.transpose(len(batch) + 1, len(batch) + 2).reshape(tuple(tensor.shape))
    tensor = _expanded(tensor)
    indices, values = tensor._parts[0], tensor._vals
    sizes = tensor.shape[: indices.shape[0]]
    return gathered(prod(sizes), flat(indices, sizes), values).reshape(tuple(tensor.shape))


def compressed(
    tensor: Tensor, kind: layout, blocksize: Sequence[int] = (), dense_dim: int = 0, call: str = ""
) -> SparseTensor:
    """The matrix, or the batch of matrices, by compressed rows or columns, of blocks or not.

    RuntimeError where blocks do not fill it or matrices of a batch have other numbers of places.
    """
    if isinstance(tensor, SparseTensor) and tensor._layout is kind:
        return tensor
    source = coalesced(to_coo(tensor, tensor.dim() - dense_dim))
    indices, values = source._parts[0], source._vals
    *batch, rows, columns = tensor.shape[: tensor.dim() - dense_dim]
    high, wide = blocksize or (1, 1)
    if rows % high or columns % wide:
        raise RuntimeError(
            f"{call}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize"
            f" ({high},{wide})"
        )
    if not prod(batch):
        name = call.removeprefix("dense_")
        raise RuntimeError(f"{name}: Expected product of batch dimensions to be non-zero.")
    sizes = (*batch, rows // high, columns // wide)
    if kind is not sparse_csr:
        row, column = indices[-2:]
        within = (row % high) * wide + column % wide
        pair = [
            mindtorch.div(i, n, rounding_mode="floor") for i, n in ((row, high), (column, wide))
        ]
        if kind not in BY_ROWS:
            pair, sizes = pair[::-1], (*batch, columns // wide, rows // high)
        numbers = flat(mindtorch.cat((indices[:-2], mindtorch.stack(pair))), sizes)
        numbers, where = mindtorch.unique(numbers, sorted=True, return_inverse=True)
        indices = unflat(numbers, sizes)
        values = gathered(numbers.shape[0] * high * wide, where * (high * wide) + within, values)
        block = tuple(blocksize) if kind in BLOCKED else ()
        values = values.reshape((numbers.shape[0], *block, *values.shape[1:]))
    begin = starts(flat(indices[:-1], sizes[:-1]), sizes[:-1])
    if batch and bool((begin[..., -1:] != begin.flatten()[-1:]).any()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = indices.shape[1] // prod(batch)
    plain = indices[-1].reshape((*batch, nnz))
    values = values.reshape((*batch, nnz, *values.shape[1:]))
    return make(kind, (begin, plain.contiguous()), values, tensor.shape, True)


def starts(outer: Tensor, sizes: Sequence[int]) -> Tensor:
    """Where each of the last of `sizes` rows begins among the rows `outer` [nnz], and the end; of
    batches where there are more sizes."""
    counts = gathered(prod(sizes), outer, mindtorch.ones_like(outer)).reshape(tuple(sizes))
    return mindtorch.cat([counts.new_zeros((*sizes[:-1], 1)), counts.cumsum(-1)], -1)


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
        if sparse is not None and before in BLOCKED and list(block_of(sparse)) != sizes:
            refuse(f"with blocksize changed from {list(block_of(sparse))} to {sizes}")
        if sparse is not None and before in (sparse_csr, sparse_csc) and batch_dim(sparse):
            refuse("for batched inputs")
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
    if isinstance(tensor, SparseTensor):
        dense_dim = HANDLERS["dense_dim"](tensor)
    return compressed(tensor, kind, sizes or (), dense_dim or 0, call)
