"""Owns weight_norm and spectral_norm as parametrizations; names orthogonal beside them."""

from __future__ import annotations

from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from .orthogonal import orthogonal
from .parametrize import register_parametrization
from .spectral_norm import rows_of
from .weight_norm import scaled_directions

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """original0 is the magnitude g, original1 the direction v."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_directions(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Any, Any]:
        """Gives (|w|, w)."""
        return mindtorch.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes `module.name` as g v / |v|; old state dicts with `_g`, `_v` still load."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *rest: Any) -> None:
        for i, old in enumerate((f"{prefix}{name}_g", f"{prefix}{name}_v")):
            if old in state_dict:
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, followed by power iteration."""

    _u: Any
    _v: Any

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            u = mindtorch.empty(matrix.size(0), dtype=weight.dtype, device=weight.device)
            v = mindtorch.empty(matrix.size(1), dtype=weight.dtype, device=weight.device)
            self.register_buffer("_u", F.normalize(u.normal_(0, 1), dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v.normal_(0, 1), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with mindtorch.no_grad():
            for _ in range(times):
                self._u = F.normalize(mindtorch.mv(matrix, self._v), dim=0, eps=self.eps)
                self._v = F.normalize(mindtorch.mv(matrix.t(), self._u), dim=0, eps=self.eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / mindtorch.dot(u, mindtorch.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Gives the value itself: it is taken to have been normalized."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Parametrizes `module.name` by its spectral norm."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = rows_of(module) if dim is None else dim
    normed = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, normed)
