"""Resizing by interpolation, and its gradients."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....spec import *
from ....spec.declaration import Overload
from ....spec.row import Reference
from ..formulas import gradient, words
from ._defaults import TORCH_NN
from ._words import *

_RULE: Final = Rule("gradient", TORCH_NN, numbers="resampled", sparse=True)
_FLOATS: Final = "f32 f16 bf16"
_BEFORE: Final = {"X": space(5, 1, 7, 16), "Y": space(6, 1, 9, 33), "Z": space(4, 1, 8)}
_AFTER: Final = {"O": space(8, 1, 3, 17), "P": space(9, 1, 4, 40), "Q": space(7, 1, 3)}
# Scales by dimension, and the sizes that they give; no new place falls between two old ones.
_UP: Final = ((1.73, "X*173//100"), (1.57, "Y*157//100"), (1.43, "Z*143//100"))
_DOWN: Final = ((0.65, "X*13//20"), (0.5, "Y//2"), (0.77, "Z*77//100"))
_SCALES: Final = ("scalesD", "scalesH", "scalesW")


def _resize(mode: str) -> Callable[..., Any]:
    """To a size; coordinates by given scales where there are any, else by the sizes."""

    def formula(
        x: Tensor, outputSize: Sequence[int], alignCorners: bool = False, **scales: float
    ) -> Tensor:
        align = alignCorners if mode not in ("nearest", "nearest-exact") else None
        factors = tuple(s for s in scales.values() if s)
        if not factors:
            return F.interpolate(x, tuple(outputSize), mode=mode, align_corners=align)
        y = F.interpolate(x, None, factors, mode, align, recompute_scale_factor=False)
        if tuple(y.shape[2:]) != tuple(outputSize):
            raise ValueError(f"scales {factors} of {tuple(x.shape)} give no size {outputSize}")
        return y

    return formula


def _taking(reference: Reference, names: Iterable[str], **renamed: str) -> Reference:
    """The reference with parameters of these names, some renamed."""

    def named(**arguments: Any) -> Any:
        return reference(**{renamed.get(n, n): v for n, v in arguments.items()})

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(n, kind) for n in names]
    named.__dict__["__signature__"] = inspect.Signature(parameters)
    return named


def _forms(rank: int, scales: Sequence[str], image: str, after: bool) -> list[Overload]:
    """By size, or by scales that give the size; `after`: the image has the new size."""
    forms: dict[str, Sequence[tuple[float, str]]] = {
        "size": [(0.0, n) for n in list(_AFTER)[:rank]],
        "up": _UP[:rank],
        "down": _DOWN[:rank],
    }
    return [overload(name, **{image: _image(s for _, s in by)} if after else {},
                     outputSize=dims(" ".join(s for _, s in by)),
                     **{n: number(v) for n, (v, _) in zip(scales[-rank:], by, strict=True)})
            for name, by in forms.items()]  # fmt: skip


def _image(names: Iterable[str], dtypes: str = _FLOATS) -> Domain:
    return tensor(" ".join(("B C", *names)), dtypes)


_POSITIVE: Final = require("min(outputSize) > 0", refuses=None)


def _resample(
    name: str, mode: str, rank: int, scales: tuple[str, ...], grads: tuple[str, str] | None = None,
    corners: bool = False, back: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """The forward operator, which may take no scales, and the backward one whose parameters are
    `grads`: inflow, result; `back` are its scales where they are called otherwise."""
    formula = _resize(mode)
    aligned: dict[str, Domain] = {"alignCorners": flag()} if corners else {}
    before, after = list(_BEFORE)[:rank], list(_AFTER)[:rank]
    free = sizes({**dict(list(_BEFORE.items())[:rank]), **dict(list(_AFTER.items())[:rank])})
    common: dict[str, Domain] = {"outputSize": dims(" ".join(after))}
    inputs = {"self": _image(before), **common, **aligned, **dict.fromkeys(scales, number(0.0))}
    spec(f"aclnnUpsample{name}", _RULE, free, _POSITIVE,
         *(_forms(rank, scales, "self", after=False) if scales else ()), **inputs,
         out=out("self"))(_taking(words(formula), inputs, self="x"))  # fmt: skip
    if grads is None:
        return

    def backward(
        flow: Array, outputSize: Sequence[int], inputSize: Sequence[int], **more: Any
    ) -> Array:
        return gradient(lambda x: formula(x, outputSize, **more), grad="flow", of="x")(
            flow=flow, x=np.zeros(inputSize))  # fmt: skip

    inflow, result = grads
    scales = back or scales
    inputs = {inflow: _image(after), **common, "inputSize": dims(" ".join(("B C", *before))),
              **aligned, **dict.fromkeys(scales, number(0.0))}  # fmt: skip
    second = " aclnnUpsampleBilinear2dBackwardV2" if mode == "bilinear" else ""
    spec(f"aclnnUpsample{name}Backward{second}", _RULE, free, _POSITIVE,
         *_forms(rank, scales, inflow, after=True), **inputs, **{result: out(inflow)})(
        _taking(backward, inputs, **{inflow: "flow"}))  # fmt: skip


_resample("Nearest1dV2", "nearest", 1, ("scaleL",))
_resample("Nearest1d", "nearest", 1, (), ("gradOut", "out"), back=("scales",))
_resample("Nearest2dV2", "nearest", 2, _SCALES[1:])
_resample("Nearest2d", "nearest", 2, (), ("gradOut", "gradInput"), back=_SCALES[1:])
_resample("Nearest3d", "nearest", 3, _SCALES, ("gradOut", "gradInput"))
_resample("NearestExact1d", "nearest-exact", 1, ("scales",), ("gradOutput", "out"))
_resample("NearestExact2d", "nearest-exact", 2, _SCALES[1:], ("gradOutput", "out"))
_resample("NearestExact3d", "nearest-exact", 3, _SCALES, ("gradOut", "gradInput"))
_resample("Linear1d", "linear", 1, ("scale",), ("gradOut", "out"), True, ("scales",))
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
    filter: Callable[[Array], Array], support: int, before: int, after: int, corners: bool,
    factor: float = 0.0,
) -> Array:  # fmt: skip
    """[after, before]: how much each old place gives to each new one; by a scale where one is
    given and corners are not aligned, else by the sizes."""
    scale = 1 / factor if factor else before / after
    if corners:
        scale = (before - 1) / (after - 1) if after > 1 else 0.0
    wide = max(scale, 1.0)
    centre = (np.arange(after)[:, None] + 0.5) * scale
    place = np.arange(before)[None] + 0.5
    weight = np.where(np.abs(place - centre) < support * wide, filter((place - centre) / wide), 0.0)
    return weight / weight.sum(1, keepdims=True)


def _smooth(name: str, x: str, back: str, filter: Callable[[Array], Array], support: int) -> None:
    """Smoothed resampling is one matrix per dimension; its gradient is their transposes."""
    rule = replace(
        _RULE,
        specials=False,
        source="torch 2.13, interpolate(antialias=True); Keys 1981 for the cubic",
    )
    free = sizes({n: r for n, r in (_BEFORE | _AFTER).items() if n in "XYOP"})

    def maps(
        before: Sequence[int], after: Sequence[int], corners: bool, scales: Sequence[float]
    ) -> list[Array]:
        pairs = zip(before, after, scales, strict=True)
        return [smoothing(filter, support, b, a, corners, s) for b, a, s in pairs]

    def forward(
        x: Array, outputSize: Sequence[int], alignCorners: bool, scalesH: float, scalesW: float
    ) -> Array:
        rows, cols = maps(x.shape[2:], outputSize, alignCorners, (scalesH, scalesW))
        return rows @ x @ cols.T

    def backward(
        flow: Array, inputSize: Sequence[int], alignCorners: bool, scalesH: float, scalesW: float
    ) -> Array:
        rows, cols = maps(inputSize[2:], flow.shape[2:], alignCorners, (scalesH, scalesW))
        return rows.T @ flow @ cols

    more: dict[str, Domain] = {"alignCorners": flag(), "scalesH": number(0.0),
                               "scalesW": number(0.0)}  # fmt: skip
    inputs = {x: _image("XY", "f32"), "outputSize": dims("O P"), **more}
    spec(f"aclnnUpsample{name}", rule, free, _POSITIVE,
         *_forms(2, _SCALES, x, after=False), **inputs, out=out(x))(
        _taking(forward, inputs, **{x: "x"}))  # fmt: skip
    names = ("gradOutput", "inputSize", *more)
    spec(f"aclnnUpsample{name}{back}", rule, free, _POSITIVE,
         *_forms(2, _SCALES, "gradOutput", after=True), gradOutput=_image("OP", "f32"),
         outputSize=dims("O P"), inputSize=dims("B C X Y"), **more, out=out("gradOutput"))(
        _taking(backward, names, gradOutput="flow"))  # fmt: skip


_smooth("Bilinear2dAA", "input", "Backward", _triangle, 1)
_smooth("Bicubic2dAA", "x", "Grad", _keys, 2)


@spec("aclnnResize", replace(_RULE, numbers={}, source="torch 2.13, document of F.interpolate"),
      sizes(X=space(4, 2, 7, 16), Y=space(6, 4, 9, 33)), self=tensor("B C X Y", "f32 f16"),
      scales=array((1.0, 1.0, 2.0, 1.5), (1.0, 1.0, 0.5, 0.5), (1.0, 1.0, 1.0, 3.0),
                   (1.0, 1.0, 0.5, 2.0)),
      mode=choice("nearest", "bilinear"), out=out("self"))  # fmt: skip
def resize(self: Array, scales: Sequence[float], mode: str) -> Any:
    size = tuple(int(n * s) for n, s in zip(self.shape[2:], scales[2:], strict=True))
    align = None if mode == "nearest" else False
    return words(lambda x: F.interpolate(x, size, mode=mode, align_corners=align))(x=self)
