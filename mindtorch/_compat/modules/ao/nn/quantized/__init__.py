"""torch.ao.nn.quantized: layers of integers."""

from mindtorch._compat.refusals import refusals

from .modules import *  # noqa: F403
from .modules import ABSENT

__getattr__ = refusals(
    "torch.ao.nn.quantized", "mindtorch has quantised Linear and Conv, not this", ABSENT
)
