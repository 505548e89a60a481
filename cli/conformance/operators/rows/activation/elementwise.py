"""Activations of single elements and their gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....judge.precision import Array
from ...formulas import gradient, words
from ...spec import const, spec, t, take
from .._defaults import FLOATS_64, TORCH_NN
from .._ignored import reserved
from .gates import gelu_tanh

EACH: Final[dict[str, Any]] = {"source": TORCH_NN, "tolerance": "composite",
                               "fixed_shape": False, "dtypes": FLOATS_64}  # fmt: skip


def _x(**more: Any) -> list[Any]:
    shapes = ((3, 4), (2, 3, 65), (1025,), ())
    return [take(self=t(*s, low=-4, high=4), **more) for s in shapes]


def _pair(x: str = "self", low: float = -4.0, high: float = 4.0, **more: Any) -> list[Any]:
    shapes = ((3, 4), (2, 3, 65), (1025,))
    return [take(**{"gradOutput": t(*s), x: t(*s, low=low, high=high)}, **more) for s in shapes]


def fast_gelu(x: Tensor) -> Tensor:
    """x sigmoid(1.702 x) as the operator document spells it, without overflow."""
    return x * torch.sigmoid(1.702 * x)


_GELU: Final = "Hendrycks, Gimpel: Gaussian Error Linear Units, 2016; operator document: tanh form"
spec("aclnnGelu", "out:self", samples=_x(), **{**EACH, "source": _GELU})(
    words(lambda self: gelu_tanh(self)))  # fmt: skip
spec("aclnnGeluBackward", "gradInput:self", samples=_pair(), **{**EACH, "source": _GELU})(
    gradient(lambda self: gelu_tanh(self), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnGeluBackwardV2", "gradInput:self", **EACH,
     samples=[*_pair(approximate="none"), *_pair(approximate="tanh")])(
    gradient(lambda self, approximate: F.gelu(self, approximate=approximate),
             grad="gradOutput", of="self"))  # fmt: skip
_FAST: Final = "operator document of FastGelu, CANN 8.1: x / (1 + exp(-1.702 x))"
spec("aclnnFastGelu", "out:self", samples=_x(), **{**EACH, "source": _FAST})(
    words(lambda self: fast_gelu(self)))  # fmt: skip
spec("aclnnFastGeluBackward", "gradInput:self", samples=_pair(), **{**EACH, "source": _FAST})(
    gradient(lambda self: fast_gelu(self), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnSelu", "out:self", samples=_x(), **EACH)(
    words(lambda self: F.selu(self)))  # fmt: skip
spec("aclnnCelu", "out:self", samples=[*_x(alpha=1.0), *_x(alpha=0.5)], **EACH)(
    words(lambda self, alpha: F.celu(self, alpha)))  # fmt: skip
spec("aclnnInplaceElu", "selfRef:selfRef", **EACH, samples=[
    take(selfRef=t(3, 5), alpha=1.5, scale=1.0, inputScale=1.0),
    take(selfRef=t(130), alpha=0.5, scale=2.0, inputScale=0.5)])(
    words(lambda selfRef, alpha, scale, inputScale: torch.where(
        selfRef > 0, scale * selfRef,
        scale * alpha * torch.expm1(torch.clamp(selfRef, max=0) * inputScale))))  # fmt: skip
spec("aclnnInplaceLeakyRelu", "selfRef:selfRef", **EACH, samples=[
    take(selfRef=t(3, 5), negativeSlope=0.25), take(selfRef=t(130), negativeSlope=0.01)])(
    words(lambda selfRef, negativeSlope: F.leaky_relu(selfRef, negativeSlope)))  # fmt: skip
spec("aclnnInplaceHardtanh", "selfRef:selfRef", **EACH, samples=[
    take(selfRef=t(3, 5), clipValueMin=-1.0, clipValueMax=0.5)])(
    words(lambda selfRef, clipValueMin, clipValueMax:
          F.hardtanh(selfRef, clipValueMin, clipValueMax)))  # fmt: skip
spec("aclnnInplaceThreshold", "selfRef:selfRef", **EACH, samples=[
    take(selfRef=t(3, 5), threshold=0.25, value=-3.0)])(
    words(lambda selfRef, threshold, value: F.threshold(selfRef, threshold, value)))  # fmt: skip
for _name, _word in (("Mish", F.mish), ("Hardswish", F.hardswish), ("Hardsigmoid", F.hardsigmoid)):
    _self_name = "selfRef" if _name == "Mish" else "self"
    spec(f"aclnnInplace{_name}", "x:x", **EACH, renamed={_self_name: "x"}, samples=[
        take(x=t(3, 5, low=-5, high=5)), take(x=t(1025, low=-5, high=5))])(
        words(lambda x, _word=_word: _word(x)))  # fmt: skip
_BACK: Final[dict[str, Any]] = {
    "Mish": F.mish, "Silu": F.silu, "Hardsigmoid": F.hardsigmoid, "Hardswish": F.hardswish,
}  # fmt: skip
for _name, _word in _BACK.items():
    _out = "out" if _name.startswith("Hard") else "gradInput"
    spec(f"aclnn{_name}Backward", f"{_out}:self", samples=_pair(), **EACH)(
        gradient(lambda self, _word=_word: _word(self), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnHardswishBackwardV2", "out:self", samples=_pair(), **EACH)(
    gradient(lambda self: F.hardswish(self), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnHardshrinkBackward", "gradInput:self", samples=_pair(lambd=0.5), **EACH)(
    gradient(lambda self, lambd: F.hardshrink(self, lambd), grad="gradOutput",
             of="self"))  # fmt: skip
spec("aclnnSoftshrinkBackward", "gradInput:self", **EACH,
     samples=[take(gradOutput=t(3, 70), self=t(3, 70), **{"lambda": 0.5})])(
    gradient(lambda self, lambda_: F.softshrink(self, lambda_), grad="gradOutput",
             of="self"))  # fmt: skip
spec("aclnnHardtanhBackward", "out:self", sparse=True, samples=_pair(min=-1.0, max=0.5), **EACH)(
    gradient(lambda self, min, max: F.hardtanh(self, min, max), grad="gradOutput",
             of="self"))  # fmt: skip
spec("aclnnSoftplusBackward", "gradInput:self", **EACH,
     samples=[*_pair(beta=1.0, threshold=20.0), *_pair(beta=2.0, threshold=3.0)])(
    gradient(lambda self, beta, threshold: F.softplus(self, beta, threshold), grad="gradOutput",
             of="self"))  # fmt: skip
spec("aclnnThresholdBackward", "out:self", samples=_pair(threshold=0.25), **EACH)(
    gradient(lambda self, threshold: F.threshold(self, threshold, 0.0), grad="gradOutput",
             of="self"))  # fmt: skip
spec("aclnnLogSigmoidForward", "out:self buffer:self", samples=_x()[:3], **EACH)(
    words(lambda self: (F.logsigmoid(self), torch.exp(-torch.abs(self)))))  # fmt: skip
spec("aclnnLogSigmoidBackward", "gradInput:self",
     ignored=reserved("buffer"),
     **EACH,
     samples=[take(gradOutput=t(3, 70), self=t(3, 70), buffer=t(0))])(
    gradient(lambda self: F.logsigmoid(self), grad="gradOutput", of="self"))  # fmt: skip


@spec("aclnnSigmoidBackward", "gradInput:output", samples=_pair("output", 0.0, 1.0), **EACH)
def sigmoid_backward(gradOutput: Array, output: Array) -> Array:
    return gradOutput * output * (1 - output)


@spec("aclnnTanhBackward", "gradInput:output", samples=_pair("output", -1.0, 1.0), **EACH)
def tanh_backward(gradOutput: Array, output: Array) -> Array:
    return gradOutput * (1 - output * output)


@spec("aclnnEluBackward", "gradInput:selfOrResult", **EACH,
      samples=[*_pair("selfOrResult", alpha=1.5, scale=1.0, inputScale=1.0, isResult=False),
               *_pair("selfOrResult", -0.4, 4, alpha=0.5, scale=1.5, inputScale=0.5,
                      isResult=True),
               *(take(gradOutput=t(1, 4), alpha=1.5, scale=0.75, inputScale=0.5, isResult=r,
                      selfOrResult=const([[0.0, -1.0, 0.5, 0.0]], "float32"))
                 for r in (False, True))])  # fmt: skip
def elu_backward(
    gradOutput: Array, alpha: float, scale: float, inputScale: float, isResult: bool,
    selfOrResult: Array,
) -> Array:  # fmt: skip
    v = selfOrResult
    inner = v + alpha * scale if isResult else scale * alpha * np.exp(np.minimum(v, 0) * inputScale)
    return gradOutput * np.where(v <= 0, inputScale * inner, scale)


@spec("aclnnLeakyReluBackward", "out:self", **EACH,
      samples=[*_pair(negativeSlope=0.25, selfIsResult=False),
               *_pair(negativeSlope=0.25, selfIsResult=True),
               # At 0, of either sign, the slope is that below.
               take(gradOutput=t(5), self=const([0.0, -0.0, 1.0, -1.0, 0.0], "float32"),
                    negativeSlope=0.25, selfIsResult=False)])  # fmt: skip
def leaky_relu_backward(
    gradOutput: Array, self: Array, negativeSlope: float, selfIsResult: bool
) -> Array:  # fmt: skip
    return gradOutput * np.where(self > 0, 1.0, negativeSlope)


@spec("aclnnSeluBackward", "gradInput:result", samples=_pair("result", -1.5, 4.0), **EACH)
def selu_backward(gradOutput: Array, result: Array) -> Array:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return gradOutput * np.where(result <= 0, result + scale * alpha, scale)


def _swish(x: Tensor, beta: float) -> Tensor:
    return x * torch.sigmoid(beta * x)


_SWISH: Final = "Ramachandran, Zoph, Le: Searching for Activation Functions, 2017"
spec("aclnnSwish", "out:self", samples=[*_x(betaOptional=1.0), *_x(betaOptional=-0.5), *_x()],
     **{**EACH, "source": _SWISH})(
    words(lambda self, betaOptional=1.0:
          _swish(self, 1.0 if betaOptional is None else betaOptional)))  # fmt: skip
spec("aclnnSwishBackward", "gradInput:self", **{**EACH, "source": _SWISH},
     samples=[*_pair(betaOptional=1.0), *_pair(betaOptional=0.5)])(
    gradient(lambda self, betaOptional=1.0: _swish(self, betaOptional), grad="gradOutput",
             of="self"))  # fmt: skip


@spec("aclnnPrelu", "out:self", source=TORCH_NN, tolerance="composite",
      samples=[take(self=t(2, 3, 4), weight=t(3)), take(self=t(2, 130), weight=t(1)),
               take(self=t(5, 33), weight=t(33)),
               take(self=t(2, 3, 4), weight=t(1, 3, 1))])  # fmt: skip
def prelu(self: Array, weight: Array) -> Array:
    slope = weight.reshape((1, -1) + (1,) * (self.ndim - 2))
    return np.where(self > 0, self, slope * self)


spec("aclnnPreluBackward", "gradInput:self gradWeight:weight", source=TORCH_NN,
     tolerance="gradient", samples=[
         take(gradOutput=t(2, 3, 4), self=t(2, 3, 4), weight=t(3)),
         take(gradOutput=t(2, 130), self=t(2, 130), weight=t(1))])(
    gradient(lambda self, weight: F.prelu(self, weight), grad="gradOutput",
             of="self weight"))  # fmt: skip


@spec("aclnnSquaredRelu", "out:input", tolerance="composite",
      fixed_shape=False, source="So et al.: Primer, 2021: squared ReLU",
      samples=[take(input=t(3, 65)), take(input=t(1025))])  # fmt: skip
def squared_relu(input: Array) -> Array:
    return np.square(np.maximum(input, 0))


@spec("aclnnShrink", "out:self", tolerance="composite", fixed_shape=False,
      source="ONNX operator Shrink, version 9",
      samples=[take(self=t(3, 65), lambd=0.5, bias=0.25), take(self=t(130), lambd=1.0, bias=0.0)],
      )  # fmt: skip
def shrink(self: Array, lambd: float, bias: float) -> Array:
    return np.where(self < -lambd, self + bias, np.where(self > lambd, self - bias, 0.0))


@spec("aclnnLogit", "out:input", tolerance="composite", fixed_shape=False,
      source="torch 2.13, document of torch.logit",
      samples=[take(input=t(3, 65, low=0.01, high=0.99), eps=e) for e in (-1.0, 0.1)])  # fmt: skip
def logit(input: Array, eps: float) -> Array:
    z = np.clip(input, eps, 1 - eps) if eps >= 0 else input
    return np.log(z) - np.log1p(-z)


@spec("aclnnLogitGrad", "out:x", tolerance="composite",
      source="torch 2.13, derivative of torch.logit; outside [eps, 1 - eps] it is 0", samples=[
          take(x=t(3, 65, low=0.02, high=0.98), dy=t(3, 65), eps=e) for e in (0.0, 0.1)],
      )  # fmt: skip
def logit_grad(x: Array, dy: Array, eps: float) -> Array:
    outside = (x < eps) | (x > 1 - eps)
    return np.where(outside, 0.0, dy / (x * (1 - x)))


@spec("aclnnRReluWithNoise", "out:self",
      uncovered="noise training seed offset",
      tolerance="composite",
      dtypes=("float16", "bfloat16", "float32"), source="torch 2.13, document of RReLU in eval",
      samples=[take(self=t(3, 65), noise=t(3, 65), lower=0.1, upper=0.3, training=False, seed=7,
                    offset=0)])  # fmt: skip
def rrelu(self: Array, lower: float, upper: float) -> Array:
    return np.where(self >= 0, self, self * (lower + upper) / 2)
