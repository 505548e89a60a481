"""Quantisation to and from float4: two levels of scales, and other blocks for shared exponents."""

from __future__ import annotations

from typing import Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .microscaling import _MX, _restored, squares

# Of float4 e2m1: the exponent of its largest number, and that.
_TOP, _LARGEST = 2, 6.0
_CODES: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -2, -4, -6])


@spec("aclnnDynamicDualLevelMxQuant", "yOut:float4_e2m1fn level0ScaleOut:float32 "
      "level1ScaleOut:float8_e8m0fnu", **{**_MX, "source": "op-plugin document "
      "npu_dynamic_dual_level_mx_quant", "dtypes": ("float16",)}, samples=[
          take(x=t(*shape, dtype="float16", low=-9, high=9), smoothScaleOptional=smooth,
               roundModeOptional="rint", level0BlockSize=512, level1BlockSize=32)
          for shape, smooth in (((3, 512), None), ((2, 2, 1024), None))])  # fmt: skip
def dual_level(x: Array) -> tuple[Array, Array, Array]:
    """512 elements share a real scale; what is left, in x's type, an exponent for each 32."""
    pieces = x.reshape(*x.shape[:-1], -1, 512)
    first = np.abs(pieces).max(-1) / _LARGEST
    left = pieces / np.where(first, first, 1)[..., None].astype(np.float32)
    left = left.astype(np.float16).astype(np.float64).reshape(*x.shape[:-1], -1, 32)
    exponent = np.frexp(np.abs(left).max(-1))[1] - 1 - _TOP
    y = np.clip(np.ldexp(left, -exponent[..., None]), -_LARGEST, _LARGEST)
    second = np.ldexp(1.0, exponent).reshape(*x.shape[:-1], -1, 2)
    return y.reshape(x.shape), first, second


@spec("aclnnMxToBlockMxQuant", "y:dstType scale1:float8_e8m0fnu scale2:float8_e8m0fnu", **_MX,
      samples=[
          take(x=given(_CODES[np.arange(np.prod(shape)) * 5 % 13].reshape(shape), "float4_e2m1fn"),
               mxscale=given(np.exp2(np.arange(np.prod(shape) // 32) % 4 - 1.0).reshape(
                   *shape[:-1], -1, 2), "float8_e8m0fnu"), dstType=to)
          for shape in ((64, 64), (2, 32, 128)) for to in (35, 36)])  # fmt: skip
def other_blocks(x: Array, mxscale: Array, dstType: int) -> tuple[Array, Array, Array]:
    return squares(_restored(x.astype(np.float64), mxscale, -1), dstType)
