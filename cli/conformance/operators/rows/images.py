"""Resampling, pooling and convolution with their gradients: torch's words on the CPU in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import Reference, given, spec, t, take

_TORCH: Final = "torch 2.13, documents of torch.nn.functional"
_DTYPES: Final = ("float32", "float16", "bfloat16")
_RESIZE: Final[dict[str, Any]] = {"family": "resize", "source": _TORCH, "tolerance": "gradient",
                                  "rule": "resampled", "dtypes": _DTYPES,
                                  "sparse": True}  # fmt: skip
_POOL: Final[dict[str, Any]] = {**_RESIZE, "family": "pool", "rule": {}}
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
        stated = [s for s in (scaleL, scale, scales, scalesD, scalesH, scalesW) if s]
        if not stated:
            return F.interpolate(x, tuple(outputSize), mode=mode, align_corners=align)
        y = F.interpolate(x, None, tuple(stated), mode, align, recompute_scale_factor=False)
        if tuple(y.shape[2:]) != tuple(outputSize):
            raise ValueError(f"scales {stated} of {tuple(x.shape)} give no size {outputSize}")
        return y

    return formula


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
    own = (1.7, 1.55, 1.45)[3 - rank :]
    size = tuple(int(n * s) for n, s in zip(shape[2:], own, strict=True))
    more |= {"alignCorners": False} if corners else {}
    if not by_size:
        forward.append(take(**{x: t(*shape), "outputSize": size},
                            **{**more, **dict(zip(scales[:rank], own, strict=True))}))  # fmt: skip
    backward.append(take(**{grads[0]: t(*shape[:2], *size), "outputSize": size,
                            "inputSize": shape},
                         **{**more, **dict(zip(scales[-rank:], own, strict=True))}))  # fmt: skip
    _forward(name, x, forward, formula)
    if suffix:
        _backward(f"{name}{suffix}", grads, backward, formula)


def _forward(name: str, x: str, samples: list[Any], formula: Reference) -> None:
    """`x` is what the header calls the image."""
    own = [take(**{("x" if k == x else k): v for k, v in s.kwargs.items()}) for s in samples]
    spec(f"aclnnUpsample{name}", "out:x", samples=own, renamed={x: "x"}, **_RESIZE)(words(formula))


def _backward(name: str, grads: tuple[str, str], samples: list[Any], formula: Reference) -> None:
    inflow, result = grads

    def reference(
        flow: Array, outputSize: Sequence[int], inputSize: Sequence[int],
        alignCorners: bool = False, scales: float = 0.0, scalesD: float = 0.0,
        scalesH: float = 0.0, scalesW: float = 0.0,
    ) -> Array:  # fmt: skip
        stated = {"scales": scales, "scalesD": scalesD, "scalesH": scalesH, "scalesW": scalesW}
        backward = gradient(lambda x: formula(x, outputSize, alignCorners, **stated), grad="flow",
                            of="x")  # fmt: skip
        return backward(flow=flow, x=np.zeros(inputSize))

    own = [take(**{("flow" if k == inflow else k): v for k, v in s.kwargs.items()})
           for s in samples]  # fmt: skip
    second = " aclnnUpsampleBilinear2dBackwardV2" if name == "Bilinear2dBackward" else ""
    spec(f"aclnnUpsample{name}{second}", "result:flow", samples=own,
         renamed={inflow: "flow", result: "result"}, **_RESIZE)(reference)  # fmt: skip


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
    common: dict[str, Any] = {**_RESIZE, "source": source, "dtypes": ("float32",)}

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
    spec(f"aclnnUpsample{name}", "out:x", renamed={x: "x"}, **common,
         samples=[take(x=t(*s), outputSize=o, **more)
                  for s, o in (_SIZES[2], _SHRINK[2])])(forward)  # fmt: skip
    spec(f"aclnnUpsample{name}{back}", "out:flow", renamed={"gradOutput": "flow"}, **common,
         samples=[take(flow=t(*s[:2], *o), outputSize=o, inputSize=s, **more)
                  for s, o in (_SIZES[2], _SHRINK[2])])(backward)  # fmt: skip


_smooth("Bilinear2dAA", "input", "Backward", _triangle, 1)
_smooth("Bicubic2dAA", "x", "Grad", _keys, 2)

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
    _ties = given(
        np.broadcast_to(
            np.linspace(-0.75, 0.75, 4)[:, None], (_in[0], *[1] * (_rank - 1), 4, _rank)
        ).tolist(),
        "float32",
    )
    _even = {"input": t(*_in[:2], *[5] * _rank), "grid": _ties, "interpolationMode": 1,
             "paddingMode": 0, "alignCorners": True}  # fmt: skip
    spec(f"aclnnGridSampler{_rank}D", "out:input", samples=[take(**g) for g in (*_grids, _even)],
         **{**_RESIZE, "dtypes": ("float32",)})(words(grid_sample))  # fmt: skip
    spec(f"aclnnGridSampler{_rank}DBackward", "inputGrad:input gridGrad:grid",
         **{**_RESIZE, "dtypes": ("float32",)},
         samples=[take(gradOutput=t(*_in[:2], *_out), outputMask=(True, True), **g)
                  for g in _grids[:4]])(
        gradient(grid_sample, grad="gradOutput", of="input grid", mask="outputMask"))  # fmt: skip

spec("aclnnAffineGrid", "out:theta", **{**_RESIZE, "dtypes": ("float32",)}, samples=[
    take(theta=t(2, 2, 3), size=(2, 3, 4, 5), alignCorners=a) for a in (False, True)])(
    words(lambda theta, size, alignCorners:
          F.affine_grid(theta, tuple(size), align_corners=alignCorners)))  # fmt: skip

for _rank, _x, _y in ((2, (2, 3, 5, 7), (2, 3)), (3, (1, 2, 4, 5, 6), (2, 3, 4))):
    _word = getattr(F, f"adaptive_avg_pool{_rank}d")
    spec(f"aclnnAdaptiveAvgPool{_rank}dBackward", "out:self", **_POOL,
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


spec("aclnnAvgPool2dBackward", "gradInput:self", **_POOL, samples=[
    take(gradOutput=t(2, 3, 3, 4), self=t(2, 3, 5, 7), kernelSize=(2, 2), stride=(2, 2),
         padding=(1, 1), ceilMode=False, countIncludePad=c, divisorOverride=d, cubeMathType=0)
    for c, d in ((True, 0), (False, 0), (True, 3))])(
    gradient(_average(2), grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnAvgPool3dBackward", "output:self", **_POOL, samples=[
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
    return given(values.reshape(shape).tolist(), dtype)


for _rank, _x, _y in ((2, (2, 3, 5, 7), (2, 3)), (3, (1, 2, 4, 5, 6), (2, 3, 4))):
    _plane = int(np.prod(_x[2:]))
    spec(f"aclnnAdaptiveMaxPool{_rank}dBackward", "gradInput:self", **_POOL, samples=[
        take(gradOutput=t(*_x[:2], *_y), self=t(*_x), indices=_winners((*_x[:2], *_y), _plane, d))
        for d in (("int64",) if _rank == 2 else ("int32",))])(scatter_pool)  # fmt: skip
_WINDOW: Final[dict[str, Any]] = {"kernelSize": (2, 2), "stride": (2, 2), "padding": (0, 0),
                                  "dilation": (1, 1), "ceilMode": False}  # fmt: skip


def _window_winners(shape: tuple[int, ...], kernel: int) -> list[Any]:
    """Places that lie in their own windows: the first corner, the last, in turn."""
    cols = shape[-1] * kernel
    base = np.arange(shape[-2])[:, None] * kernel * cols + np.arange(shape[-1]) * kernel
    return list(np.broadcast_to(base, shape).tolist())


spec("aclnnMaxPool2dWithIndicesBackward", "gradInput:self", **_POOL, samples=[
    take(gradOutput=t(2, 3, 2, 3), self=t(2, 3, 5, 6),
         indices=given(_window_winners((2, 3, 2, 3), 2), "int64"), **_WINDOW),
    # Windows that overlap share their winner.
    take(gradOutput=t(1, 1, 4, 5), self=t(1, 1, 5, 6), kernelSize=(2, 2), stride=(1, 1),
         indices=given([[[[7, 7, 9, 9, 11], [7, 7, 9, 9, 11], [19, 19, 21, 21, 23],
                          [19, 19, 21, 21, 23]]]], "int64"), padding=(0, 0), dilation=(1, 1),
         ceilMode=False)])(
    lambda gradOutput, self, indices: scatter_pool(gradOutput, self, indices))  # fmt: skip
spec("aclnnMaxPool3dWithArgmaxBackward", "gradInput:self", **_POOL, samples=[
    take(gradOutput=t(1, 2, 2, 2, 3), self=t(1, 2, 4, 5, 6),
         indices=given((np.arange(24).reshape(1, 2, 2, 2, 3) % 2 + 6).tolist(), "int32"),
         kernelSize=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0), dilation=(1, 1, 1),
         ceilMode=False)])(
    lambda gradOutput, self, indices: scatter_pool(gradOutput, self, indices))  # fmt: skip
spec("aclnnGlobalAveragePool", "out:self", **_POOL, samples=[take(self=t(2, 3, 5, 7))])(
    lambda self: self.mean((2, 3), keepdims=True))  # fmt: skip
spec("aclnnGlobalMaxPool", "out:self", **{**_POOL, "tolerance": "exact"}, specials=False,
     samples=[take(self=t(2, 3, 5, 7))])(
    lambda self: self.max((2, 3), keepdims=True))  # fmt: skip
_UNPOOL: Final = _winners((2, 3, 2, 3), 30, "int64")
spec("aclnnMaxUnpool2dBackward", "out:gradOutput", **_POOL, samples=[
    take(gradOutput=t(2, 3, 5, 6), self=t(2, 3, 2, 3), indices=_UNPOOL, outputSize=(5, 6))])(
    lambda gradOutput, self, indices: np.take_along_axis(
        gradOutput.reshape(2, 3, -1), indices.reshape(2, 3, -1), 2).reshape(self.shape),
)  # fmt: skip


def unpool(self: Array, indices: Array, outputSize: tuple[int, ...]) -> Array:
    result = np.zeros((*self.shape[:2], int(np.prod(outputSize))))
    np.put_along_axis(result, indices.reshape(*self.shape[:2], -1),
                      self.reshape(*self.shape[:2], -1), 2)  # fmt: skip
    return result.reshape(*self.shape[:2], *outputSize)


spec("aclnnMaxUnpool2d", "out:self", samples=[
    take(self=t(2, 3, 2, 3), indices=_UNPOOL, outputSize=(5, 6))], **_POOL)(unpool)  # fmt: skip


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
     **{**_POOL, "rule": {"norm": 32.0, "reason":
        "a weight's gradient sums all samples and places in float32, in any order"}}, samples=[
         take(gradOutput=t(n, 6, 3, 3), input=t(n, 4, 5, 5), weight=t(6, 4 // g, 3, 3),
              biasSizes=(6,), stride=(2, 2), padding=(1, 1), dilation=(1, 1), transposed=False,
              outputPadding=(0, 0), groups=g, outputMask=m, cubeMathType=0)
         for n, g, m in ((2, 1, (True, True, True)), (2, 2, (True, True, True)),
                         (2, 1, (True, False, False)), (37, 2, (True, True, True)))],
     )(convolution_backward)  # fmt: skip


@spec("aclnnConvDepthwise2d", "out:self", **_POOL, samples=[
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
