"""torch.ao.nn.intrinsic.qat.LinearReLU."""

from __future__ import annotations

from typing import Any

from mindtorch import Tensor, nn
from mindtorch.nn import functional as F

from ....qat.modules.linear import Linear
from ...modules.fused import LinearReLU as _FloatLinearReLU, _FusedModule


class LinearReLU(Linear, _FusedModule):
    """A linear layer with rounded weights, and ReLU."""

    _FLOAT_MODULE = _FloatLinearReLU

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:  # type: ignore[override]
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self) -> nn.Module:
        """The two plain modules."""
        return _FloatLinearReLU(super().to_float(), nn.ReLU())
