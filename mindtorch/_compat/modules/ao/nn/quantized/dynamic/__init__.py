"""torch.ao.nn.quantized.dynamic: layers of float32 with weights of integers."""

from .modules import *  # noqa: F403
