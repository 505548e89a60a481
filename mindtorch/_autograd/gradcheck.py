"""Owns gradcheck: derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tensor.tensor import Tensor
from .._tensor.types import Array
from ..ops.spec import aten
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
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    **_: object,
) -> bool:
    """Whether gradients of `func` agree with differences of step `eps` (float64 inputs).

    With `check_forward_ad` tangents are looked at too, without `check_backward_ad` they alone.
    """
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad and check_backward_ad to be True"
        )
    arguments = inputs if isinstance(inputs, tuple | list) else (inputs,)
    if not any(isinstance(t, Tensor) and t.requires_grad for t in arguments):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have"
            " requires_grad=True."
        )
    for number, tensor in enumerate(arguments):
        if not isinstance(tensor, Tensor) or not tensor.requires_grad:
            continue
        numeric = _numeric(func, arguments, tensor, eps)
        ways = [("", _backward)] * check_backward_ad
        ways += [(" computed with forward mode", _forward)] * check_forward_ad
        for way, jacobian in ways:
            for k, analytic in jacobian(func, arguments, number).items():
                if np.allclose(analytic, numeric[k], rtol, atol):
                    continue
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"Jacobian{way} mismatch for output {k} with respect to input {number},\n"
                    f"numerical:{numeric[k]}\nanalytical:{analytic}\n"
                )
    return True


def _outputs(func: Callable[..., Any], arguments: Sequence[Any]) -> list[Tensor]:
    result = func(*arguments)
    outs = result if isinstance(result, tuple | list) else (result,)
    return [o for o in outs if isinstance(o, Tensor)]


def _numeric(
    func: Callable[..., Any], arguments: Sequence[Any], tensor: Tensor, eps: float
) -> list[Array]:
    """Differences of all outputs, [elements of the input, elements of the output] each."""
    flat = tensor.detach().numpy()
    columns: list[list[Array]] = []
    for at in np.ndindex(flat.shape):
        original = flat[at]
        sides = []
        for sign in (1, -1):
            flat[at] = original + sign * eps
            sides.append([o.detach().numpy().copy() for o in _outputs(func, arguments)])
        flat[at] = original
        columns.append([(a - b).reshape(-1) / (2 * eps) for a, b in zip(*sides, strict=True)])
    return [np.array(rows) for rows in zip(*columns, strict=True)]


def _backward(func: Callable[..., Any], arguments: Sequence[Any], number: int) -> dict[int, Array]:
    """Jacobians of the outputs that record gradients, by their number."""
    outs = enumerate(_outputs(func, arguments))
    return {k: _analytic(o, arguments[number]) for k, o in outs if o.requires_grad}


def _forward(func: Callable[..., Any], arguments: Sequence[Any], number: int) -> dict[int, Array]:
    """Jacobians from tangents, one element of the input after the other."""
    from ..autograd.forward_ad import dual_level, make_dual, unpack_dual

    tensor = arguments[number].detach()
    rows: dict[int, list[Array]] = {}
    for at in range(tensor.numel()):
        seed = np.zeros(tensor.numel())
        seed[at] = 1.0
        with dual_level():
            tangent = tensor.new_tensor(seed.tolist()).view(tensor.shape)
            values = list(arguments)
            values[number] = make_dual(tensor, tangent)
            for k, out in enumerate(_outputs(func, values)):
                moved = unpack_dual(out).tangent
                zeros = np.zeros(out.numel())
                row = zeros if moved is None else moved.detach().numpy().reshape(-1)
                rows.setdefault(k, []).append(row)
    return {k: np.array(row) for k, row in rows.items()}


def _analytic(out: Tensor, tensor: Tensor) -> Array:
    rows = []
    for at in range(out.numel()):
        seed = np.zeros(out.numel())
        seed[at] = 1.0
        weight = out.detach().new_tensor(seed.tolist()).view(out.shape)
        (gradient,) = grad(out, tensor, weight, retain_graph=True, allow_unused=True)
        rows.append(np.zeros(tensor.numel()) if gradient is None else gradient.numpy().reshape(-1))
    return np.array(rows).T


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    **options: Any,
) -> bool:
    """Whether gradients of gradients of `func` agree with differences.

    They are taken by the inputs and by `grad_outputs`, which are drawn where none are given.
    """
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not any(isinstance(t, Tensor) and t.requires_grad for t in arguments):
        return True
    if grad_outputs is None:
        differentiable = [o for o in _outputs(func, arguments) if o.requires_grad]
        weights = [aten.randn_like(o).detach().requires_grad_() for o in differentiable]
    else:
        weights = list(grad_outputs) if isinstance(grad_outputs, tuple | list) else [grad_outputs]
    count = len(arguments)

    def first(*values: Any) -> tuple[Tensor, ...]:
        outs = [o for o in _outputs(func, values[:count]) if o.requires_grad]
        leaves = [t for t in values[:count] if isinstance(t, Tensor) and t.requires_grad]
        grads = grad(outs, leaves, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None and g.requires_grad)

    return gradcheck(first, (*arguments, *weights), **options)
