"""torch.ao.nn.intrinsic.quantized.modules."""

from mindtorch._compat.refusals import refusals

from .conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from .linear_relu import LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]

ABSENT = ["BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "LinearLeakyReLU", "LinearTanh"]
__getattr__ = refusals("torch.ao.nn.intrinsic.quantized.modules", "mindtorch has quantised"
                       " LinearReLU and ConvReLU, not this", ABSENT)  # fmt: skip
