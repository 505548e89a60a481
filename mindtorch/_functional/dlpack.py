"""Owns exchange of cpu tensors through DLPack, by way of numpy's protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor.device import DeviceLike, resolve
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .creation import from_numpy
from .publish import surface


def _dlpack(
    self: Tensor, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """The tensor's capsule (DLPack's Python protocol); BufferError for what it cannot carry."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    options: dict[str, Any] = {}
    for name, value in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)):
        if value is not None:
            options[name] = value
    return self.numpy().__dlpack__(**options)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    if self.device.type != "cpu":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return (1, 0)


@surface(method=False, internal=False)
def from_dlpack(
    ext_tensor: Any, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor over the memory of any object with `__dlpack__`; host memory only.

    `copy=True` never shares, `copy=False` refuses to copy (BufferError), so does another device.
    """
    target = None if device is None else resolve(device)
    if isinstance(ext_tensor, Tensor):
        source = ext_tensor.detach()
    else:
        source = from_numpy(np.from_dlpack(ext_tensor))
    if target is not None and target is not source.device:
        if copy is False:
            raise BufferError(f"from_dlpack: {source.device} to {target} needs a copy")
        return aten.to(source, target)
    return aten.clone(source) if copy else source


Tensor.__dlpack__ = _dlpack  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = _dlpack_device  # type: ignore[attr-defined]
