"""torch.nn.parallel.parallel_apply: refused, for one process drives one device."""

from ..._compat.refusals import refused
from .scatter_gather import WHY

parallel_apply = refused("torch.nn.parallel.parallel_apply", WHY)
