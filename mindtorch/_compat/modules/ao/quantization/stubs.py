"""torch.ao.quantization.stubs: places where a model goes to integers and back."""

from __future__ import annotations

from typing import Any

from mindtorch import Tensor, nn

__all__ = [
    "DeQuantStub", "QuantStub", "QuantWrapper",
]  # fmt: skip


class QuantStub(nn.Module):
    """Becomes Quantize in `convert`."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(nn.Module):
    """Becomes DeQuantize in `convert`."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantWrapper(nn.Module):
    """A module between the two stubs."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - torch's name
        return self.dequant(self.module(self.quant(X)))
