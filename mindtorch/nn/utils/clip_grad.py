"""Owns clipping of gradients by total norm and by value, in place."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from typing import Any

import mindtorch

from ..._functional.lists import norms_of, write_by_lists
from ..._tensor.tensor import Tensor
from ...ops.spec import aten

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Parameters = Tensor | Iterable[Tensor]


def _grads(parameters: Parameters) -> list[Any]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in listed if p.grad is not None]


def get_total_norm(
    tensors: Parameters,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors seen as one vector, a 0-d tensor;
    RuntimeError when asked and not finite."""
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not listed:
        return mindtorch.tensor(0.0)
    with mindtorch.no_grad():
        device = listed[0].device
        norms = [norm.to(device) for norm in norms_of(listed, order)]
        total = aten.linalg_vector_norm(mindtorch.stack(norms), order)
    if error_if_nonfinite and not bool(mindtorch.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients by max_norm / (total_norm + 1e-6), at most 1; no wait for the device."""
    grads = _grads(parameters)
    if not grads:
        return
    with mindtorch.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        if write_by_lists("mul", grads, grads, factor):
            return
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Clips the total norm of the gradients; gives the norm they had."""
    max_norm = float(max_norm)
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if isinstance(parameters, Generator) and not listed:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    total = get_total_norm(_grads(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Parameters, clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every gradient to [-clip_value, clip_value]."""
    bound, grads = float(clip_value), _grads(parameters)
    if not grads:
        raise RuntimeError(
            "Expected !nested_tensorlist[0].empty() to be true, but got false.  (Could this error"
            " message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    with mindtorch.no_grad():
        if write_by_lists("clamp_min", grads, grads, -bound):
            mindtorch._foreach_clamp_max_(grads, bound)
            return
        for grad in grads:
            grad.clamp_(min=-bound, max=bound)


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The former name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of"
        " `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
