"""Owns exchange of cpu tensors through DLPack, by way of numpy's protocol."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from .._tensor.device import DeviceLike, resolve
from .._tensor.tensor import Tensor
from .._tensor.types import Array
from ..ops.spec import aten
from .creation import from_numpy
from .publish import surface

# Numbers of DLPack's kinds of devices.
DLDeviceType = enum.IntEnum("DLDeviceType", {
    "kDLCPU": 1, "kDLCUDA": 2, "kDLCUDAHost": 3, "kDLOpenCL": 4, "kDLVulkan": 7, "kDLMetal": 8,
    "kDLVPI": 9, "kDLROCM": 10, "kDLROCMHost": 11, "kDLExtDev": 12, "kDLCUDAManaged": 13,
    "kDLOneAPI": 14, "kDLWebGPU": 15, "kDLHexagon": 16, "kDLMAIA": 17,
})  # fmt: skip


def _invalid() -> RuntimeError:
    return RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only"
        " once, so you might have already constructed a tensor from it once."
    )


class _Writable:
    """The memory of a capsule without a version, which numpy takes as read-only and torch not."""

    def __init__(self, array: Array) -> None:
        self.array = array
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


class _Capsule:
    """A bare capsule behind the protocol; numpy asks whose memory it is, and that it is new."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _dlpack(
    self: Tensor, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """The tensor's capsule (DLPack's Python protocol); BufferError for what it cannot carry."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and self.device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    options: dict[str, Any] = {}
    for name, value in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)):
        if value is not None:
            options[name] = value
    return self.numpy().__dlpack__(**options)


def _dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    if self.device.type != "cpu":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return DLDeviceType["kDLCPU"], 0


_LATEST = (1, 0)  # the version of capsules that numpy reads


def _capsule_of(source: Any) -> Any:
    """What a producer gives, of a version if it knows of versions."""
    if type(source).__name__ == "PyCapsule":
        return source
    kind, _ = source.__dlpack_device__()
    if int(kind) != int(DLDeviceType["kDLCPU"]):
        return source.__dlpack__()
    try:
        return source.__dlpack__(max_version=_LATEST)
    except TypeError:
        return source.__dlpack__()


@surface(method=False, internal=False)
def from_dlpack(
    ext_tensor: Any, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor over the memory of any object with `__dlpack__`; host memory only.

    `copy=True` never shares, `copy=False` refuses to copy (BufferError), so does another device.
    """
    target = None if device is None else resolve(device)
    if isinstance(ext_tensor, Tensor):
        if ext_tensor.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if str(ext_tensor.layout) != "torch.strided":
            raise BufferError("Can't export tensors with layout other than torch.strided")
        source = ext_tensor.detach()
    else:
        if type(ext_tensor).__name__ != "PyCapsule" and not hasattr(ext_tensor, "__dlpack__"):
            raise _invalid()
        try:
            capsule = _capsule_of(ext_tensor)
            unversioned = '"dltensor"' in repr(capsule)
            array = np.from_dlpack(_Capsule(capsule))
            source = from_numpy(np.asarray(_Writable(array)) if unversioned else array)
        except ValueError as error:
            raise _invalid() from error
    if target is not None and target is not source.device:
        if copy is False:
            raise BufferError(f"from_dlpack: {source.device} to {target} needs a copy")
        return aten.to(source, target)
    return aten.clone(source) if copy else source


Tensor.__dlpack__ = _dlpack  # type: ignore[method-assign, assignment]
Tensor.__dlpack_device__ = _dlpack_device  # type: ignore[attr-defined]
