"""Owns steps of many parameters at once: a formula for one, run on lists by `_foreach_*`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mindtorch

from .._autograd.grad_mode import MODES
from .._functional.lists import WRITERS, results_of
from .._functional.printing import PLAIN
from .._tensor.tensor import Tensor

Group = dict[str, Any]


class Tensors:
    """Tensors of one device and dtype as one operand: a method is `_foreach_` of its name where
    there is one, else each tensor's own."""

    __slots__ = ("members",)
    is_sparse = False

    def __init__(self, members: list[Tensor]) -> None:
        self.members = members

    def __getattr__(self, name: str) -> Callable[..., Tensors]:
        return partial(self._call, name)

    def _call(self, name: str, *args: Any, **options: Any) -> Tensors:
        operands = [a.members if isinstance(a, Tensors) else a for a in args]
        if name.removesuffix("_") in WRITERS and name.endswith("_"):
            getattr(mindtorch, f"_foreach_{name}")(self.members, *operands, **options)
            return self
        if name in WRITERS:
            return Tensors(results_of(name, self.members, *operands, **options))
        each = [[a[i] if isinstance(a, list) else a for a in operands]
                for i in range(len(self.members))]  # fmt: skip
        return Tensors(
            [getattr(t, name)(*a, **options) for t, a in zip(self.members, each, strict=True)]
        )

    def item(self) -> Any:
        """The number of the first: those that steps read are the same in all."""
        return self.members[0].item()

    def __neg__(self) -> Tensors:
        return self._call("neg")

    def __add__(self, other: Any) -> Tensors:
        return self._call("add", other)

    def __iadd__(self, other: Any) -> Tensors:
        return self._call("add_", other)

    def __mul__(self, other: Any) -> Tensors:
        return self._call("mul", other)

    def __imul__(self, other: Any) -> Tensors:
        return self._call("mul_", other)

    def __truediv__(self, other: Any) -> Tensors:
        return self._call("div", other)

    def __rtruediv__(self, other: Any) -> Tensors:
        return self._call("reciprocal")._call("mul", other)


def update(optimizer: Any, group: Group) -> Sequence[Tensor]:
    """Updates parameters for which a device has operators of lists, unless told otherwise, as torch
    does for devices other than the CPU; gives those that are left."""
    params: Sequence[Tensor] = group["params"]
    if MODES.active or not optimizer.by_lists or not any(p.device.type == "npu" for p in params):
        return params
    numbers = (group["lr"], *group.get("betas", ()))
    if any(isinstance(n, Tensor) for n in numbers) or group.get("differentiable"):
        return params
    if group.get("foreach") is False:
        return params
    parts: dict[Any, list[Tensor]] = {}
    left: list[Tensor] = []
    for p in params:
        if p.grad is None:
            continue
        plain = PLAIN.issuperset((type(p), type(p.grad))) and not p.grad.is_sparse
        if plain and p.grad.dtype is p.dtype and p.is_floating_point() and p.device.type == "npu":
            parts.setdefault(_alike(p, optimizer.state[p]), []).append(p)
        else:
            left.append(p)
    for members in parts.values():
        _step(optimizer, members, group)
    return left


def _alike(p: Tensor, state: dict[str, Any]) -> tuple[Any, ...]:
    """What parameters have in common that step together: the names of states, and numbers."""
    numbers = [
        (name, v.item() if isinstance(v, Tensor) and v.device.type == "cpu" else v is None)
        for name, v in state.items()
    ]
    return p.device, p.dtype, *numbers


def _step(optimizer: Any, params: list[Tensor], group: Group) -> None:
    states: list[dict[str, Any]] = [optimizer.state[p] for p in params]
    joined = {
        name: None if value is None else Tensors([state[name] for state in states])
        for name, value in states[0].items()
    }
    together: Any = Tensors(params)
    optimizer.state[together] = dict(joined)
    try:
        optimizer._update(together, Tensors([p.grad for p in params]), group)
    finally:
        for name, value in optimizer.state.pop(together).items():
            if value is joined.get(name):
                continue
            for i, state in enumerate(states):
                state[name] = value.members[i] if isinstance(value, Tensors) else value.clone()
