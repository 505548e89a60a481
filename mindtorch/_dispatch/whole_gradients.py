"""Owns gradients that a dispatch mode sees as torch's operators of them, not as a row's formula."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .._autograd.engine import WHOLE
from .._autograd.formula import formula
from .._autograd.function import Function, once_differentiable
from .._autograd.grad_mode import LOCAL
from .._autograd.node import detached
from .._tensor.tensor import Tensor
from ..ops.namespaces import namespace
from ..ops.spec import aten
from .dispatch_modes import ask, ask_operator, unseen


def _saved_values(node: Any) -> dict[tuple[str, int], Tensor]:
    """What a node keeps, by what it is: an argument or a result, and its place."""
    pairs = zip(formula(node.op).saved, node.saved or (), strict=False)
    return {read: node.unpack(s) for read, s in pairs if isinstance(s, tuple)}


def _as_lists(values: Sequence[Any]) -> list[Any]:
    return [list(v) if isinstance(v, tuple) else v for v in values]


def _unfilled(geom: Any) -> Tensor:
    """What stands for a tensor that was not kept, since nothing reads its values."""
    stand_in: Tensor = unseen(
        lambda: aten.empty_strided(geom.shape, geom.strides, dtype=geom.dtype, device=geom.device)
    )
    return stand_in


def _convolution_backward(node: Any, grads: Sequence[Any]) -> Any:
    """Gradients of a convolution by torch's one operator of them; NotImplemented where a graph of
    them is wanted, or not all is kept that the operator takes."""
    saved = _saved_values(node)
    if LOCAL.grad or not saved or grads[0] is None:
        return NotImplemented
    input, weight = (
        saved["arg", at] if ("arg", at) in saved else _unfilled(node.args[at]) for at in (0, 1)
    )
    mask = [edge is not None for edge in node.edges]
    sizes = [weight.shape[0] if mask[2] else 0]
    function = namespace("aten").convolution_backward.default
    return ask_operator(
        function, (grads[0], input, weight, sizes, *_as_lists(node.args[3:]), mask), {}
    )


def _pool_backward(node: Any, grads: Sequence[Any]) -> Any:
    """The same of max pooling; the indices say all, so that its input is not kept."""
    saved = _saved_values(node)
    if LOCAL.grad or len(saved) != 1 or grads[0] is None:
        return NotImplemented
    (indices,) = saved.values()
    input = _unfilled(node.args[0])
    function = namespace("aten").max_pool2d_with_indices_backward.default
    return (ask_operator(function, (grads[0], input, *_as_lists(node.args[1:]), indices), {}),)


def _matmul_backward(node: Any, grads: Sequence[Any]) -> Any:
    """The gradients of a batched product by those of bmm, or of mm where one matrix stands for a
    batch; NotImplemented for other products, for other batches that are not alike, and where a
    graph of them is wanted."""
    saved = _saved_values(node)
    shapes = [tuple(value.shape) for value in node.args[:2]]
    batch, folds = shapes[0][:-2], len(shapes[1]) == 2
    if LOCAL.grad or grads[0] is None or not batch or not (folds or shapes[1][:-2] == batch):
        return NotImplemented
    wants = [edge is not None for edge in node.edges[:2]]
    if any(want and ("arg", 1 - at) not in saved for at, want in enumerate(wants)):
        return NotImplemented
    last = 1 if folds else 2

    def flat(shape: Sequence[int]) -> tuple[int, ...]:
        return (prod(shape[:-last]), *shape[-last:])

    def rows(value: Tensor) -> Tensor:
        return value if folds and value.dim() == 2 else value.reshape(flat(value.shape))

    def view(value: Any, shape: Sequence[int]) -> Any:
        return value if value.shape == shape and folds else ask("view", (value, list(shape)), {})

    alike = grads[0].is_contiguous() or (len(batch) == 1 and not folds)
    grad = view(grads[0], flat(grads[0].shape)) if alike else rows(grads[0])
    results: list[Any] = [None, None]
    for at in (1, 0):
        if wants[at]:
            turn = ("t", ()) if folds else ("transpose.int", (1, 2))
            other = ask(turn[0], (unseen(rows, saved["arg", 1 - at]), *turn[1]), {})
            factors = (grad, other) if at == 0 else (other, grad)
            results[at] = ask("mm" if folds else "bmm", factors, {})
    for at in (1, 0):
        if wants[at]:
            results[at] = view(results[at], shapes[at])
    return tuple(results)


def _flash_attention(*values: Any) -> Any:
    """The result and the sums of attention's operator."""
    operands, (places, named) = values[:3], values[3:]
    operator = namespace("aten")._scaled_dot_product_flash_attention_for_cpu.default
    return ask_operator(operator, (*operands, *places), named)


class _FlashAttention(Function):
    """Attention whose gradients are one operator too: `(query, key, value, places, named)`."""

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        operands, (places, named) = values[:3], values[3:]
        result, sums = _flash_attention(*values)
        ctx.named, ctx.causal = named, any(places)
        ctx.save_for_backward(*operands, detached(result), sums)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        *operands, result, sums = ctx.saved_tensors
        operator = namespace("aten")._scaled_dot_product_flash_attention_for_cpu_backward.default
        args = grads[0], *operands, detached(result), sums, 0.0, ctx.causal
        return *ask_operator(operator, args, ctx.named), None, None


def _seen_flash_attention(*values: Any) -> Any:
    """What a mode makes of attention; NotImplemented where it sees the parts: in batches, and in
    derivatives but for one of reverse mode, since there is none of the operator's own gradients."""
    if LOCAL.transforms and (len(LOCAL.transforms) > 1 or not _is_reverse(LOCAL.transforms[0])):
        return NotImplemented
    if LOCAL.grad and any(v.requires_grad for v in values[:3]):
        return _FlashAttention.apply(*values)
    return _flash_attention(*values)[0]


def _is_reverse(transform: object) -> bool:
    return getattr(transform, "is_reverse", False)


aten.publish("_seen_flash_attention", _seen_flash_attention)

WHOLE.update(
    matmul=_matmul_backward,
    convolution=_convolution_backward,
    max_pool2d_with_indices=_pool_backward,
)  # fmt: skip
