"""torch.utils.dlpack: exchange of tensors through DLPack."""

from __future__ import annotations

import enum
from typing import Any

from .._functional.dlpack import from_dlpack
from .._tensor.tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


# Numbers of DLPack's kinds of devices.
DLDeviceType = enum.IntEnum("DLDeviceType", {
    "kDLCPU": 1, "kDLCUDA": 2, "kDLCUDAHost": 3, "kDLOpenCL": 4, "kDLVulkan": 7, "kDLMetal": 8,
    "kDLVPI": 9, "kDLROCM": 10, "kDLROCMHost": 11, "kDLExtDev": 12, "kDLCUDAManaged": 13,
    "kDLOneAPI": 14, "kDLWebGPU": 15, "kDLHexagon": 16, "kDLMAIA": 17,
})  # fmt: skip


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's capsule."""
    return tensor.__dlpack__()
