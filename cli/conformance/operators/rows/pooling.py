"""Pooling, unpooling and gradients."""

from __future__ import annotations

import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....spec import *
from ..formulas import gradient, words
from ._defaults import TORCH_NN
from ._words import *

_GRADIENT: Final = Rule("gradient", TORCH_NN, sparse=True)
_EXACT: Final = Rule("exact", TORCH_NN, sparse=True)
_FLOATS: Final = "f16 bf16 f32"
# Samples and channels, or channels alone.
_PLANES: Final = shape("2x3", 4, "1x1", "3x17")
_PLACES: Final = ("X", "Y", "Z")
_RESULTS: Final = ("O", "P", "Q")

# --- windows that follow from sizes ---------------------------------------------------------------


def _winners(rank: int, dtype: str, bounds: Callable[..., Any]) -> Content:
    """Flat places of a plane, each within the window of its result: `bounds(draw, axis, results,
    size)` gives the first place, how many there are, and how far apart they lie."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        results, of = draw["gradOutput"].shape, draw["self"].shape[-rank:]
        flat = np.zeros(results, np.int64)
        for axis, size in enumerate(of):
            along = [-1 if a == axis else 1 for a in range(rank)]
            first, count, step = bounds(draw, axis, results[axis - rank], size)
            first, count = first.reshape(along), count.reshape(along)
            pick = {"random": (rng.random(results) * count).astype(np.int64), "first": 0 * count,
                    "last": count - 1}[pattern]  # fmt: skip
            flat = flat * size + first + pick * step
        return flat

    return content(make, "random first last", dtype, shape="*L " + " ".join(_RESULTS[:rank]))


def _adaptive(_draw: Draw, _axis: int, results: int, size: int) -> tuple[Array, Array, int]:
    at = np.arange(results)
    first = at * size // results
    return first, -(-(at + 1) * size // results) - first, 1


def _window(draw: Draw, axis: int, results: int, size: int) -> tuple[Array, Array, int]:
    taps, stride = draw["kernelSize"][axis], draw["stride"][axis]
    pad, apart = draw["padding"][axis], draw["dilation"][axis]
    begin = np.arange(results) * stride - pad
    skip = np.maximum(0, -(begin // apart))
    last = np.minimum(taps - 1, (size - 1 - begin) // apart)
    return begin + skip * apart, last - skip + 1, apart


def _axes(names: Sequence[str], rank: int) -> str:
    return "*L " + " ".join(names[:rank])


def scatter_pool(gradOutput: Array, self: Array, indices: Array, rank: int) -> Array:
    """Every gradient goes back to the flat place that won."""
    flat = np.zeros((int(np.prod(self.shape[:-rank])), int(np.prod(self.shape[-rank:]))))
    at, flow = indices.reshape(len(flat), -1), gradOutput.reshape(len(flat), -1)
    for plane, places, values in zip(flat, at, flow, strict=True):
        np.add.at(plane, places, values)
    return flat.reshape(self.shape)


def _adaptive_rows(rank: int) -> None:
    word = getattr(F, f"adaptive_avg_pool{rank}d")
    free = dict(zip((*_PLACES, *_RESULTS), (space(7, 1, 8, 17), space(5, 4, 12), space(3, 6),
                                             space(3, 1, 7, 10), space(2, 1, 5), space(2, 1, 4)),
                    strict=True))  # fmt: skip
    several = sizes({"*L": _PLANES, **{n: r for n, r in free.items()
                                       if n in (*_PLACES[:rank], *_RESULTS[:rank])}})  # fmt: skip
    flow, of = tensor(_axes(_RESULTS, rank), _FLOATS), tensor(_axes(_PLACES, rank), "gradOutput")

    @spec(f"aclnnAdaptiveAvgPool{rank}dBackward", replace(_GRADIENT, specials=False), several,
          gradOutput=flow, self=of, out=out("self"))  # fmt: skip
    def average(gradOutput: Array, self: Array) -> Any:
        pool = gradient(lambda self: word(self, gradOutput.shape[-rank:]), grad="gradOutput",
                        of="self")  # fmt: skip
        return pool(gradOutput=gradOutput, self=self)

    @spec(f"aclnnAdaptiveMaxPool{rank}dBackward", _GRADIENT, several, gradOutput=flow, self=of,
          indices=_winners(rank, "i64" if rank == 2 else "i32", _adaptive),
          gradInput=out("self"))  # fmt: skip
    def winners(gradOutput: Array, self: Array, indices: Array) -> Array:
        return scatter_pool(gradOutput, self, indices, rank)


# --- windows that kernels, strides and paddings state ---------------------------------------------


def _window_count(axis: int, size: str, dilated: bool) -> str:
    """How many windows there are; with ceilMode a last one that begins beyond the data is none."""
    apart = f"dilation[{axis}]*" if dilated else ""
    reach = f"{size} + 2*padding[{axis}] - {apart}(kernelSize[{axis}] - 1) - 1"
    whole = f"(({reach} + ceilMode*(stride[{axis}] - 1))//stride[{axis}] + 1)"
    beyond = f"({whole} - 1)*stride[{axis}] >= {size} + padding[{axis}]"
    return f"{whole} - ceilMode*({beyond})"


def _windows(rank: int, dilated: bool) -> tuple[Any, Any, dict[str, Domain]]:
    """Sizes, requirements and attributes of windows over so many dims."""
    of = dict(zip(_PLACES, (space(7, 6, 8, 17), space(6, 5, 9, 33), space(4, 5)), strict=True))
    names = _PLACES[:rank]
    counts = {r: _window_count(a, x, dilated) for a, (r, x) in
            enumerate(zip(_RESULTS[:rank], names, strict=True))}  # fmt: skip
    several = sizes({"*L": _PLANES, **{n: of[n] for n in names}, **counts})
    fits = require(
        *(f"padding[{a}]*2 <= kernelSize[{a}]" for a in range(rank)),
        *(f"{x} + 2*padding[{a}] > {f'dilation[{a}]*' if dilated else ''}(kernelSize[{a}] - 1)"
          for a, x in enumerate(names)))  # fmt: skip
    attributes: dict[str, Domain] = {
        "kernelSize": ints(str(rank), 2, 1, 3, 4), "stride": ints(str(rank), 2, 1, 3),
        "padding": ints(str(rank), 0, 1)}  # fmt: skip
    if dilated:
        attributes["dilation"] = ints(str(rank), 1, 2)
    return several, fits, attributes | {"ceilMode": flag()}


_OVERLAPS: Final = pin("kernelSize=3 stride=1 padding=1", "windows that overlap")


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


def _average_row(rank: int, **more: Domain) -> None:
    several, fits, attributes = _windows(rank, dilated=False)
    spec(f"aclnnAvgPool{rank}dBackward", _GRADIENT, several, fits, _OVERLAPS,
         gradOutput=tensor(_axes(_RESULTS, rank), _FLOATS),
         self=tensor(_axes(_PLACES, rank), "gradOutput"), **attributes,
         countIncludePad=flag(True), divisorOverride=choice(0, 3, 1), **more)(
        gradient(_average(rank), grad="gradOutput", of="self"))  # fmt: skip


def _window_row(name: str, rank: int) -> None:
    several, fits, attributes = _windows(rank, dilated=True)
    why = "the winners lie in windows already"

    @spec(name, _GRADIENT, several, fits, _OVERLAPS,
          gradOutput=tensor(_axes(_RESULTS, rank), _FLOATS),
          self=tensor(_axes(_PLACES, rank), "gradOutput"),
          indices=_winners(rank, "i32", _window),
          **{n: ignored(why, d) for n, d in attributes.items()},
          gradInput=out("self"))  # fmt: skip
    def winners(gradOutput: Array, self: Array, indices: Array) -> Array:
        return scatter_pool(gradOutput, self, indices, rank)


for _rank in (2, 3):
    _adaptive_rows(_rank)
_average_row(2, cubeMathType=only(0, "other modes may lose digits of float32"),
             gradInput=out("self"))  # fmt: skip
_average_row(3, output=out("self"))
_window_row("aclnnMaxPool2dWithIndicesBackward", 2)
_window_row("aclnnMaxPool3dWithArgmaxBackward", 3)


@spec("aclnnMaxPool", Rule("exact", "ONNX 1.17, operator MaxPool", specials=False,
                           values="normal opposed integer nan infinite"),
      sizes({"*L": _PLANES, "X": space(9, 3, 5, 16), "Y": space(8, 4, 33)}),
      require("max(pads) < min(kernelShape)",
              "X + pads[0] + pads[2] >= kernelShape[0]",
              "Y + pads[1] + pads[3] >= kernelShape[1]"),
      pin("X=5 Y=5 kernelShape=2 strides=2 pads=(1,1,1,0) ceilMode=1",
          "last windows that begin in the padding, which are none"),
      self=tensor("*L X Y", "f16 f32"), kernelShape=ints("2", 2, 1, 3),
      strides=ints("2", 2, 1, 3, 5), autoPad=only(0, "documents allow one value"),
      pads=array((0, 0, 0, 0), (1, 1, 1, 0), (1, 0, 1, 0), (0, 1, 1, 1), (0, 2, 0, 1)),
      dilations=only((1, 1), "documents allow one value"), ceilMode=choice(0, 1),
      out=out("self"))  # fmt: skip
def max_pool(
    self: Array, kernelShape: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    ceilMode: int,
) -> Array:  # fmt: skip
    """Pads come as begins, then ends, of rows and columns; a last window may reach past them."""
    more = [-(n + pads[i] + pads[i + 2] - k) % s if ceilMode else 0 for i, (n, k, s) in
            enumerate(zip(self.shape[-2:], kernelShape, strides, strict=True))]  # fmt: skip
    first = [n + pads[i] for i, n in enumerate(self.shape[-2:])]  # of the padding at the end
    width = [(0, 0)] * (self.ndim - 2)
    width += [(pads[0], pads[2] + more[0]), (pads[1], pads[3] + more[1])]
    padded = np.pad(self, width, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(kernelShape), (-2, -1))
    down, across = first if ceilMode else windows.shape[-4:-2]
    return windows[..., : down : strides[0], : across : strides[1], :, :].max((-2, -1))


def _own_mask(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """The mask is the operator's own: any will do."""
    return [values[0], got[1]]


_MASKED: Final = _windows(2, dilated=False)


_UNJUDGED: Final = (
    "torch 2.13, document of F.max_pool2d; the mask is the operator's own, not judged"
)


@spec("aclnnMaxPool2dWithMask", replace(_EXACT, source=_UNJUDGED, nearest=_own_mask),
      sizes({n: r for n, r in _MASKED[0].roles.items() if n not in _RESULTS}), _MASKED[1],
      _OVERLAPS, self=tensor("*L X Y", _FLOATS),
      **{n: d for n, d in _MASKED[2].items() if n != "ceilMode"},
      dilation=only((1, 1), "documents allow one value"), ceilMode=flag(), out=out("self"),
      indices=out("i8"))  # fmt: skip
def masked_pool(
    self: Array, kernelSize: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    ceilMode: bool,
) -> tuple[Any, Array]:  # fmt: skip
    y = words(lambda x: F.max_pool2d(x, kernelSize, stride, padding, 1, ceilMode))(x=self)
    blocks = -(-y.shape[-2] * y.shape[-1] // 16) + 1
    mask = np.zeros((*y.shape[:-2], kernelSize[0] * kernelSize[1], blocks * 32), np.int8)
    return y, mask


# --- pools of whole planes ------------------------------------------------------------------------

_WHOLE: Final = sizes({"*P": shape("5x7", 1, "2x3x4", "33x65", "1x9", 130)})
spec("aclnnGlobalAveragePool", _GRADIENT, _WHOLE, self=tensor("B C *P", _FLOATS),
     out=out("self"))(
    lambda self: self.mean(tuple(range(2, self.ndim)), keepdims=True))  # fmt: skip
spec("aclnnGlobalMaxPool", replace(_EXACT, specials=False), _WHOLE,
     self=tensor("B C *P", _FLOATS), out=out("self"))(
    lambda self: self.max(tuple(range(2, self.ndim)), keepdims=True))  # fmt: skip

# --- unpooling ------------------------------------------------------------------------------------


def _unpool_rows(rank: int, values: str, **more: Domain) -> None:
    small = ("X", "Y", "Z")[:rank]
    large = ("O", "P", "Q")[:rank]
    free = zip((*small, *large), (*(space(2, 1, 3, 8), space(3, 1, 5), space(2, 1))[:rank],
               *(space(4, 8, 9), space(6, 5, 17), space(3, 4))[:rank]), strict=True)  # fmt: skip
    several = sizes({"*L": _PLANES, **dict(free)})
    fits = require(f"{'*'.join(large)} >= {'*'.join(small)}")

    def places(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        """Places of a plane, none twice."""
        planes, count = draw["*L"], int(np.prod([draw[n] for n in small]))
        size = int(np.prod([draw[n] for n in large]))
        order = np.argsort(rng.random((*planes, size)), -1)[..., :count]
        order = {"random": order, "in_order": np.sort(order), "last": size - 1 - np.sort(order),
                 "first": np.broadcast_to(np.arange(count), order.shape)}[pattern]  # fmt: skip
        return order.reshape(*planes, *(draw[n] for n in small))

    indices = content(places, "random in_order last first", "i64", shape=_axes(small, rank))
    size = dims(" ".join(large))

    rule = replace(_EXACT, source=f"torch 2.13, document of MaxUnpool{rank}d")

    @spec(f"aclnnMaxUnpool{rank}d", rule, several, fits,
          self=tensor(_axes(small, rank), values), indices=indices,
          outputSize=size, **more,
          **{"out" if rank == 2 else "outRef": out("self")})  # fmt: skip
    def unpool(self: Array, indices: Array, outputSize: tuple[int, ...]) -> Array:
        planes = self.shape[:-rank]
        flat = np.zeros((*planes, int(np.prod(outputSize))))
        at, flow = indices.reshape(*planes, -1), self.reshape(*planes, -1)
        np.put_along_axis(flat, at, flow, -1)
        return flat.reshape(*planes, *outputSize)

    @spec(f"aclnnMaxUnpool{rank}dBackward", rule, several, fits,
          gradOutput=tensor(_axes(large, rank), values),
          self=tensor(_axes(small, rank), "gradOutput"),
          indices=indices, outputSize=size, **more, out=out("gradOutput"))  # fmt: skip
    def unpool_backward(gradOutput: Array, self: Array, indices: Array) -> Array:
        planes = self.shape[:-rank]
        flat = gradOutput.reshape(*planes, -1)
        return np.take_along_axis(flat, indices.reshape(*planes, -1), -1).reshape(self.shape)


_RESERVED: Final = "not used in any version"
_unpool_rows(2, _FLOATS)
_unpool_rows(3, "f32", stride=ignored(_RESERVED, array((1, 2, 2), (2, 2, 2))),
             padding=ignored(_RESERVED, array((0, 0, 0), (1, 1, 1))))  # fmt: skip
