"""Resizing by interpolation, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....judge.precision import Array
from ..formulas import gradient, words
from ..row import Reference
from ..spec import spec, t, take
from ._defaults import RESAMPLED
from ._ignored import follows

_SIZES: Final = {1: ((2, 3, 7), (11,)), 2: ((1, 3, 5, 6), (8, 9)), 3: ((1, 2, 3, 4, 5), (5, 6, 7))}
_SHRINK: Final = {1: ((2, 3, 9), (4,)), 2: ((1, 3, 7, 6), (3, 4)), 3: ((1, 2, 5, 4, 6), (2, 3, 4))}
_SCALES: Final = ("scalesD", "scalesH", "scalesW")


def _resize(mode: str) -> Callable[..., Any]:
    """To a size; coordinates by given scales where there are any, else by the sizes."""

    def formula(
        x: Tensor, outputSize: Sequence[int], alignCorners: bool = False, scaleL: float = 0.0,
        scale: float = 0.0, scales: float = 0.0, scalesD: float = 0.0, scalesH: float = 0.0,
        scalesW: float = 0.0,
    ) -> Tensor:  # fmt: skip
        align = alignCorners if mode not in ("nearest", "nearest-exact") else None
        sizes_ = [s for s in (scaleL, scale, scales, scalesD, scalesH, scalesW) if s]
        if not sizes_:
            return F.interpolate(x, tuple(outputSize), mode=mode, align_corners=align)
        y = F.interpolate(x, None, tuple(sizes_), mode, align, recompute_scale_factor=False)
        if tuple(y.shape[2:]) != tuple(outputSize):
            raise ValueError(f"scales {sizes_} of {tuple(x.shape)} give no size {outputSize}")
        return y

    return formula


def _forward(name: str, x: str, samples: list[Any], formula: Reference) -> None:
    """`x` is what the header calls the image."""
    cases = [take(**{("x" if k == x else k): v for k, v in s.kwargs.items()}) for s in samples]
    spec(f"aclnnUpsample{name}", "out:x", samples=cases, renamed={x: "x"}, **RESAMPLED)(
        words(formula)
    )


def _backward(name: str, grads: tuple[str, str], samples: list[Any], formula: Reference) -> None:
    inflow, result = grads

    def reference(
        flow: Array,
        outputSize: Sequence[int],
        inputSize: Sequence[int],
        alignCorners: bool = False,
        scales: float = 0.0,
        scalesD: float = 0.0,
        scalesH: float = 0.0,
        scalesW: float = 0.0,
    ) -> Array:
        sizes_ = {
            "scales": scales,
            "scalesD": scalesD,
            "scalesH": scalesH,
            "scalesW": scalesW,
        }
        backward = gradient(lambda x: formula(x, outputSize, alignCorners, **sizes_), grad="flow",
                            of="x")  # fmt: skip
        return backward(flow=flow, x=np.zeros(inputSize))

    cases = [take(**{("flow" if k == inflow else k): v for k, v in s.kwargs.items()})
           for s in samples]  # fmt: skip
    second = " aclnnUpsampleBilinear2dBackwardV2" if name == "Bilinear2dBackward" else ""
    spec(f"aclnnUpsample{name}{second}", "result:flow", samples=cases,
         renamed={inflow: "flow", result: "result"}, **RESAMPLED)(reference)  # fmt: skip


def _resample(
    name: str, mode: str, rank: int, scales: tuple[str, ...], grads: tuple[str, str],
    corners: bool = False, x: str = "self", suffix: str = "Backward", by_size: bool = False,
) -> None:  # fmt: skip
    """The forward operator, and the backward one whose parameters are `grads`: inflow, result.

    `by_size`: the forward operator takes no scales.
    """
    formula = _resize(mode)
    aligned = (False, True) if corners else (False,)
    forward, backward = [], []
    for shape, size in (_SIZES[rank], _SHRINK[rank]):
        for align in aligned:
            # A scale of 0 means: by the sizes.
            more: dict[str, Any] = dict.fromkeys(scales, 0.0)
            if corners:
                more["alignCorners"] = align
            forward.append(take(**{x: t(*shape), "outputSize": size}, **more))
            backward.append(take(**{grads[0]: t(*shape[:2], *size), "outputSize": size,
                                    "inputSize": shape}, **more))  # fmt: skip
    shape = _SIZES[rank][0]
    cases = (1.7, 1.55, 1.45)[3 - rank :]
    size = tuple(int(n * s) for n, s in zip(shape[2:], cases, strict=True))
    more |= {"alignCorners": False} if corners else {}
    if not by_size:
        forward.append(take(**{x: t(*shape), "outputSize": size},
                            **{**more,
                               **dict(zip(scales[:rank], cases, strict=True))}))  # fmt: skip
    backward.append(take(**{grads[0]: t(*shape[:2], *size), "outputSize": size,
                            "inputSize": shape},
                         **{**more, **dict(zip(scales[-rank:], cases, strict=True))}))  # fmt: skip
    _forward(name, x, forward, formula)
    if suffix:
        _backward(f"{name}{suffix}", grads, backward, formula)


_resample("Nearest1dV2", "nearest", 1, ("scaleL",), ("gradOut", "out"), suffix="")
_resample("Nearest1d", "nearest", 1, ("scales",), ("gradOut", "out"))
_resample("Nearest2dV2", "nearest", 2, _SCALES[1:], ("gradOut", "out"), suffix="")
_resample("Nearest2d", "nearest", 2, ("scalesH", "scalesW"), ("gradOut", "gradInput"),
          by_size=True)  # fmt: skip
_resample("Nearest3d", "nearest", 3, _SCALES, ("gradOut", "gradInput"))
_resample("NearestExact1d", "nearest-exact", 1, ("scales",), ("gradOutput", "out"))
_resample("NearestExact2d", "nearest-exact", 2, _SCALES[1:], ("gradOutput", "out"))
_resample("NearestExact3d", "nearest-exact", 3, _SCALES, ("gradOut", "gradInput"))
_resample("Linear1d", "linear", 1, ("scale", "scales"), ("gradOut", "out"), True)
_resample("Bilinear2d", "bilinear", 2, _SCALES[1:], ("gradOut", "out"), True)
_resample("Bicubic2d", "bicubic", 2, _SCALES[1:], ("gradOut", "gradInput"), True)
_resample("Trilinear3d", "trilinear", 3, _SCALES, ("gradOut", "gradInput"), True)


def _triangle(v: Array) -> Array:
    return np.maximum(0, 1 - np.abs(v))


def _keys(v: Array) -> Array:
    """Keys' cubic with a = -1/2, as Pillow and torch take it when they smooth."""
    a, x = -0.5, np.abs(v)
    inner, outer = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
    return np.where(x < 1, inner, np.where(x < 2, outer, 0.0))


def smoothing(
    filter: Callable[[Array], Array], support: int, before: int, after: int, corners: bool
) -> Array:
    """[after, before]: how much each old place gives to each new one."""
    scale = (before - 1) / (after - 1) if corners and after > 1 else before / after
    wide = max(scale, 1.0)
    centre = (np.arange(after)[:, None] + 0.5) * scale
    place = np.arange(before)[None] + 0.5
    weight = np.where(np.abs(place - centre) < support * wide, filter((place - centre) / wide), 0.0)
    return weight / weight.sum(1, keepdims=True)


def _smooth(name: str, x: str, back: str, filter: Callable[[Array], Array], support: int) -> None:
    """Smoothed resampling is one matrix per dimension; its gradient is their transposes."""
    source = "torch 2.13, interpolate(antialias=True); Keys 1981 for the cubic"
    common: dict[str, Any] = {**RESAMPLED, "source": source, "dtypes": ("float32",)}

    def maps(before: Sequence[int], after: Sequence[int], corners: bool) -> list[Array]:
        pairs = zip(before, after, strict=True)
        return [smoothing(filter, support, b, a, corners) for b, a in pairs]

    def forward(x: Array, outputSize: Sequence[int], alignCorners: bool) -> Array:
        rows, cols = maps(x.shape[2:], outputSize, alignCorners)
        return rows @ x @ cols.T

    def backward(flow: Array, inputSize: Sequence[int], alignCorners: bool) -> Array:
        rows, cols = maps(inputSize[2:], flow.shape[2:], alignCorners)
        return rows.T @ flow @ cols

    more: dict[str, Any] = {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0}
    spec(f"aclnnUpsample{name}", "out:x", renamed={x: "x"}, uncovered="scalesH scalesW", **common,
         samples=[take(x=t(*s), outputSize=o, **more)
                  for s, o in (_SIZES[2], _SHRINK[2])])(forward)  # fmt: skip
    spec(f"aclnnUpsample{name}{back}", "out:flow", renamed={"gradOutput": "flow"},
         ignored=follows("outputSize"), uncovered="scalesH scalesW", **common,
         samples=[take(flow=t(*s[:2], *o), outputSize=o, inputSize=s, **more)
                  for s, o in (_SIZES[2], _SHRINK[2])])(backward)  # fmt: skip


_smooth("Bilinear2dAA", "input", "Backward", _triangle, 1)
_smooth("Bicubic2dAA", "x", "Grad", _keys, 2)


@spec("aclnnResize", "out:self", tolerance="gradient", sparse=True,
      dtypes=("float32", "float16"), source="torch 2.13, document of F.interpolate", samples=[
          take(self=t(1, 3, 4, 6), scales=given_, mode=m) for m in ("nearest", "bilinear")
          for given_ in ((1.0, 1.0, 2.0, 1.5), (1.0, 1.0, 0.5, 0.5))])  # fmt: skip
def resize(self: Array, scales: Sequence[float], mode: str) -> Any:
    size = tuple(int(n * s) for n, s in zip(self.shape[2:], scales[2:], strict=True))
    align = None if mode == "nearest" else False
    return words(lambda x: F.interpolate(x, size, mode=mode, align_corners=align))(x=self)
