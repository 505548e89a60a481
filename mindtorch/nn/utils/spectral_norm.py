"""Owns the hook form of spectral normalization: weight / its largest singular value."""

from __future__ import annotations

from functools import partial
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The pre-forward hook of one weight; `_u` and `_v` are buffers of the module.

    Takayuki Miyato et al., Spectral Normalization for Generative Adversarial Networks, 2018: a step
    of power iteration per forward call in training.
    """

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight with `dim` as rows and all else as columns."""
        return weight.movedim(self.dim, 0).flatten(1) if weight.ndim > 1 else weight[:, None]

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalized weight; the buffers follow where `do_power_iteration`."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with mindtorch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mindtorch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mindtorch.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / mindtorch.dot(u, mindtorch.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Makes the normalized weight a parameter again."""
        with mindtorch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for end in ("_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replaces the parameter by `_orig` and the buffers `_u`, `_v`."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        norm_hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure"
                " to run the dummy forward before applying spectral normalization"
            )
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with mindtorch.no_grad():
            rows, columns = norm_hook.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(norm_hook)
        module._register_state_dict_hook(partial(_note_version, norm_hook))
        return norm_hook


def _note_version(
    norm_hook: SpectralNorm, module: Module, state: object, prefix: str, metadata: dict[str, Any]
) -> None:
    """Write the hook's version into a state dict's metadata."""
    metadata.setdefault("spectral_norm", {})[f"{norm_hook.name}.version"] = norm_hook._version


def rows_of(module: Module) -> int:
    """The dimension of a module's weight that counts its outputs."""
    return 1 if "ConvTranspose" in type(module).__name__ else 0


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divides `module.name` by its spectral norm before each forward; gives the module."""
    dim = rows_of(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Undoes spectral_norm; ValueError when it was not applied."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
