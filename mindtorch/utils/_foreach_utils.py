"""Owns torch.utils._foreach_utils: lists of tensors sorted by place and type, for optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor

TensorList: TypeAlias = list[Tensor | None]
Indices: TypeAlias = list[int]
Key: TypeAlias = tuple[Device | None, Dtype | None]
Group: TypeAlias = tuple[list[TensorList], Indices]

_DEVICES = ["cpu", "npu", "meta"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices whose lists of tensors one call computes."""
    return list(_DEVICES)


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices on which an optimizer's step may be fused."""
    return ["cpu", "npu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[TensorList], with_indices: bool = False
) -> dict[Key, Group]:
    """Lists that run side by side, split by the device and dtype of the first list's tensors."""
    groups: dict[Key, Group] = {}
    for i, first in enumerate(tensorlistlist[0]):
        key = (None, None) if first is None else (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for tensor_list, source in zip(lists, tensorlistlist, strict=True):
            if source:
                tensor_list.append(source[i])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device: Device) -> bool:
    """Whether lists on a device are computed by one call."""
    return device.type in _DEVICES


def _has_foreach_support(tensors: list[object], device: Device) -> bool:
    """Whether these tensors may be computed by one call on a device."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in (Tensor, _parameter()) for t in tensors
    )


def _parameter() -> type:
    from ..nn.parameter import Parameter

    return Parameter
