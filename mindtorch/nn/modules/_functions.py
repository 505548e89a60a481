"""Owns the Function that stands at the ends of a module with backward hooks."""

from __future__ import annotations

from typing import Any

from ..._autograd.function import Function, FunctionNode
from ..._tensor.tensor import Tensor


class BackwardHookFunction(Function):
    """The identity: one node for all inputs, or all outputs, of a module."""

    @staticmethod
    def forward(ctx: FunctionNode, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx: FunctionNode, *args: Any) -> tuple[Any, ...]:
        return args
