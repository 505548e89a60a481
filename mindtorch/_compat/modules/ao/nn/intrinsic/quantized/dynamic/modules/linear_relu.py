"""torch.ao.nn.intrinsic.quantized.dynamic.LinearReLU."""

from __future__ import annotations

import mindtorch as torch
from mindtorch import Tensor

from .....quantized.dynamic.modules.linear import Linear


class LinearReLU(Linear):
    """A linear layer of float32 with weights of integers, and ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(super().forward(x))

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
