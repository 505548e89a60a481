"""Owns steps of optimizers as functions of lists: parameters, gradients and states side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._tensor.tensor import Tensor
from .optimizer import Group, Optimizer

Lists = Mapping[str, Sequence[Tensor | None]]


def step_of_lists(
    kind: type[Optimizer], params: Sequence[Tensor], grads: Sequence[Tensor], states: Lists,
    group: Group,
) -> list[dict[str, Any]]:  # fmt: skip
    """Updates every parameter by `kind`'s formula; gives their states, whose tensors are changed.

    `states` has a list for each name of a state; RuntimeError for steps that are no tensors.
    """
    if not all(isinstance(t, Tensor) for t in states.get("step", ())):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )
    optimizer = kind.__new__(kind)
    optimizer.state = {
        p: {name: values[i] for name, values in states.items() if values and values[i] is not None}
        for i, p in enumerate(params)
    }
    for p, grad in zip(params, grads, strict=True):
        optimizer._update(p, grad, group)
    return [optimizer.state[p] for p in params]
