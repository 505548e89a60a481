"""torch.distributed.optim's names: optimizers that share their state among processes."""

from ..._compat.refusals import refusals
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

_NAMES = ("DistributedOptimizer", "PostLocalSGDOptimizer", "as_functional_optim")
_WHY = "mindtorch has ZeroRedundancyOptimizer, not this"

__all__ = ["ZeroRedundancyOptimizer", *_NAMES]
__getattr__ = refusals("torch.distributed.optim", _WHY, _NAMES)
