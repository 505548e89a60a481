"""Gradients of gated, windowed, compressed and normalised operators, and recurrent cells."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import given, spec, t, take
from .norms import layer_norm
from .quantisation import dynamic

_GRAD: Final[dict[str, Any]] = {"tolerance": "gradient", "dtypes": ("float32",)}


def _clipped(
    x: Tensor, groupIndexOptional: Tensor | None, dim: int, alpha: float, limit: float,
    bias: float, interleaved: bool,
) -> Tensor:  # fmt: skip
    rows = len(x) if groupIndexOptional is None else int(groupIndexOptional.sum())
    kept = x[:rows]
    gate, value = (kept[..., 0::2], kept[..., 1::2]) if interleaved else kept.chunk(2, dim)
    gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    y = gate * torch.sigmoid(alpha * gate) * (value + bias)
    return torch.cat([y, y.new_zeros(len(x) - rows, *y.shape[1:])])


spec("aclnnClippedSwigluGrad", "gradXOut:x", family="activation", **_GRAD, source="derivative of "
     "gpt-oss' swiglu with limit", samples=[
         take(gradY=t(3, 32), x=t(3, 64, low=-4, high=4), dim=-1, alpha=1.702, limit=2.0, bias=1.0,
              groupIndexOptional=g, interleaved=i)
         for i in (True, False) for g in (None, given([1, 0, 1], "int64"))])(
    gradient(_clipped, grad="gradY", of="x"))  # fmt: skip


def _time_first(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    y = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)


spec("aclnnConvTbcBackward", "gradInput:input gradWeight:weight gradBias:bias", family="pool",
     **_GRAD, source="derivative of torch's conv_tbc", samples=[
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


_SEEN: Final = given([[True, True, False, True, True, True, False], [True] * 6 + [False]], "bool")
_CAUSAL: Final[dict[str, Any]] = {"family": "pool", "source": "op-plugin test "
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


def _blocks(ends: tuple[int, ...], size: int, stride: int) -> list[int]:
    """Where the blocks of each sequence start; what is left of a sequence is dropped."""
    starts = []
    for begin, end in zip((0, *ends[:-1]), ends, strict=True):
        starts += list(range(begin, end - size + 1, stride))
    return starts


_NSA: Final[dict[str, Any]] = {"family": "attention", "source": "Yuan et al.: Native Sparse "
                               "Attention, 2025; op-plugin test test_npu_nsa_compress",
                               "tolerance": "gradient",
                               "dtypes": ("float16", "bfloat16")}  # fmt: skip
_LONG: Final[dict[str, Any]] = {
    "input": t(116, 2, 16, dtype="float16"),
    "weight": t(32, 2, dtype="float16", low=-0.2, high=0.2),
    "compressBlockSize": 32, "compressStride": 16, "actSeqLenType": 0,
}  # fmt: skip
_ENDS: Final = (64, 80, 116)


@spec("aclnnNsaCompress", "output:input", **_NSA, samples=[
    take(**_LONG, actSeqLenOptional=_ENDS, layoutOptional="TND")])  # fmt: skip
def compress(
    input: Array, weight: Array, actSeqLenOptional: tuple[int, ...], compressBlockSize: int,
    compressStride: int,
) -> Array:  # fmt: skip
    """Blocks of [T, N, D] weighed by [block, N] and summed."""
    starts = _blocks(actSeqLenOptional, compressBlockSize, compressStride)
    parts = [input[s : s + compressBlockSize] * weight[..., None] for s in starts]
    return np.stack([p.sum(0) for p in parts])


@spec("aclnnNsaCompressGrad", "inputGradOut:input weightGradOut:weight", **_NSA, samples=[
    take(outputGrad=t(4, 2, 16, dtype="float16"), **_LONG, actSeqLenOptionalOptional=_ENDS,
         layoutOptionalOptional="TND")])  # fmt: skip
def compress_grad(
    outputGrad: Array, input: Array, weight: Array, actSeqLenOptionalOptional: tuple[int, ...],
    compressBlockSize: int, compressStride: int,
) -> tuple[Array, Array]:  # fmt: skip
    rows, weights = np.zeros_like(input), np.zeros_like(weight)
    starts = _blocks(actSeqLenOptionalOptional, compressBlockSize, compressStride)
    for flow, s in zip(outputGrad, starts, strict=True):
        rows[s : s + compressBlockSize] += flow * weight[..., None]
        weights += (input[s : s + compressBlockSize] * flow).sum(-1)
    return rows, weights


@spec("aclnnCrossEntropyLossGrad", "out:logProb", family="loss", **_GRAD, sparse=True,
      source="derivative of torch's cross_entropy", samples=[
          take(gradLoss=t(*flow), logProb=t(5, 9, low=-5, high=-0.2),
               target=given([3, 0, 8, 2, 2], "int64"), reductionOptional=kind, ignoreIndex=ignored,
               weightOptional=weight, labelSmoothing=smooth, lseSquareScaleForZloss=0.0)
          for flow, kind, ignored, weight, smooth in (
              ((), "mean", -100, None, 0.0), ((), "mean", 2, None, 0.0), ((), "sum", 2, None, 0.2),
              ((5,), "none", -100, None, 0.0), ((), "mean", 2, t(9, low=0.3, high=2), 0.2),
              ((5,), "none", 0, t(9, low=0.3, high=2), 0.1))],
      )  # fmt: skip
def cross_entropy_grad(
    gradLoss: Array, logProb: Array, target: Array, weightOptional: Array | None,
    reductionOptional: str, ignoreIndex: int, labelSmoothing: float,
) -> Array:  # fmt: skip
    """Each row: what flows in times the sum of class weights' (softmax - one hot), smoothed over
    the classes; ignored rows are 0."""
    count = logProb.shape[1]
    weight = np.ones(count) if weightOptional is None else weightOptional
    own = weight[target] * (target != ignoreIndex)
    flow = np.broadcast_to(gradLoss, target.shape) * (target != ignoreIndex)
    flow = flow / own.sum() if reductionOptional == "mean" else flow
    hot = np.eye(count)
    wanted = (1 - labelSmoothing) * own[:, None] * hot[target] + labelSmoothing / count * weight
    return flow[:, None] * (wanted.sum(1, keepdims=True) * np.exp(logProb) - wanted)


@spec("aclnnAdaLayerNormQuant", "out:int8 quantScale:float32", family="norm", tolerance="gradient",
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


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_CELL: Final[dict[str, Any]] = {"family": "recurrent", "tolerance": "gradient", "dtypes":
                                ("float32",), "source": "torch 2.13, documents of LSTM, LSTMCell "
                                "and GRU"}  # fmt: skip


@spec("aclnnThnnFusedLstmCell", "hyOut:cx cyOut:cx storageOut:inputGates", **_CELL, samples=[
    take(inputGates=t(3, 4 * 16), hiddenGates=t(3, 4 * 16), cx=t(3, 16), inputBiasOptional=b,
         hiddenBiasOptional=b) for b in (None, t(64))])  # fmt: skip
def lstm_cell(
    inputGates: Array, hiddenGates: Array, cx: Array, inputBiasOptional: Array | None,
    hiddenBiasOptional: Array | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gates in torch's order: input, forget, cell, output; the storage keeps them activated."""
    gates = inputGates + hiddenGates
    for bias in (inputBiasOptional, hiddenBiasOptional):
        gates = gates if bias is None else gates + bias
    i, f, g, o = np.split(gates, 4, -1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    cell = f * cx + i * g
    return o * np.tanh(cell), cell, np.concatenate([i, f, g, o], -1)


def _kept() -> dict[str, Any]:
    drawn = {"inputGates": t(3, 64), "hiddenGates": t(3, 64, high=1.5), "cx": t(3, 16)}
    arrays = {k: v.array().astype(np.float64) for k, v in drawn.items()}
    _, cell, storage = lstm_cell(**arrays, inputBiasOptional=None, hiddenBiasOptional=None)
    return {"cx": given(arrays["cx"].tolist(), "float32"), "cy": given(cell.tolist(), "float32"),
            "storage": given(storage.tolist(), "float32")}  # fmt: skip


@spec("aclnnThnnFusedLstmCellBackward",
      "gradGatesOut:storage gradCxOut:cx gradBiasOut:storage", **_CELL, samples=lambda: [
          take(gradHyOptional=t(3, 16), gradCOptional=c, **_kept(), hasBias=True)
          for c in (t(3, 16), None)])  # fmt: skip
def lstm_cell_backward(
    gradHyOptional: Array, gradCOptional: Array | None, cx: Array, cy: Array, storage: Array
) -> tuple[Array, Array, Array]:
    i, f, g, o = np.split(storage, 4, -1)
    top = np.tanh(cy)
    dc = gradHyOptional * o * (1 - top**2) + (0 if gradCOptional is None else gradCOptional)
    gates = np.concatenate([dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g**2),
                            gradHyOptional * top * o * (1 - o)], -1)  # fmt: skip
    return gates, dc * f, gates.sum(0)


def run(x: Array, params: list[Array], state: Array, cell: Array) -> tuple[Array, Array, Array]:
    """One direction of one layer over [T, B, I]."""
    outs = []
    for row in x:
        state, cell, _ = lstm_cell(row @ params[0].T, state @ params[1].T, cell, *params[2:])
        outs.append(state)
    return np.stack(outs), state, cell


def _nothing() -> dict[str, Any]:
    """What training would keep."""
    return {n: [t(0)] for n in ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")}


@spec("aclnnLSTM", "output:input hy:input cy:input", **_CELL, samples=[
    take(input=t(*((2, 5) if first else (5, 2)), 6),
         params=[t(*s, low=-0.4, high=0.4) for layer in range(layers)
                 for _ in range(2 if both else 1)
                 for s in ((32, 6 if layer == 0 else 8 * (1 + both)), (32, 8),
                           *(((32,), (32,)) if biased else ()))],
         hx=[t(layers * (1 + both), 2, 8), t(layers * (1 + both), 2, 8, high=1.5)], hasBias=biased,
         numLayers=layers, dropout=0.0, train=False, bidirectional=both, batchFirst=first,
         **_nothing())
    for layers, both, biased, first in ((1, False, True, False), (1, True, True, False),
                                        (2, True, True, False), (2, True, False, False),
                                        (1, True, True, True))])  # fmt: skip
def lstm(
    input: Array, params: list[Array], hx: list[Array], hasBias: bool, numLayers: int,
    bidirectional: bool, batchFirst: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Layer on layer; the second direction reads backwards and lies behind the first."""
    states, cells, ways, each = [], [], 2 if bidirectional else 1, 4 if hasBias else 2
    x = input.swapaxes(0, 1) if batchFirst else input
    for layer in range(numLayers):
        parts = []
        for way in range(ways):
            n = layer * ways + way
            own = params[each * n : each * n + each]
            own = own if hasBias else [*own, np.zeros(len(own[0])), np.zeros(len(own[0]))]
            rows, state, cell = run(x[::-1] if way else x, own, hx[0][n], hx[1][n])
            parts.append(rows[::-1] if way else rows)
            states.append(state)
            cells.append(cell)
        x = np.concatenate(parts, -1)
    return x.swapaxes(0, 1) if batchFirst else x, np.stack(states), np.stack(cells)
