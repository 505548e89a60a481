"""torch.distributed.fsdp's names: parameters are not sharded."""

from .._compat.refusals import refusals

_NAMES = (
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule",
    "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision",
    "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy",
    "StateDictConfig", "StateDictSettings", "StateDictType", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
)  # fmt: skip
_WHY = "mindtorch does not shard parameters; nn.parallel.DistributedDataParallel keeps them whole"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.fsdp", _WHY, _NAMES)
