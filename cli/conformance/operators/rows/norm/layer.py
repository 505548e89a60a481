"""Layer norms, their modulated and deep forms, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...formulas import gradient
from ...spec import const, f16, spec, t, take
from .._defaults import COMPOSITE, FINITE_GRADIENT, FLOATS, SPARSE_GRADIENT
from .._ignored import follows
from .quantized import layer_norm
from .rms import GRAD, ROW


def modulate(self: Array, scaleOptional: Array | None, shiftOptional: Array | None) -> Array:
    """Peebles, Xie 2023: x (1 + scale) + shift, each one row of a batch."""
    scale = 0 if scaleOptional is None else scaleOptional[:, None]
    return self * (1 + scale) + (0 if shiftOptional is None else shiftOptional[:, None])


_DIT: Final = "Peebles, Xie: Scalable Diffusion Models with Transformers, 2023"
spec("aclnnModulate", "out:self", **{**COMPOSITE, "source": _DIT}, samples=[
    take(self=t(2, 5, 64), scaleOptional=s, shiftOptional=b)
    for s, b in ((t(2, 64), t(2, 64)), (None, t(2, 64)), (t(2, 64), None))])(modulate)  # fmt: skip
spec("aclnnModulateBackward", "grad_input:input grad_scale:scale grad_shift:shift",
     **{**SPARSE_GRADIENT, "source": _DIT}, samples=[
         take(grad_output=t(2, 5, 64), input=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64))])(
    gradient(lambda input, scale, shift: modulate(input, scale, shift), grad="grad_output",
             of="input scale shift"))  # fmt: skip


@spec("aclnnAdaLayerNorm", "out:x", tolerance="gradient", dtypes=FLOATS,
      source=_DIT, samples=[
          take(x=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64), weightOptional=w, biasOptional=b,
               epsilon=1e-5) for w, b in ((None, None), (t(64), t(64)))])  # fmt: skip
def ada_layer_norm(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> Array:
    y = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)[0]
    return y * (1 + scale[:, None]) + shift[:, None]


@spec("aclnnAdaLayerNormV2", "out:x meanOutOptional:float32 rstdOutOptional:float32",
      tolerance="gradient", dtypes=("float32",), source=_DIT, samples=[
          take(x=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64), weightOptional=t(64),
               biasOptional=t(64), epsilon=1e-5)])  # fmt: skip
def ada_layer_norm_v2(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array, Array]:
    y, mean, rstd = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)
    return y * (1 + scale[:, None]) + shift[:, None], mean, rstd


def _layer_flow(
    x: Array, rstd: Array, mean: Array, gamma: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """(dx, dgamma, dbeta) of layer norm over the last dimension."""
    hat = (x - mean) * rstd
    flow = dy * gamma
    dx = rstd * (flow - flow.mean(-1, keepdims=True) - hat * (flow * hat).mean(-1, keepdims=True))
    lead = tuple(range(x.ndim - 1))
    return dx, (dy * hat).sum(lead), dy.sum(lead)


@spec("aclnnAddLayerNormGrad", "dxOut:x1 dgammaOut:float32 dbetaOut:float32",
      tolerance="gradient", dtypes=FLOATS, source="derivative of Ba et al.: Layer Normalization",
      samples=[take(dy=f16(3, 64), x1=f16(3, 64), x2=f16(3, 64), rstd=t(3, 1, low=0.5, high=1.5),
                    mean=t(3, 1, low=-0.5, high=0.5), gamma=f16(64), dsumOptional=d)
               for d in (None, f16(3, 64))])  # fmt: skip
def add_layer_norm_grad(
    dy: Array,
    x1: Array,
    x2: Array,
    rstd: Array,
    mean: Array,
    gamma: Array,
    dsumOptional: Array | None,
) -> tuple[Array, Array, Array]:
    dx, dgamma, dbeta = _layer_flow(x1 + x2, rstd, mean, gamma, dy)
    return dx + (0 if dsumOptional is None else dsumOptional), dgamma, dbeta


@spec("aclnnDeepNormGrad", "dxOut:x dgxOut:x dbetaOut:float32 dgammaOut:float32",
      tolerance="gradient", dtypes=FLOATS, source="derivative of Wang et al.: DeepNet, 2022",
      samples=[take(dy=f16(3, 64), x=f16(3, 64), gx=f16(3, 64), gamma=f16(64),
                    mean=t(3, 1, low=-0.5, high=0.5), rstd=t(3, 1, low=0.5, high=1.5),
                    alpha=0.5)])  # fmt: skip
def deep_norm_grad(
    dy: Array, x: Array, gx: Array, gamma: Array, mean: Array, rstd: Array, alpha: float
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx, dgamma, dbeta = _layer_flow(alpha * x + gx, rstd, mean, gamma, dy)
    return alpha * dx, dx, dbeta, dgamma


_LAYER: Final = [
    take(input=t(3, 16), normalizedShape=(16,), weightOptional=t(16), biasOptional=t(16), eps=1e-5),
    take(input=t(2, 4, 65, low=9, high=10), normalizedShape=(4, 65), weightOptional=t(4, 65),
         biasOptional=t(4, 65), eps=1e-3),
    take(input=t(2, 1025), normalizedShape=(1025,), eps=1e-5),
]  # fmt: skip


def _layer_norm(
    input: Array,
    normalizedShape: Sequence[int],
    weightOptional: Array | None,
    biasOptional: Array | None,
    eps: float,
    implMode: int = 0,
) -> tuple[Array, ...]:
    axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
    return layer_norm(input, axes, weightOptional, biasOptional, eps)


spec("aclnnFastLayerNorm aclnnLayerNormWithImplMode",
     "out:input meanOutOptional:float32 rstdOutOptional:float32",
     constant="implMode",
     samples=_LAYER,
     **{**ROW, "source": "Ba, Kiros, Hinton: Layer Normalization, 2016; torch's document"})(
    _layer_norm)  # fmt: skip


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
    axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
    lead = tuple(range(input.ndim - len(normalizedShape)))
    hat = (input - mean) * rstd
    flow = gradOut if weightOptional is None else gradOut * weightOptional
    centred = flow - flow.mean(axes, keepdims=True)
    dx = rstd * (centred - hat * (flow * hat).mean(axes, keepdims=True))
    parts = (dx, (gradOut * hat).sum(lead), gradOut.sum(lead))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


spec("aclnnLayerNormBackward", "gradInputOut:input gradWeightOut:input gradBiasOut:input",
     constant="normalizedShape",
     **{**GRAD, "source": "derivative of Ba, Kiros, Hinton: Layer Normalization, 2016"}, samples=[
         take(gradOut=t(3, 16), input=t(3, 16), normalizedShape=(16,), mean=t(3, 1, high=1),
              rstd=t(3, 1, low=0.5, high=1.5), weightOptional=t(16), biasOptional=t(16),
              outputMask=m) for m in ((True, True, True), (True, False, False))])(
    _layer_back)  # fmt: skip


@spec("aclnnAddLayerNorm",
      "yOut:x1 meanOut:float32 rstdOut:float32 xOut:x1",
      constant="additionalOutput",
      **{**ROW, "source":
      "Ba, Kiros, Hinton: Layer Normalization, 2016, of x1 + x2 + bias"}, samples=[
          take(x1=t(*s), x2=t(*s), gamma=t(s[-1]), beta=t(s[-1]), biasOptional=b, epsilon=1e-5,
               additionalOutput=True)
          for s, b in (((3, 16), None), ((2, 3, 65), t(65)))])  # fmt: skip
def add_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: float, biasOptional: Array | None, epsilon: float,
    additionalOutput: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y, mean, rstd = layer_norm(x, (-1,), gamma, beta, epsilon)
    return y, mean, rstd, x


@spec("aclnnDeepNorm", "meanOut:float32 rstdOut:float32 yOut:x", **{**ROW, "source":
      "Wang et al.: DeepNet, 2022: layer norm of alpha x + gx"}, samples=[
          take(x=t(*s), gx=t(*s), beta=t(s[-1]), gamma=t(s[-1]), alpha=a, epsilon=1e-5)
          for s, a in (((3, 16), 0.3), ((2, 3, 65), 2.0), ((2, 1032), 0.5))])  # fmt: skip
def deep_norm(
    x: Array, gx: Array, beta: float, gamma: Array, alpha: float, epsilon: float
) -> tuple[Array, Array, Array]:  # fmt: skip
    y, mean, rstd = layer_norm(alpha * x + gx, (-1,), gamma, beta, epsilon)
    return mean, rstd, y


def _normed() -> dict[str, Arg]:
    x = np.random.default_rng(3).standard_normal((2, 5, 64)).astype(np.float32)
    _, mean, rstd = layer_norm(x.astype(np.float64), (-1,), None, None, 1e-5)
    return {"input": const(x, "float32"), "rstd": const(rstd, "float32"),
            "mean": const(mean, "float32")}  # fmt: skip


@spec("aclnnAdaLayerNormBackward",
      "gradInputOut:gradOut gradScaleOut:scale gradShiftOut:shift gradWeightOut:weightOptional "
      "gradBiasOut:biasOptional",
      ignored=follows("normalizedShape shift"),
      dtypes=("float32",), **FINITE_GRADIENT,
      source="Peebles, Xie: Scalable Diffusion Models with Transformers, 2023, differentiated",
      samples=lambda: [
          take(gradOut=t(2, 5, 64), normalizedShape=(64,), **_normed(), scale=t(2, 64),
               shift=t(2, 64), weightOptional=t(64), biasOptional=t(64))])  # fmt: skip
def ada_layer_norm_backward(
    gradOut: Array, input: Array, rstd: Array, mean: Array, scale: Array, weightOptional: Array,
    biasOptional: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The norm's Jacobian takes away what lies along the ones and along the normed row."""
    y = (input - mean) * rstd
    outer = gradOut * (1 + scale[:, None])
    inner = outer * weightOptional
    n = y.shape[-1]
    project = (np.eye(n) - 1 / n) - np.einsum("...i,...j->...ij", y, y) / n
    grad = np.einsum("...ij,...j->...i", project, inner) * rstd
    return (grad, (gradOut * (y * weightOptional + biasOptional)).sum(1), gradOut.sum(1),
            (outer * y).sum((0, 1)), outer.sum((0, 1)))  # fmt: skip
