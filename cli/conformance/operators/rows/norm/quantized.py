"""Norms whose results are quantized."""

from __future__ import annotations

from .....spec import *
from .._microscaling import OCP, SMALL_TYPES, as_float32, microscaled
from .._quantizers import dynamic
from .._words import *
from .rms import rms_norm

_PAPER: Final = "Zhang, Sennrich: Root Mean Square Layer Normalization, 2019"
_EPSILON: Final = number(1e-6, 1e-12, 0.25)
_ONE_AXIS: Final = only(-1, "documents allow the last axis alone")
_STATIC: Final = only("static", "documents allow one value")
_RSTD: Final = only(True, "without it rstd is passed and left as it is")


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


def _stepped(y: Array, scale: Array, zero: Array | None, divide: bool = True) -> Array:
    """Real steps: y over, or times, the scale, and the zero point."""
    return (y / scale if divide else y * scale) + (0 if zero is None else zero)


def _scale(shape: str, dtype: str) -> Domain:
    """Scales that bring a norm to some tens of steps."""
    small, large = tensor(shape, dtype, 0.05, 0.2), tensor(shape, dtype, 5, 20)
    return by("divMode", {True: small, False: large})


def added_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, additionalOutput: bool, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """(steps, steps, sum, norm, scale, scale); "dynamic" takes a row's scale from its peak."""
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y = layer_norm(x, (-1,), gamma, beta, epsilon)[0]
    pairs: list[tuple[Array | None, Array | None]] = []
    for scale, zero, first in ((scales1Optional, zeroPoints1Optional, True),
                               (scales2Optional, zeroPoints2Optional, False)):  # fmt: skip
        if quantMode == "dynamic":
            pairs.append(dynamic(y, scale) if first or scale is not None else (None, None))
        else:
            steps = None if scale is None else _stepped(y, scale, zero, divMode)
            pairs.append((steps, None))
    total = x if additionalOutput else None
    return pairs[0][0], pairs[1][0], total, y, pairs[0][1], pairs[1][1]


def added_layer_norm_first(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, additionalOutput: bool, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """Without the norm among its results."""
    one, two, x, _, first, second = added_layer_norm(
        x1, x2, gamma, beta, biasOptional, scales1Optional, scales2Optional, zeroPoints1Optional,
        zeroPoints2Optional, quantMode, epsilon, additionalOutput, divMode)  # fmt: skip
    return one, two, x, first, second


_SMOOTH: Final = optional(tensor("N", "x1", 0.5, 2))
_ZERO: Final = optional(tensor("N", "x1", -5, 5))
_ADDED: Final[dict[str, Domain]] = {
    "x1": tensor("*B N", "f32 f16 bf16"), "x2": tensor("*B N", "x1", -1, 2),
    "gamma": tensor("N", "x1", 0.5, 2), "beta": tensor("N", "x1"),
    "biasOptional": optional(forms(row=tensor("N", "x1", -2, 1), every=tensor("*B N", "x1"))),
    "scales1Optional": by("quantMode", {"static": _scale("N", "x1"), "dynamic": _SMOOTH}),
    "scales2Optional": by("quantMode", {
        "static": optional(_scale("N", "x1")),
        "dynamic": optional(tensor("N", "x1", 0.5, 2), only="given(scales1Optional)")}),
    "zeroPoints1Optional": by("quantMode", {"static": _ZERO, "dynamic": None}),
    "zeroPoints2Optional": by("quantMode", {
        "static": optional(tensor("N", "x1", -4, 4), only="given(scales2Optional)"),
        "dynamic": None}),
    "quantMode": choice("static", "dynamic"), "epsilon": number(1e-5, 1e-12, 0.25),
    "additionalOutput": flag(True), "divMode": flag(True),
    "y1Out": out("i8"), "y2Out": out("i8"), "xOut": out("x1"),
}  # fmt: skip
_SCALES: Final[dict[str, Domain]] = {"outScales1Out": out("f32"), "outScales2Out": out("f32")}
_LAYER: Final = Rule("gradient", "Ba, Kiros, Hinton: Layer Normalization, 2016, of a sum; steps as "
                     "in op-plugin's documents npu_quantize and npu_dynamic_quant", steps=True,
                     specials=False, cost="10*size(x1)")  # fmt: skip
spec("aclnnAddLayerNormQuantV2", _LAYER, **_ADDED, layernormRes=out("x1"), **_SCALES)(
    added_layer_norm)  # fmt: skip
spec("aclnnAddLayerNormQuant", _LAYER, **_ADDED, **_SCALES)(added_layer_norm_first)


@spec("aclnnQuantizedBatchNorm", Rule("gradient", "torch 2.13, document of quantized BatchNorm; "
      "Ioffe, Szegedy 2015", steps=True, specials=False), sizes(H=space, W=space),
      input=tensor("B C H W", "i8 u8", -100, 100), mean=tensor("C", "f32"),
      var=tensor("C", "f32", 0.5, 2), inputScale=scalar("f32", 0.05, 1, 0.3),
      inputZeroPoint=scalar("i32", 3, 0, 100), outputScale=scalar("f32", 0.1, 1, 0.02),
      outputZeroPoint=scalar("i32", 7, 0, 100), weight=optional(tensor("C", "f32")),
      bias=optional(tensor("C", "f32")), epsilon=_EPSILON, output=out("input"))  # fmt: skip
def quantised_batch_norm(
    input: Array, mean: Array, var: Array, inputScale: float, inputZeroPoint: int,
    outputScale: float, outputZeroPoint: int, weight: Array | None, bias: Array | None,
    epsilon: float,
) -> Array:  # fmt: skip
    def channels(v: Array | None, otherwise: float) -> Array:
        return np.full((1, 1, 1, 1), otherwise) if v is None else v[None, :, None, None]

    x = (input.astype(np.float64) - inputZeroPoint) * inputScale
    hat = (x - channels(mean, 0)) / np.sqrt(channels(var, 1) + epsilon)
    return (channels(weight, 1) * hat + channels(bias, 0)) / outputScale + outputZeroPoint


_STEPS: Final = Rule("gradient", f"{_PAPER}, then round(y / scale + zero point); op-plugin "
                     "document npu_add_rms_norm_quant", steps=True)  # fmt: skip
_N: Final = sizes(N=column(64, 1, 33, 257, 1032, 5120))


@spec("aclnnRmsNormQuant", _STEPS, _N, x=tensor("*B N"), gamma=tensor("N", "x"),
      beta=tensor("N", "x"), scale=tensor("1", "x", 4, 16), offset=tensor("1", "i8", -5, 5),
      epsilon=_EPSILON, y=out("i8"))  # fmt: skip
def rms_norm_quant(
    x: Array, gamma: Array, beta: Array, scale: Array, offset: Array, epsilon: float
) -> Array:
    return (rms_norm(x, gamma, epsilon)[0] + beta) * scale + offset


# Of float16 the scales may be wider; a second scale asks for second steps.
_TYPES: Final = dtypes("""
    x1   scales1 scales2Optional zeroPoints1Optional zeroPoints2Optional
    f16  f32     f32             i32                 i32
    f16  f16     f16             f16                 f16
    bf16 f32     f32             i32                 i32
    bf16 bf16    bf16            bf16                bf16""")
_TERMS: Final[dict[str, Domain]] = {
    "x1": tensor("*B N"), "x2": tensor("*B N", "x1", -1, 2), "gamma": tensor("N", "x1"),
}  # fmt: skip
_QUANT: Final[dict[str, Domain]] = {
    **_TERMS, "scales1": _scale("N", "x1"), "scales2Optional": optional(_scale("N", "x1")),
    "zeroPoints1Optional": optional(tensor("N", "x1", -5, 5)),
    "zeroPoints2Optional": optional(tensor("N", "x1", -4, 4), only="given(scales2Optional)"),
}  # fmt: skip
_QUANTIZED: Final[dict[str, Domain]] = {
    "axis": _ONE_AXIS, "epsilon": _EPSILON, "divMode": flag(True), "y1Out": out("i8"),
    "y2Out": out("i8"), "xOut": out("x1"),
}  # fmt: skip


@spec("aclnnAddRmsNormQuant", _STEPS, _N, _TYPES, **_QUANT, **_QUANTIZED)
def add_rms_norm_quant(
    x1: Array, x2: Array, gamma: Array, scales1: Array, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, epsilon: float,
    divMode: bool, betaOptional: Array | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    second = None if scales2Optional is None else _stepped(
        y, scales2Optional, zeroPoints2Optional, divMode)  # fmt: skip
    return _stepped(y, scales1, zeroPoints1Optional, divMode), second, x1 + x2


@spec("aclnnAddRmsNormQuantV2", _STEPS, _N, _TYPES, **_QUANT,
      betaOptional=optional(tensor("N", "x1")), **_QUANTIZED, rmsNormOut=out("x1"))  # fmt: skip
def add_rms_norm_quant_v2(
    x1: Array, x2: Array, gamma: Array, scales1: Array, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None,
    betaOptional: Array | None, epsilon: float, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The norm itself is not asked for: documents do not say whether it has the bias."""
    scales = scales1, scales2Optional, zeroPoints1Optional, zeroPoints2Optional
    return *add_rms_norm_quant(x1, x2, gamma, *scales, epsilon, divMode, betaOptional), None


_DYNAMIC: Final = Rule("gradient", f"{_PAPER}; op-plugin document npu_add_rms_norm_dynamic_quant",
                       steps=True)  # fmt: skip


@spec("aclnnRmsNormDynamicQuant", _DYNAMIC, _N, x=tensor("*B N"), gamma=tensor("N", "x"),
      smoothScalesOptional=optional(tensor("N", "x", 0.5, 2)),
      betaOptional=optional(tensor("N", "x")), epsilon=_EPSILON,
      dstType=only(2, "documents allow int8 alone"), yOut=out("i8"),
      scaleOut=out("f32"))  # fmt: skip
def rms_norm_dynamic(
    x: Array, gamma: Array, smoothScalesOptional: Array | None, betaOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = rms_norm(x, gamma, epsilon)[0]
    return dynamic(y if betaOptional is None else y + betaOptional, smoothScalesOptional)


_SMOOTHED: Final[dict[str, Domain]] = {
    **_TERMS, "smoothScale1Optional": _SMOOTH,
    "smoothScale2Optional": optional(tensor("N", "x1", 0.25, 1),
                                     only="given(smoothScale1Optional)"),
}  # fmt: skip
_TWO: Final[dict[str, Domain]] = {
    "y1Out": out("i8"), "y2Out": out("i8"), "xOut": out("x1"), "scale1Out": out("f32"),
    "scale2Out": out("f32"),
}  # fmt: skip


@spec("aclnnAddRmsNormDynamicQuant", _DYNAMIC, _N, **_SMOOTHED, epsilon=_EPSILON, **_TWO)
def add_rms_dynamic(
    x1: Array, x2: Array, gamma: Array, smoothScale1Optional: Array | None,
    smoothScale2Optional: Array | None, epsilon: float, betaOptional: Array | None = None,
    outputMask: Sequence[bool] | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    """Second steps where there is a second scale, or where the mask asks for them."""
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    first, scale = dynamic(y, smoothScale1Optional)
    if outputMask[1] if outputMask else smoothScale2Optional is not None:
        second, scale2 = dynamic(y, smoothScale2Optional)
        return first, second, x1 + x2, scale, scale2
    return first, None, x1 + x2, scale, None


spec("aclnnAddRmsNormDynamicQuantV2", _DYNAMIC, _N, **_SMOOTHED,
     betaOptional=optional(tensor("N", "x1")), epsilon=_EPSILON,
     outputMask=optional(array((True, True), (True, False))), **_TWO)(
    add_rms_dynamic)  # fmt: skip


def _normed(x: Array, gamma: Array, beta: Array | None, epsilon: float) -> tuple[Array, Array]:
    y, rstd = rms_norm(x, gamma, epsilon)
    return y + (0 if beta is None else beta), rstd


_MX: Final = Rule("composite", f"{_PAPER}; {OCP}", steps=True, specials=False, values="normal")
_BLOCKS: Final = sizes(N=column(64, 1, 33, 65, 96, 130, 1032))
_SMALL: Final[dict[str, Domain]] = {
    "gamma": forms(same=tensor("N", "x", 0.5, 2), wide=tensor("N", "f32", 0.5, 2)),
    "beta": optional(tensor("N", "gamma", -1, 2)), "epsilon": _EPSILON, "scaleAlg": choice(0, 1),
    "roundMode": only("rint", "the other modes have no document with a formula"),
    "dstType": choice(*SMALL_TYPES), "outputRstd": _RSTD, "yOut": out("dstType"),
}  # fmt: skip
_POWERS: Final[dict[str, Domain]] = {"mxscaleOut": out("e8m0"), "rstdOut": out("f32")}


@spec("aclnnRmsNormDynamicMxQuant", _MX, _BLOCKS, x=tensor("*B N", "f16 bf16"), **_SMALL,
      **_POWERS)  # fmt: skip
def norm(
    x: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array]:
    y, rstd = _normed(x, gamma, beta, epsilon)
    return *microscaled(as_float32(y), -1, dstType, scaleAlg), rstd


@spec("aclnnAddRmsNormDynamicMxQuant", _MX, _BLOCKS, x1=tensor("*B N", "f16 bf16"),
      x2=tensor("*B N", "x1", -1, 2), **_SMALL | {"gamma": forms(
          same=tensor("N", "x1", 0.5, 2), wide=tensor("N", "f32", 0.5, 2))},
      xOut=out("x1"), **_POWERS)  # fmt: skip
def add_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    y, rstd = _normed(x1 + x2, gamma, beta, epsilon)
    small, scale = microscaled(as_float32(y), -1, dstType, scaleAlg)
    return small, x1 + x2, scale, rstd


@spec("aclnnRmsNormGradQuant", Rule("gradient", f"{_PAPER}; op-plugin document "
      "npu_rms_norm_quant for the step", steps=True, specials=False), _N, dy=tensor("*B N"),
      x=tensor("*B N", "dy"), rstd=tensor("*B", "f32", 0.5, 1), gamma=tensor("N", "dy"),
      scalesX=_scale("1", "f32"), offsetXOptional=optional(tensor("1", "i32", -5, 5)),
      quantMode=_STATIC, divMode=flag(True), dxOut=out("i8"), dgammaOut=out("f32"))  # fmt: skip
def rms_grad_steps(
    dy: Array, x: Array, rstd: Array, gamma: Array, scalesX: Array, offsetXOptional: Array | None,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    rstd = rstd[..., None]
    hat, flow = x * rstd, dy * gamma
    dx = rstd * (flow - hat * (flow * hat).mean(-1, keepdims=True))
    dgamma = (dy * hat).sum(tuple(range(x.ndim - 1)))
    return _stepped(dx, scalesX, offsetXOptional, divMode), dgamma


@spec("aclnnAdaLayerNormQuant", Rule("gradient", "Peebles, Xie: Scalable Diffusion Models with "
      "Transformers, 2023, then a scale for each row", steps=True), x=tensor("*B S N"),
      scale=forms(one=tensor("*B 1 N", "x"), row=tensor("*B N", "x")),
      shift=forms(one=tensor("*B 1 N", "x"), row=tensor("*B N", "x")),
      weightOptional=optional(tensor("N", "x")), biasOptional=optional(tensor("N", "x")),
      smoothScalesOptional=optional(tensor("N", "x", 0.5, 2)), epsilon=number(1e-5, 0.25),
      quantMode=only("dynamic", "documents allow one value"), out=out("i8"),
      quantScale=out("f32"), quantOffsetOptional=out("x"))  # fmt: skip
def ada_layer_norm_quant(
    x: Array, scale: Array, shift: Array, smoothScalesOptional: Array | None,
    weightOptional: Array | None, biasOptional: Array | None, epsilon: float,
) -> Any:  # fmt: skip
    """The offset is reserved: documents ask for null."""
    y = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)[0]
    scale, shift = (v.reshape(*x.shape[:-2], 1, x.shape[-1]) for v in (scale, shift))
    return *dynamic(y * (1 + scale) + shift, smoothScalesOptional), None


@spec("aclnnRmsNormQuantV3", Rule("gradient", f"{_PAPER}; op-plugin test npu_rms_norm_quant_v2",
      steps=True, specials=False), _N, x=tensor("*B N"), gamma=tensor("N", "x"),
      scale=_scale("1", "x"), offset=optional(tensor("1", "x", -5, 5)),
      beta=optional(tensor("N", "x")), epsilon=_EPSILON, divMode=flag(True), outputRstd=_RSTD,
      y=out("i8"), rstd=out("f32"))  # fmt: skip
def norm_steps(
    x: Array, gamma: Array, beta: Array | None, scale: Array, offset: Array | None, epsilon: float,
    divMode: bool,
) -> tuple[Array, Array]:  # fmt: skip
    y, rstd = _normed(x, gamma, beta, epsilon)
    return _stepped(y, scale, offset, divMode), rstd
