"""torch.ao.nn.intrinsic.quantized.LinearReLU."""

from __future__ import annotations

from mindtorch import nn

from ....quantized.modules.linear import Linear
from ...modules.fused import LinearReLU as _FloatLinearReLU


class LinearReLU(Linear):
    """A linear layer of integers, and ReLU."""

    _FLOAT_MODULE = _FloatLinearReLU
    _relu = True

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(
        cls, ref_qlinear: nn.Module, output_scale: float, output_zero_point: int
    ) -> Linear:
        """From the first of two modules that compute in floating point."""
        return super().from_reference(next(ref_qlinear.children()), output_scale, output_zero_point)
