"""torch.ao.nn.quantized.modules."""

from __future__ import annotations

from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch._compat.refusals import refusals
from mindtorch.nn import factory_kwargs as checked

from .activation import ELU, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import (
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)

__all__ = [
    "ELU",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]  # fmt: skip

MaxPool2d = nn.MaxPool2d
ABSENT = ["LSTM", "MultiheadAttention"]
__getattr__ = refusals(
    "torch.ao.nn.quantized.modules", "mindtorch has its dynamic LSTM, not this", ABSENT
)


class Quantize(nn.Module):
    """float32 → a quantised tensor."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, dtype: torch.dtype,
        factory_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        factory_kwargs = checked(factory_kwargs)
        place = {k: v for k, v in factory_kwargs.items() if k != "dtype"}
        super().__init__()
        self.register_buffer("scale", torch.tensor([scale], **factory_kwargs))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.long, **place))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - torch's name
        result: Tensor = torch.quantize_per_tensor(
            X, float(self.scale), int(self.zero_point), self.dtype
        )
        return result

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Quantize:
        """With the scale that a QuantStub's observer noted."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(
                f"Module {type(mod).__name__} must have activation_post_process attribute"
            )
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        dtype = mod.activation_post_process.dtype
        return Quantize(scale.float().item(), zero_point.long().item(), dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """A quantised tensor → float32."""

    def forward(self, Xq: Tensor) -> Tensor:  # noqa: N803 - torch's name
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """For a DeQuantStub."""
        return DeQuantize()


class Dropout(nn.Dropout):
    """Passes quantised tensors on."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """For an nn.Dropout."""
        return cls(mod.p, mod.inplace)
