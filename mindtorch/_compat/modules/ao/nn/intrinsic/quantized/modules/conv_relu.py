"""torch.ao.nn.intrinsic.quantized: convolutions of integers, and ReLU."""

from __future__ import annotations

from ....quantized.modules import conv
from ...modules import fused


class ConvReLU1d(conv.Conv1d):
    """`[N, C, L]` quint8."""

    _FLOAT_MODULE = fused.ConvReLU1d
    _relu = True


class ConvReLU2d(conv.Conv2d):
    """`[N, C, H, W]` quint8."""

    _FLOAT_MODULE = fused.ConvReLU2d
    _relu = True


class ConvReLU3d(conv.Conv3d):
    """`[N, C, D, H, W]` quint8."""

    _FLOAT_MODULE = fused.ConvReLU3d
    _relu = True
