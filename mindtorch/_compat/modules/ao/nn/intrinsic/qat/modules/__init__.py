"""torch.ao.nn.intrinsic.qat.modules."""

from mindtorch._compat.refusals import refusals

from .conv_fused import (
    ConvBn1d,
    ConvBn2d,
    ConvBn3d,
    ConvBnReLU1d,
    ConvBnReLU2d,
    ConvBnReLU3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    freeze_bn_stats,
    update_bn_stats,
)
from .linear_relu import LinearReLU

__all__ = ["ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
           "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "freeze_bn_stats",
           "update_bn_stats"]  # fmt: skip

__getattr__ = refusals(
    "torch.ao.nn.intrinsic.qat", "mindtorch has LinearReLU and Conv of it, not this", ["LinearBn1d"]
)
