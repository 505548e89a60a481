"""torch.distributed.optim's names: optimizers of several processes."""

from ..._compat.refusals import refusals
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

_NAMES = ("DistributedOptimizer", "as_functional_optim")
_WHY = "mindtorch has optimizers of one model's ranks, not this"

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", *_NAMES]
__getattr__ = refusals("torch.distributed.optim", _WHY, _NAMES)
