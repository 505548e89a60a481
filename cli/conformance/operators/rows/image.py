"""Images: geometry, colours, sampling grids."""

from __future__ import annotations

import colorsys
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch import Tensor
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import const, spec, t, take, unspecified
from ._defaults import HEADER_ONLY, RESAMPLED

_SOURCE: Final = (
    "MindSpore 2.6, documents of mindspore.dataset.vision; Pillow, documents of "
    "ImageEnhance and ImageOps; OpenCV, document of geometric transformations"
)
_MOVED: Final[dict[str, Any]] = {
    "source": _SOURCE, "tolerance": "exact", "specials": False,
    "formats": {"self": "NHWC", "out": "NHWC"}, "dtypes": ("uint8",), "sparse": True,
}  # fmt: skip
_WEIGHED: Final[dict[str, Any]] = {**_MOVED, "tolerance": "gradient", "dtypes": ("float32",)}
# Channels change their place, so that a dim is not what its format says.
_ORDER: Final[dict[str, Any]] = {**_MOVED, "formats": {"self": "NHWC", "out": "NCHW"}}


def _bytes(*shape: int) -> Arg:
    return t(*(shape or (1, 8, 6, 3)), dtype="uint8", low=0, high=255)


def _floats(*shape: int) -> Arg:
    return t(*(shape or (1, 8, 6, 3)), low=0, high=1)


def _top(x: Array) -> float:
    return 255.0 if x.dtype == np.uint8 else 1.0


spec("acldvppHWC2CHW", "out:self", **_ORDER, samples=[take(self=_bytes())])(
    lambda self: self.transpose(0, 3, 1, 2))  # fmt: skip
spec("acldvppCHW2HWC", "out:self", **{**_ORDER, "formats": {"self": "NCHW", "out": "NHWC"}},
     samples=[take(self=_bytes(1, 3, 8, 6))])(
    lambda self: self.transpose(0, 2, 3, 1))  # fmt: skip
spec("acldvppImgToTensor", "out:float32", **{**_ORDER, "tolerance": "rounded"},
     samples=[take(self=_bytes())])(
    lambda self: self.transpose(0, 3, 1, 2) / _top(self))  # fmt: skip
spec("acldvppHorizontalFlip", "out:self", **_MOVED, samples=[take(self=_bytes())])(
    lambda self: self[:, :, ::-1])  # fmt: skip
spec("acldvppVerticalFlip", "out:self", **_MOVED, samples=[take(self=_bytes())])(
    lambda self: self[:, ::-1])  # fmt: skip


@spec("acldvppCrop", "out:self", **_MOVED, samples=[
    take(self=_bytes(), top=y, left=x, height=h, width=w)
    for y, x, h, w in ((1, 2, 4, 3), (0, 0, 8, 1))])  # fmt: skip
def crop(self: Array, top: int, left: int, height: int, width: int) -> Array:
    return self[:, top : top + height, left : left + width]


@spec("acldvppErase", "out:self", **_MOVED, samples=[
    take(self=_bytes(), top=y, left=x, height=h, width=w, value=v)
    for y, x, h, w, v in ((1, 2, 4, 3, (7.0, 8.0, 9.0)), (0, 0, 8, 1, (0.0, 255.0, 1.0)))],
      )  # fmt: skip
def erase(
    self: Array, top: int, left: int, height: int, width: int, value: Sequence[float]
) -> Array:
    out = self.copy()
    out[:, top : top + height, left : left + width] = value
    return out


_BORDERS: Final = ("constant", "edge", "reflect", "symmetric")


@spec("acldvppPad", "out:self", **_MOVED, samples=[
    take(self=_bytes(), padding=p, paddingMode=m, fill=(f, f, f))
    for p, m, f in (((1, 3, 2, 4), 0, 5.0), ((1, 3, 2, 4), 1, 0.0), ((2, 0, 1, 3), 2, 0.0),
                    ((0, 2, 1, 1), 3, 0.0), ((0, 2, 1, 1), 0, 255.0))],
      )  # fmt: skip
def pad(self: Array, padding: Sequence[int], paddingMode: int, fill: Sequence[float]) -> Array:
    left, top, right, bottom = padding
    sides = [(0, 0), (top, bottom), (left, right), (0, 0)]
    if paddingMode:
        return np.pad(self, sides, _BORDERS[paddingMode])
    return np.pad(self, sides, constant_values=fill[0])


def _bilinear(at: float) -> list[tuple[int, float]]:
    low = int(np.floor(at))
    return [(low, low + 1 - at), (low + 1, at - low)]


def _cubic(at: float) -> list[tuple[int, float]]:
    """Keys' kernel with -0.75."""
    low, weights = int(np.floor(at)), []
    for k in range(low - 1, low + 3):
        d = abs(at - k)
        near = (1.25 * d - 2.25) * d * d + 1
        far = ((-0.75 * d + 3.75) * d - 6) * d + 3
        weights.append((k, near if d <= 1 else far))
    return weights


def _along(x: Array, axis: int, size: int, mode: int) -> Array:
    """The middle of a pixel stays the middle; nearest takes the pixel that a place falls into."""
    n = x.shape[axis]
    rows = np.zeros((size, n))
    for i in range(size):
        if mode == 1:
            rows[i, min(int(np.floor(i * n / size)), n - 1)] = 1
            continue
        at = (i + 0.5) * n / size - 0.5
        places = _cubic(at) if mode == 2 else _bilinear(max(at, 0.0))
        for k, w in places:
            rows[i, min(max(k, 0), n - 1)] += w
    return np.moveaxis(np.tensordot(rows, x, (1, axis)), 0, axis)


def _clamped(f: Callable[..., Array]) -> Callable[..., Array]:
    """Results within what an image holds."""

    def run(*args: Any, **arguments: Any) -> Array:
        return np.clip(f(*args, **arguments), 0, 1)

    run.__dict__["__signature__"] = inspect.signature(f)
    return run


_INTERPOLATION: Final = (0, 1, 2)


@spec("acldvppCropAndResize", "out:self", **_WEIGHED, samples=[
    take(self=_floats(), top=y, left=x, height=h, width=6 - x, size=s, interpolationMode=m)
    for m in _INTERPOLATION for y, x, h, s in ((1, 2, 4, (6, 6)), (2, 1, 5, (3, 7)))])  # fmt: skip
@_clamped
def crop_resize(
    self: Array, top: int, left: int, height: int, width: int, size: Sequence[int],
    interpolationMode: int,
) -> Array:  # fmt: skip
    part = self[:, top : top + height, left : left + width]
    return _along(_along(part, 1, size[0], interpolationMode), 2, size[1], interpolationMode)


@spec(
    "acldvppResize",
    "out:self",
    extra="size",
    **_WEIGHED,
    samples=[
        take(self=_floats(), size=s, interpolationMode=m)
        for m in _INTERPOLATION
        for s in ((5, 9), (16, 3))
    ],
)
@_clamped
def resized(self: Array, size: Sequence[int], interpolationMode: int) -> Array:
    """`size`, which the header has not, is that of the result."""
    return _along(_along(self, 1, size[0], interpolationMode), 2, size[1], interpolationMode)


_GRAY: Final = np.array([0.2989, 0.587, 0.114])


def _gray(x: Array) -> Array:
    return (x * _GRAY).sum(-1, keepdims=True)


_FACTORS: Final = [take(self=_floats(), factor=f) for f in (1.3, 0.4)]


@spec("acldvppAdjustBrightness", "out:self", **_WEIGHED, samples=_FACTORS)
@_clamped
def brightness(self: Array, factor: float) -> Array:
    return self * factor


@spec("acldvppAdjustContrast", "out:self", **_WEIGHED, samples=_FACTORS)
@_clamped
def contrast(self: Array, factor: float) -> Array:
    """Between the image and the mean of its grey one."""
    mean = _gray(self).mean((1, 2, 3), keepdims=True)
    return factor * self + (1 - factor) * mean


@spec("acldvppAdjustSaturation", "out:self", **_WEIGHED, samples=_FACTORS)
@_clamped
def saturation(self: Array, factor: float) -> Array:
    return factor * self + (1 - factor) * _gray(self)


@spec("acldvppAdjustSharpness", "out:self", **_WEIGHED, samples=_FACTORS)
@_clamped
def sharpness(self: Array, factor: float) -> Array:
    """Between the image and one whose inner pixels are means of nine, the middle five times."""
    smooth = self.copy()
    total = 4 * self[:, 1:-1, 1:-1]
    for i in range(3):
        for j in range(3):
            total = total + self[:, i : i + self.shape[1] - 2, j : j + self.shape[2] - 2]
    smooth[:, 1:-1, 1:-1] = total / 13
    return factor * self + (1 - factor) * smooth


@spec("acldvppAdjustHue", "out:self", **_WEIGHED, samples=[
    take(self=_floats(), factor=f) for f in (0.2, -0.35)])  # fmt: skip
def hue(self: Array, factor: float) -> Array:
    """A turn on the circle of hues."""
    flat = []
    for pixel in self.reshape(-1, 3):
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        flat.append(colorsys.hsv_to_rgb((h + factor) % 1, s, v))
    return np.array(flat).reshape(self.shape)


@spec("acldvppRgbToGrayscale", "out:self", **_WEIGHED, samples=[
    take(self=_floats(), outputChannelsNum=n) for n in (1, 3)])  # fmt: skip
def grayscale(self: Array, outputChannelsNum: int) -> Array:
    return np.repeat(_gray(self), outputChannelsNum, -1)


@spec("acldvppInvert", "out:self", **_MOVED,
      samples=[take(self=_bytes())])  # fmt: skip
def invert(self: Array) -> Any:
    return (_top(self) - self).astype(self.dtype)


@spec("acldvppPosterize", "out:self", **_MOVED, samples=[
    take(self=_bytes(), bits=n) for n in (3, 7)])  # fmt: skip
def posterize(self: Array, bits: int) -> Any:
    """The highest bits stay."""
    return self // 2 ** (8 - bits) * 2 ** (8 - bits)


@spec("acldvppSolarize", "out:self", **_MOVED, samples=[
    take(self=_bytes(), threshold=s) for s in ((60.0, 200.0), (128.0, 255.0))])  # fmt: skip
def solarize(self: Array, threshold: Sequence[float]) -> Any:
    return np.where((self >= threshold[0]) & (self <= threshold[1]), 255 - self, self)


@spec("acldvppNormalize", "out:float32", **{**_WEIGHED, "tolerance": "composite"}, samples=[
    take(self=_floats(), mean=m, std=s)
    for m, s in (((0.4, 0.5, 0.6), (0.2, 0.3, 0.4)), ((0.0, 1.0, 0.5), (1.0, 2.0, 0.5)))],
      )  # fmt: skip
def normalize(self: Array, mean: Sequence[float], std: Sequence[float]) -> Array:
    return (self - np.array(mean, np.float32)) / np.array(std, np.float32).astype(np.float64)


_OPAQUE: Final = -1
# Modes of acldvppConvertMode: where a channel comes from.
_CONVERT: Final = {0: (0, 1, 2, _OPAQUE), 1: (0, 1, 2), 2: (2, 1, 0, _OPAQUE), 3: (2, 1, 0),
                   4: (2, 1, 0), 5: (2, 1, 0, 3), 8: (0, 0, 0), 9: (0, 0, 0, _OPAQUE)}  # fmt: skip
_CHANNELS: Final = {1: 4, 3: 4, 5: 4, 8: 1, 9: 1}


@spec("acldvppConvertColor", "out:self", **_MOVED, samples=[
    take(self=_bytes(n, 4, 5, _CHANNELS.get(m, 3)), convertMode=m)
    for n in (1, 2) for m in _CONVERT])  # fmt: skip
def convert_color(self: Array, convertMode: int) -> Array:
    opaque = np.full(self.shape[:3], _top(self), self.dtype)
    return np.stack([opaque if k == _OPAQUE else self[..., k] for k in _CONVERT[convertMode]], -1)


@spec("acldvppEqualize", "out:self", **_MOVED, samples=[
    take(self=t(1, 40, 30, 3, dtype="uint8", low=40, high=120))])  # fmt: skip
def equalize(self: Array) -> Any:
    """Pillow: a step is a 255th of all pixels less those of the last value that occurs."""
    out = self.copy()
    for n, channel in np.ndindex(self.shape[0], self.shape[3]):
        plane = self[n, :, :, channel]
        histogram = np.bincount(plane.ravel(), minlength=256)
        used = np.flatnonzero(histogram)
        step = (plane.size - histogram[used[-1]]) // 255
        if len(used) > 1 and step:
            before = np.concatenate([[0], np.cumsum(histogram)[:-1]])
            table = np.minimum((step // 2 + before) // step, 255)
            out[n, :, :, channel] = table[plane]
    return out


@spec("acldvppAutoContrast", "out:self",
      uncovered="ignore",
      **_MOVED, samples=[
    take(self=t(1, 40, 30, 3, dtype="uint8", low=40, high=120), cutoff=c, ignore=i)
    for c, i in (((2.0, 3.0), ()), ((0.0, 10.0), ()))])  # fmt: skip
def auto_contrast(self: Array, cutoff: Sequence[float]) -> Any:
    """Pillow: what is left of the values between the cut-off ends spreads over the range."""
    out = self.copy()
    for n, channel in np.ndindex(self.shape[0], self.shape[3]):
        plane = np.sort(self[n, :, :, channel].ravel())
        first = int(plane.size * cutoff[0] // 100)
        last = plane.size - 1 - int(plane.size * cutoff[1] // 100)
        low, high = int(plane[first]), int(plane[last])
        if high > low:
            scale = 255.0 / (high - low)
            table = np.clip((np.arange(256) * scale - low * scale).astype(int), 0, 255)
            out[n, :, :, channel] = table[self[n, :, :, channel]]
    return out


@spec("acldvppGaussianBlur", "out:self", **_WEIGHED, samples=[
    take(self=_floats(), kernelSize=k, sigma=s, paddingMode=m)
    for k, s, m in (((3, 3), (0.8, 0.8), 2), ((5, 3), (1.0, 2.0), 1))])  # fmt: skip
def blur(self: Array, kernelSize: Sequence[int], sigma: Sequence[float], paddingMode: int) -> Array:
    """Widths and deviations are told for x, then for y."""
    for axis, size, deviation in ((2, kernelSize[0], sigma[0]), (1, kernelSize[1], sigma[1])):
        bell = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * deviation**2))
        sides = [(size // 2,) * 2 if k == axis else (0, 0) for k in range(4)]
        wide = np.pad(self, sides, _BORDERS[paddingMode])
        parts = [w * wide.take(np.arange(k, k + self.shape[axis]), axis)
                 for k, w in enumerate(bell / bell.sum())]  # fmt: skip
        self = np.sum(parts, 0)
    return self


def _warped(image: Array, back: Array, mode: int, size: tuple[int, int], fill: float) -> Array:
    """Each pixel from where the matrix [3, 3] leads; 0: between four pixels, 1: the nearest."""
    out = np.full((len(image), *size, image.shape[3]), fill)

    def pixel(y: int, x: int) -> Any:
        inside = 0 <= y < image.shape[1] and 0 <= x < image.shape[2]
        return image[:, y, x] if inside else np.full((len(image), image.shape[3]), fill)

    for y, x in np.ndindex(*size):
        u, v, w = back @ (x, y, 1)
        u, v = u / w, v / w
        if mode == 1:
            out[:, y, x] = pixel(int(np.floor(v + 0.5)), int(np.floor(u + 0.5)))
        else:
            out[:, y, x] = sum(a * b * pixel(i, j) for i, a in _bilinear(v)
                               for j, b in _bilinear(u))  # fmt: skip
    return out


_SHIFT: Final = (1.0, 0.0, 2.0, 0.0, 1.0, 1.0)
_LEAN: Final = (1.0, 0.25, -0.4, -0.125, 1.25, 0.3)


@spec("acldvppWarpAffine", "out:self",
      uncovered="paddingMode",
      **_WEIGHED, samples=[
    take(self=_floats(1, 6, 7, 3), matrix=m, interpolationMode=k, paddingMode=0, fill=(f, f, f))
    for m, k, f in ((_SHIFT, 1, 0.0), (_LEAN, 0, 0.5), (_LEAN, 0, 0.0))])  # fmt: skip
def warp_affine(
    self: Array, matrix: Sequence[float], interpolationMode: int, fill: Sequence[float]
) -> Array:
    ahead = np.array([*matrix, 0, 0, 1], np.float32).astype(np.float64).reshape(3, 3)
    return _warped(self, np.linalg.inv(ahead), interpolationMode, self.shape[1:3], fill[0])


@spec("acldvppWarpPerspective", "out:self",
      uncovered="paddingMode",
      **_WEIGHED, samples=[
    take(self=_floats(1, 6, 7, 3), matrix=(*m, *last), interpolationMode=k, paddingMode=0,
         fill=(f, f, f))
    for m, last, k, f in ((_SHIFT, (0.0, 0.0, 1.0), 1, 0.0),
                          (_LEAN, (0.0625, 0.03125, 1.0), 0, 0.5))])  # fmt: skip
def warp_perspective(
    self: Array, matrix: Sequence[float], interpolationMode: int, fill: Sequence[float]
) -> Array:
    ahead = np.array(matrix, np.float32).astype(np.float64).reshape(3, 3)
    return _warped(self, np.linalg.inv(ahead), interpolationMode, self.shape[1:3], fill[0])


@spec("acldvppRotate", "out:self",
      uncovered="expand paddingMode",
      **_WEIGHED, samples=[
    take(self=_floats(1, 6, 7, 3), angle=a, interpolationMode=m, expand=False, center=c,
         paddingMode=0, fill=(f, f, f))
    for a, m, c, f in ((30.0, 0, (), 0.25), (-75.0, 0, (2, 1), 0.0), (95.0, 1, (), 0.5))],
      )  # fmt: skip
def rotate(
    self: Array, angle: float, interpolationMode: int, center: Sequence[float],
    fill: Sequence[float],
) -> Array:  # fmt: skip
    """Counter-clockwise around the middle of the pixels, or around `center` (x, y)."""
    high, wide = self.shape[1:3]
    x, y = center or ((wide - 1) / 2, (high - 1) / 2)
    turn = np.deg2rad(angle)
    cos, sin = np.cos(turn), np.sin(turn)
    back = np.array([[cos, -sin, x - cos * x + sin * y], [sin, cos, y - sin * x - cos * y],
                     [0, 0, 1]])  # fmt: skip
    return _warped(self, back, interpolationMode, (high, wide), fill[0])


_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING: Final = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor, grid: Tensor, interpolationMode: int, paddingMode: int, alignCorners: bool
) -> Tensor:  # fmt: skip
    return F.grid_sample(input, grid, _MODES[interpolationMode], _PADDING[paddingMode],
                         alignCorners)  # fmt: skip


for _rank in (2, 3):
    _in, _out = ((2, 3, 5, 6), (4, 7)) if _rank == 2 else ((1, 2, 3, 4, 5), (3, 2, 4))
    _grids = [
        {"input": t(*_in), "grid": t(_in[0], *_out, _rank, low=-far, high=far),
         "interpolationMode": m, "paddingMode": p, "alignCorners": a}
        for m, p, a, far in ((0, 0, False, 1.2), (0, 1, True, 1.2), (0, 2, False, 1.2),
                             (0, 2, True, 6.0), (1, 0, True, 1.2), (1, 2, False, 6.0),
                             *(((2, 0, False, 1.5), (2, 2, True, 4.0)) if _rank == 2 else ()))
    ]  # fmt: skip
    # Between two pixels of five: nearest takes the even one.
    _ties = const(
        np.broadcast_to(
            np.linspace(-0.75, 0.75, 4)[:, None], (_in[0], *[1] * (_rank - 1), 4, _rank)
        ).tolist(),
        "float32",
    )
    _even = {"input": t(*_in[:2], *[5] * _rank), "grid": _ties, "interpolationMode": 1,
             "paddingMode": 0, "alignCorners": True}  # fmt: skip
    spec(f"aclnnGridSampler{_rank}D", "out:input", samples=[take(**g) for g in (*_grids, _even)],
         **{**RESAMPLED, "dtypes": ("float32",)})(words(grid_sample))  # fmt: skip
    spec(f"aclnnGridSampler{_rank}DBackward", "inputGrad:input gridGrad:grid",
         **{**RESAMPLED, "dtypes": ("float32",)},
         samples=[take(gradOutput=t(*_in[:2], *_out), outputMask=(True, True), **g)
                  for g in _grids[:4]])(
        gradient(grid_sample, grad="gradOutput", of="input grid", mask="outputMask"))  # fmt: skip
spec("aclnnAffineGrid", "out:theta", **{**RESAMPLED, "dtypes": ("float32",)}, samples=[
    take(theta=t(2, 2, 3), size=(2, 3, 4, 5), alignCorners=a) for a in (False, True)])(
    words(lambda theta, size, alignCorners:
          F.affine_grid(theta, tuple(size), align_corners=alignCorners)))  # fmt: skip
unspecified("aclnnMrgbaCustom aclnnBlendImagesCustom aclnnBackgroundReplace",
            "image composition by an alpha plane or mask; how bytes are rounded is not published",
            HEADER_ONLY)  # fmt: skip
