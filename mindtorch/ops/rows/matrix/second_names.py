"""Rows of torch.* that linalg and layers also are, with arguments of their own."""

from __future__ import annotations

from ...._compat.warn_once import warn_once
from ...words import *

_SQUARE = Arg((3, 3))


def _left_for_scripts() -> None:
    warn_once(
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be"
        " removed in a future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim,"
        " keepdim)` instead"
    )


@composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    samples=calls((_SQUARE,), (Arg((2, 3)), True)),
    surface="function",
)
def nuclear_norm(self: Tensor, keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    _left_for_scripts()
    return aten.linalg_matrix_norm(self, "nuc", (-2, -1), keepdim)


@composite(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    samples=calls(
        (Arg((2, 3, 4)), (0, 2)),
    ),
    surface="function",
)
def nuclear_norm_dim(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of the matrices in two dimensions."""
    _left_for_scripts()
    return aten.linalg_matrix_norm(self, "nuc", dim, keepdim)


@composite(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    samples=calls((Arg((2, 3, 4)),), (Arg((2, 3)), 2, 1), (Arg((2, 3)), 2, -1), (Arg((3,)),)),
    surface="function",
    tolerance="accumulated",
)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over every dimension but one, kept as size 1; dim -1 takes all."""
    if dim == -1:
        return aten.linalg_vector_norm(v, pow)
    if not -v.ndim <= dim < v.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-v.ndim}, {v.ndim - 1}], but got"
            f" {dim})"
        )
    dims = [i for i in range(v.ndim) if i != dim % v.ndim]
    return aten.linalg_vector_norm(v, pow, dims, True) if dims else aten.abs(v)


@composite(
    "native_channel_shuffle(Tensor self, int groups) -> Tensor",
    samples=calls((Arg((2, 4, 3)), 2)),
    surface="function",
    tolerance="exact",
)
def native_channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """torch.channel_shuffle."""
    return aten.channel_shuffle(self, groups)


@composite(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
    samples=calls((Arg((1, 2, 3)), (1, 1, 2, 3), False)),
    surface="function",
)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """torch.nn.functional.affine_grid."""
    return aten.affine_grid(theta, size, align_corners)
