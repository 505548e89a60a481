"""Multi-scale deformable attention and its gradient."""

from __future__ import annotations

from .....spec import *
from .....spec import heads as heads_
from .._words import *
from .sparse_gradients import Three


def _corners(y: float, x: float, h: int, w: int) -> list[tuple[int, int, float, float, float]]:
    """(row, column, weight, its derivatives by y and x) of the pixels around a place."""
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    around = []
    for i, (wy, sy) in ((low_y, (low_y + 1 - y, -1.0)), (low_y + 1, (y - low_y, 1.0))):
        for j, (wx, sx) in ((low_x, (low_x + 1 - x, -1.0)), (low_x + 1, (x - low_x, 1.0))):
            if 0 <= i < h and 0 <= j < w:
                around.append((i, j, wy * wx, sy * wx, wy * sx))
    return around


_RULE: Final = Rule("gradient", "Zhu et al.: Deformable DETR, 2021, equation 3", specials=False,
                    values="normal integer")  # fmt: skip
_SIZES: Final = sizes(B=heads_(2, 1, 3), H=heads_(2, 1, 3), L=heads_(2, 1, 3), Q=seq(5, 1, 9),
                      P=heads_(4, 1, 3), D=head_dim(8, 16, 64), A=seq(4, 1, 5), E=seq(6, 1, 3),
                      K="L*A*E + 2")  # fmt: skip


def _maps(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Heights and widths: every level is one lower and narrower than the last."""
    most = np.array([draw["A"], draw["E"]])
    return np.maximum(most - np.arange(draw["L"])[:, None], 1)


def _starts(_rng: Generator, pattern: str, draw: Draw) -> Array:
    """Where each level's map begins; `apart`: keys that belong to no level lie before."""
    areas = draw["spatialShape"].values().prod(1)
    return np.r_[0, np.cumsum(areas)[:-1]] + (2 if pattern == "apart" else 0)


_PLACES: Final[dict[str, Domain]] = {
    "value": tensor("B K H D", "f32"),
    "spatialShape": content(_maps, "falling", "i32", shape="L 2"),
    "levelStartIndex": content(_starts, "close apart", "i32", shape="L", reads=("spatialShape",)),
    "location": tensor("B Q H L P 2", "f32", -0.1, 1.1),
    "attnWeight": tensor("B Q H L P", "f32", 0, 0.3),
}  # fmt: skip
_SIDES: Final = both("A > E", "H > L", "Q > H")


@spec("aclnnMultiScaleDeformableAttentionGrad", replace(
          _RULE, source="Zhu et al.: Deformable DETR, 2021, derivative of equation 3"), _SIZES,
      _SIDES, **_PLACES, gradOutput=tensor("B Q H*D", "f32"), gradValue=out("value"),
      gradLocation=out("value"), gradAttnWeight=out("value"))  # fmt: skip
def deformable_back(
    value: Array, spatialShape: Array, levelStartIndex: Array, location: Array, attnWeight: Array,
    gradOutput: Array,
) -> Three:  # fmt: skip
    """A pixel gets what it weighs; a place moves along the slopes between its four pixels."""
    by_value, by_place = np.zeros(value.shape), np.zeros(location.shape)
    by_weight = np.zeros(attnWeight.shape)
    flow = gradOutput.reshape(*location.shape[:3], -1)
    for b, q, n, level, p in np.ndindex(attnWeight.shape):
        h, w = (int(size) for size in spatialShape[level])
        x, y = location[b, q, n, level, p] * (w, h) - 0.5
        share, g = attnWeight[b, q, n, level, p], flow[b, q, n]
        for i, j, weight, by_y, by_x in _corners(y, x, h, w):
            pixel = (b, levelStartIndex[level] + i * w + j, n)
            classes = g @ value[pixel]
            by_value[pixel] += share * weight * g
            by_weight[b, q, n, level, p] += weight * classes
            by_place[b, q, n, level, p] += share * classes * np.array((by_x * w, by_y * h))
    return by_value, by_place, by_weight


def at(image: Array, y: float, x: float) -> Any:
    """[C] of [C, H, W] between four pixels; what lies outside is 0."""
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    total: Any = 0.0
    for i in (low_y, low_y + 1):
        for j in (low_x, low_x + 1):
            if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
                total = total + image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


@spec("aclnnMultiScaleDeformableAttnFunction", _RULE, _SIZES, _SIDES, **_PLACES,
      output=out("value"))  # fmt: skip
def deformable(
    value: Array, spatialShape: Array, levelStartIndex: Array, location: Array, attnWeight: Array
) -> Array:
    """Locations are shares of an image's width and height; pixels lie at half a step."""
    batch, queries, heads, _, points, _ = location.shape
    out = np.zeros((batch, queries, heads, value.shape[-1]))
    for b, q, n, level, p in np.ndindex(batch, queries, heads, len(spatialShape), points):
        (h, w), start = spatialShape[level], levelStartIndex[level]
        image = value[b, start : start + h * w, n].T.reshape(-1, h, w)
        x, y = location[b, q, n, level, p]
        out[b, q, n] += attnWeight[b, q, n, level, p] * at(image, y * h - 0.5, x * w - 0.5)
    return out.reshape(batch, queries, -1)
