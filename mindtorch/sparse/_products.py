"""Owns products, sums and softmax of sparse matrices; gradients go to values and ordinary factors.

A row of the product is a sum over the row's places: `nnz · columns` elements at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch

from .._compat.argument_errors import parsed
from .._compat.refusals import without_kernel
from .._compat.unsupported_dtypes import refuse
from .._functional.queries import sparse_coo, sparse_csc, sparse_csr
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.rules import scalar_name, wrap_dim
from ._convert import arange, coalesced, convert, dense, flat, gathered, starts, to_coo
from ._functions import handles, label_last
from ._tensor import HANDLERS, LAYOUT_NAMES, SparseTensor, make, refusal, with_values


def _check_matrices(one: Tensor, other: Tensor) -> None:
    """torch's refusals of factors, by their layouts, where their sizes do not fit."""
    if one.dim() == other.dim() == 2 and one.shape[1] == other.shape[0]:
        return
    dense_second = not isinstance(other, SparseTensor) and other.dim() == one.dim() == 2
    if dense_second and isinstance(one, SparseTensor) and one._layout is sparse_coo:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {one.shape[1]}, got {other.shape[0]}"
        )
    raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(one)} and {_by(other)})")


def _check_kinds(one: Tensor, other: Tensor) -> None:
    """torch's refusals of factors by their dtypes and pairs of layouts."""
    sparse = [t for t in (one, other) if isinstance(t, SparseTensor)]
    if one.dtype is not other.dtype:
        if len(sparse) == 2:
            raise RuntimeError(
                f"mat1 dtype {scalar_name(one.dtype)} does not match mat2 dtype"
                f" {scalar_name(other.dtype)}"
            )
        kinds = (one.dtype, other.dtype) if sparse[0] is one else (other.dtype, one.dtype)
        names = [scalar_name(kind) for kind in kinds]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    layouts = {t._layout for t in sparse}
    if len(layouts) == 2 and sparse_coo in layouts:
        names = [LAYOUT_NAMES[t._layout] for t in sparse]
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {names[0]} + {' @ '.join(names)}"
        )
    if sparse_coo not in layouts and one.device.type == "cpu":
        refuse({"bool whole half": "addmm_out_sparse_csr_impl_mkl"}, None, [one._geom])


def _by(matrix: Tensor) -> str:
    return "x".join(map(str, matrix.shape))


def _times(one: SparseTensor, other: Tensor) -> Tensor:
    """A sparse matrix [m, n] by an ordinary one [n, k]."""
    source = to_coo(one)
    rows, columns = source._parts[0].unbind()
    parts = source._vals[:, None] * other.index_select(0, columns)
    return gathered(one.shape[0], rows, parts)


def _reduced(one: SparseTensor, other: Tensor, reduce: str) -> Tensor:
    source = to_coo(one)
    rows, columns = source._parts[0].unbind()
    parts = source._vals[:, None] * other.index_select(0, columns)
    empty = parts.new_zeros((one.shape[0], other.shape[1]))
    where = rows[:, None].expand(parts.shape)
    return empty.scatter_reduce(0, where, parts, reduce, include_self=False)


def _times_sparse(one: SparseTensor, other: SparseTensor) -> Tensor:
    """Two sparse matrices: each place of `one` meets the places of a row of `other`."""
    left, right = coalesced(to_coo(one)), coalesced(to_coo(other))
    (rows, inner), (outer, columns) = left._parts[0].unbind(), right._parts[0].unbind()
    begin = starts(outer, other.shape[:1])
    counts = (begin[1:] - begin[:-1]).index_select(0, inner)
    which = mindtorch.repeat_interleave(arange(counts.shape[0], counts.device), counts)
    first = (counts.cumsum(0) - counts).index_select(0, which)
    at = begin.index_select(0, inner.index_select(0, which)) + arange(
        which.shape[0], which.device
    ) - first  # fmt: skip
    values = left._vals.index_select(0, which) * right._vals.index_select(0, at)
    places = mindtorch.stack([rows.index_select(0, which), columns.index_select(0, at)])
    shape = (one.shape[0], other.shape[1])
    product = coalesced(make(sparse_coo, (places,), values, shape))
    return product if one._layout is sparse_coo else convert(product, sparse_csr)


def mm(input: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices: sparse of two sparse ones; two ordinary ones are multiplied too.

    `reduce` ("sum", "mean", "amax", "amin") says what is made of a row's products instead.
    """
    return label_last(_product(input, mat2, reduce), "SparseAddmmBackward0")


@handles("mm", "spmm")
def _mm(input: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    return label_last(_product(input, mat2, reduce), "MmBackward0")


def _product(input: Tensor, mat2: Tensor, reduce: str | None) -> Tensor:
    _check_matrices(input, mat2)
    if reduce is not None:
        if not isinstance(input, SparseTensor) or input._layout is not sparse_csr:
            raise NotImplementedError(without_kernel("_sparse_mm_reduce_impl", "SparseCPU"))
        if reduce not in ("sum", "mean", "amax", "amin"):
            if reduce == "prod":
                raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
            raise RuntimeError(
                f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
            )
        return _reduced(input, mat2, reduce)
    _check_kinds(input, mat2)
    if not isinstance(mat2, SparseTensor):
        return _times(input, mat2) if isinstance(input, SparseTensor) else input @ mat2
    if isinstance(input, SparseTensor):
        return _times_sparse(input, mat2)
    transpose = mat2.t()
    assert isinstance(transpose, SparseTensor)
    return _times(transpose, input.t()).t()


@handles("matmul", "__matmul__", "__rmatmul__")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """mm, mv or bmm, by the number of dimensions."""
    if input.dim() == other.dim() == 3:
        return bmm(input, other)
    if other.dim() == 1:
        return mv(input, other)
    if input.dim() == 1:
        return mv(other.t(), input)
    return _mm(input, other)


@handles("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix by an ordinary vector."""
    if isinstance(vec, SparseTensor):
        raise RuntimeError("mv: the vector is an ordinary tensor")
    if input.shape[-1] != vec.shape[0]:
        if isinstance(input, SparseTensor) and input._layout is sparse_coo:
            raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
        raise RuntimeError(
            f"size mismatch, got input ({input.shape[0]}), mat ({_by(input)}), vec ({vec.shape[0]})"
        )
    return label_last(_product(input, vec[:, None], None)[:, 0], "MvBackward0")


@handles("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Batches of matrices, the first one sparse."""
    if isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    for name, matrices in (("self", input), ("mat2", mat2)):
        if matrices.dim() != 3:
            raise RuntimeError(
                f"bmm_sparse: Tensor '{name}' must have 3 sparse dims, but has {matrices.dim()}"
            )
    if input.shape[2] != mat2.shape[1]:
        raise RuntimeError("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match")
    return mindtorch.stack([input[i] @ mat2[i] for i in range(input.shape[0])])


@handles("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    product = mm(mat1, mat2)
    if isinstance(product, SparseTensor) != isinstance(input, SparseTensor):
        product = dense(product) if isinstance(product, SparseTensor) else product
        input = dense(input) if isinstance(input, SparseTensor) else input
    return input * beta + product * alpha


@handles("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    product = matmul(input, weight.t())
    return product if bias is None else label_last(product + bias, "AddmmBackward0")


@handles("smm")
@parsed()
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product by an ordinary matrix, as coordinates."""
    return to_coo(mm(input, mat2))


@handles("hspmm")
@parsed()
def hspmm(mat1: SparseTensor, mat2: Tensor) -> Tensor:
    """The product by an ordinary matrix: the rows that are there, each whole."""
    if not isinstance(mat1, SparseTensor):
        backend = "CPU" if mat1.device.type == "cpu" else "PrivateUse1"
        raise NotImplementedError(without_kernel("hspmm", backend))
    source = coalesced(to_coo(mat1))
    rows, where = mindtorch.unique(source._parts[0][0], sorted=True, return_inverse=True)
    parts = source._vals[:, None] * mat2.index_select(0, source._parts[0][1])
    values = gathered(rows.shape[0], where, parts)
    return make(sparse_coo, (rows[None],), values, (mat1.shape[0], mat2.shape[1]), True)


@handles("sspaddmm")
@parsed()
def sspaddmm(
    input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`, as coordinates."""
    one, two = to_coo(input) * beta, smm(mat1, mat2) * alpha
    places = mindtorch.cat([one._parts[0], two._parts[0]], 1)
    return make(sparse_coo, (places,), mindtorch.cat([one._vals, two._vals]), input.shape)


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0,
    out: None = None,
) -> Tensor:  # fmt: skip
    """`alpha * (mat1 @ mat2) + beta * input` at the places of `input`, the others not computed."""
    if input._layout is not sparse_csr:
        raise refusal("sparse_sampled_addmm", input)
    places = to_coo(input)
    rows, columns = places._parts[0].unbind()
    product = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    values = product * alpha + places._vals * beta
    return with_values(input, values)


def _dims(tensor: Tensor, dim: Any) -> list[int]:
    dims = list(range(tensor.dim())) if dim is None else [dim] if isinstance(dim, int) else dim
    return sorted({wrap_dim(d, tensor.dim()) for d in dims})


@handles("sum")
def sum_of(
    input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None
) -> Tensor:
    """The sum of all elements, or over dimensions: sparse while one with indices is left."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return input._vals.sum(dtype=dtype)
    if input._layout is not sparse_coo and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    source, dims = to_coo(input), _dims(input, dim)
    (places,), count = source._parts, source._parts[0].shape[0]
    values = source._vals if dtype is None else source._vals.to(dtype)
    if not values.dtype.is_floating_point and not values.dtype.is_complex:
        values = values.to(mindtorch.int64)
    inside = [d - count + 1 for d in dims if d >= count]
    values = values.sum(inside, keepdim=keepdim) if inside else values
    left, label = [d for d in range(count) if d not in dims], "SumBackward1"
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    if not left:
        return label_last(values.sum(0).reshape(shape), label)
    indices = places.index_select(0, mindtorch.tensor(left, device=places.device))
    sizes = [input.shape[d] for d in left]
    rest = coalesced(make(sparse_coo, (indices,), values, (*sizes, *values.shape[1:])))
    result_places = rest._parts[0]
    if keepdim:
        zero = result_places.new_zeros(result_places.shape[1])
        rows = iter(result_places)
        result_places = mindtorch.stack([zero if d in dims else next(rows) for d in range(count)])
    result = label_last(make(sparse_coo, (result_places,), rest._vals, shape, True), label)
    return result if input._layout is sparse_coo else convert(result, input._layout)


def sparse_sum(input: Tensor, dim: Any = None, dtype: Dtype | None = None) -> Tensor:
    """The sum of what coordinates have, of all elements or over dimensions: torch.sparse.sum."""
    if dim is None:
        return sum_of(HANDLERS["coalesce"](input), dtype=dtype)
    if not isinstance(input, SparseTensor) or input._layout is not sparse_coo:
        kind = "SparseCsrCPU" if isinstance(input, SparseTensor) else "CPU"
        raise NotImplementedError(without_kernel("_indices", kind))
    return label_last(sum_of(input, dim, dtype=dtype), "SparseSumBackward0")


def _groups(name: str, input: Tensor, dim: int) -> tuple[SparseTensor, Tensor, int]:
    """Coalesced coordinates, for each place the number of its line along `dim`, and the lines."""
    if not isinstance(input, SparseTensor) or input._layout is not sparse_coo:
        kind = "SparseCsrCPU" if isinstance(input, SparseTensor) else "CPU"
        raise NotImplementedError(without_kernel(f"_sparse_{name}", kind))
    at = wrap_dim(dim, input.dim())
    refuse({"bool whole": name}, None, [input._geom])
    source = coalesced(input)
    places = source._parts[0]
    if at >= places.shape[0]:
        raise RuntimeError("softmax: mindtorch takes dimensions that have indices")
    others = [d for d in range(places.shape[0]) if d != at]
    sizes = [input.shape[d] for d in others]
    line = flat(mindtorch.stack([places[d] for d in others]) if others else places[:0], sizes)
    number = 1
    for size in sizes:
        number *= size
    return source, line, number


def log_softmax(
    input: SparseTensor, dim: int, *, dtype: Dtype | None = None, **_: object
) -> SparseTensor:
    """The logarithm of softmax over what is there along `dim`; absent elements count as -inf."""
    source, shifted, total = _shifted("log_softmax", input, dim, dtype)
    logarithms = (shifted - total.log()).to(source.dtype)
    return label_last(with_values(source, logarithms), "SparseLogSoftmaxBackward0")


def softmax(
    input: SparseTensor, dim: int, *, dtype: Dtype | None = None, **_: object
) -> SparseTensor:
    """Softmax over what is there along `dim`."""
    source, shifted, total = _shifted("softmax", input, dim, dtype)
    shares = (shifted.exp() * total.reciprocal()).to(source.dtype)
    return label_last(with_values(source, shares), "SparseSoftmaxBackward0")


def _shifted(
    name: str, input: SparseTensor, dim: int, dtype: Dtype | None
) -> tuple[SparseTensor, Tensor, Tensor]:
    """Coalesced coordinates; values less the greatest of their line, and the line's sum of
    exponentials of these: on cpu in float64, as torch rounds once."""
    if dtype is not None and isinstance(input, SparseTensor):
        input = with_values(input, input._vals.to(dtype))
    source, line, number = _groups(name, input, dim)
    values = source._vals
    rows = line.reshape((-1, *[1] * (values.dim() - 1))).expand(values.shape)
    lowest = mindtorch.full((number, *values.shape[1:]), float("-inf"), dtype=values.dtype,
                            device=values.device)  # fmt: skip
    top = lowest.scatter_reduce(0, rows, values.detach(), "amax").index_select(0, line)
    shifted = values - top
    if shifted.device.type == "cpu":
        shifted = shifted.double()
    return source, shifted, gathered(number, line, shifted.exp()).index_select(0, line)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A matrix whose diagonals `offsets` hold rows of `diagonals`, by column numbers."""
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        kind = LAYOUT_NAMES.get(layout, "Strided")
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {kind}"
        )
    rows, columns = shape
    diagonals = diagonals[None] if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if offsets.shape[0] != diagonals.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets"
            f" ({offsets.shape[0]})"
        )
    if len(set(offsets.tolist())) != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    places, values = [], []
    for diagonal, offset in zip(diagonals, offsets.tolist(), strict=True):
        column = mindtorch.arange(
            max(offset, 0), min(columns, rows + offset, diagonal.shape[0]),
            device=diagonals.device,
        )  # fmt: skip
        places.append(mindtorch.stack([column - offset, column]))
        values.append(diagonal.index_select(0, column))
    result = make(sparse_coo, (mindtorch.cat(places, 1),), mindtorch.cat(values), tuple(shape))
    return result if layout in (None, sparse_coo) else convert(result, layout)
