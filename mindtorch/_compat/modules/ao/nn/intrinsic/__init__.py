"""torch.ao.nn.intrinsic: fused modules in floating point."""

from .modules import *  # noqa: F403
