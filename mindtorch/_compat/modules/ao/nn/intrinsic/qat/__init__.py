"""torch.ao.nn.intrinsic.qat: fused modules whose weights are rounded as they train."""

from mindtorch._compat.refusals import refusals

from .modules import *  # noqa: F403

__getattr__ = refusals(
    "torch.ao.nn.intrinsic.qat", "mindtorch has LinearReLU and Conv of it, not this", ["LinearBn1d"]
)
