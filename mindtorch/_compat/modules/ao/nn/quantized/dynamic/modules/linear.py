"""torch.ao.nn.quantized.dynamic.Linear: a linear layer of float32 with weights of integers."""

from __future__ import annotations

from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn

from ....intrinsic.modules.fused import LinearReLU
from ..._kernels import linear_dynamic
from ...modules.linear import Linear as _Linear
from ...modules.utils import _quantize_weight


class Linear(_Linear):
    """`[*, in_features]` → `[*, out_features]`; the input is quantised on the way."""

    _version = 4

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version: int | None = 4

    def forward(self, x: Tensor) -> Tensor:
        return linear_dynamic(x, *self._weight_bias()).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._packed_params.dtype}"
        )
        if self._packed_params.dtype is torch.qint8:
            text += f", qscheme={self.weight().qscheme()}"
        return text

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """With the weights of `mod`, by its `qconfig`."""
        known: list[type[nn.Module]] = [
            nn.Linear,
            nn.modules.linear.NonDynamicallyQuantizableLinear,
            LinearReLU,
        ]
        if type(mod) not in known:
            names = [m.__name__ for m in (*known, nn.Linear)]
            raise AssertionError(
                "nn.quantized.dynamic.Linear.from_float only works for one of"
                f"{names}, got {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if type(mod) is LinearReLU:
            mod = mod[0]
        weights = weight_observer(mod)
        if weights.dtype not in (torch.qint8, torch.float16):
            raise AssertionError(
                "The only supported dtypes for dynamic quantized linear are qint8 and float16,"
                f" got: {weights.dtype}"
            )
        new = cls(mod.in_features, mod.out_features, dtype=weights.dtype)
        new.set_weight_bias(observed_weight(mod.weight, weights), mod.bias)
        return new


def weight_observer(mod: nn.Module) -> nn.Module:
    """The observer that a module's `qconfig` has for weights."""
    from .....quantization.observer import default_weight_observer  # its package imports this

    qconfig = mod.qconfig
    explicit = qconfig is not None and qconfig.weight is not None
    return (qconfig.weight if explicit else default_weight_observer)()


def observed_weight(weight: Tensor, observer: nn.Module) -> Any:
    """A weight as qint8, or rounded to float16 and kept as float32."""
    observer(weight)
    if observer.dtype is torch.qint8:
        return _quantize_weight(weight.float(), observer)
    return weight.detach().half().float()
