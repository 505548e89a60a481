"""Owns exchange of cpu tensors through DLPack, by way of numpy's protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor.tensor import Tensor
from .creation import from_numpy
from .publish import surface


def _dlpack(self: Tensor, **kwargs: Any) -> Any:
    if self.requires_grad:
        raise RuntimeError("Can't export tensors that require gradient, use tensor.detach()")
    return self.numpy().__dlpack__(**kwargs)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    if self.device.type != "cpu":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return (1, 0)


@surface(method=False, internal=False)
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of any object with `__dlpack__`; host memory only."""
    array = np.from_dlpack(ext_tensor)
    return from_numpy(array)


Tensor.__dlpack__ = _dlpack  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = _dlpack_device  # type: ignore[attr-defined]
