"""Owns SparseAdam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ._checks import check_betas, zeros
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam on the elements that a sparse gradient has: moments and parameters elsewhere stay."""

    sparse_refusal = None

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse("Sparse", "requires dense parameter tensors", lambda p: p.is_sparse)
        self._refuse("Complex", "does not support complex parameters", lambda p: p.is_complex())

    def _refuse(self, kind: str, why: str, wrong: Callable[[Any], bool]) -> None:
        at = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if wrong(p)
        ]
        if at:
            raise ValueError(f"{kind} params at indices {at}: SparseAdam {why}")

    def _update(self, p: Tensor, grad: Any, group: Group) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros(p), exp_avg_sq=zeros(p))
        state["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        if not grad._values().numel():
            return
        (beta1, beta2), step = group["betas"], state["step"]
        mean = _decayed(state["exp_avg"], grad, grad._values(), beta1)
        square = _decayed(state["exp_avg_sq"], grad, grad._values().square(), beta2)
        rate = group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.add_(_at(grad, -rate * mean.div_(square.sqrt_().add_(group["eps"]))))


def _decayed(average: Any, places: Any, values: Tensor, beta: float) -> Tensor:
    """Moves a running average to `values` at the places of `places`; gives what is there then."""
    there: Tensor = average.sparse_mask(places)._values()
    change = (values - there).mul_(1 - beta)
    average.add_(_at(places, change))
    return change.add_(there)


def _at(places: Any, values: Tensor) -> Tensor:
    return mindtorch.sparse_coo_tensor(
        places._indices(), values, places.shape, is_coalesced=True, check_invariants=False
    )
