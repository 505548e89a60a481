"""torch.nn.parallel.scatter_gather: refused, for one process drives one device."""

from ..._compat.refusals import refused

WHY = "one process drives one device here; DistributedDataParallel uses several"
__all__ = ["gather", "scatter", "scatter_kwargs"]

gather = refused("torch.nn.parallel.scatter_gather.gather", WHY)
scatter = refused("torch.nn.parallel.scatter_gather.scatter", WHY)
scatter_kwargs = refused("torch.nn.parallel.scatter_gather.scatter_kwargs", WHY)
