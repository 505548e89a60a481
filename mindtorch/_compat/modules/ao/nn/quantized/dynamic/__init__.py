"""torch.ao.nn.quantized.dynamic: layers of float32 with weights of integers."""

from mindtorch._compat.refusals import refusals

from .modules import *  # noqa: F403
from .modules import ABSENT

__getattr__ = refusals("torch.ao.nn.quantized.dynamic", "mindtorch has dynamically quantised"
                       " Linear, LSTM and GRU, not this", ABSENT)  # fmt: skip
