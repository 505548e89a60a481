"""torch.distributed.algorithms.ddp_comm_hooks: what sends gradients, by kinds."""

import enum
from collections.abc import Callable
from functools import partial
from typing import Any

from . import (
    debugging_hooks as debugging,
    default_hooks as default,
    optimizer_overlap_hooks as optimizer_overlap,  # noqa: F401 - torch's name
    powerSGD_hook as powerSGD,
    quantization_hooks as quantization,
)

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


_member: Callable[[Any], Any] = getattr(enum, "member", lambda value: value)


def _ddp_comm_hook_wrapper(comm_hook: Callable[..., Any], model: Any, state: Any) -> None:
    model.register_comm_hook(state, comm_hook)


def _powerSGD_comm_hook_wrapper(  # noqa: N802 - torch's name
    comm_hook: Callable[..., Any], model: Any, state: Any, matrix_approximation_rank: int,
    start_powerSGD_iter: int = 1_000,  # noqa: N803 - torch's name
) -> None:  # fmt: skip
    sums = powerSGD.PowerSGDState(state, matrix_approximation_rank, start_powerSGD_iter)
    model.register_comm_hook(sums, comm_hook)


def _registers(hook: Callable[..., Any], rank: int | None = None) -> Any:
    if rank is None:
        return _member(partial(_ddp_comm_hook_wrapper, comm_hook=hook))
    return _member(
        partial(_powerSGD_comm_hook_wrapper, comm_hook=hook, matrix_approximation_rank=rank)
    )


class DDPCommHookType(enum.Enum):
    """Hooks by names; a member's value, called with `model` and `state`, registers one."""

    ALLREDUCE = _registers(default.allreduce_hook)
    FP16_COMPRESS = _registers(default.fp16_compress_hook)
    BF16_COMPRESS = _registers(default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _registers(quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _registers(quantization.quantization_perchannel_hook)
    POWER_SGD = _registers(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _registers(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _registers(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _registers(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _registers(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a DistributedDataParallel send gradients by a hook; `state` is a group or None."""
    comm_hook_type.value(model=model, state=state)
