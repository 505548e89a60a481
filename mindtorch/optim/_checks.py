"""Owns the checks of hyperparameters and the start of an update that optimizers share."""

from __future__ import annotations

from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ._together import Tensors


def check_lr(lr: Any, below: bool = False) -> None:
    """ValueError for a negative learning rate or a tensor of more than one element.

    Errors of rates that are no numbers name the comparison: whether it is `below` zero, or not.
    """
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if lr < 0.0 if below else not 0.0 <= lr:  # noqa: SIM300
        raise ValueError(f"Invalid learning rate: {lr}")


def check_kinds(
    lr: object, foreach: object, fused: object, capturable: object, differentiable: object
) -> None:
    """Torch's errors for steps that cannot be: by lists and in one, fused and differentiable."""
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_positive(**values: Any) -> None:
    """ValueError for a negative value; the keyword names it,
    underscores as torch's text has them."""
    for name, value in values.items():
        if not 0.0 <= value:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"Invalid {_TEXT.get(name, name)} value: {value}")


_TEXT = {"eps": "epsilon"}


def check_betas(betas: tuple[float, ...]) -> None:
    """ValueError for a beta outside [0, 1)."""
    for i in range(2):
        beta = betas[i]
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def pick(values: dict[str, Any], names: str) -> dict[str, Any]:
    """Those of a constructor's arguments that a group holds, in the order of torch's groups."""
    return {name: values[name] for name in names.split()}


def zeros(p: Any) -> Any:
    """A state tensor like the parameter; for parameters together, one for each."""
    if isinstance(p, Tensors):
        return Tensors([mindtorch.zeros_like(member) for member in p.members])
    return mindtorch.zeros_like(p)


def count(start: float = 0.0) -> Tensor:
    """A step count: 0-d, on the CPU, float64 where that is the default dtype, else float32."""
    double = mindtorch.get_default_dtype() is mindtorch.float64
    return mindtorch.tensor(start, dtype=mindtorch.float64 if double else mindtorch.float32)


def advance(state: dict[str, Any]) -> float:
    """Adds one to the count and gives it as a number."""
    state["step"] += 1
    return float(state["step"].item())


def directed(grad: Tensor, p: Tensor, group: dict[str, Any]) -> Tensor:
    """The gradient to descend: negated for maximize, with L2 weight decay added."""
    if group["maximize"]:
        grad = -grad
    decay = group["weight_decay"]
    return grad.add(p, alpha=decay) if decay != 0 else grad
