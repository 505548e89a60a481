"""torch.nn.parallel.distributed: the wrapper under torch's name."""

from . import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
