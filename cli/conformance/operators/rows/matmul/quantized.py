"""Products of integers, scaled."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, f16, i8, spec, t, take
from .._defaults import FINITE_GRADIENT
from .._functions import gelu
from .._ignored import one_value, reserved
from .._quantizers import INT8, dynamic
from .weight_quantized import MATMUL


def _product(x1: Array, x2: Array, left: bool, right: bool) -> Array:
    a = x1.astype(np.float64).swapaxes(-1, -2) if left else x1.astype(np.float64)
    b = x2.astype(np.float64).swapaxes(-1, -2) if right else x2.astype(np.float64)
    return a @ b


def _matmul(out: str, **more: Any) -> list[Any]:
    """int8 products with a scale for each column, plain and transposed weight."""
    products = []
    for trans in (False, True):
        weight = i8(9, 33) if trans else i8(33, 9)
        for bias in (None, t(9, dtype="int32", low=-50, high=50)):
            products.append(take(x1=i8(5, 33), x2=weight, bias=bias, transposeX1=False,
                              transposeX2=trans, **more))  # fmt: skip
    return products


def quant_matmul(
    x1: Array,
    x2: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    scale: Array | float = 1.0,
    offset: Array | None = None,
    pertokenScaleOptional: Array | None = None,
) -> Array:
    """A bias of integers counts products, one of floats results."""
    acc = _product(x1, x2, transposeX1, transposeX2)
    whole = bias is not None and bias.dtype.kind == "i"
    y = (acc + bias if whole else acc) * scale
    y = y if pertokenScaleOptional is None else y * pertokenScaleOptional[:, None]
    y = y if bias is None or whole else y + bias
    return y if offset is None else y + offset


_SCALE: Final = t(9, low=0.005, high=0.02)
# Scales whose product with sums of integers no float rounds, and what is added to steps of int8.
_EVEN: Final = const([2.0 ** -(3 + n % 3) for n in range(9)], "float32")
_STEPS_ADDED: Final = const([3.0 * n - 11 for n in range(9)], "float32")
_STEPPED_OUT: Final[dict[str, Any]] = {
    "x1": i8(5, 33), "x2": i8(33, 9), "bias": t(9, dtype="int32", low=-50, high=50),
    "transposeX1": False, "transposeX2": False, "outDtype": INT8,
}  # fmt: skip
spec(
    "aclnnQuantMatmulV4",
    "out:outDtype|float16",
    extra="outDtype",
    **{**MATMUL, "dtypes": ("float32",)},
    samples=[
        *_matmul("float16", scale=_SCALE, pertokenScaleOptional=t(5, low=0.5, high=2)),
        take(
            x1=i8(130, 33),
            x2=i8(33, 130),
            bias=None,
            transposeX1=False,
            transposeX2=False,
            scale=t(130, low=0.005, high=0.02),
            pertokenScaleOptional=t(130, low=0.5, high=2),
        ),
        take(
            x1=i8(5, 33),
            x2=i8(33, 9),
            bias=t(9),
            transposeX1=False,
            transposeX2=False,
            scale=_SCALE,
            pertokenScaleOptional=t(5, low=0.5, high=2),
        ),
        take(
            x1=i8(33, 5),
            x2=i8(33, 9),
            bias=None,
            transposeX1=True,
            transposeX2=False,
            scale=_SCALE,
            pertokenScaleOptional=None,
        ),
        take(
            x1=i8(2, 5, 33),
            x2=i8(2, 33, 9),
            bias=t(2, 1, 9, dtype="int32", low=-50, high=50),
            transposeX1=False,
            transposeX2=False,
            scale=_SCALE,
            pertokenScaleOptional=None,
        ),
        take(**_STEPPED_OUT, scale=_EVEN, offset=_STEPS_ADDED, pertokenScaleOptional=None),
    ],
)(quant_matmul)


@spec("aclnnQuantMatmulV5 aclnnQuantMatmulWeightNz", "out:outDtype|float16", extra="outDtype",
      ignored=reserved("x1Offset"),
      uncovered="yScale yOffset groupSize",
      constant="transposeX1",
      **{**MATMUL, "dtypes": ("float32",), "source": "operator document aclnnQuantMatmulV5"},
      formats={"aclnnQuantMatmulWeightNz x2": "FRACTAL_NZ"},
      samples=[
          *(take(**s.kwargs, x1Scale=t(5, low=0.5, high=2), x2Scale=_SCALE, groupSize=0)
            for s in _matmul("float16")),
          take(**_STEPPED_OUT, x1Scale=None, x2Scale=_EVEN, x2Offset=_STEPS_ADDED, groupSize=0),
          take(**{**_STEPPED_OUT, "bias": t(9), "outDtype": 27}, x1Scale=None, x2Scale=_SCALE,
               groupSize=0)])  # fmt: skip
def quant_matmul_v5(
    x1: Array,
    x2: Array,
    x1Scale: Array | None,
    x2Scale: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    x2Offset: Array | None = None,
) -> Array:
    """Without a scale for each row an offset is added to steps of int8."""
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, x2Scale, x2Offset, x1Scale)


_INT: Final[dict[str, Any]] = {"dtype": "int8", "low": -8, "high": 8}


def steps_of_rows(x: Array, smooth: Array | None, scale: Array | None) -> tuple[Array, Array]:
    """(integers, scale of each row): in a scale that comes along, or by each row's largest."""
    y = x if smooth is None else x * smooth
    if scale is None:
        steps, quantized = dynamic(y)
        return np.rint(steps), quantized
    quantized = np.broadcast_to(scale.reshape(-1), (len(x),))
    return np.clip(np.rint(y / quantized[:, None]), -128, 127), quantized


_SCALED_STEPS: Final = (
    (None, None, "pertoken"), (f16(32, low=0.5), None, "pertoken"),
    (None, const([2.0**-5, 2.0**-4, 2.0**-5, 2.0**-6, 2.0**-4], "float32"), "pertoken"),
    (None, const([2.0**-5], "float32"), "pertensor"))  # fmt: skip


@spec("aclnnQuantMatmulDequant", "out:x",
      ignored=reserved("biasOptional xOffsetOptional")
      | one_value("transposeWeight"),
      uncovered="xQuantMode",
      tolerance="gradient",
      dtypes=("float16",), source="operator document aclnnQuantMatmulDequant; op-plugin document "
      "npu_quant_matmul_dequant", samples=[
          take(x=f16(5, 32), weight=t(16, 32, **_INT), weightScale=t(16, low=0.01, high=0.1),
               smoothScaleOptional=s, xScaleOptional=x, xQuantMode=m, transposeWeight=True)
          for s, x, m in _SCALED_STEPS])  # fmt: skip
def quant_matmul_dequant(
    x: Array, weight: Array, weightScale: Array, smoothScaleOptional: Array | None,
    xScaleOptional: Array | None,
) -> Array:  # fmt: skip
    steps, scale = steps_of_rows(x, smoothScaleOptional, xScaleOptional)
    return steps @ weight.T.astype(np.float64) * weightScale * scale[:, None]


_WORDS: Final = const([(0x3C23C000 + (n << 13)) | 1 << 46 for n in range(9)], "uint64")


@spec("aclnnQuantMatmulV3", "out:outDtype|float16", extra="outDtype", tolerance="gradient",
      dtypes=("bfloat16",), steps=True, source="operator document aclnnQuantMatmulV3; op-plugin "
      "document npu_quant_matmul", samples=[
          take(x1=t(33, 5, **_INT) if left else t(5, 33, **_INT),
               x2=t(9, 33, **_INT) if right else t(33, 9, **_INT), scale=w, bias=b, offset=o,
               transposeX1=left, transposeX2=right, outDtype=d)
          for left, right, b, w, o, d in (
              (False, False, None, _WORDS, None, None),
              (True, False, t(9, dtype="int32", low=-50, high=50), _WORDS, None, None),
              (False, True, t(9, dtype="int32", low=-50, high=50),
               const([0x3D800000 + (n % 3 << 23) for n in range(9)], "uint64"),
               const([3.0 * n - 11 for n in range(9)], "float32"), 2))])  # fmt: skip
def quant_matmul_v3(
    x1: Array, x2: Array, scale: Array, bias: Array | None, offset: Array | None,
    transposeX1: bool, transposeX2: bool,
) -> Array:  # fmt: skip
    """Scales come packed: the low 32 bits are a float32's (npu_trans_quant_param)."""
    real = (scale & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32).astype(np.float64)
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, real, offset)


def ended(y: Array, kind: str, x3: Array | None) -> Array:
    """The operation at a product's end."""
    if kind in ("add", "mul"):
        return y + x3 if kind == "add" else y * x3
    return np.maximum(y, 0) if kind == "relu" else gelu(y, kind[5:]) if kind else y


_ONES: Final[dict[str, Any]] = {"dtype": "int8", "low": -1, "high": 1}


@spec("aclnnFusedQuantMatmul aclnnFusedQuantMatmulWeightNz", "out:float16",
      ignored=reserved("yScaleOptional x1OffsetOptional x2OffsetOptional yOffsetOptional "
                       "groupSizeOptional"),
      uncovered="x3Optional",
      **FINITE_GRADIENT,
      dtypes=("float32",), source="op-plugin document npu_quant_matmul, then the operation that "
      "the operator document names", samples=[
          take(x1=t(5, 32, **_INT), x2=t(32, 16, **_INT), x1Scale=t(5, low=0.5),
               x2Scale=t(16, low=0.005, high=0.02), biasOptional=b, fusedOpType=k,
               groupSizeOptional=0)
          for b in (None, t(16, dtype="int32", low=-50, high=50))
          for k in ("relu", "gelu_erf", "gelu_tanh")] + [
          # All results are small: where the two formulas differ most.
          take(x1=t(5, 32, **_ONES), x2=t(32, 16, **_ONES),
               x1Scale=const([1.0] * 5, "float32"), x2Scale=t(16, low=0.0075, high=0.0095),
               biasOptional=const([-300] * 16, "int32"), fusedOpType=k, groupSizeOptional=0)
          for k in ("gelu_erf", "gelu_tanh")])  # fmt: skip
def fused_quant(
    x1: Array, x2: Array, x1Scale: Array, x2Scale: Array, biasOptional: Array | None,
    fusedOpType: str,
) -> Array:  # fmt: skip
    total = x1.astype(np.float64) @ x2 + (0 if biasOptional is None else biasOptional)
    return ended(total * x2Scale * x1Scale[:, None], fusedOpType, None)


def _small(*shape: int) -> Arg:
    """Whole numbers, whose products are exact."""
    return const((np.arange(np.prod(shape)) * 7 % 11 - 5).reshape(shape), "float8_e4m3fn")


@spec("aclnnTransposeQuantBatchMatMul", "out:float16",
      ignored=reserved("bias")
      | one_value("permX1 permY batchSplitFactor"),
      uncovered="dtype groupSize permX2",
      tolerance="gradient", specials=False,
      source="op-plugin document npu_transpose_quant_batchmatmul", samples=[
          take(x1=_small(5, 2, 8), x2=_small(2, 8, 16), x1Scale=t(5, low=0.1),
               x2Scale=t(16, low=0.1), dtype=1, groupSize=0, permX1=(1, 0, 2),
               permX2=(0, 1, 2), permY=(1, 0, 2), batchSplitFactor=1)])  # fmt: skip
def turned_product(x1: Array, x2: Array, x1Scale: Array, x2Scale: Array) -> Array:
    y = np.einsum("mbk,bkn->mbn", x1.astype(np.float64), x2.astype(np.float64))
    return y * x1Scale[:, None, None] * x2Scale


@spec("aclnnQuantBatchMatmulInplaceAdd", "yRef:yRef",
      uncovered="transposeX1 transposeX2 groupSize",
      tolerance="gradient",
      specials=False, source="op-plugin document npu_add_quant_matmul_", samples=[
          take(x1=_small(40, 5), x2=_small(40, 7), x1ScaleOptional=s, x2Scale=t(7, low=0.1),
               yRef=t(5, 7), transposeX1=True, transposeX2=False, groupSize=0)
          for s in (t(1, low=0.5), None)])  # fmt: skip
def added_product(
    x1: Array, x2: Array, x1ScaleOptional: Array | None, x2Scale: Array, yRef: Array
) -> Array:
    y = x1.astype(np.float64).T @ x2.astype(np.float64) * x2Scale
    return yRef + (y if x1ScaleOptional is None else y * x1ScaleOptional)


@spec("aclnnQuantMatmulReduceSumWeightNz", "out:bfloat16",
      ignored=reserved("yScale x1Offset x2Offset yOffset bias groupSize")
      | one_value("transposeX1 transposeX2 dims keepDims"),
      dtypes=("int8",),
      tolerance="gradient", source="op-plugin document npu_quant_matmul_reduce_sum", samples=[
          take(x1=i8(3, 5, 32), x2=i8(3, 32, 16), x1Scale=t(3, 5, low=0.5, high=2),
               x2Scale=t(16, dtype="bfloat16", low=0.01, high=0.05), transposeX1=False,
               transposeX2=False, groupSize=-1, dims=(0,), keepDims=False)])  # fmt: skip
def product_summed(x1: Array, x2: Array, x1Scale: Array, x2Scale: Array) -> Array:
    product = x1.astype(np.float64) @ x2.astype(np.float64)
    return (product * x2Scale * x1Scale[..., None]).sum(0)


@spec("aclnnQuantMatmulV2", "out:float16",
      uncovered="adjX1",
      dtypes=("int8",),
      tolerance="gradient", source="op-plugin document npu_quant_matmul: packed scale", samples=[
          take(x1=i8(5, 32), x2=i8(16, 32) if adj else i8(32, 16),
               bias=t(16, dtype="int32", low=-50, high=50),
               deqScale=const([0x3C23C000 + (n << 13) for n in range(16)], "uint64"),
               adjX1=False, adjX2=adj) for adj in (False, True)])  # fmt: skip
def quant_matmul_v2(x1: Array, x2: Array, bias: Array, deqScale: Array, adjX2: bool) -> Any:
    """The low 32 bits of a scale are a float32's."""
    real = deqScale.astype(np.uint32).view(np.float32).astype(np.float64)
    return quant_matmul(x1, x2, bias, False, adjX2, real)


@spec("aclnnBatchMatmulQuant", "out:int8",
      uncovered="bias transposeX1 transposeX2",
      tolerance="gradient", steps=True,
      dtypes=("float16",), source="a product, then round(y scale) of a packed float32 scale "
      "(op-plugin document npu_trans_quant_param)", samples=[
          take(x1=f16(2, 5, 32), x2=f16(2, 32, 16), quantParam=const(
              [0x41200000 | 1 << 46], "uint64"), transposeX1=False, transposeX2=False)],
      )  # fmt: skip
def product_quantised(x1: Array, x2: Array, quantParam: Array) -> Array:
    bits = (quantParam & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return (x1 @ x2) * bits.view(np.float32).astype(np.float64)


@spec("aclnnQuantMatmul", "out:float16", dtypes=("float32",), **FINITE_GRADIENT,
      source="operator document of aclnnQuantMatmul, CANN 8.1: (x1 x2 + bias) deqScale", samples=[
          take(x1=t(*lead, 5, 32, dtype="int8", low=-8, high=8),
               x2=t(*lead, 32, 16, dtype="int8", low=-8, high=8),
               bias=t(16, dtype="int32", low=-90, high=90), deqScale=0.01)
          for lead in ((), (2,))])  # fmt: skip
def scalar_quant_matmul(x1: Array, x2: Array, bias: Array, deqScale: float) -> Array:
    return (np.einsum("...ik,...kj->...ij", x1.astype(np.int64), x2) + bias) * deqScale
