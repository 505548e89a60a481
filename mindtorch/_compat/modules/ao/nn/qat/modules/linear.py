"""torch.ao.nn.qat.Linear: a linear layer whose weights are rounded as it trains."""

from __future__ import annotations

from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn import functional as F
from mindtorch.nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)

from ...intrinsic.modules.fused import LinearReLU


def refuse_float_module(cls: Any, mod: nn.Module) -> None:
    """AssertionError for a module of another type, or without a qconfig."""
    if type_before_parametrizations(mod) != cls._FLOAT_MODULE:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got"
            f" {type_before_parametrizations(mod).__name__}"
        )
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")


def attach_weight_observer(module: nn.Module, qconfig: Any, **factory: Any) -> None:
    """Give a module its qconfig and the rounding of its weights."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    module.qconfig = qconfig
    module.weight_fake_quant = qconfig.weight(**factory)


class Linear(nn.Linear):
    """A linear layer whose weights are rounded as it trains."""

    _FLOAT_MODULE: ClassVar[type[nn.Module]] = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None,
        device: torch.device | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        factory = {"device": device, "dtype": dtype}
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        attach_weight_observer(self, qconfig, factory_kwargs=factory)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The same weights, rounded by the module's `qconfig`."""
        refuse_float_module(cls, mod)
        if type_before_parametrizations(mod) is LinearReLU:
            mod = next(mod.children())
        new = cls(mod.in_features, mod.out_features, mod.bias is not None, qconfig=mod.qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, new, name)
            else:
                setattr(new, name, getattr(mod, name))
        return new

    def to_float(self) -> nn.Module:
        """A plain layer with these weights."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        linear.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            linear.bias = nn.Parameter(self.bias.detach())
        linear.train(self.training)
        return linear
