"""Owns the checks of hyperparameters and the start of an update that optimizers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch

from .._autograd.grad_mode import MODES
from .._functional.lists import results_of
from .._functional.printing import PLAIN
from .._tensor.tensor import Tensor


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


def zeros(p: Tensor) -> Tensor:
    """A state tensor like the parameter."""
    return mindtorch.zeros_like(p)


def count(start: float = 0.0) -> Tensor:
    """A step count: 0-d, on the CPU, float64 where that is the default dtype, else float32."""
    double = mindtorch.get_default_dtype() is mindtorch.float64
    return mindtorch.tensor(start, dtype=mindtorch.float64 if double else mindtorch.float32)


def advance(state: dict[str, Any]) -> float:
    """Adds one to the count and gives it as a number."""
    state["step"] += 1
    return float(state["step"].item())


def by_lists(params: Sequence[Tensor], group: dict[str, Any]) -> bool:
    """Whether a step goes through `_foreach_*`: where a device has operators for it, unless told
    otherwise, as torch does for devices other than the CPU."""
    if MODES.active or not any(p.device.type == "npu" for p in params):
        return False
    plain = not isinstance(group["lr"], Tensor) and not group.get("differentiable")
    return plain and group.get("foreach") is not False


def parted(params: Sequence[Tensor]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Parameters of one device and dtype each, with dense gradients like them; and the others."""
    parts: dict[Any, list[Tensor]] = {}
    left: list[Tensor] = []
    for p in params:
        grad = p.grad
        if grad is None:
            continue
        plain = PLAIN.issuperset((type(p), type(grad))) and not grad.is_sparse
        if plain and grad.dtype is p.dtype and p.is_floating_point() and p.device.type == "npu":
            parts.setdefault((p.device, p.dtype), []).append(p)
        else:
            left.append(p)
    return list(parts.values()), left


def directed(grad: Tensor, p: Tensor, group: dict[str, Any]) -> Tensor:
    """The gradient to descend: negated for maximize, with L2 weight decay added."""
    if group["maximize"]:
        grad = -grad
    decay = group["weight_decay"]
    return grad.add(p, alpha=decay) if decay != 0 else grad


def directed_lists(
    grads: list[Tensor], params: list[Tensor], group: dict[str, Any]
) -> list[Tensor]:
    """`directed` of lists."""
    if group["maximize"]:
        grads = results_of("neg", grads)
    decay = group["weight_decay"]
    return results_of("add", grads, params, alpha=decay) if decay != 0 else grads
