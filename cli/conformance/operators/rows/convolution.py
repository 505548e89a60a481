"""Convolutions, causal ones with states too, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import const, f16, spec, t, take
from ._defaults import FLOAT32_GRADIENT, NN_GRADIENT
from ._ignored import follows

_CONV: Final[dict[str, Any]] = {
    "tolerance": "composite",
    "specials": False,
    "source": "op-plugin test npu_fused_causal_conv1d; vLLM, causal_conv1d_fn",
}


def _conv(states: int, **more: Any) -> dict[str, Any]:
    return {
        "x": f16(7, 6),
        "weight": f16(3, 6),
        "queryStartLoc": const([0, 4, 7], "int32"),
        "convStates": f16(4, states, 6),
        "cacheIndices": const([2, 0], "int32"),
        "activationMode": 0,
        "padSlotId": -1,
        "runMode": 0,
        "maxQueryLen": -1,
        "residualConnection": 0,
        "blockSize": 0,
        "convMode": 0,
        **more,
    }


def convolved(
    x: Array,
    weight: Array,
    states: Array,
    starts: Array,
    slots: Array,
    bias: Array | None,
    fresh: Array | None,
    swish: bool,
    residual: bool,
) -> tuple[Array, Array]:
    """Results and states: a sequence follows the last rows of its slot, which its own replace."""
    y, states, width = x.copy(), states.copy(), len(weight)
    for b, slot in enumerate(slots):
        new = x[starts[b] : starts[b + 1]]
        before = np.zeros_like(states[slot]) if fresh is not None and fresh[b] else states[slot]
        rows = np.concatenate([before, new])
        taps = [rows[len(rows) - len(new) - width + 1 + k :][: len(new)] for k in range(width)]
        out = np.einsum("ktd,kd->td", np.array(taps), weight) + (0 if bias is None else bias)
        out = out / (1 + np.exp(-out)) if swish else out
        y[starts[b] : starts[b + 1]] = out + new if residual else out
        tail = rows[-states.shape[1] :]
        if fresh is not None and fresh[b]:  # nothing came before: older rows of the slot stay
            tail = rows[len(before) - width + 1 :][-states.shape[1] :]
        states[slot, states.shape[1] - len(tail) :] = tail
    return y, states


_CONVS: Final = [
    take(**_conv(2)),
    take(**_conv(5, bias=f16(6), activationMode=1)),
    take(**_conv(2, residualConnection=1, initialStateMode=const([0, 1], "int32"))),
]


@spec(
    "aclnnFusedCausalConv1d",
    "y:x convStates:x",
    uncovered="numAcceptedTokens numComputedTokens blockIdxFirstScheduledToken "
    "blockIdxLastScheduledToken initialStateIdx padSlotId runMode maxQueryLen "
    "blockSize convMode",
    **_CONV,
    samples=_CONVS,
)
def fused(
    x: Array,
    weight: Array,
    convStates: Array,
    queryStartLoc: Array,
    cacheIndices: Array,
    initialStateMode: Array | None,
    bias: Array | None,
    activationMode: int,
    residualConnection: int,
) -> tuple[Array, ...]:
    fresh = None if initialStateMode is None else initialStateMode == 0
    return convolved(x, weight, convStates, queryStartLoc, cacheIndices, bias, fresh,
                     activationMode == 1, residualConnection == 1)  # fmt: skip


spec(
    "aclnnInplaceFusedCausalConv1d",
    "x:x convStates:x",
    uncovered="numAcceptedTokens numComputedTokens blockIdxFirstScheduledToken "
    "blockIdxLastScheduledToken initialStateIdx padSlotId runMode maxQueryLen "
    "blockSize convMode",
    **_CONV,
    samples=_CONVS,
)(fused)


def conv(
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    outputPadding: Sequence[int],
    groups: int,
) -> Tensor:
    bias = torch.zeros(weight.shape[1] * groups if transposed else weight.shape[0],
                       dtype=input.dtype)  # fmt: skip
    return torch.convolution(input, weight, bias, tuple(stride), tuple(padding), tuple(dilation),
                             transposed, tuple(outputPadding), groups)  # fmt: skip


def convolution_backward(
    gradOutput: Array,
    input: Array,
    weight: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    outputPadding: tuple[int, ...],
    groups: int,
    outputMask: Sequence[int],
) -> tuple[Array | None, ...]:
    backward = gradient(
        lambda input, weight: conv(input, weight, stride, padding, dilation, transposed,
                                   outputPadding, groups),
        grad="gradOutput", of="input weight")  # fmt: skip
    grads = backward(gradOutput=gradOutput, input=input, weight=weight)
    parts = (*grads, gradOutput.sum((0, *range(2, gradOutput.ndim))))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


spec("aclnnConvolutionBackward", "gradInput:input gradWeight:input gradBias:input",
     ignored=follows("biasSizes"),
     constant="stride padding dilation transposed outputPadding",
     **{**NN_GRADIENT, "rule": {"norm": 32.0, "reason":
        "a weight's gradient sums all samples and places in float32, in any order"}}, samples=[
         take(gradOutput=t(n, 6, 3, 3), input=t(n, 4, 5, 5), weight=t(6, 4 // g, 3, 3),
              biasSizes=(6,), stride=(2, 2), padding=(1, 1), dilation=(1, 1), transposed=False,
              outputPadding=(0, 0), groups=g, outputMask=m, cubeMathType=0)
         for n, g, m in ((2, 1, (True, True, True)), (2, 2, (True, True, True)),
                         (2, 1, (True, False, False)), (37, 2, (True, True, True)))],
     )(convolution_backward)  # fmt: skip


@spec("aclnnConvDepthwise2d", "out:self",
      constant="kernelSize",
      **NN_GRADIENT, samples=[
    take(self=t(2, 3, 6, 7), weight=t(3, 1, 3, 3), kernelSize=(3, 3), bias=b, stride=(1, 2),
         padding=(1, 1), dilation=(1, 1), cubeMathType=0) for b in (None, t(3))])  # fmt: skip
def depthwise(
    self: Array,
    weight: Array,
    kernelSize: tuple[int, ...],
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
    convolve = words(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, x.shape[1]))
    return convolve(x=self, w=weight, b=bias)


def _time_first(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    y = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)


spec("aclnnConvTbcBackward", "gradInput:input gradWeight:weight gradBias:bias",
     constant="pad",
     **FLOAT32_GRADIENT, source="derivative of torch's conv_tbc", samples=[
         take(self=t(9, 2, 5), input=t(9, 2, 4), weight=t(3, 4, 5), bias=t(5), pad=1,
              cubeMathType=0)])(
    gradient(_time_first, grad="self", of="input weight bias"))  # fmt: skip


def _causal(x: Tensor, weight: Tensor, maskOptional: Tensor | None) -> Tensor:
    """[S, B, H]: each channel by its own window of the past; masked places [B, S] are 0."""
    rows = F.pad(x.permute(1, 2, 0), (weight.shape[0] - 1, 0))
    y = F.conv1d(rows, weight.permute(1, 0).unsqueeze(1), None, 1, 0, 1, x.shape[2])
    y = y.permute(2, 0, 1)
    if maskOptional is None:
        return y
    return y * maskOptional.permute(1, 0).unsqueeze(-1).to(y.dtype)


_SEEN: Final = const([[True, True, False, True, True, True, False], [True] * 6 + [False]], "bool")
_CAUSAL: Final[dict[str, Any]] = {"source": "op-plugin test "
                                  "npu_masked_causal_conv1d; Gu, Dao: Mamba, 2023"}  # fmt: skip
spec("aclnnMaskedCausalConv1d", "out:x", **_CAUSAL, tolerance="gradient",
     dtypes=("float16", "bfloat16"), samples=[
         take(x=t(7, 2, 64, dtype="float16"), weight=t(3, 64, dtype="float16"), maskOptional=m)
         for m in (_SEEN, None)])(words(_causal))  # fmt: skip
spec("aclnnMaskedCausalConv1dBackward", "gradXOut:x gradWeightOut:weight", **_CAUSAL,
     tolerance="gradient", dtypes=("float16", "bfloat16"), samples=[
         take(gradY=t(7, 2, 64, dtype="float16"), x=t(7, 2, 64, dtype="float16"),
              weight=t(3, 64, dtype="float16"), maskOptional=m) for m in (_SEEN, None)])(
    gradient(_causal, grad="gradY", of="x weight"))  # fmt: skip


def _states(width: int, **more: Any) -> dict[str, Any]:
    known = _conv(width, **more)
    names = {"convStates": "convStatesRef", "queryStartLoc": "queryStartLocOptional",
             "cacheIndices": "cacheIndicesOptional", "bias": "biasOptional",
             "initialStateMode": "initialStateModeOptional"}  # fmt: skip
    return {names.get(k, k): v for k, v in known.items()}


@spec("aclnnCausalConv1dFn aclnnCausalConv1dUpdate", "y:x convStatesRef:x",
      uncovered="initialStateModeOptional blockIdxFirstScheduledTokenOptional "
                "blockIdxLastScheduledTokenOptional initialStateIdxOptional "
                "numComputedTokensOptional nullBlockId blockSizeToAlign "
                "numAcceptedTokensOptional maxQueryLen",
      tolerance="gradient", specials=False, dtypes=("float16", "bfloat16"),
      source="vLLM, causal_conv1d_fn and causal_conv1d_update", samples=[
          take(**_states(2), activation="silu", nullBlockId=-1, blockSizeToAlign=0),
          take(**_states(5, bias=f16(6)), activation="none", nullBlockId=-1, blockSizeToAlign=0)],
      )  # fmt: skip
def causal_states(
    x: Array, weight: Array, convStatesRef: Array, biasOptional: Array | None,
    queryStartLocOptional: Array, cacheIndicesOptional: Array, activation: str,
) -> tuple[Array, Array]:  # fmt: skip
    return convolved(x, weight, convStatesRef, queryStartLocOptional, cacheIndicesOptional,
                     biasOptional, None, activation == "silu", False)  # fmt: skip


spec("aclnnConvTbc", "output:self", tolerance="gradient",
     dtypes=("float32", "float16"), source="torch 2.13, document of torch.conv_tbc", samples=[
         take(self=t(9, 2, 4), weight=t(3, 4, 5), bias=t(5), pad=1, cubeMathType=0)])(
    words(lambda self, weight, bias, pad: F.conv1d(
        self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)),
)  # fmt: skip
