"""`from torch_npu.contrib import transfer_to_npu`: a program written for CUDA runs on npu.

From the import on, tensors of a device `cuda` are npu's, `.cuda()` moves to npu, torch.cuda's
functions are torch.npu's, and the process group's backend `nccl` is `hccl`.
Source: Ascend Extension for PyTorch, "Automatic migration".
"""

from __future__ import annotations

from ..._tensor import device as _device
from . import _cuda_names

_device.STANDING_IN["cuda"] = "npu"
_cuda_names.replace()
