"""torch.ao.nn.intrinsic: modules that are computed as one once they are quantised."""

from __future__ import annotations

from typing import ClassVar

from mindtorch import Tensor, nn
from mindtorch.nn.utils.parametrize import type_before_parametrizations

Sizes = int | tuple[int, ...]  # one for all dims, or one each


class _FusedModule(nn.Sequential):
    """Modules one after the other, of the types that a class names."""

    _TYPES: ClassVar[tuple[type[nn.Module], ...]] = ()

    def __init__(self, *modules: nn.Module) -> None:
        if self._TYPES:
            names = [type_before_parametrizations(m) for m in modules]
            if tuple(names) != self._TYPES[: len(names)] or len(names) != len(self._TYPES):
                *first, last = (t.__name__ for t in names)
                comma = "," if len(first) > 1 else ""
                raise AssertionError(
                    f"Incorrect types for input modules: {', '.join(first)}{comma} and {last}"
                )
        super().__init__(*modules)


def _class(name: str, *types: type[nn.Module]) -> type[_FusedModule]:
    doc = f"{' and '.join(t.__name__ for t in types)}, one after the other."
    return type(name, (_FusedModule,), {"_TYPES": types, "__doc__": doc, "__module__": __name__})


ConvReLU1d = _class("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _class("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _class("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _class("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _class("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _class("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _class("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _class("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _class("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _class("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _class("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _class("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _class("LinearBn1d", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU = _class("LinearLeakyReLU", nn.Linear, nn.LeakyReLU)
LinearTanh = _class("LinearTanh", nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution, and another tensor added to it."""

    def __init__(self, conv: nn.Module, add: nn.Module) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]
        result: Tensor = self.add(self[0](x1), x2)
        return result


class ConvAddReLU2d(_FusedModule):
    """A convolution, another tensor added to it, and ReLU."""

    def __init__(self, conv: nn.Module, add: nn.Module, relu: nn.Module) -> None:
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]
        result: Tensor = self.relu(self.add(self[0](x1), x2))
        return result
