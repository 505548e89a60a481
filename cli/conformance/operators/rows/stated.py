"""Operators whose formulas stand in documents of ONNX, TensorFlow and torch, or are adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .regions import _bins

_REGIONS: Final[dict[str, Any]] = {
    "family": "pool", "tolerance": "gradient", "specials": False, "dtypes": ("float32",),
    "sparse": True, "source": "ONNX, operator RoiAlign; He et al.: Mask R-CNN, 2017, section 3",
}  # fmt: skip
_CORNERS: Final = [[2.0, 3.0, 10.0, 12.0], [3.0, 1.0, 9.0, 6.0], [0.5, 2.5, 7.0, 11.0]]
_OF: Final = [1, 0, 1]


def _maps(corners: Array, scale: float, sizes: tuple[int, int], cells: tuple[int, int], ratio: int,
          aligned: bool) -> tuple[Array, Array]:  # fmt: skip
    """What the bins of a region take of rows and of columns: two matrices."""
    x0, y0, x1, y1 = (c * scale - 0.5 * aligned for c in corners)
    wide, high = x1 - x0, y1 - y0
    if not aligned:
        wide, high = max(wide, 1.0), max(high, 1.0)
    return (_bins(y0, high, sizes[0], ratio, cells[0]), _bins(x0, wide, sizes[1], ratio, cells[1]))


@spec("aclnnRoiAlign", "out:self", **_REGIONS, samples=[
    take(self=t(2, 3, 14, 16), rois=given(_CORNERS, "float32"), batchIndices=given(_OF, "int32"),
         mode="avg", outputHeight=3, outputWidth=2, samplingRatio=2, spatialScale=scale)
    for scale in (1.0, 0.5)] + [
    take(self=t(2, 3, 14, 16, low=0.1, high=9), rois=given(_CORNERS, "float32"),
         batchIndices=given(_OF, "int32"), mode="max", outputHeight=3, outputWidth=2,
         samplingRatio=2, spatialScale=0.5)])  # fmt: skip
def roi_align(
    self: Array, rois: Array, batchIndices: Array, mode: str, outputHeight: int, outputWidth: int,
    samplingRatio: int, spatialScale: float,
) -> Array:  # fmt: skip
    """A bin's mean of its samples, or the largest of what its samples weigh."""
    planes = []
    for corners, image in zip(rois, batchIndices, strict=True):
        if mode == "max":  # a bin for each sample, then the bins of a bin
            n = samplingRatio
            rows, columns = _maps(corners, spatialScale, (outputHeight * n, outputWidth * n),
                                  (self.shape[2], self.shape[3]), 1, False)  # fmt: skip
            tops = np.einsum("ih,jw,chw->cijhw", rows, columns, self[int(image)]).max((-2, -1))
            planes.append(tops.reshape(-1, outputHeight, n, outputWidth, n).max((2, 4)))
            continue
        rows, columns = _maps(corners, spatialScale, (outputHeight, outputWidth),
                              (self.shape[2], self.shape[3]), samplingRatio, False)  # fmt: skip
        planes.append(rows @ self[int(image)] @ columns.T)
    return np.stack(planes)


@spec("aclnnRoiAlignV2Backward", "gradInput:gradOutput", **_REGIONS, samples=[
    take(gradOutput=t(3, 2, 3, 2), boxes=given([[i, *b] for i, b in zip(_OF, _CORNERS,
         strict=True)], "float32"), inputShape=(2, 2, 14, 16), pooledHeight=3, pooledWidth=2,
         spatialScale=0.5, samplingRatio=ratio, aligned=aligned)
    for ratio, aligned in ((2, True), (2, False), (0, True))])  # fmt: skip
def roi_align_backward(
    gradOutput: Array, boxes: Array, inputShape: Sequence[int], pooledHeight: int,
    pooledWidth: int, spatialScale: float, samplingRatio: int, aligned: bool,
) -> Array:  # fmt: skip
    """The transposed maps carry gradients back; images that several regions lie in add up."""
    out = np.zeros(tuple(inputShape))
    for (image, *corners), flow in zip(boxes, gradOutput, strict=True):
        rows, columns = _maps(np.array(corners), spatialScale, (pooledHeight, pooledWidth),
                              (inputShape[2], inputShape[3]), samplingRatio, aligned)  # fmt: skip
        out[int(image)] += rows.T @ flow @ columns
    return out


@spec("aclnnApplyAdam", "varRef:varRef", family="optimizer", tolerance="gradient",
      dtypes=("float32",), source="TensorFlow, tf.raw_ops.ApplyAdam", samples=[
          take(varRef=t(3, 65), m=t(3, 65), v=t(3, 65, low=0), beta1Power=given([0.81], "float32"),
               beta2Power=given([0.98], "float32"), lr=given([0.05], "float32"),
               beta1=given([0.9], "float32"), beta2=given([0.99], "float32"),
               epsilon=given([1e-3], "float32"), grad=t(3, 65), useLocking=False, useNesterov=n)
          for n in (False, True)])  # fmt: skip
def apply_adam(
    varRef: Array, m: Array, v: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    beta1: Array, beta2: Array, epsilon: Array, grad: Array, useNesterov: bool,
) -> Array:  # fmt: skip
    rate = lr * np.sqrt(1 - beta2Power) / (1 - beta1Power)
    mean = m * beta1 + grad * (1 - beta1)
    spread = np.sqrt(v * beta2 + grad**2 * (1 - beta2))
    step = mean * beta1 + grad * (1 - beta1) if useNesterov else mean
    return np.asarray(varRef - rate * step / (spread + epsilon))


@spec("aclnnConfusionTranspose", "out:x", family="shape", tolerance="exact",
      source="op-plugin, document of npu_confusion_transpose: a transposition before or after a "
      "change of shape", samples=[
          take(x=t(4, 6, 5), perm=(1, 2, 0), shape=(15, 8), transpose_first=True),
          take(x=t(4, 6, 5), perm=(2, 0, 1), shape=(3, 8, 5), transpose_first=False),
          # Heads taken apart and put together again, as in attention; flat shapes and more dims.
          take(x=t(2, 3, 4, 5), perm=(0, 2, 1, 3), shape=(2, 4, 15), transpose_first=True),
          take(x=t(2, 4, 15), perm=(0, 2, 1, 3), shape=(2, 4, 3, 5), transpose_first=False),
          take(x=t(7, 6), perm=(1, 0), shape=(42,), transpose_first=True),
          take(x=t(2, 1, 3, 2, 4), perm=(4, 1, 3, 0, 2), shape=(8, 6), transpose_first=True),
          take(x=t(48), perm=(3, 1, 0, 2), shape=(2, 3, 2, 4), transpose_first=False),
      ])  # fmt: skip
def confusion_transpose(
    x: Array, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Array:
    if transpose_first:
        return np.transpose(x, perm).reshape(shape)
    return np.transpose(x.reshape(shape), perm)


_LISTED: Final = [
    [0, 0, 10, 10],
    [1, 1, 11, 11],
    [20, 20, 30, 30],
    [21, 20, 31, 31],
    [50, 5, 60, 9],
]


_SCORES: Final = [[[0.3, 0.8, 0.55, 0.75, 0.6], [0.2, 0.7, 0.95, 0.4, 0.85]],
                  [[0.9, 0.1, 0.35, 0.45, 0.5], [0.65, 0.15, 0.25, 0.05, 0.12]]]  # fmt: skip
# Two images: equal boxes, boxes that touch, corners the other way round, centres; thresholds that
# let everything stay, nothing that overlaps, no box but the best.
_PLACED: Final = [
    [[4, 4, 8, 8], [8, 8, 4, 4], [8, 4, 12, 8], [6, 4, 10, 8], [40, 40, 44, 46]],
    [[2, 2, 12, 12], [4, 4, 10, 10], [12, 2, 2, 12], [20, 20, 30, 24], [21, 19, 31, 23]],
]  # fmt: skip
_DETECTIONS: Final = [
    take(boxes=given(_PLACED, "float32"), scores=given(_SCORES, "float32"),
         maxOutputBoxesPerClass=(most,), iouThreshold=(near,), scoreThreshold=(least,),
         centerPointBox=centres)
    for most, near, least, centres in ((5, 0.5, 0.0, 0), (5, 0.0, 0.0, 0), (5, 0.99, 0.3, 0),
                                       (4, 0.2, 0.0, 1), (1, 0.3, 0.5, 1))
] + [
    # Centres whose neighbours overlap by 3/5 of a width, or touch.
    take(boxes=given([[[5, 5, 4, 4], [6, 5, 4, 4], [10, 5, 4, 4], [30, 30, 4, 2], [30, 31, 4, 2]]],
                     "float32"),
         scores=given(_SCORES[:1], "float32"), maxOutputBoxesPerClass=(5,), iouThreshold=(0.5,),
         scoreThreshold=(0.0,), centerPointBox=1),
    # Far more right than down, and the other way.
    take(boxes=given([[[50, 5, 4, 4], [52, 5, 4, 4], [5, 50, 4, 4], [7, 50, 4, 4], [7, 53, 4, 4]]],
                     "float32"),
         scores=given(_SCORES[:1], "float32"), maxOutputBoxesPerClass=(5,), iouThreshold=(0.5,),
         scoreThreshold=(0.0,), centerPointBox=1),
]  # fmt: skip


@spec("aclnnNonMaxSuppression", "selectedIndices:int32", family="search", tolerance="exact",
      dtypes=("float32",), specials=False, sparse=True,
      source="ONNX, operator NonMaxSuppression", samples=[
          take(boxes=given([_LISTED], "float32"), scores=given([[[0.9, 0.8, 0.3, 0.75, 0.6],
               [0.2, 0.7, 0.95, 0.4, 0.85]]], "float32"), maxOutputBoxesPerClass=(most,),
               iouThreshold=(0.5,), scoreThreshold=(0.25,), centerPointBox=0)
          for most in (1, 2, 3)] + _DETECTIONS)  # fmt: skip
def non_max_suppression(
    boxes: Array, scores: Array, maxOutputBoxesPerClass: Sequence[int],
    iouThreshold: Sequence[float], scoreThreshold: Sequence[float], centerPointBox: int,
) -> Array:  # fmt: skip
    """Rows of image, class and box: the best of those that are left removes its neighbours.

    Corners come in any order, or boxes are centres with width and height."""
    rows = []
    for image, of_image in enumerate(scores):
        one, two = np.split(boxes[image], 2, 1)
        low, high = (one - two / 2, one + two / 2) if centerPointBox else (
            np.minimum(one, two), np.maximum(one, two))  # fmt: skip
        b = np.concatenate([low, high], 1)
        area = np.prod(b[:, 2:] - b[:, :2], axis=1)
        low = np.maximum(b[:, None, :2], b[None, :, :2])
        high = np.minimum(b[:, None, 2:], b[None, :, 2:])
        inter = np.prod(np.clip(high - low, 0, None), axis=-1)
        near = inter / (area[:, None] + area - inter) > iouThreshold[0]
        for kind, of_class in enumerate(of_image):
            alive = of_class > scoreThreshold[0]
            for _ in range(maxOutputBoxesPerClass[0]):
                if not alive.any():
                    break
                best = int(np.argmax(np.where(alive, of_class, -np.inf)))
                rows.append([image, kind, best])
                alive &= ~near[best]
    return np.array(rows, np.int32)


def _half(*shape: int) -> Arg:
    return t(*shape, dtype="float16", low=-0.4, high=0.4)


_LSTM: Final = [_half(*shape) for shape in ((32, 6), (32, 8), (32,), (32,))]


def _lstm(
    x: Array, h: Array, c: Array, cell: Sequence[Array | None]
) -> tuple[Array, Array, Array]:  # fmt: skip
    """States of all steps, the last state and the last cell; gates are i, f, g, o by rows."""
    w, u, *biases = cell
    assert w is not None
    assert u is not None
    shift = sum(b for b in biases if b is not None)
    states = []
    for row in x:
        i, f, g, o = np.split(row @ w.T + h @ u.T + shift, 4, -1)
        i, f, o = ((1 + np.tanh(gate / 2)) / 2 for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), h, c


@spec("aclnnBidirectionLSTM aclnnBidirectionLSTMV2", "yOut:x outputHOut:x outputCOut:x",
      family="recurrent", tolerance="gradient", dtypes=("float16",),
      source="torch 2.13, document of LSTM; Hochreiter, Schmidhuber, 1997; Gers et al., 2000",
      samples=[take(x=_half(*((2, 5) if first else (5, 2)), 6), initH=_half(1 + both, 2, 8),
                    initC=_half(1 + both, 2, 8), wIh=_LSTM[0], wHh=_LSTM[1],
                    bIhOptional=_LSTM[2] if biased else None,
                    bHhOptional=_LSTM[3] if biased else None,
                    wIhReverseOptional=_LSTM[0] if both else None,
                    wHhReverseOptional=_LSTM[1] if both else None,
                    bIhReverseOptional=_LSTM[2] if both and biased else None,
                    bHhReverseOptional=_LSTM[3] if both and biased else None, numLayers=1,
                    isbias=biased, batchFirst=first, bidirection=both, packed=False)
               for biased, first, both in ((True, False, True), (False, False, True),
                                           (True, True, True), (True, False, False))])  # fmt: skip
def bidirectional_lstm(
    x: Array, initH: Array, initC: Array, wIh: Array, wHh: Array, bIhOptional: Array | None,
    bHhOptional: Array | None, wIhReverseOptional: Array | None, wHhReverseOptional: Array | None,
    bIhReverseOptional: Array | None, bHhReverseOptional: Array | None, isbias: bool,
    batchFirst: bool, bidirection: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    x = x.swapaxes(0, 1) if batchFirst else x
    back = (wIhReverseOptional, wHhReverseOptional, bIhReverseOptional, bHhReverseOptional)
    cells = [(wIh, wHh, bIhOptional, bHhOptional), back]
    ways = []
    for n, cell in enumerate(cells[: 1 + bidirection]):
        states, h, c = _lstm(x[::-1] if n else x, initH[n], initC[n], cell[: 4 if isbias else 2])
        ways.append((states[::-1] if n else states, h, c))
    y = np.concatenate([way[0] for way in ways], -1)
    last = [np.stack([way[n] for way in ways]) for n in (1, 2)]
    return y.swapaxes(0, 1) if batchFirst else y, last[0], last[1]


def _partial(kind: int) -> dict[str, Arg | int | tuple[int, ...]]:
    return {"xRef": t(2, 3, 4, 16), "cos": t(2, 3, 1, 8), "sin": t(2, 3, 1, 8),
            "rotary_mode": kind, "partialSlice": (4, 12)}  # fmt: skip


@spec("aclnnInplacePartialRotaryMul", "xRef:xRef", family="attention", tolerance="gradient",
      source="Su et al.: RoFormer, 2021, section 3.4; op-plugin, document of npu_rotary_mul",
      samples=[take(**_partial(0)), take(**_partial(1))])  # fmt: skip
def partial_rotary(
    xRef: Array, cos: Array, sin: Array, rotary_mode: int, partialSlice: Sequence[int]
) -> Array:
    """Part of the last dimension turns: halves of it are pairs, or neighbours are."""
    out = xRef.copy()
    x = xRef[..., partialSlice[0] : partialSlice[1]]
    n = x.shape[-1]
    partner = np.arange(n) ^ 1 if rotary_mode == 1 else (np.arange(n) + n // 2) % n
    first = np.arange(n) % 2 == 0 if rotary_mode == 1 else np.arange(n) < n // 2
    out[..., partialSlice[0] : partialSlice[1]] = (
        x * cos + np.where(first, -x[..., partner], x[..., partner]) * sin
    )
    return out
