"""Images: geometry, colours, sampling grids."""

from __future__ import annotations

import colorsys
import inspect
from math import prod

import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....spec import *
from ..formulas import gradient, words
from ..row import unspecified
from ._defaults import HEADER_ONLY, TORCH_NN
from ._words import *

_SOURCE: Final = (
    "MindSpore 2.6, documents of mindspore.dataset.vision; Pillow, documents of "
    "ImageEnhance and ImageOps; OpenCV, document of geometric transformations"
)
_HERE: Final = {"self": "NHWC", "out": "NHWC"}
_MOVED: Final = Rule("exact", _SOURCE, specials=False, sparse=True, values="normal", formats=_HERE)
_WEIGHED: Final = replace(_MOVED, tolerance="gradient")
# Channels change their place, so that a dim is not what its format says.
_ORDER: Final = replace(_MOVED, formats={"self": "NHWC", "out": "NCHW"})
_SIZES: Final[dict[str, Any]] = {"B": batch(1, 2, 3), "Y": space(8, 5, 17), "X": space(6, 5, 9, 33)}
_IMAGE: Final = sizes(**_SIZES, C=channels(3, 1, 4))
_PICTURE: Final = sizes(**_SIZES)  # of three channels
_OUT: Final = out("self")


def _bytes(channels: str = "C", low: int = 0, high: int = 255) -> Domain:
    return tensor(f"B Y X {channels}", "u8", low, high)


def _floats(channels: str = "C") -> Domain:
    return tensor(f"B Y X {channels}", "f32", 0, 1)


def _top(x: Array) -> float:
    return 255.0 if x.dtype == np.uint8 else 1.0


spec("acldvppHWC2CHW", _ORDER, _IMAGE, self=_bytes(), out=_OUT)(
    lambda self: self.transpose(0, 3, 1, 2))  # fmt: skip
spec("acldvppCHW2HWC", replace(_ORDER, formats={"self": "NCHW", "out": "NHWC"}), _IMAGE,
     self=tensor("B C Y X", "u8", 0, 255), out=_OUT)(
    lambda self: self.transpose(0, 2, 3, 1))  # fmt: skip
spec("acldvppImgToTensor", replace(_ORDER, tolerance="rounded"), _IMAGE, self=_bytes(),
     out=out("f32"))(
    lambda self: self.transpose(0, 3, 1, 2) / _top(self))  # fmt: skip
spec("acldvppHorizontalFlip", _MOVED, _IMAGE, self=_bytes(), out=_OUT)(
    lambda self: self[:, :, ::-1])  # fmt: skip
spec("acldvppVerticalFlip", _MOVED, _IMAGE, self=_bytes(), out=_OUT)(
    lambda self: self[:, ::-1])  # fmt: skip

_WINDOW: Final[dict[str, Domain]] = {
    "top": integer(1, 0, 2), "left": integer(2, 0, 1), "height": integer(3, 1, "Y - top"),
    "width": integer(2, 1, "X - left")}  # fmt: skip


@spec("acldvppCrop", _MOVED, _IMAGE, self=_bytes(), **_WINDOW, out=_OUT)
def crop(self: Array, top: int, left: int, height: int, width: int) -> Array:
    return self[:, top : top + height, left : left + width]


@spec("acldvppErase", _MOVED, _PICTURE, self=_bytes("3"), **_WINDOW,
      value=array((7.0, 8.0, 9.0), (0.0, 255.0, 1.0)), out=_OUT)  # fmt: skip
def erase(
    self: Array, top: int, left: int, height: int, width: int, value: Sequence[float]
) -> Array:
    out = self.copy()
    out[:, top : top + height, left : left + width] = value
    return out


_BORDERS: Final = ("constant", "edge", "reflect", "symmetric")


@spec("acldvppPad", _MOVED, _PICTURE, self=_bytes("3"),
      padding=array((1, 3, 2, 4), (2, 0, 1, 3), (0, 2, 1, 1), (0, 0, 0, 0)),
      paddingMode=choice(0, 1, 2, 3), fill=array((5.0, 0.0, 200.0), (0.0,) * 3, (255.0,) * 3),
      out=_OUT)  # fmt: skip
def pad(self: Array, padding: Sequence[int], paddingMode: int, fill: Sequence[float]) -> Array:
    left, top, right, bottom = padding
    sides = [(0, 0), (top, bottom), (left, right), (0, 0)]
    if paddingMode:
        return np.pad(self, sides, _BORDERS[paddingMode])
    beside = np.pad(np.zeros(self.shape[:3], bool), sides[:3], constant_values=True)
    return np.where(beside[..., None], np.asarray(fill), np.pad(self, sides)).astype(self.dtype)


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


@spec("acldvppCropAndResize", _WEIGHED, _IMAGE, self=_floats(), **_WINDOW,
      size=array((6, 6), (3, 7), (1, 1), (16, 9)), interpolationMode=choice(*_INTERPOLATION),
      out=_OUT)  # fmt: skip
@_clamped
def crop_resize(
    self: Array, top: int, left: int, height: int, width: int, size: Sequence[int],
    interpolationMode: int,
) -> Array:  # fmt: skip
    part = self[:, top : top + height, left : left + width]
    return _along(_along(part, 1, size[0], interpolationMode), 2, size[1], interpolationMode)


@spec("acldvppResize", _WEIGHED, _IMAGE, self=_floats(),
      interpolationMode=choice(*_INTERPOLATION), out=_OUT,
      size=beside(array((5, 9), (16, 3), (1, 1), (8, 6), (33, 5), (7, 40))))  # fmt: skip
@_clamped
def resized(self: Array, size: Sequence[int], interpolationMode: int) -> Array:
    return _along(_along(self, 1, size[0], interpolationMode), 2, size[1], interpolationMode)


_GRAY: Final = np.array([0.2989, 0.587, 0.114])


def _gray(x: Array) -> Array:
    return (x * _GRAY).sum(-1, keepdims=True)


_FACTOR: Final = number(1.3, 0.4, 0.0, 1.0, 3.0)


@spec("acldvppAdjustBrightness", _WEIGHED, _PICTURE, self=_floats("3"), factor=_FACTOR, out=_OUT)
@_clamped
def brightness(self: Array, factor: float) -> Array:
    return self * factor


@spec("acldvppAdjustContrast", _WEIGHED, _PICTURE, self=_floats("3"), factor=_FACTOR, out=_OUT)
@_clamped
def contrast(self: Array, factor: float) -> Array:
    """Between the image and the mean of its grey one."""
    mean = _gray(self).mean((1, 2, 3), keepdims=True)
    return factor * self + (1 - factor) * mean


@spec("acldvppAdjustSaturation", _WEIGHED, _PICTURE, self=_floats("3"), factor=_FACTOR, out=_OUT)
@_clamped
def saturation(self: Array, factor: float) -> Array:
    return factor * self + (1 - factor) * _gray(self)


@spec("acldvppAdjustSharpness", _WEIGHED, _PICTURE, self=_floats("3"), factor=_FACTOR, out=_OUT)
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


@spec("acldvppAdjustHue", _WEIGHED, _PICTURE, self=_floats("3"),
      factor=number(0.2, -0.35, 0.0, 0.5, -0.5), out=_OUT)  # fmt: skip
def hue(self: Array, factor: float) -> Array:
    """A turn on the circle of hues."""
    flat = []
    for pixel in self.reshape(-1, 3):
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        flat.append(colorsys.hsv_to_rgb((h + factor) % 1, s, v))
    return np.array(flat).reshape(self.shape)


@spec("acldvppRgbToGrayscale", _WEIGHED, _PICTURE, self=_floats("3"),
      outputChannelsNum=choice(1, 3), out=_OUT)  # fmt: skip
def grayscale(self: Array, outputChannelsNum: int) -> Array:
    return np.repeat(_gray(self), outputChannelsNum, -1)


@spec("acldvppInvert", _MOVED, _IMAGE, self=_bytes(), out=_OUT)
def invert(self: Array) -> Any:
    return (_top(self) - self).astype(self.dtype)


@spec("acldvppPosterize", _MOVED, _IMAGE, self=_bytes(), bits=choice(3, 7, 1, 8, 0), out=_OUT)
def posterize(self: Array, bits: int) -> Any:
    """The highest bits stay."""
    return self.astype(np.int64) // 2 ** (8 - bits) * 2 ** (8 - bits)


@spec("acldvppSolarize", _MOVED, _IMAGE, self=_bytes(),
      threshold=array((60.0, 200.0), (128.0, 255.0), (0.0, 0.0)), out=_OUT)  # fmt: skip
def solarize(self: Array, threshold: Sequence[float]) -> Any:
    return np.where((self >= threshold[0]) & (self <= threshold[1]), 255 - self, self)


@spec("acldvppNormalize", replace(_WEIGHED, tolerance="composite"), _PICTURE,
      self=_floats("3"), mean=array((0.4, 0.5, 0.6), (0.0, 1.0, 0.5)),
      std=array((0.2, 0.3, 0.4), (1.0, 2.0, 0.5)), out=out("f32"))  # fmt: skip
def normalize(self: Array, mean: Sequence[float], std: Sequence[float]) -> Array:
    return (self - np.array(mean, np.float32)) / np.array(std, np.float32).astype(np.float64)


_OPAQUE: Final = -1
# Modes of acldvppConvertMode: where a channel comes from.
_CONVERT: Final = {0: (0, 1, 2, _OPAQUE), 1: (0, 1, 2), 2: (2, 1, 0, _OPAQUE), 3: (2, 1, 0),
                   4: (2, 1, 0), 5: (2, 1, 0, 3), 8: (0, 0, 0), 9: (0, 0, 0, _OPAQUE)}  # fmt: skip
_CHANNELS: Final = "4 if convertMode in (1, 3, 5) else 1 if convertMode in (8, 9) else 3"


@spec("acldvppConvertColor", _MOVED, sizes(**_SIZES, C=_CHANNELS), self=_bytes(),
      convertMode=choice(*_CONVERT), out=_OUT)  # fmt: skip
def convert_color(self: Array, convertMode: int) -> Array:
    opaque = np.full(self.shape[:3], _top(self), self.dtype)
    return np.stack([opaque if k == _OPAQUE else self[..., k] for k in _CONVERT[convertMode]], -1)


_SPREAD: Final = sizes(B=batch(1, 2), Y=space(40, 5, 17), X=space(30, 9, 33), C=channels(3, 1))
_NARROW: Final = forms(narrow=_bytes(low=40, high=120), whole=_bytes(), few=_bytes(low=7, high=9))


@spec("acldvppEqualize", _MOVED, _SPREAD, self=_NARROW, out=_OUT)
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


@spec("acldvppAutoContrast", _MOVED, _SPREAD, self=_NARROW,
      cutoff=array((2.0, 3.0), (0.0, 10.0), (0.0, 0.0)),
      ignore=array((), (40,), (120, 60, 255)), out=_OUT)  # fmt: skip
def auto_contrast(self: Array, cutoff: Sequence[float], ignore: Sequence[int]) -> Any:
    """Pillow: what is left of the values between the cut-off ends spreads over the range; what is
    to be ignored counts among none of them."""
    out = self.copy()
    for n, channel in np.ndindex(self.shape[0], self.shape[3]):
        plane = np.sort(self[n, :, :, channel].ravel())
        plane = plane[~np.isin(plane, ignore)]
        if not plane.size:
            continue
        first = int(plane.size * cutoff[0] // 100)
        last = plane.size - 1 - int(plane.size * cutoff[1] // 100)
        low, high = int(plane[first]), int(plane[last])
        if high > low:
            scale = 255.0 / (high - low)
            table = np.clip((np.arange(256) * scale - low * scale).astype(int), 0, 255)
            out[n, :, :, channel] = table[self[n, :, :, channel]]
    return out


@spec("acldvppGaussianBlur", _WEIGHED, _IMAGE, self=_floats(),
      kernelSize=array((3, 3), (5, 3), (1, 1), (3, 7)), sigma=array((0.8, 0.8), (1.0, 2.0)),
      paddingMode=choice(2, 1, 0, 3), out=_OUT)  # fmt: skip
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


def _warped(image: Array, back: Array, mode: int, fill: Sequence[float], edge: bool) -> Array:
    """Each pixel from where the matrix [3, 3] leads; 0: between four pixels, 1: the nearest. Beyond
    the image lies `fill`, or what its edge has."""
    size = image.shape[1:3]
    out = np.tile(np.asarray(fill, float), (len(image), *size, 1))

    def pixel(y: int, x: int) -> Any:
        if edge:
            y, x = min(max(y, 0), size[0] - 1), min(max(x, 0), size[1] - 1)
        inside = 0 <= y < image.shape[1] and 0 <= x < image.shape[2]
        return image[:, y, x] if inside else np.tile(fill, (len(image), 1))

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
_SAME: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
_SMALL: Final = sizes(B=batch(1, 2), Y=space(6, 3, 9), X=space(7, 4, 5))
_FILL: Final = array((0.5, 0.25, 1.0), (0.0,) * 3)
_BESIDE: Final[dict[str, Domain]] = {"interpolationMode": choice(0, 1), "paddingMode": choice(0, 1),
                                     "fill": _FILL, "out": _OUT}  # fmt: skip


# The nearest pixel is told where no place lies between two.
@spec("acldvppWarpAffine", _WEIGHED, _SMALL, self=_floats("3"), matrix=by("interpolationMode", {
    0: array(_LEAN, _SHIFT, _SAME), 1: array(_SHIFT, _SAME)}), **_BESIDE)  # fmt: skip
def warp_affine(
    self: Array, matrix: Sequence[float], interpolationMode: int, paddingMode: int,
    fill: Sequence[float],
) -> Array:  # fmt: skip
    ahead = np.array([*matrix, 0, 0, 1], np.float32).astype(np.float64).reshape(3, 3)
    return _warped(self, np.linalg.inv(ahead), interpolationMode, fill, paddingMode == 1)


_FLAT: Final = (0.0, 0.0, 1.0)


@spec("acldvppWarpPerspective", _WEIGHED, _SMALL, self=_floats("3"),
      matrix=by("interpolationMode", {
          0: array((*_LEAN, 0.0625, 0.03125, 1.0), (*_LEAN, *_FLAT), (*_SHIFT, *_FLAT)),
          1: array((*_SHIFT, *_FLAT), (*_SAME, *_FLAT))}), **_BESIDE)  # fmt: skip
def warp_perspective(
    self: Array, matrix: Sequence[float], interpolationMode: int, paddingMode: int,
    fill: Sequence[float],
) -> Array:  # fmt: skip
    ahead = np.array(matrix, np.float32).astype(np.float64).reshape(3, 3)
    return _warped(self, np.linalg.inv(ahead), interpolationMode, fill, paddingMode == 1)


@spec("acldvppRotate", _WEIGHED, _SMALL, self=_floats("3"), angle=number(33.0, -75.0, 95.0, 0.0),
      interpolationMode=choice(0, 1),
      expand=only(False, "the size of what is expanded is that of the result"),
      center=array((), (2, 1)), paddingMode=choice(0, 1), fill=_FILL, out=_OUT)  # fmt: skip
def rotate(
    self: Array, angle: float, interpolationMode: int, center: Sequence[float], paddingMode: int,
    fill: Sequence[float],
) -> Array:  # fmt: skip
    """Counter-clockwise around the middle of the pixels, or around `center` (x, y)."""
    high, wide = self.shape[1:3]
    x, y = center or ((wide - 1) / 2, (high - 1) / 2)
    turn = np.deg2rad(angle)
    cos, sin = np.cos(turn), np.sin(turn)
    back = np.array([[cos, -sin, x - cos * x + sin * y], [sin, cos, y - sin * x - cos * y],
                     [0, 0, 1]])  # fmt: skip
    return _warped(self, back, interpolationMode, fill, paddingMode == 1)


_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING: Final = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor, grid: Tensor, interpolationMode: int, paddingMode: int, alignCorners: bool
) -> Tensor:  # fmt: skip
    return F.grid_sample(input, grid, _MODES[interpolationMode], _PADDING[paddingMode],
                         alignCorners)  # fmt: skip


_RESAMPLED: Final = Rule("gradient", TORCH_NN, numbers="resampled", sparse=True, specials=False)


def _places(draw: Any) -> tuple[int, ...]:
    """The shape of a grid less its last dim."""
    return (draw["B"], *(draw[n] for n in "OPQ" if n in draw.declaration.used_sizes))


def _halves(_rng: Any, _pattern: str, draw: Any) -> Array:
    """Between two pixels of five: nearest takes the even one."""
    shape = _places(draw)
    line = np.resize(np.linspace(-0.75, 0.75, 4), shape[-1])
    return np.broadcast_to(line[:, None], (*shape, len(shape) - 1))


def _inside(rng: Any, _pattern: str, draw: Any) -> Array:
    """Mostly inside of the image."""
    shape = _places(draw)
    return _between(rng.uniform(-1.2, 1.2, (*shape, len(shape) - 1)), draw)


def _outside(rng: Any, _pattern: str, draw: Any) -> Array:
    """Mostly outside of the image; the first place of each sample lies inside: where a border
    repeats in all pixels around a place, derivatives cancel to rounding alone."""
    shape = _places(draw)
    grid = rng.uniform(-6, 6, (shape[0], prod(shape[1:]), len(shape) - 1))
    grid[:, :1] = rng.uniform(-0.9, 0.9, grid[:, :1].shape)
    return _between(grid.reshape(*shape, -1), draw)


def _between(grid: Array, draw: Any) -> Array:
    """The places, moved off pixels and their edges, where a derivative jumps."""
    pixels = [draw[n] for n in "ZYX" if n in draw.declaration.used_sizes]
    for place, size in zip(np.moveaxis(grid, -1, 0), pixels, strict=True):
        for scale, offset in ((size, 1), (size - 1, 0)) * 2:  # corners aligned, or not
            twice = (place + 1) * scale - offset
            place += (np.abs(twice - np.rint(twice)) < 1e-3) * 4e-3 / size
    return grid


def _sampler(rank: int) -> None:
    of = {"X": space(5, 1, 8), "Y": space(6, 5, 17), "Z": space(4, 5),
          "O": space(4, 1, 9), "P": space(7, 1, 33), "Q": space(4, 1)}  # fmt: skip
    before, after = "XYZ"[:rank], "OPQ"[:rank]
    several = sizes({n: of[n] for n in before + after})
    grid = " ".join(("B", *after, str(rank)))
    places = forms(near=tensor(grid, "input", -1.2, 1.2), far=tensor(grid, "input", -6, 6),
                   even=content(_halves, "even", "f32", shape=grid))  # fmt: skip
    modes: dict[str, Domain] = {
        "interpolationMode": choice(0, 1, 2) if rank == 2 else choice(0, 1),
        "paddingMode": choice(0, 1, 2), "alignCorners": flag()}  # fmt: skip
    image = " ".join(("B C", *before))
    spec(f"aclnnGridSampler{rank}D", _RESAMPLED, several, input=tensor(image, "f32"),
         grid=places, **modes, out=out("input"))(words(grid_sample))  # fmt: skip
    # Where a derivative jumps there is none to compare.
    smooth = forms(near=content(_inside, "inside", "f32", shape=grid),
                   far=content(_outside, "outside", "f32", shape=grid))  # fmt: skip
    spec(f"aclnnGridSampler{rank}DBackward", _RESAMPLED, several,
         require(" * ".join(before) + " > 1", refuses=None),
         gradOutput=tensor(" ".join(("B C", *after)), "f32"), input=tensor(image, "gradOutput"),
         grid=smooth, **modes, outputMask=array((True, True), (True, False), (False, True)),
         inputGrad=out("input"), gridGrad=out("grid"))(
        gradient(grid_sample, grad="gradOutput", of="input grid", mask="outputMask"))  # fmt: skip


for _rank in (2, 3):
    _sampler(_rank)
spec("aclnnAffineGrid", _RESAMPLED, sizes(X=space(4, 1, 8), Y=space(5, 1, 33), Z=space(3, 1)),
     overload("plane", theta=tensor("B 2 3", "f32"), size=dims("B C X Y")),
     overload("volume", theta=tensor("B 3 4", "f32"), size=dims("B C X Y Z")),
     theta=tensor("B 2 3", "f32"), size=dims("B C X Y"), alignCorners=flag(),
     out=out("theta"))(
    words(lambda theta, size, alignCorners:
          F.affine_grid(theta, tuple(size), align_corners=alignCorners)))  # fmt: skip
unspecified("aclnnMrgbaCustom aclnnBlendImagesCustom aclnnBackgroundReplace",
            "image composition by an alpha plane or mask; how bytes are rounded is not published",
            HEADER_ONLY)  # fmt: skip
