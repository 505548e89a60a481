"""Owns which names of torch's for CUDA are npu's after `transfer_to_npu`."""

from __future__ import annotations

import functools
from typing import Any

import mindtorch

from ... import cuda, npu
from ..._tensor.tensor import Tensor
from ...amp import GradScaler, autocast
from ...nn import Module


def replace() -> None:
    """Give torch.cuda, tensors, modules and torch.distributed their names of npu."""
    for name in npu.__all__:
        setattr(cuda, name, getattr(npu, name))
    cuda.get_device_capability = lambda device=None: (8, 0)
    cuda.amp.autocast = functools.partial(autocast, "npu")
    cuda.amp.GradScaler = functools.partial(GradScaler, "npu")
    for owner in (Tensor, Module):
        setattr(owner, "cuda", getattr(owner, "npu"))  # noqa: B009, B010 - a method, for the types
    setattr(Tensor, "is_cuda", getattr(Tensor, "is_npu"))  # noqa: B009, B010
    if mindtorch.distributed.is_available():
        _name_hccl()


def _name_hccl() -> None:
    distributed: Any = mindtorch.distributed
    begin = distributed.init_process_group

    @functools.wraps(begin)
    def init_process_group(backend: str | None = None, *args: Any, **settings: Any) -> Any:
        named = "hccl" if backend == "nccl" else backend
        return begin(named, *args, **settings)

    distributed.init_process_group = init_process_group
    distributed.is_nccl_available = lambda: True
