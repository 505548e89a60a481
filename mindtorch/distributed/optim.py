"""torch.distributed.optim's names: state of optimizers is not sharded."""

from .._compat.refusals import refusals

_NAMES = (
    "DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer",
    "as_functional_optim",
)  # fmt: skip
_WHY = "mindtorch does not shard optimizers; each rank keeps the whole state"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.optim", _WHY, _NAMES)
