"""torch.nn.parallel.replicate: refused, for one process drives one device."""

from ..._compat.refusals import refused
from .scatter_gather import WHY

replicate = refused("torch.nn.parallel.replicate", WHY)
