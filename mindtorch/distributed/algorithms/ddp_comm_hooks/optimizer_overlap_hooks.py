"""Owns the hook that takes an optimizer's step for a bucket as soon as its gradients are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mindtorch.distributed as dist
from mindtorch._tensor.tensor import Tensor
from mindtorch.futures import Future

__all__: list[str] = []
Hook = Callable[[Any, dist.GradBucket], Future[Tensor]]


class _OptimizerHookState:
    """An optimizer with `step_param(parameter, gradient)`, ValueError for another; all parameters
    for None."""

    __slots__ = ("functional_optimizer", "params_to_optimize")

    def __init__(self, functional_optim: Any, params: Iterable[Tensor] | None = None) -> None:
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        if params is not None:
            self.params_to_optimize = set(params)


def _hook_then_optimizer(hook: Hook, optimizer_state: _OptimizerHookState) -> Hook:
    """`hook`, then the step of the bucket's parameters."""
    named = getattr(optimizer_state, "params_to_optimize", None)

    def hook_then_optimizer_wrapper(hook_state: Any, bucket: dist.GradBucket) -> Future[Tensor]:
        def step(_: Future[Tensor]) -> Tensor:
            for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
                if named is None or parameter in named:
                    optimizer_state.functional_optimizer.step_param(parameter, gradient)
            return bucket.buffer()

        return hook(hook_state, bucket).then(step)

    return hook_then_optimizer_wrapper
