"""Pooling, unpooling and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch import Tensor
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import const, spec, t, take
from ._defaults import NN_GRADIENT
from ._ignored import follows, one_value, reserved

for _rank, _x, _y in ((2, (2, 3, 5, 7), (2, 3)), (3, (1, 2, 4, 5, 6), (2, 3, 4))):
    _word = getattr(F, f"adaptive_avg_pool{_rank}d")
    spec(f"aclnnAdaptiveAvgPool{_rank}dBackward", "out:self", **NN_GRADIENT,
         samples=[take(gradOutput=t(*_x[:2], *_y), self=t(*_x))])(
        gradient(lambda self, _word=_word, _y=_y: _word(self, _y), grad="gradOutput",
                 of="self"))  # fmt: skip


def _average(rank: int) -> Callable[..., Any]:
    word = getattr(F, f"avg_pool{rank}d")

    def formula(
        self: Tensor,
        kernelSize: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceilMode: bool,
        countIncludePad: bool,
        divisorOverride: int,
    ) -> Tensor:
        return word(self, tuple(kernelSize), tuple(stride), tuple(padding), ceilMode,
                    countIncludePad, divisorOverride or None)  # fmt: skip

    return formula


spec("aclnnAvgPool2dBackward", "gradInput:self",
     constant="stride padding ceilMode",
     **NN_GRADIENT, samples=[
    take(gradOutput=t(2, 3, 3, 4), self=t(2, 3, 5, 7), kernelSize=(2, 2), stride=(2, 2),
         padding=(1, 1), ceilMode=False, countIncludePad=c, divisorOverride=d, cubeMathType=0)
    for c, d in ((True, 0), (False, 0), (True, 3))])(
    gradient(_average(2), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnAvgPool3dBackward", "output:self",
     constant="padding ceilMode",
     **NN_GRADIENT, samples=[
    take(gradOutput=t(1, 2, 2, 2, 3), self=t(1, 2, 4, 5, 6), kernelSize=(2, 2, 2),
         stride=(2, 2, 2), padding=(0, 0, 0), ceilMode=False, countIncludePad=c,
         divisorOverride=d) for c, d in ((True, 0), (False, 5))])(
    gradient(_average(3), grad="gradOutput", of="self"))  # fmt: skip


def scatter_pool(gradOutput: Array, self: Array, indices: Array) -> Array:
    """Every gradient goes back to the flat place that won."""
    result = np.zeros_like(self)
    planes = self.shape[: self.ndim - (gradOutput.ndim - 2)]
    flat = result.reshape(*planes, -1)
    at, flow = indices.reshape(*planes, -1), gradOutput.reshape(*planes, -1)
    for place in np.ndindex(planes):
        np.add.at(flat[place], at[place], flow[place])
    return result


def _winners(shape: tuple[int, ...], planes: int, dtype: str) -> Arg:
    values = (np.arange(np.prod(shape)) * 5 + 1) % planes
    return const(values.reshape(shape).tolist(), dtype)


for _rank, _x, _y in ((2, (2, 3, 5, 7), (2, 3)), (3, (1, 2, 4, 5, 6), (2, 3, 4))):
    _plane = int(np.prod(_x[2:]))
    spec(f"aclnnAdaptiveMaxPool{_rank}dBackward", "gradInput:self", **NN_GRADIENT, samples=[
        take(gradOutput=t(*_x[:2], *_y), self=t(*_x), indices=_winners((*_x[:2], *_y), _plane, d))
        for d in (("int64",) if _rank == 2 else ("int32",))])(scatter_pool)  # fmt: skip
_WINDOW: Final[dict[str, Any]] = {"kernelSize": (2, 2), "stride": (2, 2), "padding": (0, 0),
                                  "dilation": (1, 1), "ceilMode": False}  # fmt: skip


def _window_winners(shape: tuple[int, ...], kernel: int) -> list[Any]:
    """Places that lie in their own windows: the first corner, the last, in turn."""
    cols = shape[-1] * kernel
    base = np.arange(shape[-2])[:, None] * kernel * cols + np.arange(shape[-1]) * kernel
    return list(np.broadcast_to(base, shape).tolist())


spec("aclnnMaxPool2dWithIndicesBackward", "gradInput:self",
     ignored=follows("kernelSize stride padding dilation ceilMode"),
     **NN_GRADIENT, samples=[
    take(gradOutput=t(2, 3, 2, 3), self=t(2, 3, 5, 6),
         indices=const(_window_winners((2, 3, 2, 3), 2), "int32"), **_WINDOW),
    # Windows that overlap share their winner.
    take(gradOutput=t(1, 1, 4, 5), self=t(1, 1, 5, 6), kernelSize=(2, 2), stride=(1, 1),
         indices=const([[[[7, 7, 9, 9, 11], [7, 7, 9, 9, 11], [19, 19, 21, 21, 23],
                          [19, 19, 21, 21, 23]]]], "int32"), padding=(0, 0), dilation=(1, 1),
         ceilMode=False)])(
    lambda gradOutput, self, indices: scatter_pool(gradOutput, self, indices))  # fmt: skip
spec("aclnnMaxPool3dWithArgmaxBackward", "gradInput:self",
     ignored=follows("kernelSize stride padding dilation ceilMode"),
     **NN_GRADIENT, samples=[
    take(gradOutput=t(1, 2, 2, 2, 3), self=t(1, 2, 4, 5, 6),
         indices=const((np.arange(24).reshape(1, 2, 2, 2, 3) % 2 + 6).tolist(), "int32"),
         kernelSize=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0), dilation=(1, 1, 1),
         ceilMode=False)])(
    lambda gradOutput, self, indices: scatter_pool(gradOutput, self, indices))  # fmt: skip
spec("aclnnGlobalAveragePool", "out:self", **NN_GRADIENT, samples=[take(self=t(2, 3, 5, 7))])(
    lambda self: self.mean((2, 3), keepdims=True))  # fmt: skip
spec("aclnnGlobalMaxPool", "out:self", **{**NN_GRADIENT, "tolerance": "exact"}, specials=False,
     samples=[take(self=t(2, 3, 5, 7))])(
    lambda self: self.max((2, 3), keepdims=True))  # fmt: skip
_UNPOOL: Final = _winners((2, 3, 2, 3), 30, "int64")
spec("aclnnMaxUnpool2dBackward", "out:gradOutput",
     ignored=follows("outputSize"),
     **NN_GRADIENT, samples=[
    take(gradOutput=t(2, 3, 5, 6), self=t(2, 3, 2, 3), indices=_UNPOOL, outputSize=(5, 6))])(
    lambda gradOutput, self, indices: np.take_along_axis(
        gradOutput.reshape(2, 3, -1), indices.reshape(2, 3, -1), 2).reshape(self.shape),
)  # fmt: skip


def unpool(self: Array, indices: Array, outputSize: tuple[int, ...]) -> Array:
    result = np.zeros((*self.shape[:2], int(np.prod(outputSize))))
    np.put_along_axis(result, indices.reshape(*self.shape[:2], -1),
                      self.reshape(*self.shape[:2], -1), 2)  # fmt: skip
    return result.reshape(*self.shape[:2], *outputSize)


spec(
    "aclnnMaxUnpool2d",
    "out:self",
    samples=[take(self=t(2, 3, 2, 3), indices=_UNPOOL, outputSize=(5, 6))],
    **NN_GRADIENT,
)(unpool)


@spec("aclnnMaxPool", "out:self",
      ignored=one_value("autoPad dilations"),
      tolerance="exact", specials=False,
      dtypes=("float16", "float32"), source="ONNX 1.17, operator MaxPool", samples=[
          take(self=t(2, 3, 9, 8), kernelShape=kernel, strides=stride, autoPad=0, pads=pads,
               dilations=(1, 1), ceilMode=0)
          for kernel, stride, pads in (((2, 2), (2, 2), (0, 0, 0, 0)),
                                       ((3, 2), (1, 2), (1, 0, 1, 0)),
                                       ((2, 3), (2, 1), (0, 1, 1, 1)))] + [
          take(self=const([[[[1.0, np.nan, -3.0, 0.0], [np.inf, 2.0, 5.0, -np.inf]]]], "float32"),
               kernelShape=(2, 2), strides=(1, 1), autoPad=0, pads=(0, 0, 0, 0),
               dilations=(1, 1), ceilMode=0),
          take(self=t(2, 3, 9, 8, high=-1, low=-9), kernelShape=(2, 3), strides=(2, 2), autoPad=0,
               pads=(0, 0, 0, 0), dilations=(1, 1), ceilMode=1),
          # Last windows that begin in the padding, which are none, and with the last element.
          take(self=t(1, 2, 5, 5), kernelShape=(2, 2), strides=(2, 5), autoPad=0,
               pads=(1, 1, 1, 0), dilations=(1, 1), ceilMode=1)])  # fmt: skip
def max_pool(
    self: Array, kernelShape: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    ceilMode: int,
) -> Array:  # fmt: skip
    """Pads come as begins, then ends, of rows and columns; a last window may reach past them."""
    more = [-(n + pads[i] + pads[i + 2] - k) % s if ceilMode else 0 for i, (n, k, s) in
            enumerate(zip(self.shape[2:], kernelShape, strides, strict=True))]  # fmt: skip
    first = [n + pads[i] for i, n in enumerate(self.shape[2:])]  # of the padding at the end
    width = ((0, 0), (0, 0), (pads[0], pads[2] + more[0]), (pads[1], pads[3] + more[1]))
    padded = np.pad(self, width, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(kernelShape), (2, 3))
    down, across = first if ceilMode else windows.shape[2:4]
    return windows[:, :, : down : strides[0], : across : strides[1]].max((-2, -1))


@spec("aclnnMaxUnpool3d", "outRef:self",
      ignored=reserved("stride padding"),
      tolerance="exact", sparse=True,
      dtypes=("float32",), source="torch 2.13, document of MaxUnpool3d", samples=[
          take(self=t(1, 2, 1, 2, 2), indices=const([[[[[0, 3], [9, 14]]], [[[1, 2], [8, 15]]]]],
               "int64"), outputSize=(1, 4, 4), stride=(1, 2, 2), padding=(0, 0, 0))])  # fmt: skip
def unpool_3d(self: Array, indices: Array, outputSize: tuple[int, ...]) -> Array:
    flat = np.zeros((*self.shape[:2], int(np.prod(outputSize))))
    np.put_along_axis(flat, indices.reshape(*self.shape[:2], -1),
                      self.reshape(*self.shape[:2], -1), -1)  # fmt: skip
    return flat.reshape(*self.shape[:2], *outputSize)


@spec("aclnnMaxUnpool3dBackward", "out:self",
      ignored=follows("outputSize stride padding"),
      tolerance="exact", sparse=True,
      dtypes=("float32",), source="derivative of torch's MaxUnpool3d", samples=[
          take(gradOutput=t(1, 2, 1, 4, 4), self=t(1, 2, 1, 2, 2), indices=const(
              [[[[[0, 3], [9, 14]]], [[[1, 2], [8, 15]]]]], "int64"), outputSize=(1, 4, 4),
               stride=(1, 2, 2), padding=(0, 0, 0))])  # fmt: skip
def unpool_3d_backward(gradOutput: Array, self: Array, indices: Array) -> Array:
    flat = gradOutput.reshape(*self.shape[:2], -1)
    at = indices.reshape(*self.shape[:2], -1)
    return np.take_along_axis(flat, at, -1).reshape(self.shape)


def _own_mask(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """The mask is the operator's own: any will do."""
    return [values[0], got[1]]


@spec("aclnnMaxPool2dWithMask", "out:self indices:int8",
      ignored=one_value("dilation")
      | follows("ceilMode"),
      tolerance="exact",
      sparse=True, dtypes=("float16", "bfloat16", "float32"), nearest=_own_mask,
      source="torch 2.13, document of F.max_pool2d; the mask is the operator's own and not judged",
      samples=[
          take(self=t(2, 3, 6, 7), kernelSize=k, stride=k, padding=p, dilation=(1, 1),
               ceilMode=False) for k, p in (((2, 2), (0, 0)), ((3, 2), (1, 1)))])  # fmt: skip
def masked_pool(
    self: Array, kernelSize: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> tuple[Any, Array]:
    y = words(lambda x: F.max_pool2d(x, kernelSize, stride, padding))(x=self)
    blocks = -(-y.shape[2] * y.shape[3] // 16) + 1
    mask = np.zeros((*y.shape[:2], kernelSize[0] * kernelSize[1], blocks * 32), np.int8)
    return y, mask
