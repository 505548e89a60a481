"""Owns the hooks that take a sharded optimizer's step between gradients, which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import mindtorch.distributed as dist
from mindtorch.distributed.optim import ZeroRedundancyOptimizer
from mindtorch.nn.parallel import DistributedDataParallel

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def hook_with_zero_step(
    hook: Callable[..., Any], ddp: DistributedDataParallel, zero: ZeroRedundancyOptimizer,
    shard_buckets: bool = False,
) -> NoReturn:  # fmt: skip
    """ValueError for an optimizer without `overlap_with_ddp`, RuntimeError for gloo, as in torch;
    NotImplementedError for other backends."""
    if not getattr(zero, "_overlap_with_ddp", False):
        raise ValueError(
            "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this "
            "hook properly"
        )
    if dist.get_backend(ddp.process_group) == "gloo":
        raise RuntimeError("Gloo backend using Overlapping DDP with ZeRO may meet hangs")
    raise NotImplementedError("mindtorch takes ZeroRedundancyOptimizer's steps behind backward")


hook_with_zero_step_interleaved = hook_with_zero_step
