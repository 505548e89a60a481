"""torch.ao.nn.quantized: layers of integers."""

from mindtorch._compat.refusals import refusals

from . import dynamic, functional  # noqa: F401
from .modules import *  # noqa: F403
from .modules import ABSENT

__getattr__ = refusals("torch.ao.nn.quantized", "mindtorch has its dynamic LSTM, not this", ABSENT)
