"""Activations of single elements and their gradients."""

from __future__ import annotations

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....spec import *
from ...formulas import gradient, words
from .._defaults import TORCH_NN
from .._words import *
from .gates import gelu_tanh

_EACH: Final = Rule("composite", TORCH_NN, values="normal special graded integer tiny wide nan")
# Of these nobody states what NaN, infinities and overflow on the way give.
_FINITE: Final = replace(_EACH, values="normal graded integer tiny")
_FLOATS: Final = "f32 f16 bf16"
Formula = Callable[..., Any]


def _forward(
    name: str, formula: Formula, rule: Rule = _EACH, dtype: str = "", **params: Domain
) -> None:
    spec(name, rule, self=tensor("*S", dtype), **params, out=out("self"))(words(formula))


def _inplace(
    name: str, formula: Formula, x: str = "selfRef", rule: Rule = _EACH, dtype: str = "",
    **params: Domain,
) -> None:  # fmt: skip
    spec(name, rule, **{x: inout(tensor("*S", dtype))}, **params)(words(formula))


def _backward(
    name: str, formula: Formula, result: str = "gradInput", rule: Rule = _EACH, **params: Domain
) -> None:
    # Slopes cancel, and are judged by the largest element: gradients of one scale.
    level = replace(rule, values=rule.values.replace(" graded", ""))
    spec(name, level, gradOutput=tensor("*S"), self=tensor("*S", "gradOutput"), **params,
         **{result: out("self")})(gradient(formula, grad="gradOutput", of="self"))  # fmt: skip


def _fast_gelu(x: Tensor) -> Tensor:
    """x sigmoid(1.702 x) as the operator document spells it, without overflow."""
    return x * torch.sigmoid(1.702 * x)


def _swish(x: Tensor, beta: float | None) -> Tensor:
    return x * torch.sigmoid((1.0 if beta is None else beta) * x)


def _elu(x: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    below = scale * alpha * torch.expm1(torch.clamp(x, max=0) * input_scale)
    return torch.where(x > 0, scale * x, below)


_GELU: Final = replace(_EACH, source="Hendrycks, Gimpel: Gaussian Error Linear Units, 2016; "
                       "operator document: tanh form")  # fmt: skip
_FAST: Final = replace(_EACH, source="operator document of FastGelu, CANN 8.1: x / (1 + "
                       "exp(-1.702 x))")  # fmt: skip
_SWISH: Final = replace(_EACH, source="Ramachandran, Zoph, Le: Searching for Activation Functions, "
                        "2017")  # fmt: skip
_BETA: Final = optional(scalar("self", 1.0, -0.5, 0.0))
_SCALE: Final[dict[str, Any]] = {
    "alpha": scalar("f32", 1.5, 0.5, 0.0), "scale": scalar("f32", 1.0, 2.0),
    "inputScale": scalar("f32", 1.0, 0.5),
}  # fmt: skip

_LAMBDA: Final[dict[str, Any]] = {"lambda": scalar("f32", 0.5, 0.0, 1.25)}

_forward("aclnnGelu", lambda self: gelu_tanh(self), _GELU)
_backward("aclnnGeluBackward", lambda self: gelu_tanh(self),
          rule=replace(_FINITE, source=_GELU.source))  # fmt: skip
_backward("aclnnGeluBackwardV2", lambda self, approximate: F.gelu(self, approximate=approximate),
          approximate=choice("none", "tanh"))  # fmt: skip
_forward("aclnnFastGelu", lambda self: _fast_gelu(self), _FAST)
_backward("aclnnFastGeluBackward", lambda self: _fast_gelu(self),
          rule=replace(_FINITE, source=_FAST.source))  # fmt: skip
_forward("aclnnSelu", lambda self: F.selu(self), dtype=_FLOATS)
_forward("aclnnCelu", lambda self, alpha: F.celu(self, alpha),
         alpha=scalar("self", 1.0, 0.5, -0.75))  # fmt: skip
_forward("aclnnSwish", lambda self, betaOptional: _swish(self, betaOptional), _SWISH,
         betaOptional=_BETA)  # fmt: skip
_backward("aclnnSwishBackward", lambda self, betaOptional: _swish(self, betaOptional),
          rule=replace(_FINITE, source=_SWISH.source), betaOptional=_BETA)  # fmt: skip
_inplace("aclnnInplaceElu", lambda selfRef, alpha, scale, inputScale:
         _elu(selfRef, alpha, scale, inputScale), **_SCALE)  # fmt: skip
_inplace("aclnnInplaceLeakyRelu", lambda selfRef, negativeSlope:
         F.leaky_relu(selfRef, negativeSlope),
         negativeSlope=scalar("f32", 0.25, 0.01, 0.0, -0.5))  # fmt: skip
_inplace("aclnnInplaceHardtanh", lambda selfRef, clipValueMin, clipValueMax:
         F.hardtanh(selfRef, clipValueMin, clipValueMax), clipValueMin=scalar("f32", -1.0, 0.0),
         clipValueMax=scalar("f32", 0.5, 6.0))  # fmt: skip
_inplace("aclnnInplaceThreshold", lambda selfRef, threshold, value:
         F.threshold(selfRef, threshold, value), threshold=scalar("f32", 0.25, -1.0, 0.0),
         value=scalar("f32", -3.0, 0.0, 7.5))  # fmt: skip
_inplace("aclnnInplaceMish", lambda selfRef: F.mish(selfRef))
_inplace("aclnnInplaceHardswish", lambda self: F.hardswish(self), "self", _FINITE)
_inplace("aclnnInplaceHardsigmoid", lambda self: F.hardsigmoid(self), "self", dtype=_FLOATS)
_backward("aclnnMishBackward", lambda self: F.mish(self))
_backward("aclnnSiluBackward", lambda self: F.silu(self))
_backward("aclnnHardsigmoidBackward", lambda self: F.hardsigmoid(self), "out")
_backward("aclnnHardswishBackward", lambda self: F.hardswish(self), "out")
_backward("aclnnHardswishBackwardV2", lambda self: F.hardswish(self), "out")
_backward("aclnnHardshrinkBackward", lambda self, lambd: F.hardshrink(self, lambd), rule=_FINITE,
          lambd=scalar("f32", 0.5, 0.0, 1.25))  # fmt: skip
_backward("aclnnSoftshrinkBackward", lambda self, lambda_: F.softshrink(self, lambda_),
          rule=_FINITE, **_LAMBDA)  # fmt: skip
_backward("aclnnHardtanhBackward", lambda self, min, max: F.hardtanh(self, min, max), "out",
          replace(_FINITE, sparse=True), min=scalar("f32", -1.0, 0.0),
          max=scalar("f32", 0.5, 6.0))  # fmt: skip
_backward("aclnnSoftplusBackward", lambda self, beta, threshold: F.softplus(self, beta, threshold),
          beta=scalar("f32", 1.0, 2.0, 0.5), threshold=scalar("f32", 20.0, 3.0, 1.0))  # fmt: skip
_backward("aclnnLogSigmoidBackward", lambda self: F.logsigmoid(self),
          buffer=ignored("not used in any version", tensor("0", "gradOutput")))  # fmt: skip
spec("aclnnLogSigmoidForward", _EACH, self=tensor("*S"), out=out("self"), buffer=out("self"))(
    words(lambda self: (F.logsigmoid(self), torch.exp(-torch.abs(self)))))  # fmt: skip


def _by_result(result: str, low: float = -2.0, high: float = 2.0) -> dict[str, Domain]:
    """What flows in, and what the forward pass gave."""
    return {"gradOutput": tensor("*S"), result: tensor("*S", "gradOutput", low, high),
            "gradInput": out(result)}  # fmt: skip


@spec("aclnnSigmoidBackward", _EACH, **_by_result("output", 0, 1))
def sigmoid_backward(gradOutput: Array, output: Array) -> Array:
    return gradOutput * output * (1 - output)


@spec("aclnnTanhBackward", _EACH, **_by_result("output", -1, 1))
def tanh_backward(gradOutput: Array, output: Array) -> Array:
    return gradOutput * (1 - output * output)


# The largest integers overflow.
_SMALL: Final = replace(_FINITE, values="normal graded integer")


@spec("aclnnSeluBackward", _SMALL, **_by_result("result"))
def selu_backward(gradOutput: Array, result: Array) -> Array:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return gradOutput * np.where(result <= 0, result + scale * alpha, scale)


@spec("aclnnEluBackward", _FINITE, gradOutput=tensor("*S"), **_SCALE, isResult=flag(),
      selfOrResult=tensor("*S", "gradOutput"), gradInput=out("selfOrResult"))  # fmt: skip
def elu_backward(
    gradOutput: Array, alpha: float, scale: float, inputScale: float, isResult: bool,
    selfOrResult: Array,
) -> Array:  # fmt: skip
    """At 0 the slope is that below."""
    v = selfOrResult
    inner = v + alpha * scale if isResult else scale * alpha * np.exp(np.minimum(v, 0) * inputScale)
    return gradOutput * np.where(v <= 0, inputScale * inner, scale)


@spec("aclnnLeakyReluBackward", _EACH, gradOutput=tensor("*S"), self=tensor("*S", "gradOutput"),
      negativeSlope=scalar("f32", 0.25, 0.01, 0.0), selfIsResult=flag(),
      out=out("self"))  # fmt: skip
def leaky_relu_backward(
    gradOutput: Array, self: Array, negativeSlope: float, selfIsResult: bool
) -> Array:  # fmt: skip
    """At 0, of either sign, the slope is that below."""
    return gradOutput * np.where(self > 0, 1.0, negativeSlope)


@spec("aclnnThresholdBackward", _FINITE, gradOutput=tensor("*S"),
      self=tensor("*S", "gradOutput"), threshold=scalar("f32", 0.25, -1.0, 0.0),
      out=out("self"))  # fmt: skip
def threshold_backward(gradOutput: Array, self: Array, threshold: float) -> Array:
    return np.where(self > threshold, gradOutput, 0)


_CHANNELS: Final = sizes({"*N": leading("-", 4, "3x5", 257)}, C=channels(3, 1, 33, 1025))


@spec("aclnnPrelu", Rule("composite", TORCH_NN, values=_EACH.values), _CHANNELS,
      self=tensor("B C *N"), weight=forms(channels=tensor("C", "self"), one=tensor("1", "self"),
                                          spread=tensor("1 C 1", "self")),
      out=out("self"))  # fmt: skip
def prelu(self: Array, weight: Array) -> Array:
    slope = weight.reshape((1, -1) + (1,) * (self.ndim - 2))
    return np.where(self > 0, self, slope * self)


spec("aclnnPreluBackward", Rule("gradient", TORCH_NN, numbers={
         "norm": 128, "reason": "the gradient of one weight sums all elements in float32"}),
     _CHANNELS, gradOutput=tensor("B C *N"),
     self=tensor("B C *N", "gradOutput"),
     weight=forms(channels=tensor("C", "gradOutput"), one=tensor("1", "gradOutput")),
     gradInput=out("self"), gradWeight=out("weight"))(
    gradient(lambda self, weight: F.prelu(self, weight), grad="gradOutput",
             of="self weight"))  # fmt: skip


@spec("aclnnSquaredRelu", replace(_EACH, source="So et al.: Primer, 2021: squared ReLU"),
      input=tensor("*S"), out=out("input"))  # fmt: skip
def squared_relu(input: Array) -> Array:
    return np.square(np.maximum(input, 0))


@spec("aclnnShrink", replace(_EACH, source="ONNX operator Shrink, version 9"),
      self=tensor("*S"), lambd=scalar("f32", 0.5, 1.0, 0.0), bias=scalar("f32", 0.25, 0.0, -1.0),
      out=out("self"))  # fmt: skip
def shrink(self: Array, lambd: float, bias: float) -> Array:
    return np.where(self < -lambd, self + bias, np.where(self > lambd, self - bias, 0.0))


@spec("aclnnLogit", Rule("composite", "torch 2.13, document of torch.logit"),
      input=tensor("*S", "", 0.01, 0.99), eps=number(-1.0, 0.1, 1e-6),
      out=out("input"))  # fmt: skip
def logit(input: Array, eps: float) -> Array:
    z = np.clip(input, eps, 1 - eps) if eps >= 0 else input
    return np.log(z) - np.log1p(-z)


@spec("aclnnLogitGrad", Rule("composite", "torch 2.13, derivative of torch.logit; outside [eps, "
      "1 - eps] it is 0"), x=tensor("*S", "", 0.02, 0.98), dy=tensor("*S", "x"),
      eps=number(0.0, 0.1), out=out("x"))  # fmt: skip
def logit_grad(x: Array, dy: Array, eps: float) -> Array:
    outside = (x < eps) | (x > 1 - eps)
    return np.where(outside, 0.0, dy / (x * (1 - x)))


_DRAWS: Final = "of training, where the slope is drawn"


@spec("aclnnRReluWithNoise", Rule("composite", "torch 2.13, document of RReLU in eval"),
      self=tensor("*S"), noise=ignored(_DRAWS, tensor("*S", "self")),
      lower=scalar("f32", 0.125, 0.0), upper=scalar("f32", 0.25, 0.5),
      training=only(False, "drawn slopes have no single right result"),
      seed=ignored(_DRAWS, choice(7, 0)), offset=ignored(_DRAWS, choice(0, 8)),
      out=out("self"))  # fmt: skip
def rrelu(self: Array, lower: float, upper: float) -> Array:
    return np.where(self >= 0, self, self * (lower + upper) / 2)
