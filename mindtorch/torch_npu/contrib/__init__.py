"""torch_npu.contrib: layers that programs take from there, and `transfer_to_npu`."""

from __future__ import annotations

from ...nn import Mish, SiLU
from .layers import ChannelShuffle, LabelSmoothingCrossEntropy, NpuDropPath, Prefetcher, Swish

__all__ = ["ChannelShuffle", "LabelSmoothingCrossEntropy", "Mish", "NpuDropPath", "Prefetcher",
           "SiLU", "Swish"]  # fmt: skip
