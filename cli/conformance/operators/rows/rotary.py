"""Rotary position embeddings and their gradients."""

from __future__ import annotations

from ....spec import *
from ....spec.declaration import Overload
from ._words import *

_ROPE: Final = Rule("composite", "Su et al.: RoFormer, 2021, section 3.4; op-plugin document "
                    "npu_rotary_mul: half and interleave")  # fmt: skip
_BACK: Final = replace(_ROPE, tolerance="gradient")
_SIZES: Final = sizes(B=batch(2, 1, 3), S=seq(5, 1, 17, 130), N=heads(3, 1, 2, 8),
                      D=head_dim(16, 4, 6, 64, 130))  # fmt: skip
_MODES: Final = choice(0, 1, 2, 3)
_FLOATS: Final = "f16 bf16 f32"
_QUARTERS: Final = require("mode != 2 or D % 4 == 0")


def rotated_pairs(x: Array, interleave: bool) -> Array:
    """Each pair (a, b) becomes (-b, a); pairs are halves or neighbours."""
    if interleave:
        turned_x = np.empty_like(x)
        turned_x[..., 0::2], turned_x[..., 1::2] = -x[..., 1::2], x[..., 0::2]
        return turned_x
    a, b = np.split(x, 2, -1)
    return np.concatenate([-b, a], -1)


def _sorted(x: Array, mode: int) -> Array:
    """Mode 3 brings neighbours into halves first."""
    return np.concatenate([x[..., 0::2], x[..., 1::2]], -1) if mode == 3 else x


def _quarter_rotated(x: Array, mode: int) -> Array:
    """Mode 2 turns each half by itself: its quarters are the pairs."""
    if mode != 2:
        return rotated_pairs(x, mode == 1)
    return np.concatenate([rotated_pairs(part, False) for part in np.split(x, 2, -1)], -1)


def rotated(x: Array, cos: Array, sin: Array, mode: int) -> Array:
    x = _sorted(x, mode)
    return x * cos + _quarter_rotated(x, mode) * sin


def turned_back(dy: Array, cos: Array, sin: Array, mode: int) -> Array:
    """The rotation's transpose: rotated(y) is -rotated of its argument.

    What mode 3 sorted into halves comes back as neighbours (README of
    rotary_position_embedding_grad, ops-transformer).
    """
    dx = dy * cos - _quarter_rotated(dy * sin, mode)
    return np.stack(np.split(dx, 2, -1), -1).reshape(dy.shape) if mode == 3 else dx


# Positions are the second, the third or the first dim of [., ., ., D]; samples may have their own.
_ANGLES: Final = ("1 S 1", "B S 1", "1 1 N", "B 1 N", "B 1 1")


def _angles(last: str, like: str, *params: str) -> tuple[Overload, ...]:
    return tuple(overload(shape.replace(" ", "").lower(), **dict.fromkeys(
        params, tensor(f"{shape} {last}", like, -1, 1))) for shape in _ANGLES)  # fmt: skip


def _turn(like: str) -> dict[str, Domain]:
    return dict.fromkeys(("cos", "sin"), tensor("1 S 1 D", like, -1, 1))


@spec("aclnnRotaryPositionEmbedding", _ROPE, _SIZES, _QUARTERS, *_angles("D", "x", "cos", "sin"),
      x=tensor("B S N D", _FLOATS), **_turn("x"), mode=_MODES, out=out("x"))  # fmt: skip
def rotary(x: Array, cos: Array, sin: Array, mode: int) -> Array:
    return rotated(x, cos, sin, mode)


@spec("aclnnRotaryPositionEmbeddingGrad", _BACK, _SIZES, _QUARTERS,
      *_angles("D", "dy", "cos", "sin"), dy=tensor("B S N D", _FLOATS), **_turn("dy"),
      xOptional=optional(tensor("B S N D", "dy")), mode=_MODES, dxOut=out("dy"),
      dcosOut=out("dy"), dsinOut=out("dy"))  # fmt: skip
def rotary_grad(
    dy: Array, cos: Array, sin: Array, xOptional: Array | None, mode: int
) -> tuple[Array, Array | None, Array | None]:
    """Gradients of angles need x."""
    dx = turned_back(dy, cos, sin, mode)
    if xOptional is None:
        return dx, None, None
    x = _sorted(xOptional, mode)
    axes = tuple(i for i, n in enumerate(cos.shape) if n == 1 and dy.shape[i] != 1)
    dcos = (dy * x).sum(axes, keepdims=True)
    return dx, dcos, (dy * _quarter_rotated(x, mode)).sum(axes, keepdims=True)


_QUERY_AND_KEY: Final[dict[str, Domain]] = {
    "queryRef": inout(tensor("B S N D", _FLOATS)), "keyRef": inout(tensor("B S K D", "queryRef")),
    **dict.fromkeys(("cos", "sin"), tensor("B S 1 D", "queryRef", -1, 1)),
    "layout": only(1, "documents allow one value: BSND"),
}  # fmt: skip
_QUERIES: Final = sizes(B=batch(2, 1, 3), S=seq(5, 1, 17), N=heads(4, 1, 3), K=heads(1, 2, 3),
                        D=head_dim(128, 64))  # fmt: skip
_ROTARY_MODES: Final = ("half", "interleave", "quarter")


@spec("aclnnApplyRotaryPosEmbV2", _ROPE, _QUERIES, both("N > K"), **_QUERY_AND_KEY,
      rotaryMode=choice(*_ROTARY_MODES))  # fmt: skip
@spec("aclnnApplyRotaryPosEmb", _ROPE, _QUERIES, both("N > K"), **_QUERY_AND_KEY)
def apply_rotary(
    queryRef: Array, keyRef: Array, cos: Array, sin: Array, rotaryMode: str = "half"
) -> tuple[Array, ...]:
    mode = _ROTARY_MODES.index(rotaryMode)
    return tuple(rotated(x, cos, sin, mode) for x in (queryRef, keyRef))


_VLLM: Final = Rule("gradient", "vLLM, rotary_embedding: NeoX and GPT-J style; mrope, whose "
                    "sections may lie interleaved; Qwen2-VL, arXiv 2409.12191")  # fmt: skip
_TABLE: Final = sizes(T=tokens(4, 1, 17, 130), P=seq(8, 1, 33), N=heads(2, 1, 3), K=heads(1, 2),
                      D=head_dim(32, 64, 128), F=heads(1, 2), R="D//F")  # fmt: skip


def _cached(version: int) -> dict[str, Domain]:
    modes: dict[str, Domain] = {"cacheMode": only(0, "of sections")} if version > 1 else {}
    return {
        "positions": index("T", into="P"), "queryIn": tensor("T N*D", _FLOATS),
        "keyIn": tensor("T K*D", "queryIn"), "cosSinCache": tensor("P R", "queryIn", -1, 1),
        "mropeSection": array((0,)), "headSize": equals("D"), "isNeoxStyle": flag(True), **modes,
        "queryOut": out("queryIn"), "keyOut": out("keyIn"),
    }  # fmt: skip


def _positions(version: int) -> tuple[Overload, Overload]:
    """One row of positions, or those of time, height and width, each for a section of angles."""
    return overload("line"), overload("sections", **{
        "positions": index("3 T", into="P"),
        "mropeSection": parts("3", of="R//2", patterns="even ragged empty_middle empty_last"),
        **({"cacheMode": choice(0, 1)} if version > 1 else {})})  # fmt: skip


@spec("aclnnRopeWithSinCosCache", _VLLM, _TABLE, both("N > K", "F > 1"), *_positions(1),
      **_cached(1))  # fmt: skip
@spec("aclnnRopeWithSinCosCacheV2", _VLLM, _TABLE, both("N > K", "F > 1"), *_positions(2),
      **_cached(2))  # fmt: skip
def rope_with_cache(
    positions: Array, queryIn: Array, keyIn: Array, cosSinCache: Array,
    mropeSection: Sequence[int], headSize: int, isNeoxStyle: bool, cacheMode: int = 0,
) -> tuple[Array, Array]:  # fmt: skip
    """Part of each head turns: all that the table has angles for."""
    wide = cosSinCache.shape[1]
    angles = cosSinCache[positions]
    if positions.ndim > 1:
        angles = _by_section(angles, mropeSection, bool(cacheMode))
    cos, sin = (v[:, None] for v in np.split(angles, 2, -1))

    def turn(x: Array) -> Array:
        h = x.reshape(len(x), -1, headSize).copy()
        part = h[..., :wide]
        a, b = np.split(part, 2, -1) if isNeoxStyle else (part[..., 0::2], part[..., 1::2])
        c, d = a * cos - b * sin, b * cos + a * sin
        rotation = np.concatenate([c, d], -1) if isNeoxStyle else np.stack([c, d], -1)
        h[..., :wide] = rotation.reshape(part.shape)
        return h.reshape(x.shape)

    return turn(queryIn), turn(keyIn)


def _by_section(angles: Array, sections: Sequence[int], interleaved: bool) -> Array:
    """[T, R] of [3, T, R]: the first columns of cos and sin follow the first row of positions, and
    so on; interleaved, columns 1, 4, … follow the second row as far as its section goes."""
    which = np.repeat(np.arange(len(sections)), sections)
    if interleaved:
        at = np.arange(len(which))
        which = np.where(at < 3 * np.array(sections)[at % 3], at % 3, 0)
    which = np.tile(which, 2)
    return np.take_along_axis(angles, which[None, None], 0)[0] if len(which) else angles[0]


def _slice(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Where the part lies that turns."""
    room = draw["D"] - draw["R"]
    begin = {"middle": room // 2, "front": 0, "back": room}[pattern]
    return np.array([begin, begin + draw["R"]])


_PART: Final = sizes(B=batch(2, 1, 3), S=seq(3, 1, 17), N=heads(4, 1, 3), R=head_dim(8, 4, 6, 64),
                     E=head_dim(8, 4, 32), D="R + E")  # fmt: skip
_SLICE: Final = content(_slice, "middle front back", shape="2", reads=("D", "R"))


def _part_of(param: str, mode: str) -> dict[str, Domain]:
    return {param: inout(tensor("B S N D", _FLOATS)),
            **dict.fromkeys(("cos", "sin"), tensor("1 S 1 R", param, -1, 1)),
            mode: _MODES, "partialSlice": _SLICE}  # fmt: skip


@spec("aclnnInplacePartialRotaryMul", _BACK, _PART, require("rotary_mode != 2 or R % 4 == 0"),
      *_angles("R", "xRef", "cos", "sin"), **_part_of("xRef", "rotary_mode"))  # fmt: skip
def partial_rotary(
    xRef: Array, cos: Array, sin: Array, rotary_mode: int, partialSlice: Sequence[int]
) -> Array:
    """Part of the last dimension turns."""
    out, part = xRef.copy(), slice(*partialSlice)
    out[..., part] = rotated(xRef[..., part], cos, sin, rotary_mode)
    return out


@spec("aclnnInplacePartialRotaryMulGrad", _BACK, _PART, require("rotaryMode != 2 or R % 4 == 0"),
      *_angles("R", "dyRef", "cos", "sin"), **_part_of("dyRef", "rotaryMode"))  # fmt: skip
def partial_rotary_grad(
    dyRef: Array, cos: Array, sin: Array, rotaryMode: int, partialSlice: Sequence[int]
) -> Array:
    out, part = dyRef.copy(), slice(*partialSlice)
    out[..., part] = turned_back(dyRef[..., part], cos, sin, rotaryMode)
    return out


def _matrix(_rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
    """What the mode does to pairs, as a matrix."""
    return _quarter_rotated(np.eye(draw["D"]), draw["mode"])


@spec("aclnnRotaryPositionEmbeddingV2", replace(_BACK, specials=False, source="Su et al.: "
      "RoFormer, 2021; op-plugin document npu_rotary_mul: the rotation as a matrix"),
      _SIZES, _QUARTERS,
      *_angles("D", "x", "cos", "sin"), x=tensor("B S N D", _FLOATS), **_turn("x"),
      mode=ignored("the matrix says what turns", choice(0, 1, 2)),
      rotate=content(_matrix, "turn", "x", shape="D D", reads=("mode",)),
      out=out("x"))  # fmt: skip
def rotary_v2(x: Array, cos: Array, sin: Array, rotate: Array) -> Array:
    return x * cos + (x @ rotate) * sin


@spec("aclnnInterleaveRope", replace(_ROPE, source="Su et al.: RoFormer, 2021; DeepSeek-V2: "
      "neighbours are brought into halves first"), sizes(N=heads(1, 2, 3, 8)),
      overload("positions"), overload("samples", **dict.fromkeys(
          ("cos", "sin"), tensor("B 1 1 64", "x", -1, 1))),
      x=tensor("B N S 64", "f16 bf16"),
      **dict.fromkeys(("cos", "sin"), tensor("B 1 S 64", "x", -1, 1)), out=out("x"))  # fmt: skip
def interleave_rope(x: Array, cos: Array, sin: Array) -> Array:
    return rotated(x, cos, sin, 3)
