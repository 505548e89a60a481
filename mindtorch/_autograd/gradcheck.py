"""Owns gradcheck: derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor.tensor import Tensor
from .._tensor.types import Array
from .surface import grad


class GradcheckError(RuntimeError):
    """A derivative differs from the differences; the message shows both Jacobians."""


def gradcheck(
    func: Callable[..., Any],
    inputs: tuple[Tensor, ...],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **_: object,
) -> bool:
    """Whether gradients of `func` agree with differences of step `eps` (float64 inputs)."""
    arguments = inputs if isinstance(inputs, tuple | list) else (inputs,)
    for number, tensor in enumerate(arguments):
        if not isinstance(tensor, Tensor) or not tensor.requires_grad:
            continue
        for k, (analytic, numeric) in enumerate(_jacobians(func, arguments, tensor, eps)):
            if np.allclose(analytic, numeric, rtol, atol):
                continue
            if not raise_exception:
                return False
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {number},\n"
                f"numerical:{numeric}\nanalytical:{analytic}\n"
            )
    return True


def _outputs(func: Callable[..., Any], arguments: tuple[Tensor, ...]) -> list[Tensor]:
    result = func(*arguments)
    outs = result if isinstance(result, tuple | list) else (result,)
    return [o for o in outs if isinstance(o, Tensor)]


def _jacobians(
    func: Callable[..., Any], arguments: tuple[Tensor, ...], tensor: Tensor, eps: float
) -> list[tuple[Any, Any]]:
    outs = [o for o in _outputs(func, arguments) if o.requires_grad]
    analytic = [_analytic(o, tensor) for o in outs]
    flat = tensor.detach().numpy()
    columns = []
    for at in np.ndindex(flat.shape):
        original = flat[at]
        sides = []
        for sign in (1, -1):
            flat[at] = original + sign * eps
            sides.append([o.detach().numpy().copy() for o in _outputs(func, arguments)])
        flat[at] = original
        columns.append([(a - b).reshape(-1) / (2 * eps) for a, b in zip(*sides, strict=True)])
    return [(a, np.array([c[k] for c in columns])) for k, a in enumerate(analytic)]


def _analytic(out: Tensor, tensor: Tensor) -> Array:
    rows = []
    for at in range(out.numel()):
        seed = np.zeros(out.numel())
        seed[at] = 1.0
        weight = out.detach().new_tensor(seed.tolist()).view(out.shape)
        (gradient,) = grad(out, tensor, weight, retain_graph=True, allow_unused=True)
        rows.append(np.zeros(tensor.numel()) if gradient is None else gradient.numpy().reshape(-1))
    return np.array(rows).T


def gradgradcheck(func: Callable[..., Any], inputs: tuple[Tensor, ...], **options: Any) -> bool:
    """Whether gradients of gradients of `func` agree with differences."""
    arguments = inputs if isinstance(inputs, tuple | list) else (inputs,)
    leaves = [t for t in arguments if isinstance(t, Tensor) and t.requires_grad]

    def first(*values: Tensor) -> tuple[Tensor, ...]:
        outs = [o for o in _outputs(func, values) if o.requires_grad]
        total = [o.sum() for o in outs]
        wanted = [t for t in values if isinstance(t, Tensor) and t.requires_grad]
        first_grads = grad(total, wanted, create_graph=True, allow_unused=True)
        return tuple(g for g in first_grads if g is not None and g.requires_grad)

    return gradcheck(first, arguments, **options) if leaves else True
