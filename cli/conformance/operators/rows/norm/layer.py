"""Layer norms, their modulated and deep forms, and gradients."""

from __future__ import annotations

from itertools import product

from .....spec import *
from ...formulas import gradient
from .._ignored import SPEED
from .._words import *
from .quantized import layer_norm
from .rms import LEADING, NORMED

_DIT: Final = "Peebles, Xie: Scalable Diffusion Models with Transformers, 2023"
_BA: Final = "Ba, Kiros, Hinton: Layer Normalization, 2016"
# A mean far from zero is where one pass over the data loses digits.
VALUES: Final = "normal integer opposed positive offset nan"
_LAYER: Final = Rule("composite", f"{_BA}; torch's document", values=VALUES, cost="8*size(input)")
_EPSILON: Final = number(1e-5, 1e-12, 0.25)
# All that a mask may ask for, but nothing at all.
MASKS: Final = array(*list(product((True, False), repeat=3))[:-1])


def modulate(self: Array, scaleOptional: Array | None, shiftOptional: Array | None) -> Array:
    """Peebles, Xie 2023: x (1 + scale) + shift, each one row of a batch."""
    scale = 0 if scaleOptional is None else _row(scaleOptional, self)
    return self * (1 + scale) + (0 if shiftOptional is None else _row(shiftOptional, self))


def _row(condition: Array, x: Array) -> Array:
    """One row for all that share the leading dims."""
    return condition.reshape(*x.shape[:-2], 1, x.shape[-1])


def _condition(dtype: str) -> Domain:
    return forms(row=tensor("*B N", dtype), one=tensor("*B 1 N", dtype))


spec("aclnnModulate", Rule("composite", _DIT), self=tensor("B S N"),
     scaleOptional=optional(forms(row=tensor("B N", "self"), one=tensor("B 1 N", "self"))),
     shiftOptional=optional(forms(row=tensor("B N", "self"), one=tensor("B 1 N", "self"))),
     out=out("self"))(modulate)  # fmt: skip
spec("aclnnModulateBackward", Rule("gradient", _DIT, sparse=True), grad_output=tensor("B S N"),
     input=tensor("B S N", "grad_output"), scale=optional(tensor("B N", "grad_output")),
     shift=optional(tensor("B N", "grad_output")), grad_input=out("input"),
     grad_scale=out("input"), grad_shift=out("input"))(
    gradient(lambda input, scale, shift: modulate(input, scale, shift), grad="grad_output",
             of="input scale shift"))  # fmt: skip

_ADA: Final[dict[str, Domain]] = {
    "x": tensor("*B S N"), "scale": _condition("x"), "shift": _condition("x"),
    "weightOptional": optional(tensor("N", "x")), "biasOptional": optional(tensor("N", "x")),
    "epsilon": _EPSILON, "out": out("x"),
}  # fmt: skip
_CONDITIONED: Final = Rule("gradient", _DIT, values=VALUES, cost="10*size(x)")


@spec("aclnnAdaLayerNorm", _CONDITIONED, **_ADA)
def ada_layer_norm(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> Array:
    y = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)[0]
    return y * (1 + _row(scale, x)) + _row(shift, x)


@spec("aclnnAdaLayerNormV2", _CONDITIONED, **_ADA | {"x": tensor("*B S N", "f32")},
      meanOutOptional=out("f32"), rstdOutOptional=out("f32"))  # fmt: skip
def ada_layer_norm_v2(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array, Array]:
    y, mean, rstd = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)
    return y * (1 + _row(scale, x)) + _row(shift, x), mean, rstd


def _layer_flow(
    x: Array, rstd: Array, mean: Array, gamma: Array | float, dy: Array, dims: int = 1
) -> tuple[Array, Array, Array]:
    """(dx, dgamma, dbeta) of layer norm over the last dims."""
    axes, lead = tuple(range(-dims, 0)), tuple(range(x.ndim - dims))
    per_row = (*x.shape[:-dims], *(1,) * dims)
    mean, rstd = mean.reshape(per_row), rstd.reshape(per_row)
    hat = (x - mean) * rstd
    flow = dy * gamma
    along = (flow * hat).mean(axes, keepdims=True)
    dx = rstd * (flow - flow.mean(axes, keepdims=True) - hat * along)
    return dx, (dy * hat).sum(lead), dy.sum(lead)


_MOMENTS: Final[dict[str, Domain]] = {
    "rstd": tensor("*B 1", "f32", 0.5, 1.5), "mean": tensor("*B 1", "f32", -0.5, 0.5),
}  # fmt: skip


@spec("aclnnAddLayerNormGrad", Rule("gradient", f"derivative of {_BA}", cost="9*size(x1)"),
      LEADING, both("rank(gamma) > 1"), dy=tensor("*B *N"), x1=tensor("*B *N", "dy"),
      x2=tensor("*B *N", "dy", -1, 2), **_MOMENTS, gamma=tensor("*N", "dy"),
      dsumOptional=optional(tensor("*B *N", "dy")), dxOut=out("x1"), dgammaOut=out("f32"),
      dbetaOut=out("f32"))  # fmt: skip
def add_layer_norm_grad(
    dy: Array,
    x1: Array,
    x2: Array,
    rstd: Array,
    mean: Array,
    gamma: Array,
    dsumOptional: Array | None,
) -> tuple[Array, Array, Array]:
    dx, dgamma, dbeta = _layer_flow(x1 + x2, rstd, mean, gamma, dy, gamma.ndim)
    return dx + (0 if dsumOptional is None else dsumOptional), dgamma, dbeta


@spec("aclnnDeepNormGrad", Rule("gradient", "derivative of Wang et al.: DeepNet, 2022"),
      LEADING, both("rank(gamma) > 1"), dy=tensor("*B *N"), x=tensor("*B *N", "dy"),
      gx=tensor("*B *N", "dy", -1, 2), gamma=tensor("*N", "dy"), mean=_MOMENTS["mean"],
      rstd=_MOMENTS["rstd"], alpha=number(0.5, 0.0, -1.25, 3.0), dxOut=out("x"),
      dgxOut=out("x"), dbetaOut=out("f32"), dgammaOut=out("f32"))  # fmt: skip
def deep_norm_grad(
    dy: Array, x: Array, gx: Array, gamma: Array, mean: Array, rstd: Array, alpha: float
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx, dgamma, dbeta = _layer_flow(alpha * x + gx, rstd, mean, gamma, dy, gamma.ndim)
    return alpha * dx, dx, dbeta, dgamma


@spec("aclnnLayerNormWithImplMode aclnnFastLayerNorm", _LAYER, NORMED,
      both("len(normalizedShape) > 1"), input=tensor("*B *N"), normalizedShape=dims("*N"),
      weightOptional=optional(tensor("*N", "input")),
      biasOptional=optional(tensor("*N", "input")), eps=_EPSILON, out=out("input"),
      meanOutOptional=out("f32"), rstdOutOptional=out("f32"),
      implMode=ignored(SPEED, choice(0, 1)))  # fmt: skip
def _layer_norm(
    input: Array,
    normalizedShape: Sequence[int],
    weightOptional: Array | None,
    biasOptional: Array | None,
    eps: float,
) -> tuple[Array, ...]:
    axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
    return layer_norm(input, axes, weightOptional, biasOptional, eps)


@spec("aclnnLayerNormBackward", Rule("gradient", f"derivative of {_BA}", cost="9*size(input)"),
      LEADING, both("len(normalizedShape) > 1"), gradOut=tensor("*B *N"),
      input=tensor("*B *N", "gradOut"), normalizedShape=dims("*N"),
      mean=tensor("*B 1", "gradOut", -0.5, 0.5), rstd=tensor("*B 1", "gradOut", 0.5, 1.5),
      weightOptional=optional(tensor("*N", "gradOut")),
      biasOptional=optional(tensor("*N", "gradOut")), outputMask=MASKS,
      gradInputOut=out("input"), gradWeightOut=out("input"),
      gradBiasOut=out("input"))  # fmt: skip
def _layer_back(
    gradOut: Array,
    input: Array,
    normalizedShape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    outputMask: Sequence[bool],
) -> tuple[Array | None, ...]:
    weight = 1.0 if weightOptional is None else weightOptional
    parts = _layer_flow(input, rstd, mean, weight, gradOut, len(normalizedShape))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


@spec("aclnnAddLayerNorm", Rule("composite", f"{_BA}, of x1 + x2 + bias", values=VALUES,
      cost="10*size(x1)"), x1=tensor("*B N"), x2=tensor("*B N", "x1"),
      gamma=tensor("N", "x1"), beta=tensor("N", "x1"),
      biasOptional=optional(forms(row=tensor("N", "x1"), every=tensor("*B N", "x1"))),
      epsilon=_EPSILON, additionalOutput=flag(True), yOut=out("x1"), meanOut=out("f32"),
      rstdOut=out("f32"), xOut=out("x1"))  # fmt: skip
def add_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None, epsilon: float,
    additionalOutput: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y, mean, rstd = layer_norm(x, (-1,), gamma, beta, epsilon)
    return y, mean, rstd, x if additionalOutput else None


@spec("aclnnDeepNorm", Rule("composite", "Wang et al.: DeepNet, 2022: layer norm of alpha x + "
      "gx", values=VALUES, cost="10*size(x)"), LEADING, both("rank(gamma) > 1"),
      x=tensor("*B *N"), gx=tensor("*B *N", "x", -1, 2), beta=tensor("*N", "x"),
      gamma=tensor("*N", "x"), alpha=number(0.3, 0.0, -1.25, 2.0), epsilon=_EPSILON,
      meanOut=out("f32"), rstdOut=out("f32"), yOut=out("x"))  # fmt: skip
def deep_norm(
    x: Array, gx: Array, beta: Array, gamma: Array, alpha: float, epsilon: float
) -> tuple[Array, Array, Array]:  # fmt: skip
    axes = tuple(range(-gamma.ndim, 0))
    y, mean, rstd = layer_norm(alpha * x + gx, axes, gamma, beta, epsilon)
    return mean, rstd, y


@spec("aclnnAdaLayerNormBackward", Rule("gradient", f"{_DIT}, differentiated", specials=False),
      gradOut=tensor("*B S N", "f32"), input=tensor("*B S N", "gradOut"),
      normalizedShape=dims("N"), rstd=tensor("*B S 1", "gradOut", 0.5, 1.5),
      mean=tensor("*B S 1", "gradOut", -0.5, 0.5), scale=_condition("gradOut"),
      shift=ignored("its gradient is the sum of what flows in", _condition("gradOut")),
      weightOptional=optional(tensor("N", "gradOut")),
      biasOptional=optional(tensor("N", "gradOut")), gradInputOut=out("gradOut"),
      gradScaleOut=out("scale"), gradShiftOut=out("scale"), gradWeightOut=out("gradOut"),
      gradBiasOut=out("gradOut"))  # fmt: skip
def ada_layer_norm_backward(
    gradOut: Array, input: Array, rstd: Array, mean: Array, scale: Array,
    weightOptional: Array | None, biasOptional: Array | None,
) -> tuple[Array | None, ...]:  # fmt: skip
    weight = 1.0 if weightOptional is None else weightOptional
    bias = 0.0 if biasOptional is None else biasOptional
    flow = gradOut * (1 + _row(scale, input))
    dx, dweight, dbias = _layer_flow(input, rstd, mean, weight, flow)
    by_scale = (gradOut * ((input - mean) * rstd * weight + bias)).sum(-2)
    return (dx, by_scale.reshape(scale.shape), gradOut.sum(-2).reshape(scale.shape),
            dweight if weightOptional is not None else None,
            dbias if biasOptional is not None else None)  # fmt: skip
