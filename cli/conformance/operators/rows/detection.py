"""Boxes and regions: overlap, suppression, pooling, distances of points."""

from __future__ import annotations

from ....spec import *
from ._words import *

_ROI_ALIGN: Final = Rule("gradient", "ONNX, operator RoiAlign; He et al.: Mask R-CNN, 2017, "
                         "section 3", sparse=True, specials=False)  # fmt: skip
_PLANE: Final = sizes(N=rows(3, 1, 9), X=space(14, 5, 17), Y=space(16, 7, 9))
_WHERE: Final = "inside beyond tiny"


def _regions(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Corners of regions: inside of the image, partly outside of it, or smaller than a pixel."""
    size = np.array([draw["Y"], draw["X"]]) - 1.0
    spread = {"inside": 0.0, "beyond": 0.7, "tiny": 0.0}[pattern]
    low = rng.uniform(-spread, 0.6, (draw["N"], 2)) * size
    wide = rng.uniform(0.1, 0.4 + spread, low.shape) * size
    wide = rng.uniform(0.1, 0.9, low.shape) if pattern == "tiny" else wide
    return np.concatenate([low, low + wide], 1)


def _numbered(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Regions with the number of their image."""
    images = rng.integers(0, draw["B"], (draw["N"], 1))
    return np.concatenate([images, _regions(rng, pattern, draw)], 1)


_BOXES: Final = content(_numbered, _WHERE, "f32", shape="N 5")
_POOLED: Final[dict[str, Domain]] = {
    "pooledHeight": integer(3, 1, 7), "pooledWidth": integer(2, 1, 5),
    "spatialScale": number(1.0, 0.5, 0.25), "samplingRatio": integer(2, 0, 1, 3),
    "aligned": flag(True)}  # fmt: skip


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


def _maps(corners: Array, scale: float, sizes: tuple[int, int], cells: tuple[int, int], ratio: int,
          aligned: bool) -> tuple[Array, Array]:  # fmt: skip
    """What the bins of a region take of rows and of columns: two matrices."""
    x0, y0, x1, y1 = (c * scale - 0.5 * aligned for c in corners)
    wide, high = x1 - x0, y1 - y0
    if not aligned:
        wide, high = max(wide, 1.0), max(high, 1.0)
    return (_bins(y0, high, sizes[0], ratio, cells[0]), _bins(x0, wide, sizes[1], ratio, cells[1]))


@spec("aclnnRoiAlign", _ROI_ALIGN, _PLANE, require("mode == 'avg' or samplingRatio > 0"),
      # Whether samples at the edge weigh zeros too, negative numbers alone would tell.
      self=by("mode", {"avg": tensor("B C X Y", "f32"),
                       "max": tensor("B C X Y", "f32", 0.1, 9)}),
      rois=content(_regions, _WHERE, "f32", shape="N 4"),
      batchIndices=index("N", into="B", dtype="i32"), mode=choice("avg", "max"),
      outputHeight=integer(3, 1, 7), outputWidth=integer(2, 1, 5),
      samplingRatio=integer(2, 0, 1, 3), spatialScale=number(1.0, 0.5, 0.25),
      out=out("self"))  # fmt: skip
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


@spec("aclnnRoiAlignV2Backward", _ROI_ALIGN, _PLANE,
      gradOutput=tensor("N C pooledHeight pooledWidth", "f32"), boxes=_BOXES,
      inputShape=dims("B C X Y"), **_POOLED, gradInput=out("gradOutput"))  # fmt: skip
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


def _overlapping(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """[B, M, 4]: corners in either order, or centres with sizes, on a grid of whole numbers."""
    low = rng.integers(0, 24 if pattern == "apart" else 9, (draw["B"], draw["M"], 2)) * 2.0
    wide = rng.integers(1, 5, low.shape) * 2.0
    if pattern == "alike":
        low, wide = np.broadcast_to(low[:, :1], low.shape), np.broadcast_to(wide[:, :1], low.shape)
    wide = np.full_like(wide, 2.0) if pattern == "touching" else wide
    if draw["centerPointBox"]:
        return np.concatenate([low + wide / 2, wide], -1)
    corners = np.stack([low, low + wide], 2)
    if pattern == "turned":  # each of the two directions by itself
        corners = rng.permuted(corners, axis=2)
    return corners.reshape(*low.shape[:2], 4)


def _steps(rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
    """Scores of which none is another's, in steps of a power of two: some are limits themselves."""
    shape = (draw["B"], draw["C"], draw["M"])
    places = np.argsort(rng.random(shape), -1)
    return places / 2.0 ** np.floor(np.log2(max(draw["M"] - 1, 1)))


# Thresholds that binary fractions of areas meet: a box is removed only beyond the threshold.
@spec("aclnnNonMaxSuppression", Rule("exact", "ONNX, operator NonMaxSuppression", sparse=True,
                                     specials=False),
      sizes(M=rows(5, 1, 17, 65), C=channels(2, 1, 3)),
      boxes=content(_overlapping, "overlapping apart touching alike turned", "f32",
                    shape="B M 4"),
      scores=forms(any=tensor("B C M", "f32", 0.0, 1.0),
                   steps=content(_steps, "distinct", "f32", shape="B C M")),
      maxOutputBoxesPerClass=array((5,), (1,), (2,), (100,)),
      iouThreshold=array((0.5,), (0.0,), (0.25,), (0.75,), (1.0,)),
      scoreThreshold=array((0.0,), (0.25,), (0.5,)), centerPointBox=integer(0, 1),
      selectedIndices=out("i32"))  # fmt: skip
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
                alive[best] = False
    return np.array(rows, np.int32).reshape(-1, 3)


def _corners(roi: Array, scale: float) -> tuple[int, ...]:
    """The nearest pixels; halves away from zero."""
    return tuple(int(np.copysign(np.floor(abs(v * scale) + 0.5), v)) for v in roi[1:])


@spec("aclnnRoiPoolingWithArgMax", Rule(
          "exact", "Girshick: Fast R-CNN, 2015, section 2.1; Caffe's layer ROIPooling",
          sparse=True, specials=False), _PLANE,
      x=tensor("B C X Y", "f32 f16"), rois=content(_numbered, _WHERE, "x", shape="N 5"),
      pooled_h=integer(2, 1, 5), pooled_w=integer(3, 1, 7),
      spatial_scale_h=number(1.0, 0.5, 0.25), spatial_scale_w=number(1.0, 0.5, 0.25),
      y=out("x"), argmax=out("i32"))  # fmt: skip
def region_maxima(
    x: Array, rois: Array, pooled_h: int, pooled_w: int, spatial_scale_h: float,
    spatial_scale_w: float,
) -> tuple[Array, Array]:  # fmt: skip
    """A region's rows and columns are cut into bins that may share pixels."""
    shape = (len(rois), x.shape[1], pooled_h, pooled_w)
    y, at = np.zeros(shape), np.full(shape, -1)
    for n, roi in enumerate(rois):
        left, _, right, _ = _corners(roi, spatial_scale_w)
        _, top, _, bottom = _corners(roi, spatial_scale_h)
        high, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in np.ndindex(pooled_h, pooled_w):
            rows = range(top + i * high // pooled_h, top - (-(i + 1) * high // pooled_h))
            columns = range(left + j * wide // pooled_w, left - (-(j + 1) * wide // pooled_w))
            places = [r * x.shape[3] + c for r in rows for c in columns
                      if 0 <= r < x.shape[2] and 0 <= c < x.shape[3]]  # fmt: skip
            if places:
                values = x[int(roi[0])].reshape(x.shape[1], -1)[:, places]
                best = values.argmax(1)
                y[n, :, i, j], at[n, :, i, j] = values.max(1), np.array(places)[best]
    return y, at


def _winners(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Places in the plane; -1 of a bin without pixels."""
    shape = (draw["N"], draw["C"], draw["PH"], draw["PW"])
    places = rng.integers(0, draw["X"] * draw["Y"], shape)
    if pattern == "alike":
        return np.full(shape, draw["X"] * draw["Y"] - 1)
    return np.where(rng.random(shape) < 0.4, -1, places) if pattern == "empty_bins" else places


@spec("aclnnRoiPoolingGradWithArgMax", Rule(
          "accumulated", "Girshick: Fast R-CNN, 2015, section 2.3", sparse=True,
          specials=False), _PLANE, sizes(PH=window(2, 1, 5), PW=window(3, 1, 4)),
      gradOutput=tensor("N C PH PW", "f32"), gradInputRef=inout(tensor("B C X Y", "f32")),
      rois=_BOXES, argmax=content(_winners, "random alike empty_bins", "i32",
                                  shape="N C PH PW"),
      pooledH=equals("PH"), pooledW=equals("PW"),
      spatialScale=ignored("argmax says which pixels won", number(1.0, 0.5)))  # fmt: skip
def region_grads(gradOutput: Array, gradInputRef: Array, rois: Array, argmax: Array) -> Array:
    """What flows in goes to the pixel that won."""
    out = gradInputRef.copy()
    flat = out.reshape(*out.shape[:2], -1)
    for n, c, i, j in np.ndindex(gradOutput.shape):
        if argmax[n, c, i, j] >= 0:
            flat[int(rois[n, 0]), c, argmax[n, c, i, j]] += gradOutput[n, c, i, j]
    return out


_ROI_ALIGN_V2: Final = replace(_ROI_ALIGN, source="He et al.: Mask R-CNN, 2017, section 3; "
                               "torchvision, document of roi_align")  # fmt: skip


@spec("aclnnRoiAlignV2", _ROI_ALIGN_V2, _PLANE, self=tensor("B C X Y", "f32"), boxes=_BOXES,
      **_POOLED, out=out("self"))  # fmt: skip
def roi_align_v2(
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


_NEAREST: Final = Rule("gradient", "Fan, Su, Guibas: A Point Set Generation Network, 2017: "
                       "derivative of squared distances to the nearest point")  # fmt: skip


@spec("aclnnChamferDistanceBackward", _NEAREST, sizes(N=tokens(5, 1, 33, 130)),
      xyz1=tensor("B N 2", "f32 f16"), xyz2=tensor("B N 2", "xyz1"),
      idx1=index("B N", into="N", dtype="i32"), idx2=index("B N", into="N", dtype="i32"),
      gradDist1=tensor("B N", "xyz1"), gradDist2=tensor("B N", "xyz1"), gradXyz1=out("xyz1"),
      gradXyz2=out("xyz1"))  # fmt: skip
def chamfer_backward(
    xyz1: Array, xyz2: Array, idx1: Array, idx2: Array, gradDist1: Array, gradDist2: Array
) -> tuple[Array, Array]:
    one, two = np.zeros_like(xyz1), np.zeros_like(xyz2)
    for b in range(len(xyz1)):
        for i, j in enumerate(idx1[b]):
            flow = 2 * gradDist1[b, i] * (xyz1[b, i] - xyz2[b, j])
            one[b, i], two[b, j] = one[b, i] + flow, two[b, j] - flow
        for i, j in enumerate(idx2[b]):
            flow = 2 * gradDist2[b, i] * (xyz2[b, i] - xyz1[b, j])
            two[b, i], one[b, j] = two[b, i] + flow, one[b, j] - flow
    return one, two


@spec("aclnnThreeInterpolateBackward", replace(_NEAREST, source="Qi et al.: PointNet++, 2017: "
                                               "derivative of weighing three neighbours"),
      sizes(N=tokens(4, 1, 17, 65), M=tokens(5, 1, 33)), grad_x=tensor("B C N 1", "f32 f16"),
      idx=index("B N 3", into="M", dtype="i32"), weight=tensor("B N 3", "grad_x", 0),
      m=equals("M"), grad_y=out("grad_x"))  # fmt: skip
def three_backward(grad_x: Array, idx: Array, weight: Array, m: int) -> Array:
    out = np.zeros((*grad_x.shape[:2], m, 1))
    for b in range(len(idx)):
        for n, neighbours in enumerate(idx[b]):
            for at, w in zip(neighbours, weight[b, n], strict=True):
                out[b, :, at] += w * grad_x[b, :, n]
    return out


def _boxes(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Boxes on a grid of halves: overlapping, apart, touching, without area."""
    low = rng.integers(0, {"apart": 60, "touching": 3}.get(pattern, 8), (draw["M"], 2)) * 2.0
    wide = 2.0 if pattern == "touching" else rng.integers(0 if pattern == "flat" else 1, 9,
                                                           low.shape) / 2  # fmt: skip
    return np.concatenate([low, low + wide], 1)


def _truths(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    return np.resize(_boxes(rng, pattern, draw), (draw["T"], 4))


_PLACEMENTS: Final = "overlapping apart touching flat"


@spec("aclnnIou", Rule("composite", "torchvision, ops.box_iou"),
      sizes(M=rows(3, 1, 17, 65), G=rows(4, 1, 33), T="M if aligned else G"),
      bBoxes=content(_boxes, _PLACEMENTS, "f32", shape="M 4"),
      gtBoxes=content(_truths, _PLACEMENTS, "f32", shape="T 4"),
      mode=choice("iou", "iof"), eps=number(0.5, 1e-6), aligned=flag(),
      overlap=out("bBoxes"))  # fmt: skip
def iou(bBoxes: Array, gtBoxes: Array, mode: str, eps: float, aligned: bool) -> Array:
    """[boxes, ground truth], or [boxes, 1] of pairs; `iof` divides by the truth's area alone."""
    first, second = bBoxes[:, None], gtBoxes[:, None] if aligned else gtBoxes[None]
    shared = (np.minimum(first[..., 2:], second[..., 2:])
              - np.maximum(first[..., :2], second[..., :2])).clip(0).prod(-1)  # fmt: skip
    area, truth = ((b[..., 2:] - b[..., :2]).prod(-1) for b in (first, second))
    return shared / ((truth if mode == "iof" else area + truth - shared) + eps)
