"""torch.ao.nn.quantized: sums, products and concatenations that are observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch._quantized import QuantizedTensor, quantize_per_tensor

from .._kernels import centered


class FXFloatFunctional(nn.Module):
    """Functions of floating-point tensors, as methods."""

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying"
            " operation"
        )

    def _seen(self, result: Tensor) -> Tensor:
        return result

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self._seen(torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y`, unobserved."""
        return torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self._seen(torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y`, unobserved."""
        return torch.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after the other along `dim`."""
        return self._seen(torch.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self._seen(torch.nn.functional.relu(torch.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self._seen(torch.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """The same, observed; becomes QFunctional in `convert`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: nn.Module = nn.Identity()

    def _seen(self, result: Tensor) -> Tensor:
        seen: Tensor = self.activation_post_process(result)
        return seen


class QFunctional(nn.Module):
    """Functions of quantised tensors, as methods; results have `scale` and `zero_point`."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process = nn.Identity()

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

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def _seen(self, name: str, values: Tensor, *inputs: QuantizedTensor) -> Tensor:
        for q in inputs:
            centered(q, name)  # refuses what is not quantised
        q = quantize_per_tensor(values, self.scale, self.zero_point, inputs[0].dtype)
        seen: Tensor = self.activation_post_process(q)
        return seen

    def add(self, x: QuantizedTensor, y: QuantizedTensor) -> Tensor:
        """`x + y`."""
        return self._seen("add", x.dequantize() + y.dequantize(), x, y)

    def mul(self, x: QuantizedTensor, y: QuantizedTensor) -> Tensor:
        """`x * y`."""
        return self._seen("mul", x.dequantize() * y.dequantize(), x, y)

    def cat(self, x: Sequence[QuantizedTensor], dim: int = 0) -> Tensor:
        """The tensors one after the other along `dim`."""
        return self._seen("cat", torch.cat([q.dequantize() for q in x], dim=dim), *x)

    def add_relu(self, x: QuantizedTensor, y: QuantizedTensor) -> Tensor:
        """`relu(x + y)`."""
        return self._seen("add_relu", torch.relu(x.dequantize() + y.dequantize()), x, y)

    def matmul(self, x: QuantizedTensor, y: QuantizedTensor) -> Tensor:
        """`x @ y`."""
        return self._seen("matmul", x.dequantize() @ y.dequantize(), x, y)

    def add_scalar(self, x: QuantizedTensor, y: float) -> Tensor:
        """`x + y`, by another zero point."""
        result: Tensor = torch.ops.quantized.add_scalar(x, y)
        return result

    def mul_scalar(self, x: QuantizedTensor, y: float) -> Tensor:
        """`x * y`, by another scale."""
        result: Tensor = torch.ops.quantized.mul_scalar(x, y)
        return result

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """With the observed scale of a FloatFunctional."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(
                "QFunctional.from_float expects an instance of FloatFunctional, got"
                f" {type(mod).__name__}"
            )
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        new = cls()
        new.scale, new.zero_point = float(scale), int(zero_point)
        return new
