"""Norms whose results are quantized."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import FLOAT_STEPS, GATED_STEPS, STEPS
from .._ignored import one_value, requested, reserved
from .._microscaling import MX_NORM, SMALL_TYPES, as_float32, microscaled
from .._quantizers import dynamic
from .rms import rms_norm


def _layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + epsilon) * gamma + beta


def added_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """(steps, steps, sum, norm, scale, scale); "dynamic" takes a row's scale from its peak."""
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y = _layer_norm(x, gamma, beta, epsilon)
    pairs: list[tuple[Array | None, Array | None]] = []
    for scale, zero, first in ((scales1Optional, zeroPoints1Optional, True),
                               (scales2Optional, zeroPoints2Optional, False)):  # fmt: skip
        if quantMode == "dynamic":
            pairs.append(dynamic(y, scale) if first or scale is not None else (None, None))
        elif scale is None:
            pairs.append((None, None))
        else:
            steps = y / scale if divMode else y * scale
            pairs.append((steps + (0 if zero is None else zero), None))
    return pairs[0][0], pairs[1][0], x, y, pairs[0][1], pairs[1][1]


def _norms() -> list[Any]:
    fine, coarse = {"low": 0.05, "high": 0.2}, {"low": 5.0, "high": 20.0}
    many: list[Any] = []
    for mode, div, one, two, zero, bias in (
        ("static", True, fine, None, False, False), ("static", False, coarse, coarse, True, True),
        ("dynamic", False, None, None, False, False),
        ("dynamic", False, {"low": 0.5}, {"low": 0.5}, False, True),
    ):  # fmt: skip

        def half(span: dict[str, float] | None) -> Arg | None:
            return None if span is None else t(32, dtype="float16", **span)

        many.append(take(
            x1=t(4, 32, dtype="float16"), x2=t(4, 32, dtype="float16", low=-1),
            gamma=t(32, dtype="float16", low=0.5), beta=t(32, dtype="float16"),
            biasOptional=t(32, dtype="float16", high=1.0) if bias else None,
            scales1Optional=half(one), scales2Optional=half(two),
            zeroPoints1Optional=t(32, dtype="float16", low=-5, high=5) if zero else None,
            zeroPoints2Optional=t(32, dtype="float16", low=-4, high=4) if zero else None,
            quantMode=mode, epsilon=1e-5, additionalOutput=True, divMode=div))  # fmt: skip
    return many


spec("aclnnAddLayerNormQuantV2",
     "y1Out:int8 y2Out:int8 xOut:x1 layernormRes:x1 outScales1Out:float32 outScales2Out:float32",
     ignored=requested("additionalOutput"),
     **STEPS, dtypes=("float16", "bfloat16"), samples=_norms,
     source="Ba, Kiros, Hinton: Layer Normalization, 2016, of a sum; steps as in op-plugin's "
     "documents npu_quantize and npu_dynamic_quant")(added_layer_norm)  # fmt: skip


@spec("aclnnAddLayerNormQuant",
      "y1Out:int8 y2Out:int8 xOut:x1 outScales1Out:float32 outScales2Out:float32",
      ignored=requested("additionalOutput"),
      **STEPS, dtypes=("float16", "bfloat16"), samples=_norms,
      source="as aclnnAddLayerNormQuantV2, without the norm among its results")  # fmt: skip
def added_layer_norm_first(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    one, two, x, _, first, second = added_layer_norm(
        x1, x2, gamma, beta, biasOptional, scales1Optional, scales2Optional, zeroPoints1Optional,
        zeroPoints2Optional, quantMode, epsilon, divMode)  # fmt: skip
    return one, two, x, first, second


@spec("aclnnQuantizedBatchNorm", "output:input", **STEPS, dtypes=("int8", "uint8"),
      source="torch 2.13, document of quantized BatchNorm; Ioffe, Szegedy 2015", samples=[
          take(input=t(2, 3, 4, 5, dtype="int8", low=-100, high=100), mean=t(3), var=t(3, low=0.5),
               inputScale=0.05, inputZeroPoint=3, outputScale=0.1, outputZeroPoint=7, weight=w,
               bias=b, epsilon=1e-5)
          for w, b in ((t(3, low=0.5), t(3)),)])  # fmt: skip
def quantised_batch_norm(
    input: Array, mean: Array, var: Array, inputScale: float, inputZeroPoint: int,
    outputScale: float, outputZeroPoint: int, weight: Array, bias: Array, epsilon: float,
) -> Array:  # fmt: skip
    def channels(v: Array) -> Array:
        return v[None, :, None, None]

    x = (input.astype(np.float64) - inputZeroPoint) * inputScale
    y = channels(weight) * (x - channels(mean)) / np.sqrt(channels(var) + epsilon) + channels(bias)
    return y / outputScale + outputZeroPoint


@spec(
    "aclnnRmsNormQuant",
    "y:int8",
    **{**GATED_STEPS, "source": "Zhang, Sennrich 2019, then round(y scale + offset)"},
    dtypes=("float16", "bfloat16"),
    samples=[
        take(
            x=f16(3, 64),
            gamma=f16(64),
            beta=f16(64),
            scale=const([8.0], "float16"),
            offset=const([3], "int8"),
            epsilon=1e-6,
        )
    ],
)
def rms_norm_quant(
    x: Array, gamma: Array, beta: Array, scale: Array, offset: Array, epsilon: float
) -> Array:
    return (rms_norm(x, gamma, epsilon)[0] + beta) * scale + offset


@spec("aclnnAddRmsNormQuant", "y1Out:int8 y2Out:int8 xOut:x1",
      ignored=one_value("axis"),
      **{**GATED_STEPS, "source":
      "Zhang, Sennrich 2019, then round(y / scale + zero point)"}, dtypes=("float16", "bfloat16"),
      samples=[take(x1=f16(3, 64), x2=f16(3, 64), gamma=f16(64), scales1=t(64, low=0.05, high=0.2),
                    zeroPoints1Optional=t(64, dtype="int32", low=-5, high=5),
                    scales2Optional=t(64, low=0.05, high=0.2), axis=-1, epsilon=1e-6,
                    zeroPoints2Optional=z, divMode=d)
               for d in (True, False)
               for z in (None, t(64, dtype="int32", low=-5, high=5))])  # fmt: skip
def add_rms_norm_quant(
    x1: Array,
    x2: Array,
    gamma: Array,
    scales1: Array,
    zeroPoints1Optional: Array | None,
    scales2Optional: Array | None,
    zeroPoints2Optional: Array | None,
    epsilon: float,
    divMode: bool,
) -> tuple[Array, Array, Array]:
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    first, second = (
        (y / s if divMode else y * s) + (0 if z is None else z)
        for s, z in ((scales1, zeroPoints1Optional), (scales2Optional, zeroPoints2Optional))
    )
    return first, second, x1 + x2


@spec("aclnnRmsNormDynamicQuant", "yOut:int8 scaleOut:float32",
      ignored=one_value("dstType"),
      **GATED_STEPS,
      dtypes=("float16", "bfloat16"), samples=[
          take(x=f16(3, n), gamma=f16(n), smoothScalesOptional=s, betaOptional=b, epsilon=1e-6,
               dstType=2)
          for n, s, b in ((64, None, None), (64, f16(64, low=0.5), None), (1032, None, None),
                          (64, f16(64, low=0.5), f16(64)))])  # fmt: skip
def rms_norm_dynamic(
    x: Array, gamma: Array, smoothScalesOptional: Array | None, betaOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = rms_norm(x, gamma, epsilon)[0]
    return dynamic(y if betaOptional is None else y + betaOptional, smoothScalesOptional)


_QUANT: Final[dict[str, Any]] = {"tolerance": "gradient", "steps": True,
                                 "dtypes": ("float16", "bfloat16")}  # fmt: skip


@spec("aclnnAddRmsNormQuantV2", "y1Out:int8 y2Out:int8 xOut:x1",
      ignored=one_value("axis"),
      uncovered="scales2Optional zeroPoints2Optional divMode rmsNormOut",
      **_QUANT, source="Zhang, "
      "Sennrich 2019, round((y + beta) / scale + zero point); op-plugin npu_add_rms_norm_quant",
      samples=[
          take(x1=f16(3, 64), x2=f16(3, 64), gamma=f16(64), scales1=f16(
               64, low=0.05, high=0.2), zeroPoints1Optional=f16(64), betaOptional=beta,
               axis=-1, epsilon=1e-6, divMode=True) for beta in (f16(64), None)])  # fmt: skip
def add_rms_norm_quant_v2(
    x1: Array, x2: Array, gamma: Array, scales1: Array, zeroPoints1Optional: Array,
    betaOptional: Array | None, epsilon: float,
) -> tuple[Array, None, Array]:  # fmt: skip
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    return y / scales1 + zeroPoints1Optional, None, x1 + x2


@spec("aclnnAddRmsNormDynamicQuantV2",
      "y1Out:int8 y2Out:int8 xOut:x1 scale1Out:float32 scale2Out:float32",
      uncovered="outputMask",
      **_QUANT,
      source="op-plugin document npu_add_rms_norm_dynamic_quant", samples=[
          take(x1=f16(3, 64), x2=f16(3, 64), gamma=f16(64), smoothScale1Optional=f16(
               64, low=0.5), smoothScale2Optional=f16(64, low=0.5), betaOptional=beta,
               epsilon=1e-6) for beta in (f16(64), None)])  # fmt: skip
def add_rms_norm_dynamic_v2(
    x1: Array, x2: Array, gamma: Array, smoothScale1Optional: Array, smoothScale2Optional: Array,
    betaOptional: Array | None, epsilon: float,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    steps, scale = zip(*(dynamic(y, s) for s in (smoothScale1Optional, smoothScale2Optional)),
                       strict=True)  # fmt: skip
    return steps[0], steps[1], x1 + x2, scale[0], scale[1]


def _normed(x: Array, gamma: Array, beta: Array | None, epsilon: float) -> tuple[Array, Array]:
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    return x * rstd * gamma + (0 if beta is None else beta), rstd


def _norm(**more: Any) -> list[Any]:
    return [take(x=t(3, n, dtype="float16"), gamma=t(n, dtype="float16", low=0.5),
                 beta=t(n, dtype="float16") if beta else None, epsilon=1e-6, scaleAlg=0,
                 roundMode="rint", dstType=to, outputRstd=True, **more)
            for n, beta in ((64, False), (96, True)) for to in SMALL_TYPES]  # fmt: skip


@spec("aclnnRmsNormDynamicMxQuant",
      "yOut:dstType mxscaleOut:float8_e8m0fnu rstdOut:float32",
      ignored=requested("outputRstd"),
      uncovered="roundMode",
      constant="scaleAlg",
      **MX_NORM, samples=_norm(),
      )  # fmt: skip
def norm(
    x: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array]:
    y, rstd = _normed(x, gamma, beta, epsilon)
    return *microscaled(as_float32(y), -1, dstType, scaleAlg), rstd


@spec("aclnnAddRmsNormDynamicMxQuant",
      "yOut:dstType xOut:x1 mxscaleOut:float8_e8m0fnu rstdOut:float32",
      ignored=requested("outputRstd"),
      uncovered="roundMode",
      **MX_NORM,
      samples=[take(x1=s.kwargs["x"], x2=t(*s.kwargs["x"].shape, dtype="float16", low=-1),
                    **{k: v for k, v in s.kwargs.items() if k != "x"}) for s in _norm()],
      )  # fmt: skip
def add_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    y, rstd = _normed(x1 + x2, gamma, beta, epsilon)
    small, scale = microscaled(as_float32(y), -1, dstType, scaleAlg)
    return small, x1 + x2, scale, rstd


_NORM: Final[dict[str, Any]] = {
    "tolerance": "gradient", "steps": True, "dtypes": ("float16", "bfloat16"),
    "source": "Zhang, Sennrich 2019 and Ba et al. 2016, with op-plugin's npu_dynamic_quant",
}  # fmt: skip


@spec("aclnnAddRmsNormDynamicQuant", "y1Out:int8 y2Out:int8 xOut:x1 scale1Out:float32 "
      "scale2Out:float32", **_NORM, samples=[
          take(x1=f16(3, 64), x2=f16(3, 64), gamma=f16(64), smoothScale1Optional=f16(64, low=0.5),
               smoothScale2Optional=f16(64, low=0.5), epsilon=1e-6)])  # fmt: skip
def add_rms_dynamic(
    x1: Array,
    x2: Array,
    gamma: Array,
    smoothScale1Optional: Array | None,
    smoothScale2Optional: Array | None,
    epsilon: float,
) -> tuple[Array, Array, Array, Array, Array]:
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    (a, s), (b, r) = dynamic(y, smoothScale1Optional), dynamic(y, smoothScale2Optional)
    return a, b, x1 + x2, s, r


@spec("aclnnRmsNormGradQuant", "dxOut:int8 dgammaOut:float32",
      ignored=one_value("quantMode"),
      tolerance="gradient",
      steps=True, specials=False, dtypes=("float32", "float16", "bfloat16"),
      casts={n: {"float16": "float32", "bfloat16": "float32"}
             for n in ("rstd", "scalesX")},
      source="Zhang, Sennrich: Root Mean Square Layer Normalization, 2019; op-plugin document "
      "npu_rms_norm_quant for the step", samples=[
          take(dy=t(3, 16), x=t(3, 16), rstd=t(3, 1, low=0.5, high=1), gamma=t(16), scalesX=t(
              1, low=0.05, high=0.2), offsetXOptional=o, quantMode="static", divMode=d)
          for o, d in ((None, True), (const([3], "int32"), False))])  # fmt: skip
def rms_grad_steps(
    dy: Array, x: Array, rstd: Array, gamma: Array, scalesX: Array, offsetXOptional: Array | None,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    hat = x * rstd
    g = dy * gamma
    dx = rstd * (g - hat * (g * hat).mean(-1, keepdims=True))
    y = dx / scalesX if divMode else dx * scalesX
    return y + (0 if offsetXOptional is None else offsetXOptional), (dy * hat).sum(0)


def layer_norm(
    x: Array,
    axes: tuple[int, ...],
    gamma: Array | float | None,
    beta: Array | float | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    y = (x - mean) * rstd
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta), mean, rstd


@spec("aclnnAdaLayerNormQuant", "out:int8 quantScale:float32",
      ignored=reserved("quantOffsetOptional")
      | one_value("quantMode"),
      tolerance="gradient",
      steps=True, dtypes=("float16", "bfloat16"), source="Peebles, Xie: Scalable Diffusion Models "
      "with Transformers, 2023, then a scale for each row", samples=[
          take(x=t(2, 5, 64, dtype="float16"), scale=t(2, 1, 64, dtype="float16"),
               shift=t(2, 1, 64, dtype="float16"), smoothScalesOptional=s, epsilon=1e-5,
               quantMode="dynamic", weightOptional=w, biasOptional=w)
          for s, w in ((None, None), (t(64, dtype="float16", low=0.5), None),
                       (None, t(64, dtype="float16")))])  # fmt: skip
def ada_layer_norm_quant(
    x: Array, scale: Array, shift: Array, smoothScalesOptional: Array | None,
    weightOptional: Array | None, biasOptional: Array | None, epsilon: float,
) -> Any:  # fmt: skip
    y = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)[0]
    return dynamic(y * (1 + scale) + shift, smoothScalesOptional)


@spec("aclnnRmsNormQuantV3", "y:int8 rstd:float32",
      ignored=requested("outputRstd"),
      **FLOAT_STEPS,
      source="Zhang, Sennrich: Root Mean Square Layer Normalization, 2019; op-plugin test "
      "npu_rms_norm_quant_v2", samples=[
          take(x=t(4, 32), gamma=t(32), beta=b, scale=t(1, low=0.05, high=0.2) if div else
               t(1, low=5, high=20), offset=o, epsilon=1e-6, divMode=div, outputRstd=True)
          for b, o, div in ((None, None, True), (t(32), t(1, low=-5, high=5), True),
                            (t(32), None, False))])  # fmt: skip
def norm_steps(
    x: Array, gamma: Array, beta: Array | None, scale: Array, offset: Array | None, epsilon: float,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    rstd = (np.square(x).mean(-1, keepdims=True) + epsilon) ** -0.5
    y = x * rstd * gamma + (0 if beta is None else beta)
    return (y / scale if divMode else y * scale) + (0 if offset is None else offset), rstd
