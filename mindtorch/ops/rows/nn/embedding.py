"""Rows of table look-up and of the affine map: embedding and linear."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import kernel, several_dtypes
from ...complex_parts import below_double
from ...costs import lookup, product
from ...rules import c_name, refuse_growth, type_name
from ...words import *
from ..matrix.matmul import multiply


def _embedding_rule(
    weight: Geometry, indices: Geometry, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Geometry:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.numel and not weight.shape[0]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if indices.dtype not in (dt.int64, dt.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {type_name(indices.dtype)} instead "
            "(while checking arguments for embedding)"
        )
    return weight.fresh((*indices.shape, weight.shape[1]))


def _embedding(weight: Array, indices: Array, padding_idx: int, scale: bool, sparse: bool) -> Array:
    bad = indices[(indices < 0) | (indices >= len(weight))]
    if bad.size:
        raise IndexError("index out of range in self")
    return weight[indices]


def _embedding_grad(
    grad: Tensor, weight_geom: Geometry, indices: Tensor, padding_idx: int,
    scale_grad_by_freq: bool, sparse: bool,
) -> Tensor:  # fmt: skip
    count = weight_geom.shape[0]
    if sparse:
        by_layout: Any = grad  # of tensors alone: `_functional.layouts` finds its handler
        rows: Tensor = by_layout._embedding_sparse_backward(
            indices, count, padding_idx, scale_grad_by_freq
        )
        return rows
    return aten.embedding_dense_backward(grad, indices, count, padding_idx, scale_grad_by_freq)


op(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False,"
    " bool sparse=False) -> Tensor",
    summary="Rows of `weight` `[V, D]` at `indices` `[*]`: `[*, D]`.",
    infer=_embedding_rule,
    bounds=lambda weight, *_: [(1, 0, weight.shape[0])],
    cpu=_embedding,
    compute="raw",
    aclnn=call("aclnnEmbedding", "weight", "indices", "out"),
    grad={"weight": _embedding_grad},
    samples=lambda: [
        Sample((Arg((4, 3), d), Arg((2, 2), "int64", values=((0, 3), (1, 3)))))
        for d in ("float32", "float64", "float16", "bfloat16")
    ],
    tolerance="exact",
    cost=lookup,
    surface="function",
)


def _scale(indices: Array, count: int, like: Array) -> Array:
    """One over how often each index occurs, for rows scaled by frequency."""
    return like.dtype.type(1) / np.bincount(indices, minlength=count)[indices]


def _embedding_backward(
    grad: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    size = grad.shape[-1]
    flat, rows = indices.reshape(-1), grad.reshape(indices.size, size)
    if padding_idx >= 0:
        keep = flat != padding_idx
        flat, rows = flat[keep], rows[keep]
    if scale_grad_by_freq:
        rows = rows * _scale(flat, num_weights, rows)[:, None]
    out = np.zeros((num_weights, size), grad.dtype)
    np.add.at(out, flat, rows)
    return out


def _embedding_backward_double(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, by_frequency: bool
) -> Tensor:
    rows = aten.reshape(grad_output, (-1, grad_output.shape[-1]))
    places = aten.reshape(indices, (-1,))
    if by_frequency:
        ones = aten.ones(places.shape, dtype=rows.dtype, device=rows.device)
        often = aten.zeros(num_weights, dtype=rows.dtype, device=rows.device)
        often = aten.index_add(often, 0, places, ones)
        rows = rows / aten.unsqueeze(aten.index_select(often, 0, places), 1)
    if padding_idx >= 0:
        rows = aten.masked_fill(rows, aten.unsqueeze(places == padding_idx, 1), 0)
    zeros = aten.zeros((num_weights, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    return aten.index_add(zeros, 0, places, rows)


def _embedding_back_back(grad: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    rows = aten.embedding(grad, indices, padding_idx, False, False)
    if padding_idx < 0:
        return rows
    hidden = aten.unsqueeze(indices == padding_idx, -1)
    return aten.masked_fill(rows, hidden, 0)


op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights,"
    " int padding_idx, bool scale_grad_by_freq) -> Tensor",
    infer=lambda grad_output, indices, num_weights, padding_idx, scale_grad_by_freq: (
        grad_output.fresh((num_weights, grad_output.shape[-1]))
    ),
    cpu=_embedding_backward,
    aclnn=call(
        "aclnnEmbeddingDenseBackward",
        "grad_output",
        "indices",
        "num_weights",
        lambda a: a["padding_idx"] % 2**64,  # unsigned in the header; -1 stands for none
        "scale_grad_by_freq",
        "out",
        when=below_double(),
    ),
    lower=_embedding_backward_double,
    grad={
        "grad_output": lambda grad, indices, padding_idx: _embedding_back_back(
            grad, indices, padding_idx
        )
    },
    samples=lambda: [
        Sample((Arg((3, 2), "float64"), Arg((3,), "int64", values=(0, 2, 2)), 4, padding, scale))
        for padding, scale in ((-1, False), (2, False))
    ],
    tolerance="accumulated",
    rule="stored",
)


def _linear_rule(input: Geometry, weight: Geometry, bias: Geometry | None) -> Geometry:
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are"
            f" {input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    _refuse_with_bias(input, weight, bias)
    if input.shape[-1] != weight.shape[-1]:
        rows = 1
        for size in input.shape[:-1]:
            rows *= size
        inner = input.shape[-1]
        if weight.ndim == 1:
            raise RuntimeError(
                f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({weight.shape[0]})"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and "
            f"{weight.shape[-1]}x{weight.shape[0]})"
        )
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got:"
            f" {c_name(input.dtype)} != {c_name(weight.dtype)}"
        )
    if bias is not None:
        refuse_growth(bias.shape, (prod(input.shape[:-1]), weight.shape[0]))
    return input.fresh((*input.shape[:-1], *weight.shape[:-1]))


def _refuse_with_bias(input: Geometry, weight: Geometry, bias: Geometry | None) -> None:
    """What the fused product of torch refuses first: no matrix, then other dtypes."""
    if bias is None:
        return
    if weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    for name, g in (("self", bias), ("mat1", input)):
        if g.dtype is not weight.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {scalar_name(g.dtype)} and"
                f" {scalar_name(weight.dtype)}"
            )


def _linear(input: Array, weight: Array, bias: Array | None) -> Array:
    out = multiply(input, weight.T)
    if bias is not None:
        out += bias
    return out


Mask = tuple[bool, ...]


def _rows(t: Tensor) -> Tensor:
    """One matrix of the rows of `t`, whose last dim stays."""
    if t.ndim == 2:
        return t
    return aten.reshape(t, (prod(t.shape[:-1]), t.shape[-1]))


def _products(
    grad: Tensor, input: Tensor, weight: Tensor, needs: Mask
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of the affine map by its input and its matrix, those that are needed."""
    by_input = grad @ aten.conj_of(weight) if needs[0] else None
    by_weight = aten.t(_rows(grad)) @ aten.conj_of(_rows(input)) if needs[1] else None
    return by_input, by_weight


def _linear_grad(
    grad: Tensor, input: Tensor, weight: Tensor, needs: Mask
) -> tuple[Tensor | None, ...]:
    if weight.ndim == 2:
        # Three products of numpy in one call; no other device has a kernel. It takes the input
        # too, and so would be differentiable by it where the gradient is not.
        if (input.is_cpu or aten._watched()) and needs[1]:  # modes see its parts
            return aten._linear_backward(grad, input, weight, needs)
        return *_products(grad, input, weight, needs), grad if needs[2] else None
    flow = aten.unsqueeze(grad, -1)  # a vector: its product has one dim less
    by_input = flow * aten.conj_of(weight) if needs[0] else None
    by_weight = aten.sum_to_size(flow * aten.conj_of(input), weight.shape) if needs[1] else None
    return by_input, by_weight, grad if needs[2] else None


def _linear_flow(grad: Array, input: Array, weight: Array, mask: Mask) -> tuple[Array, ...]:
    count = prod(input.shape[:-1])
    flow, rows = grad.reshape(count, weight.shape[0]), input.reshape(count, weight.shape[1])
    if input.dtype.kind == "c":
        rows, weight = rows.conj(), weight.conj()
    none = np.zeros(0, grad.dtype)
    return (
        multiply(flow, weight).reshape(input.shape) if mask[0] else none,
        multiply(flow.T, rows) if mask[1] else none,
        flow.sum(axis=0) if mask[2] else none,
    )


def _linear_flow_by_calls(
    grad: Tensor, input: Tensor, weight: Tensor, mask: Mask
) -> tuple[Tensor, ...]:
    parts = (
        *_products(grad, input, weight, mask),
        aten.sum(_rows(grad), (0,)) if mask[2] else None,
    )
    none = aten.zeros((0,), dtype=grad.dtype, device=grad.device)
    by_input, by_weight, by_bias = (none if part is None else part for part in parts)
    return by_input, by_weight, by_bias


def _linear_again(
    grad_by_input: Tensor | None, grad_by_weight: Tensor | None, grad_by_bias: Tensor | None,
    grad_output: Tensor, input: Tensor, weight: Tensor, output_mask: Mask, needs: Mask,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    flows = []
    grads: list[Any] = [None, None, None]
    if grad_by_input is not None and output_mask[0]:
        flows.append(grad_by_input @ aten.t(weight))
        if needs[2]:
            grads[2] = aten.t(_rows(grad_output)) @ aten.conj_of(_rows(grad_by_input))
    if grad_by_weight is not None and output_mask[1]:
        flows.append(input @ aten.t(grad_by_weight))
        if needs[1]:
            grads[1] = grad_output @ aten.conj_of(grad_by_weight)
    if grad_by_bias is not None and output_mask[2]:
        flows.append(aten.expand(grad_by_bias, grad_output.shape))
    for flow in flows if needs[0] else ():
        grads[0] = flow if grads[0] is None else grads[0] + flow
    return tuple(grads)


# torch's linear_backward, whose results that are not wanted are None.
op(
    "_linear_backward(Tensor grad_output, Tensor input, Tensor weight, bool[3] output_mask)"
    " -> (Tensor by_input, Tensor by_weight, Tensor by_bias)",
    infer=lambda grad_output, input, weight, mask: tuple(
        input.fresh(shape if need else (0,))
        for shape, need in zip(
            (input.shape, weight.shape, weight.shape[:1]), mask, strict=True
        )
    ),
    cpu=_linear_flow,
    lower=_linear_flow_by_calls,
    grad={("grad_output", "input", "weight"): _linear_again},
    samples=calls(
        (Arg((2, 5, 4)), Arg((2, 5, 3)), Arg((4, 3), high=2.5), (True, True, True)),
        (Arg((5, 4), "float64"), Arg((5, 3), "float64"), Arg((4, 3), "float64"),
         (False, True, True)),
        (Arg((4,)), Arg((3,)), Arg((4, 3)), (True, True, False)),
    ),
    oracle=lambda torch: _linear_in_torch,
    tolerance="accumulated",
    cost=product("input"),
    rule="stored",
    fixed_shape=True,
)  # fmt: skip


def _linear_in_torch(grad: Tensor, input: Tensor, weight: Tensor, mask: Mask) -> tuple[Tensor, ...]:
    """What torch's derivative of linear computes; its own row runs on MKL-DNN tensors alone."""
    flow, rows = grad.reshape(-1, grad.shape[-1]), input.reshape(-1, input.shape[-1])
    none = grad.new_zeros(0)
    return (
        grad @ weight if mask[0] else none,
        flow.mT @ rows if mask[1] else none,
        flow.sum(0) if mask[2] else none,
    )


def _linear_lower(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is not None and input.ndim > 1 and (input.ndim == 2 or input._geom.contiguous):
        rows = aten.reshape(input, (prod(input.shape[:-1]), input.shape[-1]))
        out = aten.addmm(bias, rows, aten.t(weight))
        return aten.reshape(out, (*input.shape[:-1], weight.shape[0]))
    out = input @ aten.t(weight)
    return out if bias is None else out + bias


op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    summary="`input @ weight.T + bias`: `[*, I], [O, I] → [*, O]`.",
    infer=_linear_rule,
    cpu=_linear,
    lower=_linear_lower,
    grad={("input", "weight", "bias"): _linear_grad},
    unsupported={"bool": kernel("addmm_impl_cpu_", unless=several_dtypes)},
    samples=lambda: [
        *(
            Sample((Arg((2, 3), d), Arg((4, 3), d, high=2.5), Arg((4,), d)))
            for d in ("float32", "float64", "float16", "bfloat16")
        ),
        Sample((Arg((2, 5, 3)), Arg((4, 3), high=2.5), None)),
        Sample((Arg((2, 5, 3)), Arg((4, 3), high=2.5), Arg((4,)))),
        Sample((Arg((3,)), Arg((4, 3), high=2.5), Arg((4,)))),
    ],
    tolerance="accumulated",
    cost=product("input"),
    rule="stored",
    autocast="lower",
)
