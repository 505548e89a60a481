"""torch.distributed.nn: collectives through which gradients flow; remote modules are refused."""

from ..._compat.refusals import refusals
from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip
__getattr__ = refusals(
    "torch.distributed.nn", "mindtorch calls no functions on other processes", ("RemoteModule",)
)
