"""Owns the hook form of weight normalization: weight = g v /
|v|, recomputed before each forward."""

from __future__ import annotations

import warnings
from typing import Any

from ..._autograd.node_names import labelled
from ..._tensor.tensor import Tensor
from ...ops.spec import aten
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def scaled_directions(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g v / |v|, the norm over every dimension but `dim`."""
    weight = v * (g / aten.norm_except_dim(v, 2, dim))
    if dim in (0, v.ndim - 1):  # torch's fused operator takes these alone
        labelled(weight, "WeightNormInterfaceBackward0", (v, g))
    return weight


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return scaled_directions(v, g, dim)


class WeightNorm:
    """The pre-forward hook of one weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Gives g v / |v|."""
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return scaled_directions(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replaces the parameter by its magnitude `_g` and direction `_v`."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        norm_hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure"
                " to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        magnitude = Parameter(aten.norm_except_dim(weight, 2, norm_hook.dim).data)
        module.register_parameter(name + "_g", magnitude)
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, norm_hook.compute_weight(module))
        module.register_forward_pre_hook(norm_hook)
        return norm_hook

    def remove(self, module: Module) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: tuple[Tensor, ...]) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits `module.name` into magnitude and direction; gives the module."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of"
        " `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Undoes weight_norm; ValueError when it was not applied."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
