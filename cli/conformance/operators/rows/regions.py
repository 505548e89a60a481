"""Regions of feature maps, and windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take

_BOXES: Final = [[1.0, 2.0, 3.0, 10.0, 12.0], [0.0, 4.0, 1.0, 9.0, 6.0], [0.0, -2.0, 5.0, 3.0, 8.0]]
_REGIONS: Final[dict[str, Any]] = {
    "family": "pool",
    "tolerance": "gradient",
    "specials": False,
    "dtypes": ("float32",),
    "sparse": True,
    "source": "He et al.: Mask R-CNN, 2017, section 3; torchvision, document of roi_align",
}


def _hats(at: Array, size: int) -> Array:
    """[n, size]: weights of linear interpolation at places; beyond a cell outside they are 0."""
    near = np.clip(at, 0, size - 1)
    weight = np.clip(1 - np.abs(near[:, None] - np.arange(size)), 0, None)
    return weight * ((at >= -1) & (at <= size))[:, None]


def _bins(low: float, size: float, count: int, ratio: int, cells: int) -> Array:
    """[count, cells]: what each bin of a region takes of a line, the mean over its samples."""
    each = size / count
    n = ratio if ratio > 0 else int(np.ceil(each))
    at = low + each * (np.arange(count)[:, None] + (np.arange(n) + 0.5) / n)
    return _hats(at.reshape(-1), cells).reshape(count, n, cells).mean(1)


@spec("aclnnRoiAlignV2", "out:self", **_REGIONS, samples=[
    take(self=t(2, 3, 14, 16), boxes=given(_BOXES, "float32"), pooledHeight=3, pooledWidth=2,
         spatialScale=scale, samplingRatio=ratio, aligned=aligned)
    for scale, ratio, aligned in ((1.0, 2, True), (1.0, 2, False), (0.5, 0, True))])  # fmt: skip
def roi_align(
    self: Array, boxes: Array, pooledHeight: int, pooledWidth: int, spatialScale: float,
    samplingRatio: int, aligned: bool,
) -> Array:  # fmt: skip
    """Interpolation is separable: a region is a matrix by rows, the plane, a matrix by columns."""
    out = []
    for image, *corners in boxes:
        x0, y0, x1, y1 = (c * spatialScale - 0.5 * aligned for c in corners)
        wide, high = x1 - x0, y1 - y0
        if not aligned:
            wide, high = max(wide, 1.0), max(high, 1.0)
        rows = _bins(y0, high, pooledHeight, samplingRatio, self.shape[2])
        cols = _bins(x0, wide, pooledWidth, samplingRatio, self.shape[3])
        out.append(rows @ self[int(image)] @ cols.T)
    return np.stack(out)


@spec("aclnnMaxPool", "out:self", family="pool", tolerance="exact", specials=False,
      dtypes=("float16", "float32"), source="ONNX 1.17, operator MaxPool", samples=[
          take(self=t(2, 3, 9, 8), kernelShape=kernel, strides=stride, autoPad=0, pads=pads,
               dilations=(1, 1), ceilMode=0)
          for kernel, stride, pads in (((2, 2), (2, 2), (0, 0, 0, 0)),
                                       ((3, 2), (1, 2), (1, 0, 1, 0)),
                                       ((2, 3), (2, 1), (0, 1, 1, 1)))] + [
          take(self=given([[[[1.0, np.nan, -3.0, 0.0], [np.inf, 2.0, 5.0, -np.inf]]]], "float32"),
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
