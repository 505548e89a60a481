"""torch_npu.profiler: torch.profiler by the names and settings of Ascend's.

What is recorded is what torch.profiler records here: operators, and launches on npu. Settings of
CANN's own counters are taken and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import profiler as _torch
from ..profiler import ProfilerAction, ProfilerActivity as _Activity, supported_activities

__all__ = ["AiCMetrics", "ExportType", "HostSystem", "ProfilerAction", "ProfilerActivity",
           "ProfilerLevel", "profile", "schedule", "supported_activities",
           "tensorboard_trace_handler"]  # fmt: skip


class ProfilerActivity:
    """Which side is recorded."""

    CPU = _Activity.CPU
    NPU = _Activity.PrivateUse1


class ProfilerLevel:
    """How much CANN's profiler gathers."""

    Level_none, Level0, Level1, Level2 = "Level_none", "Level0", "Level1", "Level2"


class AiCMetrics:
    """Which counters of the cores CANN's profiler reads."""

    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType:
    """In which form CANN's profiler writes."""

    Text, Db = "text", "db"


class HostSystem:
    """What CANN's profiler reads of the host."""

    CPU, MEM, DISK, NETWORK, OSRT, NUMA = "cpu", "mem", "disk", "network", "osrt", "numa"


class _ExperimentalConfig:
    """CANN's own settings; kept as they were given."""

    def __init__(
        self, profiler_level: str = ProfilerLevel.Level0,
        aic_metrics: str = AiCMetrics.PipeUtilization, **settings: Any,
    ):  # fmt: skip
        self.profiler_level, self.aic_metrics = profiler_level, aic_metrics
        vars(self).update(settings)


class profile(_torch.profile):  # noqa: N801 - torch's name
    """torch.profiler.profile with torch_npu's settings."""

    def __init__(
        self, *, experimental_config: _ExperimentalConfig | None = None,
        use_cuda: bool | None = None, **settings: Any,
    ):  # fmt: skip
        super().__init__(**settings)
        self.experimental_config = experimental_config


def schedule(
    wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """torch.profiler.schedule in torch_npu's order of arguments."""
    steps: Callable[[int], ProfilerAction] = _torch.schedule(
        wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
    )
    return steps


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[..., None]:  # fmt: skip
    """Writes each trace as a file of `dir_name`, by default of the current folder."""
    handler: Callable[..., None] = _torch.tensorboard_trace_handler(dir_name or ".", worker_name)
    return handler
