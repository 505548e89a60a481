"""Owns how a formula becomes a reference: mindtorch's float64 words, and their gradients.

A word of mindtorch on the CPU is numpy in float64 and shares no code with kernels; its gradients
are proved by finite differences.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.testing.placement import to_host

from ..run.tensors import is_tensor


def words(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A reference from a function of mindtorch tensors with the operator's parameter names."""

    def reference(**arguments: Any) -> Any:
        with torch.no_grad():
            return _arrays(formula(**{k: _tensor(v) for k, v in arguments.items()}))

    reference.__signature__ = inspect.signature(formula)  # type: ignore[attr-defined]
    reference.__wrapped__ = formula  # type: ignore[attr-defined]
    return reference


def gradient(
    formula: Callable[..., Any], *, grad: str | Sequence[str], of: str, mask: str = "",
    also: Sequence[str] = (),
) -> Callable[..., Any]:  # fmt: skip
    """The reference of a backward operator: derivatives of `formula` with respect to `of`.

    `grad` names the parameters that hold what flows in; `of` lists parameters, such as `x weight`;
    `mask` names a list of bools that says which derivatives are wanted; `also` are parameters of
    the operator that the formula computes by itself.
    """
    inflow = [grad] if isinstance(grad, str) else list(grad)
    leaves = of.split()

    def reference(**arguments: Any) -> Any:
        with torch.enable_grad():  # which those who time or judge without gradients turned off
            return derivatives(arguments)

    def derivatives(arguments: dict[str, Any]) -> Any:
        tensors = {k: _tensor(v) for k, v in arguments.items()}
        mask_values = arguments.get(mask) or [True] * len(leaves)
        for name in leaves:
            if tensors[name] is not None:
                tensors[name].requires_grad_()
        skip = {*inflow, *also, mask} - {""}
        outputs = formula(**{k: v for k, v in tensors.items() if k not in skip})
        outs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        known = [tensors[n] for n in leaves if tensors[n] is not None]
        flows = [tensors[n].reshape(o.shape) for n, o in zip(inflow, outs, strict=True)]
        parts = iter(torch.autograd.grad(outs, known, flows, allow_unused=True))
        grads = [next(parts) if tensors[n] is not None else None for n in leaves]
        gradients = tuple(_filled(g, tensors[n]) if w else None
                     for g, n, w in zip(grads, leaves, mask_values, strict=True))  # fmt: skip
        return _arrays(gradients)

    names = [*inflow, *also, *([mask] if mask else [])]
    local = inspect.signature(formula).parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(n, kind) for n in names]
    parameters += [p.replace(kind=kind) for p in local]
    reference.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    reference.leaves = tuple(leaves)  # type: ignore[attr-defined]
    reference.__wrapped__ = formula  # type: ignore[attr-defined]
    return reference


def _filled(grad: Tensor | None, leaf: Tensor | None) -> Tensor | None:
    """A derivative that does not exist because nothing depends on the leaf is zero."""
    return torch.zeros_like(leaf) if grad is None and leaf is not None else grad


def _tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
        return [_tensor(v) for v in value]
    return value


def _arrays(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_arrays(v) for v in value)
    if isinstance(value, list):
        return [_arrays(v) for v in value]
    return to_host(value.detach()) if is_tensor(value) else value
