"""Tensors filled with constants and sequences."""

from __future__ import annotations

from ....spec import *
from ._defaults import TORCH
from ._words import *

_MOVE: Final = Rule("exact", TORCH, sparse=True)
_SEQUENCE: Final = Rule("composite", TORCH)


@spec("aclnnInplaceFillTensor", _MOVE, selfRef=inout(tensor("*S")),
      value=forms(one=tensor("1", "selfRef"), scalar=tensor("", "selfRef")))  # fmt: skip
def fill_tensor(selfRef: Array, value: Array) -> Array:
    return np.full_like(selfRef, value.reshape(()))


def _outside(rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Numbers of no class among the others: one too large, negative ones."""
    return rng.integers(-2, draw["K"] + 2, resolve("*S", draw))


@spec("aclnnOneHot", _MOVE,
      sizes(K=row(5, 1, 2, 33, 130), **{"*S": row(4, 1, "2x3", "3x1x5", 65)}),
      require("axis <= rank(self)"),
      self=forms(i64=index("*S", into="K"), i32=index("*S", into="K", dtype="i32"),
                 outside=content(_outside, "outside", shape="*S")),
      numClasses=equals("K"), onValue=tensor("1", "f32 f16 i32 i64"),
      offValue=tensor("1", "onValue"), axis=number(-1, 0, 1, "rank(self)"),
      out=out("onValue"))  # fmt: skip
def one_hot(self: Array, numClasses: int, onValue: Array, offValue: Array, axis: int) -> Array:
    """Where the number names no class, all is off."""
    hit = np.moveaxis(self[..., None] == np.arange(numClasses), -1, axis)
    return np.where(hit, onValue.reshape(()), offValue.reshape(()))


# Exact in float32, so that the number of steps is.
_ENDS: Final[dict[str, Domain]] = {
    "start": scalar("f32", 1.0, 0.0, -3.5, 5.0, 2.0**20),
    "end": scalar("f32", 7.0, 7.25, -1.0, 0.0, 500.0, 2.0**20 + 9),
    "step": scalar("f32", 1.5, 1.0, 0.25, -2.0, -0.75, 3.0),
    "out": out("f32"),
}  # fmt: skip
_LEADS: Final = require("(end - start)*step > 0", "abs(end - start) < 5000")


@spec("aclnnRange", _SEQUENCE, _LEADS, **_ENDS)
def closed_range(start: float, end: float, step: float) -> Array:
    return start + step * np.arange(int(np.floor((end - start) / step)) + 1)


@spec("aclnnArange", _SEQUENCE, _LEADS, **_ENDS)
def half_open_range(start: float, end: float, step: float) -> Array:
    return start + step * np.arange(int(np.ceil((end - start) / step)))


@spec("aclnnLogSpace", _SEQUENCE, start=scalar("f32", -1.0, 0.0, 2.0),
      end=scalar("f32", 2.0, -3.0, 0.0), steps=number(7, 1, 2, 5, 33, 130),
      base=number(10.0, 2.0, 0.5, 1.0), result=out("f32"))  # fmt: skip
def logspace(start: float, end: float, steps: int, base: float) -> Array:
    return np.asarray(base ** np.linspace(start, end, steps))
