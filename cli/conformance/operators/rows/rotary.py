"""Rotary position embeddings and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const, f16, spec, t, take
from ._ignored import one_value

_ROPE: Final = "Su et al.: RoFormer, 2021; op-plugin document npu_rotary_mul: half and interleave"
_EMBED: Final[dict[str, Any]] = {"source": _ROPE, "tolerance": "composite"}


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


spec("aclnnRotaryPositionEmbedding", "out:x", **_EMBED, samples=[
    take(x=t(2, 5, 3, 64), cos=t(*c, low=-1, high=1), sin=t(*c, low=-1, high=1), mode=m)
    for c in ((1, 5, 1, 64), (2, 5, 1, 64)) for m in (0, 1, 2, 3)])(
    lambda x, cos, sin, mode:
        _sorted(x, mode) * cos + _quarter_rotated(_sorted(x, mode), mode) * sin)  # fmt: skip


def rotary_grad(
    dy: Array, cos: Array, sin: Array, xOptional: Array, mode: int
) -> tuple[Array, Array, Array]:
    """The rotation's transpose: turned(y) is -turned of its argument.

    What mode 3 sorted into halves comes back as neighbours (README of
    rotary_position_embedding_grad, ops-transformer).
    """
    x = _sorted(xOptional, mode)
    dx = dy * cos - _quarter_rotated(dy * sin, mode)
    if mode == 3:
        dx = np.stack(np.split(dx, 2, -1), -1).reshape(dy.shape)
    axes = tuple(i for i, n in enumerate(cos.shape) if n == 1 and dy.shape[i] != 1)
    dcos = (dy * x).sum(axes, keepdims=True)
    return dx, dcos, (dy * _quarter_rotated(x, mode)).sum(axes, keepdims=True)


spec("aclnnRotaryPositionEmbeddingGrad", "dxOut:dy dcosOut:dy dsinOut:dy",
     **{**_EMBED, "tolerance": "gradient"}, samples=[
         take(dy=t(2, 5, 3, 64), cos=t(1, 5, 1, 64, low=-1, high=1),
              sin=t(1, 5, 1, 64, low=-1, high=1), xOptional=t(2, 5, 3, 64), mode=m)
         for m in (0, 1, 2, 3)])(rotary_grad)  # fmt: skip
_ROTATION: Final[dict[str, Any]] = {
    "queryRef": t(2, 5, 4, 128), "keyRef": t(2, 5, 1, 128), "layout": 1,
    "cos": t(2, 5, 1, 128, low=-1, high=1), "sin": t(2, 5, 1, 128, low=-1, high=1),
}  # fmt: skip
_ROTARY_MODES: Final = ("half", "interleave", "quarter")


@spec("aclnnApplyRotaryPosEmbV2", "queryRef:queryRef keyRef:keyRef",
      ignored=one_value("layout"),
      **_EMBED, samples=[
    take(**_ROTATION, rotaryMode=mode) for mode in _ROTARY_MODES])  # fmt: skip
def apply_rotary(
    queryRef: Array, keyRef: Array, cos: Array, sin: Array, rotaryMode: str
) -> tuple[Array, ...]:
    mode = _ROTARY_MODES.index(rotaryMode)
    return tuple(x * cos + _quarter_rotated(x, mode) * sin for x in (queryRef, keyRef))


spec("aclnnApplyRotaryPosEmb", "queryRef:queryRef keyRef:keyRef",
     ignored=one_value("layout"),
     **_EMBED,
     samples=[take(**_ROTATION)])(
    lambda queryRef, keyRef, cos, sin:
    apply_rotary(queryRef, keyRef, cos, sin, "half"))  # fmt: skip


@spec("aclnnRopeWithSinCosCache aclnnRopeWithSinCosCacheV2", "queryOut:queryIn keyOut:keyIn",
      uncovered="mropeSection cacheMode",
      constant="headSize",
      tolerance="gradient", dtypes=("float16", "bfloat16", "float32"),
      source="vLLM, rotary_embedding: NeoX and GPT-J style", samples=[
          take(positions=const([3, 0, 6, 2], "int64"), queryIn=t(4, 2 * 32), keyIn=t(4, 32),
               cosSinCache=t(8, 32, low=-1, high=1), mropeSection=(0,), headSize=32,
               isNeoxStyle=s, cacheMode=0) for s in (True, False)])  # fmt: skip
def rope_with_cache(
    positions: Array,
    queryIn: Array,
    keyIn: Array,
    cosSinCache: Array,
    headSize: int,
    isNeoxStyle: bool,
) -> tuple[Array, Array]:
    cos, sin = (v[:, None] for v in np.split(cosSinCache[positions], 2, -1))

    def turn(x: Array) -> Array:
        h = x.reshape(len(x), -1, headSize)
        a, b = np.split(h, 2, -1) if isNeoxStyle else (h[..., 0::2], h[..., 1::2])
        c, d = a * cos - b * sin, b * cos + a * sin
        rotation = np.concatenate([c, d], -1) if isNeoxStyle else np.stack([c, d], -1)
        return rotation.reshape(x.shape)

    return turn(queryIn), turn(keyIn)


def _partial(kind: int) -> dict[str, Arg | int | tuple[int, ...]]:
    return {"xRef": t(2, 3, 4, 16), "cos": t(2, 3, 1, 8), "sin": t(2, 3, 1, 8),
            "rotary_mode": kind, "partialSlice": (4, 12)}  # fmt: skip


@spec("aclnnInplacePartialRotaryMul", "xRef:xRef", tolerance="gradient",
      source="Su et al.: RoFormer, 2021, section 3.4; op-plugin, document of npu_rotary_mul",
      samples=[take(**_partial(0)), take(**_partial(1))])  # fmt: skip
def partial_rotary(
    xRef: Array, cos: Array, sin: Array, rotary_mode: int, partialSlice: Sequence[int]
) -> Array:
    """Part of the last dimension turns: halves of it are pairs, or neighbours are."""
    out = xRef.copy()
    x = xRef[..., partialSlice[0] : partialSlice[1]]
    n = x.shape[-1]
    partner = np.arange(n) ^ 1 if rotary_mode == 1 else (np.arange(n) + n // 2) % n
    first = np.arange(n) % 2 == 0 if rotary_mode == 1 else np.arange(n) < n // 2
    out[..., partialSlice[0] : partialSlice[1]] = (
        x * cos + np.where(first, -x[..., partner], x[..., partner]) * sin
    )
    return out


@spec("aclnnInplacePartialRotaryMulGrad", "dyRef:dyRef", tolerance="gradient",
      source="Su et al.: RoFormer, 2021, section 3.4; the transpose of the turn", samples=[
          take(dyRef=t(2, 3, 4, 16), cos=t(2, 3, 1, 8), sin=t(2, 3, 1, 8), rotaryMode=m,
               partialSlice=(b, b + 8)) for m, b in ((0, 4), (1, 4), (0, 8))])  # fmt: skip
def partial_rotary_grad(
    dyRef: Array, cos: Array, sin: Array, rotaryMode: int, partialSlice: Sequence[int]
) -> Array:
    """The turn of each unit vector, against what flows in."""
    n, out = dyRef.shape[-1], np.zeros_like(dyRef)
    for k in range(n):
        unit = np.broadcast_to(np.eye(n)[k], dyRef.shape)
        out[..., k] = (partial_rotary(unit, cos, sin, rotaryMode, partialSlice) * dyRef).sum(-1)
    return out


@spec("aclnnRotaryPositionEmbeddingV2", "out:x",
      uncovered="mode",
      tolerance="gradient",
      dtypes=("float16", "bfloat16", "float32"), source="Su et al.: RoFormer, 2021; op-plugin "
      "document npu_rotary_mul: the rotation as a matrix", samples=[
          take(x=t(2, 5, 3, 64), cos=t(1, 5, 1, 64, low=-1, high=1),
               sin=t(1, 5, 1, 64, low=-1, high=1), mode=0, rotate=const(
                   rotated_pairs(np.eye(64), False).tolist(), "float32"))])  # fmt: skip
def rotary_v2(x: Array, cos: Array, sin: Array, rotate: Array) -> Array:
    return x * cos + (x @ rotate) * sin


spec("aclnnInterleaveRope", "out:x", tolerance="composite",
     dtypes=("float16", "bfloat16"), source="Su et al.: RoFormer, 2021; DeepSeek-V2: pairs apart "
     "are brought together first", samples=[
         take(x=f16(2, 3, 1, 64), cos=f16(2, 1, 1, 64, low=-1, high=1),
              sin=f16(2, 1, 1, 64, low=-1, high=1))])(
    lambda x, cos, sin: (lambda q: q * cos + np.concatenate([-q[..., 32:], q[..., :32]], -1) * sin)(
        np.concatenate([x[..., 0::2], x[..., 1::2]], -1)))  # fmt: skip
