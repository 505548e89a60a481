"""Owns products of matrices in groups, and of scaled float8 matrices.

They are compositions, which run on every device; those in groups have gradients.
"""

from __future__ import annotations

import enum
from typing import Any

import mindtorch

from .._compat.refusals import BACKENDS, without_kernel
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.rules import c_name

_ALIGNED = 16  # bytes that rows of a grouped product start at multiples of


class ScalingType(enum.Enum):
    """What one factor of `scaled_mm` scales."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How factors of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _refuse_operands(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None) -> None:
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dtype not in (mindtorch.float32, mindtorch.bfloat16, mindtorch.float16):
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got"
                f" {matrix.dtype.legacy}"
            )
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat_a, flat_b = mat_a.ndim == 2, mat_b.ndim == 2
    if not (flat_a and flat_b) and mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got:"
            f" {c_name(mat_a.dtype)} != {c_name(mat_b.dtype)}"
        )
    for matrix in (mat_a, mat_b):
        rows, columns = matrix.stride()[-2:]
        wide = rows if columns == 1 else columns
        if min(rows, columns) != 1:
            raise RuntimeError(
                f"Invalid strides/sizes, got {list(matrix.stride())} for strides and"
                f" {list(matrix.shape)} for sizes"
            )
        if wide * matrix.element_size() % _ALIGNED:
            raise RuntimeError("strides should be multiple of 16 bytes")
    if (offs is None) is (flat_a or flat_b):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None and offs.dtype is not mindtorch.int32:
        raise RuntimeError("Offsets have to be int32")
    groups = [m.shape[0] for m in (mat_a, mat_b) if m.ndim == 3]
    groups += [] if offs is None else [offs.shape[0]]
    if len(set(groups)) > 1:
        raise RuntimeError("matrix batch sizes have to match")


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: Dtype | None = None,
) -> Tensor:  # fmt: skip
    """One product for each group, whose ends along the 2d operand's dimension `offs` [G] holds.

    [M, K] @ [G, K, N] splits rows, [G, M, K] @ [K, N] columns, [M, K] @ [K, N] the contraction;
    two of 3 dims are a batch. RuntimeError for other shapes, dtypes, strides, or a bias.
    """
    _refuse_operands(mat_a, mat_b, offs)
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return mat_a @ mat_b
    ends: list[int] = offs.tolist()
    spans = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if mat_a.ndim == mat_b.ndim:
        return mindtorch.stack([mat_a[:, span] @ mat_b[span] for span in spans])
    if mat_a.ndim == 2:
        parts = [mat_a[span] @ matrix for span, matrix in zip(spans, mat_b, strict=True)]
        rest, dim = mat_a.shape[0] - ends[-1], 0
    else:
        parts = [matrix @ mat_b[:, span] for span, matrix in zip(spans, mat_a, strict=True)]
        rest, dim = mat_b.shape[1] - ends[-1], 1
    whole = mindtorch.cat(parts, dim)
    return mindtorch.nn.functional.pad(whole, (0, 0, 0, rest) if dim == 0 else (0, rest))


def _first(value: Any, name: str) -> Any:
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise NotImplementedError(f"scaled_mm: {name} of {len(value)} levels")
    return value[0]


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType], scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None, bias: Tensor | None = None,
    output_dtype: Dtype | None = mindtorch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of float8 matrices [M, K] and [K, N], each scaled as a whole or by rows.

    NotImplementedError for factors of blocks.
    """
    recipes = _first(scale_recipe_a, "scale_recipe_a"), _first(scale_recipe_b, "scale_recipe_b")
    if not {*recipes} <= {ScalingType.TensorWise, ScalingType.RowWise}:
        names = ", ".join(recipe.name for recipe in recipes)
        raise NotImplementedError(f"scaled_mm: {names}: mindtorch scales matrices and their rows")
    factor_a, factor_b = _first(scale_a, "scale_a"), _first(scale_b, "scale_b")
    if recipes[0] is ScalingType.RowWise:
        factor_a = factor_a.reshape(-1, 1)
    if recipes[1] is ScalingType.RowWise:
        factor_b = factor_b.reshape(1, -1)
    product = (mat_a.float() * factor_a) @ (mat_b.float() * factor_b)
    if bias is not None:
        product = product + bias.float()
    return product if output_dtype is None else product.to(output_dtype)


def scaled_grouped_mm(mat_a: Tensor, *args: Any, **options: Any) -> Tensor:
    """NotImplementedError, as in torch on cpu: CUDA alone has a kernel."""
    backend = BACKENDS.get(mat_a.device.type, mat_a.device.type.upper())
    raise NotImplementedError(without_kernel("_scaled_grouped_mm_v2", backend))
