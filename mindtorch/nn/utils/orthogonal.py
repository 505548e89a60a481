"""Owns orthogonal as a parametrization: matrices with orthonormal rows or columns.

Householder, exponential and Cayley maps after Mario Lezcano-Casado, Trivializations for
Gradient-Based Optimization on Manifolds, 2019.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ..modules.module import Module
from .parametrize import register_parametrization


class _OrthMaps(Enum):
    """The maps from matrices to orthogonal ones, by torch's numbers."""

    __module__ = "mindtorch.nn.utils.parametrizations"
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    size = q.size(-1)
    identity = mindtorch.eye(size, dtype=q.dtype, device=q.device)
    bound = 10.0 * size * mindtorch.finfo(q.dtype).eps
    return bool(mindtorch.allclose(q.mH @ q, identity, atol=bound))


def _made_orthogonal(x: Tensor) -> Tensor:
    """The Q of x = QR with a positive diagonal of R."""
    q, r = mindtorch.linalg.qr(x)
    signs = mindtorch.sgn(mindtorch.diagonal(r, 0, -2, -1))
    return q * signs.unsqueeze(-2)


class _Orthogonal(Module):
    """`base` is the matrix that the map starts from, where there is one."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        q = self._reflected(x) if self.orthogonal_map is _OrthMaps.householder else self._rotated(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _rotated(self, x: Tensor) -> Tensor:
        """A rotation by the skew part of the lower triangle, its first columns."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = mindtorch.cat([x, x.new_zeros((*x.shape[:-1], n - k))], -1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = mindtorch.matrix_exp(skew)
        else:
            identity = mindtorch.eye(n, dtype=x.dtype, device=x.device)
            q = mindtorch.linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
        return q[..., :k]

    def _reflected(self, x: Tensor) -> Tensor:
        """A product of reflections, one for each column below the diagonal."""
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        q = mindtorch.linalg.householder_product(below, tau)
        return q * mindtorch.diagonal(x, 0, -2, -1).int().unsqueeze(-2)

    def right_inverse(self, q: Tensor) -> Tensor:
        """A parameter that gives `q`, or the orthogonal matrix of its QR decomposition."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of"
                f" shape {q.shape}."
            )
        wide = q.size(-2) < q.size(-1)
        tall = q.mT if wide else q
        if not hasattr(self, "base"):
            return self._reflections(tall, wide)
        n, k = tall.shape[-2:]
        if n != k:
            rest = mindtorch.randn(*tall.shape[:-1], n - k, dtype=q.dtype, device=q.device)
            self.base = _made_orthogonal(mindtorch.cat([tall, rest], -1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _made_orthogonal(tall)
        start = mindtorch.zeros_like(q)
        mindtorch.diagonal(start, 0, -2, -1).fill_(-1.0)
        return start

    def _reflections(self, tall: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley"
                " parametrizations when use_trivialization=False."
            )
        a, tau = mindtorch.geqrf(tall)
        diagonal = mindtorch.diagonal(a, 0, -2, -1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1
        return a.mT if wide else a


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps `module.name`, `[..., n, k]`, orthonormal in its shorter dimension; gives the module.

    `orthogonal_map` is matrix_exp (for square and complex weights), cayley or householder (for the
    others); ValueError for other words, other ranks, or where there is no such tensor.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got:'
            f" {orthogonal_map}"
        )
    map_ = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization)
    register_parametrization(module, name, map_, unsafe=True)
    return module
