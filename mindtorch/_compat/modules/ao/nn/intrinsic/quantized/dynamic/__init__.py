"""torch.ao.nn.intrinsic.quantized.dynamic: LinearReLU whose input is quantised on the way."""

from .modules import LinearReLU

__all__ = ["LinearReLU"]
