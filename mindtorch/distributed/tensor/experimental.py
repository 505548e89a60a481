"""torch.distributed.tensor.experimental: implicit_replication; the rest is refused by name."""

from ..._compat.refusals import refusals
from ._api import implicit_replication

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = ["implicit_replication"]
__getattr__ = refusals(
    "torch.distributed.tensor.experimental", "operators have their rules here",
    ("context_parallel", "local_map", "register_sharding"),
)  # fmt: skip
