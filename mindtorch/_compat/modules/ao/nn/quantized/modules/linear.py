"""torch.ao.nn.quantized.Linear: a linear layer of integers."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch._quantized import QuantizedTensor
from mindtorch.nn.utils.fusion import fuse_linear_bn_weights
from mindtorch.nn.utils.parametrize import type_before_parametrizations

from ...intrinsic.modules.fused import LinearReLU as _FloatLinearReLU
from .._kernels import weighted
from .utils import PackedParams, WeightedQuantizedModule, _quantize_weight


class LinearPackedParams(PackedParams):
    """The weight and the bias of a layer, as one entry of its state_dict."""

    _version = 3
    _ENTRY = "_packed_params"
    _USUAL = (torch.qint8,)

    def __init__(self, dtype: torch.dtype = torch.qint8) -> None:
        super().__init__(dtype)
        self.set_weight_bias(_empty([1, 1], dtype), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Replace both."""
        if self.dtype not in (torch.qint8, torch.float16):
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        self._packed_params = (weight, bias)

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._packed_params

    def _put(self, entry: Any) -> None:
        self.set_weight_bias(*entry)


def _empty(size: list[int], dtype: torch.dtype) -> Any:
    if dtype is torch.qint8:
        return torch._empty_affine_quantized(size, scale=1.0, zero_point=0, dtype=dtype)
    return torch.zeros(size, dtype=torch.float)


def repr_without(module: nn.Module, hidden: type | tuple[type, ...]) -> str:
    """A module's text without its children of some types."""
    children = {k: m for k, m in module._modules.items() if not isinstance(m, hidden)}
    lines = [f"({k}): " + repr(m).replace("\n", "\n  ") for k, m in children.items()]
    extra = module.extra_repr()
    if not lines:
        return f"{module._get_name()}({extra})"
    inner = "\n  ".join([*([extra] if extra else []), *lines])
    return f"{module._get_name()}(\n  {inner}\n)"


class Linear(WeightedQuantizedModule):
    """`[*, in_features]` quint8 → `[*, out_features]` quint8 with `scale` and `zero_point`."""

    _version = 3
    _FLOAT_MODULE: ClassVar[Any] = (
        nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear,
    )  # fmt: skip
    _relu = False

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        bias = torch.zeros(out_features, dtype=torch.float) if bias_ else None
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(_empty([out_features, in_features], dtype), bias)
        self.scale: float = 1.0
        self.zero_point = 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return repr_without(self, LinearPackedParams)

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self._weight_bias()
        return weighted(
            cast(QuantizedTensor, x), weight, bias, self.scale, self.zero_point, self._relu,
            "linear_relu" if self._relu else "linear", lambda a, w: torch.matmul(a, w.t()), -1,
        )  # fmt: skip

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, *rest: Any,
    ) -> None:  # fmt: skip
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Any:
        """qint8 `[out_features, in_features]`."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """float32 `[out_features]`."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Replace both."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """A layer with the observed scales of `mod`, which `prepare` or `prepare_qat` made."""
        observer = mod.activation_post_process if hasattr(mod, "weight_fake_quant") else None
        if observer is None:
            known = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple | list) else (
                cls._FLOAT_MODULE,
            )  # fmt: skip
            if type_before_parametrizations(mod) not in known:
                names = ", ".join(m.__name__ for m in known)
                raise AssertionError(
                    f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}"
                )
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Input float module must have qconfig defined")
            observer = mod.activation_post_process
            if type_before_parametrizations(mod) is _FloatLinearReLU:
                mod = next(mod.children())
            weights = mod.qconfig.weight()
        else:
            if hasattr(mod, "bn"):
                bn = mod.bn
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                    bn.bias,
                )  # fmt: skip
            weights = mod.weight_fake_quant
        if not use_precomputed_fake_quant:
            weights(mod.weight)
        scale, zero_point = observer.calculate_qparams()
        if weights.dtype is not torch.qint8:
            raise AssertionError(
                f"Weight observer must have dtype torch.qint8, got {weights.dtype}"
            )
        new = cls(mod.in_features, mod.out_features, dtype=weights.dtype)
        new.set_weight_bias(_quantize_weight(mod.weight.float(), weights), mod.bias)
        new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    @classmethod
    def from_reference(
        cls, ref_qlinear: nn.Module, output_scale: float, output_zero_point: int
    ) -> Linear:
        """From a layer that computes in floating point."""
        new = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        new.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        new.scale, new.zero_point = float(output_scale), int(output_zero_point)
        return new
