"""Owns Adafactor."""

from __future__ import annotations

import math
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ._checks import advance, count, pick
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam-like steps whose second moment is kept as a row and a
    column (torch document of Adafactor)."""

    refuses_complex = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = pick(locals(), "lr beta2_decay eps d weight_decay foreach maximize")
        super().__init__(params, defaults)

    def _state_of(self, p: Tensor, grad: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            if p.dim() > 1:
                rows, cols = list(p.shape), list(p.shape)
                rows[-1], cols[-2] = 1, 1
                sizes = {"row_var": rows, "col_var": cols}
            else:
                sizes = {"variance": list(p.shape)}
            state.update({"step": count()} | {name: grad.new_zeros(s) for name, s in sizes.items()})
        return state

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, lr = self._state_of(p, grad), group["lr"]
        floor, scale_floor = group["eps"]
        info: Any = mindtorch.finfo(p.dtype)
        floor = info.eps if floor is None else floor
        grad = -grad if group["maximize"] else grad
        step = advance(state)
        weight = step ** group["beta2_decay"]
        size = math.sqrt(p.numel())
        rate = max(scale_floor, p.norm(2).item() / size) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        move = _variance(state, grad, weight, floor).clamp_(min=floor * floor).rsqrt_().mul_(grad)
        clip = max(1.0, move.norm(2).item() / (size * group["d"]))
        p.add_(move, alpha=-rate / clip)


def _variance(state: dict[str, Any], grad: Tensor, weight: float, floor: float) -> Tensor:
    """The estimate of g²: a rank-one product for matrices, elementwise for vectors."""
    if "variance" in state:
        state["variance"].lerp_(grad.square(), weight)
        return state["variance"].clone()
    rows, cols = state["row_var"], state["col_var"]
    rows.lerp_(grad.square().mean(-1, keepdim=True), weight)
    cols.lerp_(grad.square().mean(-2, keepdim=True), weight)
    return (rows @ cols).div_(rows.mean(-2, keepdim=True).clamp_(min=floor))
