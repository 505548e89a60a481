"""Owns joining parameters to one vector and writing it back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch

from ..._compat.class_names import class_name
from ..._tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Flattens and joins the parameters; TypeError when they are on several devices."""
    listed = list(parameters)
    _check_device(listed)
    return mindtorch.cat([p.reshape(-1) for p in listed])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its slice of the vector as data."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {class_name(vec)}")
    listed = list(parameters)
    _check_device(listed)
    start = 0
    for p in listed:
        size = p.numel()
        p.data = vec[start : start + size].reshape(p.shape).data
        start += size


def _check_device(parameters: list[Any]) -> None:
    if len({p.device for p in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
