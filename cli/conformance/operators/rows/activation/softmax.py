"""Gradients of softmax, and its scaled and masked form."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._defaults import COMPOSITE, FLOATS_64, TORCH_NN
from .._functions import softmax
from .._ignored import one_value

EACH: Final[dict[str, Any]] = {"source": TORCH_NN, "tolerance": "composite",
                               "fixed_shape": False, "dtypes": FLOATS_64}  # fmt: skip


@spec("aclnnSoftmaxBackward", "out:output", samples=[
    take(gradOutput=t(3, 70), output=t(3, 70, low=0, high=0.1), dim=1),
    take(gradOutput=t(5, 3, 4), output=t(5, 3, 4, low=0, high=0.4), dim=0),
    take(gradOutput=t(2, 1025), output=t(2, 1025, low=0, high=0.01), dim=-1)],
    **{**EACH, "fixed_shape": True})  # fmt: skip
def softmax_backward(gradOutput: Array, output: Array, dim: int) -> Array:
    return output * (gradOutput - (gradOutput * output).sum(dim, keepdims=True))


@spec("aclnnLogSoftmaxBackward", "out:output", samples=[
    take(gradOutput=t(3, 70), output=t(3, 70, low=-5, high=-1), dim=1),
    take(gradOutput=t(5, 3, 4), output=t(5, 3, 4, low=-3, high=-1), dim=0),
    take(gradOutput=t(2, 1025), output=t(2, 1025, low=-8, high=-6), dim=-1)],
    **{**EACH, "fixed_shape": True})  # fmt: skip
def log_softmax_backward(gradOutput: Array, output: Array, dim: int) -> Array:
    return gradOutput - np.exp(output) * gradOutput.sum(dim, keepdims=True)


_MASKED: Final[dict[str, Any]] = {**COMPOSITE, "tolerance": "gradient", "source":
                                  "Megatron-LM, scaled masked softmax"}  # fmt: skip


def _mask(*shape: int) -> Arg:
    return const((np.arange(np.prod(shape)).reshape(shape) % 5 == 3).tolist(), "bool")


spec("aclnnScaledMaskedSoftmax", "y:x", **_MASKED, samples=[
    take(x=t(2, 3, *size), mask=_mask(2, 1, *size), scale=0.5, fixedTriuMask=f)
    for f, size in ((False, (32, 64)), (True, (64, 32)))])(
    lambda x, mask, scale, fixedTriuMask: softmax(np.where(
        np.triu(np.ones(x.shape[-2:], bool), 1) if fixedTriuMask else mask, -10000.0,
        x * scale)))  # fmt: skip


@spec("aclnnScaledMaskedSoftmaxBackward", "out:gradOutput",
      ignored=one_value("fixTriuMask"),
      **_MASKED, samples=[
    take(gradOutput=t(2, 3, 32, 64), y=t(2, 3, 32, 64, low=0, high=0.05), mask=_mask(2, 1, 32, 64),
         scale=0.5, fixTriuMask=False)])  # fmt: skip
def masked_softmax_backward(gradOutput: Array, y: Array, mask: Array, scale: float) -> Array:
    flow = y * (gradOutput - (gradOutput * y).sum(-1, keepdims=True))
    return np.where(mask, 0.0, flow * scale)
