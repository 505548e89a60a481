"""Merging partial results of attention by their softmax sums."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import FLOATS

_RING: Final[dict[str, Any]] = {"tolerance": "gradient", "source":
                                "Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers, "
                                "2023; op-plugin test test_npu_ring_attention_update", "casts": {
                                    p + n: {"float16": "float32", "bfloat16": "float32"}
                                    for p in ("prevSoftmax", "curSoftmax") for n in ("Max", "Sum")
                                }}  # fmt: skip


def _eight(*shape: int, low: float, high: float) -> Arg:
    """Statistics: eight equal values a row."""
    draws = np.random.default_rng(len(shape)).uniform(low, high, (*shape, 1))
    return const(np.broadcast_to(draws, (*shape, 8)).tolist(), "float32")


def _ring(layout: str, flow: tuple[int, ...], rows: tuple[int, ...]) -> dict[str, Any]:
    return {"prevAttnOut": t(*flow), "curAttnOut": t(*flow), "inputLayoutOptional": layout,
            "prevSoftmaxMax": _eight(*rows, low=0.2, high=1.2),
            "prevSoftmaxSum": _eight(*rows, low=0.5, high=1.5),
            "curSoftmaxMax": _eight(*rows, low=0.3, high=1.3),
            "curSoftmaxSum": _eight(*rows, low=0.4, high=1.4),
            "inputSoftmaxLayoutOptional": layout}  # fmt: skip


@spec("aclnnRingAttentionUpdateV2",
      "attnOutOut:prevAttnOut softmaxMaxOut:float32 softmaxSumOut:float32",
      uncovered="actualSeqQlenOptional inputSoftmaxLayoutOptional",
      **_RING, samples=[
          take(**_ring("SBH", (4, 2, 32), (2, 2, 4))),
          take(**_ring("TND", (5, 2, 64), (5, 2)),
               actualSeqQlenOptional=const([2, 5], "int64"))])  # fmt: skip
def ring_update_v2(
    prevAttnOut: Array, curAttnOut: Array, prevSoftmaxMax: Array, prevSoftmaxSum: Array,
    curSoftmaxMax: Array, curSoftmaxSum: Array, inputLayoutOptional: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Two blocks' results, each in the scale of its own maximum, become one."""
    top = np.maximum(prevSoftmaxMax, curSoftmaxMax)
    prev = prevSoftmaxSum * np.exp(prevSoftmaxMax - top)
    cur = curSoftmaxSum * np.exp(curSoftmaxMax - top)
    total, shape = prev + cur, prevAttnOut.shape

    def weighted(x: Array, part: Array) -> Array:
        share = (part / total)[..., :1]
        if inputLayoutOptional == "TND":
            return x * share
        share = share.transpose(2, 0, 1, 3)  # from [B, N, S, 1]
        return (x.reshape(*share.shape[:3], -1) * share).reshape(shape)

    return weighted(prevAttnOut, prev) + weighted(curAttnOut, cur), top, total


@spec("aclnnRingAttentionUpdate",
      "attnOutOut:prevAttnOut softmaxMaxOut:float32 softmaxSumOut:float32",
      uncovered="actualSeqQlenOptional inputLayoutOptional",
      tolerance="gradient", dtypes=FLOATS, source="Liu et al.: Ring Attention, 2023", samples=[
          take(prevAttnOut=f16(5, 2, 32), curAttnOut=f16(5, 2, 32), inputLayoutOptional="SBH",
               **{f"{w}Softmax{k}": const(np.repeat(np.random.default_rng(n).uniform(
                   0.5, 3, (2, 2, 5, 1)), 8, -1).tolist(), "float32")
                  for n, (w, k) in enumerate((w, k) for w in ("prev", "cur")
                                             for k in ("Max", "Sum"))})])  # fmt: skip
def ring_update(
    prevAttnOut: Array, prevSoftmaxMax: Array, prevSoftmaxSum: Array, curAttnOut: Array | None,
    curSoftmaxMax: Array, curSoftmaxSum: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """SBH [S, B, H] with statistics [B, N, S, 8]."""
    top = np.maximum(prevSoftmaxMax, curSoftmaxMax)
    a = prevSoftmaxSum * np.exp(prevSoftmaxMax - top)
    b = curSoftmaxSum * np.exp(curSoftmaxMax - top)
    total = a + b

    def spread(x: Array) -> Array:
        s, _, h = prevAttnOut.shape
        n = x.shape[1]
        return np.repeat((x / total)[..., 0].transpose(2, 0, 1), h // n, -1).reshape(s, -1, h)

    return prevAttnOut * spread(a) + curAttnOut * spread(b), top, total


@spec("aclnnAttentionUpdate", "out:localOut lseOut:lse", tolerance="gradient",
      dtypes=("float32",), source="Liu et al.: Ring Attention, 2023; op-plugin document "
      "npu_attention_update", samples=[
          take(lse=[t(5), t(5, high=3), t(5)], localOut=[t(5, 32), t(5, 32), t(5, 32)],
               updateType=u) for u in (0, 1)])  # fmt: skip
def attention_update(
    lse: list[Array], localOut: list[Array], updateType: int
) -> tuple[Array, Array | None]:
    """updateType 1 asks for the logarithm of the sum too."""
    whole = np.stack(lse)
    top = whole.max(0)
    total = np.log(np.exp(whole - top).sum(0)) + top
    out = sum(np.exp(v - total)[:, None] * o for v, o in zip(lse, localOut, strict=True))
    return out, total if updateType else None
