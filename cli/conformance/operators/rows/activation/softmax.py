"""Gradients of softmax, and its scaled and masked form."""

from __future__ import annotations

from .....spec import *
from .._defaults import TORCH_NN
from .._functions import softmax
from .._words import *

_TORCH: Final = Rule("composite", TORCH_NN, values="normal integer opposed positive nan")
_ALONG: Final = sizes({"*N": leading("-", 5, 1, "2x3", 33)}, A=row(7, 1, 33, 257, 1025, 4099))


def _saved(low: float, high: float) -> dict[str, Domain]:
    """What flows in, what the forward pass gave, and along which axis."""
    return {"gradOutput": tensor("*B A *N"), "output": tensor("*B A *N", "gradOutput", low, high),
            "dim": axis("A", "*B A *N"), "out": out("output")}  # fmt: skip


@spec("aclnnSoftmaxBackward", _TORCH, _ALONG, **_saved(0, 0.3))
def softmax_backward(gradOutput: Array, output: Array, dim: int) -> Array:
    return output * (gradOutput - (gradOutput * output).sum(dim, keepdims=True))


@spec("aclnnLogSoftmaxBackward", _TORCH, _ALONG, **_saved(-8, -0.1))
def log_softmax_backward(gradOutput: Array, output: Array, dim: int) -> Array:
    return gradOutput - np.exp(output) * gradOutput.sum(dim, keepdims=True)


_MASKED: Final = Rule("gradient", "Megatron-LM, scaled masked softmax")
# Documents ask for multiples of 32.
_SCORES: Final = sizes(N=heads, S=seq(32, 64, 96), T=seq(64, 32, 128, 1024))
_MASK: Final = forms(head=mask("B 1 S T"), batch=mask("1 1 S T"), every=mask("B N S T"))
_SCALE: Final = number(0.5, 1.0, -0.25, 0.0)


def _hidden(x: Array, mask: Array, triangle: bool) -> Any:
    return np.triu(np.ones(x.shape[-2:], bool), 1) if triangle else mask


@spec("aclnnScaledMaskedSoftmax", _MASKED, _SCORES, x=tensor("B N S T"), mask=_MASK,
      scale=_SCALE, fixedTriuMask=flag(), y=out("x"))  # fmt: skip
def masked_softmax(x: Array, mask: Array, scale: float, fixedTriuMask: bool) -> Array:
    return softmax(np.where(_hidden(x, mask, fixedTriuMask), -10000.0, x * scale))


@spec("aclnnScaledMaskedSoftmaxBackward", _MASKED, _SCORES, gradOutput=tensor("B N S T"),
      y=tensor("B N S T", "gradOutput", 0, 0.05), mask=_MASK, scale=_SCALE,
      fixTriuMask=only(False, "documents allow one value"), out=out("gradOutput"))  # fmt: skip
def masked_softmax_backward(gradOutput: Array, y: Array, mask: Array, scale: float) -> Array:
    flow = y * (gradOutput - (gradOutput * y).sum(-1, keepdims=True))
    return np.where(mask, 0.0, flow * scale)
