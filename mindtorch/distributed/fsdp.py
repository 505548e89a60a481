"""torch.distributed.fsdp: fully_shard; what wraps modules instead is refused by name."""

from .._compat.refusals import refusals
from ._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)

_NAMES = (
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision",
    "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy",
    "StateDictConfig", "StateDictSettings", "StateDictType",
)  # fmt: skip
_WHY = "mindtorch does not wrap modules; fully_shard shares their parameters"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle",
    "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
for _class in (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, UnshardHandle):
    _class.__module__ = __name__
__getattr__ = refusals("torch.distributed.fsdp", _WHY, _NAMES)
