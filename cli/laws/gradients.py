"""Owns the laws about derivatives: torch's gradients, differences, gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

import mindtorch
from mindtorch import Tensor
from mindtorch.ops.samples import Arg, Sample
from mindtorch.ops.spec import MISSING, Op

from ..judge.agreement import Tolerance
from ..judge.precision import Array
from .compare import NotApplicable, as_list, compare_values, oracle_function, to_numpy, working


def differentiable(sample: Sample) -> list[Arg]:
    """The sample's tensors that can be differentiated."""
    leaves: list[Arg] = []

    def look(arg: Arg) -> Arg:
        if arg.dtype.startswith(("float", "bfloat")) and arg.grad:
            leaves.append(arg)
        return arg

    sample.map(look)
    return leaves


def _leaves(
    torch: ModuleType, sample: Sample, device: str = "cpu"
) -> tuple[list[Any], dict[str, Any], list[Any]]:
    leaves: list[Any] = []

    def make(arg: Arg) -> Any:
        tensor = arg.make(torch, device)
        if arg.dtype.startswith(("float", "bfloat")) and arg.grad:
            tensor = tensor.detach().requires_grad_()
            leaves.append(tensor)
        return tensor

    args, kwargs = sample.map(make)
    return (
        args,
        {**sample.make(torch)[1], **{k: v for k, v in kwargs.items() if not isinstance(v, str)}},
        leaves,
    )


def _as_double(sample: Sample) -> Sample:
    def widen(arg: Arg) -> Arg:
        return replace(arg, dtype="float64") if arg.dtype.startswith(("float", "bfloat")) else arg

    args, kwargs = sample.map(widen)
    return Sample(tuple(args), kwargs, sample.error)


def _needs_gradient(op: Op, sample: Sample) -> None:
    working(sample)
    if op.body is None and (op.grad is MISSING or not op.grad):
        raise NotApplicable(f"{op.name} is not differentiable")
    if not differentiable(sample) or op.testing.tolerance == "random":
        raise NotApplicable("nothing to differentiate")


def _weights(out: Any, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(0.5, 1.5, tuple(out.shape))


def _weights_like(torch: ModuleType, out: Any, seed: int) -> Any:
    flat = torch.tensor(_weights(out, seed).reshape(-1).tolist(), dtype=out.dtype)
    return flat.reshape(tuple(out.shape)).to(out.device)


def _loss(torch: ModuleType, result: Any) -> Any:
    total = None
    for i, out in enumerate(as_list(result)):
        if hasattr(out, "dtype") and str(out.dtype)[:11] == "torch.float" and out.requires_grad:
            part = (out * _weights_like(torch, out, i)).sum()
            total = part if total is None else total + part
    return total


def gradients(
    torch: ModuleType, function: Callable[..., Any], sample: Sample, order: int = 1
) -> list[Any]:
    """First- or second-order gradients of a weighted sum of the results, zeros where unused."""
    args, kwargs, leaves = _leaves(torch, _as_double(sample))
    loss = _loss(torch, function(*args, **kwargs))
    if loss is None:
        raise NotApplicable("no result depends on a differentiable input")
    grads = torch.autograd.grad(loss, leaves, create_graph=order > 1, allow_unused=True)
    if order == 1:
        return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, grads, strict=True)]
    again = [(g * g).sum() for g in grads if g is not None and g.requires_grad]
    if not again:
        raise NotApplicable("the gradient is constant")
    second = torch.autograd.grad(sum(again), leaves, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, second, strict=True)]


_GRADIENT = Tolerance(1e-9, 1e-9, "float64 throughout; derivatives are written differently")


def gradients_match_oracle(op: Op, sample: Sample, torch: ModuleType, order: int = 1) -> None:
    """Gradients (order 1) and gradients of gradients (order 2) are torch's, in float64."""
    _needs_gradient(op, sample)
    try:
        theirs = gradients(torch, oracle_function(op, torch), sample, order)
    except RuntimeError as error:  # NotImplementedError too
        if "derivative for" in str(error):
            raise NotApplicable(f"torch: {error}") from None
        raise
    ours = gradients(mindtorch, op.entry("aten"), sample, order)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        compare_values(op, f"order {order} gradient of input {i}", a, b, _GRADIENT)


_DIFFERENCE = Tolerance(1e-5, 1e-6, "central differences of step 1e-6 in float64")


def gradients_match_differences(op: Op, sample: Sample) -> None:
    """Gradients agree with central differences, in float64 on cpu; needs no oracle."""
    _needs_gradient(op, sample)
    ours = gradients(mindtorch, op.entry("aten"), sample)
    args, kwargs, leaves = _leaves(mindtorch, _as_double(sample))
    function = op.entry("aten")
    # Results that the graph leaves out (statistics beside a normalized input) have no slope.
    outs = as_list(function(*args, **kwargs))
    weights = {i: _weights(out, i) for i, out in enumerate(outs) if out.requires_grad}
    for i, leaf in enumerate(leaves):
        with mindtorch.no_grad():
            numeric = _differences(lambda: function(*args, **kwargs), leaf, weights)
        compare_values(op, f"gradient of input {i}", ours[i], numeric, _DIFFERENCE)


def _differences(function: Callable[[], Any], leaf: Tensor, weights: dict[int, Array]) -> Tensor:
    step = 1e-6
    flat = leaf.detach()._array
    slopes = np.zeros(flat.shape)
    for at in np.ndindex(flat.shape):
        original = flat[at]
        sides = []
        for sign in (1, -1):
            flat[at] = original + sign * step
            outs = as_list(function())
            sides.append(sum(float((to_numpy(outs[i]) * w).sum()) for i, w in weights.items()))
        flat[at] = original
        slopes[at] = (sides[0] - sides[1]) / (2 * step)
    return mindtorch.tensor(slopes)
