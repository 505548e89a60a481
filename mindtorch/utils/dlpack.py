"""torch.utils.dlpack: exchange of tensors through DLPack."""

from __future__ import annotations

from typing import Any

from .._functional.dlpack import DLDeviceType, from_dlpack
from .._tensor.tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's capsule."""
    return tensor.__dlpack__()
