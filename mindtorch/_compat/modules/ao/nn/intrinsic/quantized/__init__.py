"""torch.ao.nn.intrinsic.quantized: fused layers of integers."""

from mindtorch._compat.refusals import refusals

from .modules import *  # noqa: F403
from .modules import ABSENT

__getattr__ = refusals("torch.ao.nn.intrinsic.quantized", "mindtorch has quantised LinearReLU and"
                       " ConvReLU, not this", ABSENT)  # fmt: skip
