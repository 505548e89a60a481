"""Merging partial results of attention by their softmax sums."""

from __future__ import annotations

from .....spec import *
from .....spec import batch as batch_, heads as heads_
from .._words import *

_RING: Final = Rule("gradient", "Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers, "
                    "2023; op-plugin test test_npu_ring_attention_update",
                    specials=False)  # fmt: skip
_SIZES: Final = sizes(S=seq(5, 1, 4, 33), B=batch_(2, 1, 3), N=heads_(2, 1, 3),
                      D=head_dim(16, 64, 128))  # fmt: skip
_LARGEST: Final = float(np.finfo(np.float32).max)


def _eight(shape: str, of: str, maxima: bool) -> Domain:
    """Statistics, eight equal values a row; `nothing`: what attention leaves of rows that saw
    nothing, the least maximum and the largest sum."""

    def make(rng: np.random.Generator, pattern: str, draw: Any) -> Array:
        *rows, _ = resolve(shape, draw)
        if maxima:
            draws = rng.uniform(-3, 3, rows) * (20 if pattern == "apart" else 1)
            if pattern == "nothing":
                draws[np.arange(draws.size).reshape(rows) % 3 == 1] = -_LARGEST
        else:
            top = draw[f"{of}SoftmaxMax"].values()[..., 0]
            draws = np.where(top == -_LARGEST, _LARGEST, rng.uniform(1, 3, rows))
        return np.repeat(draws[..., None], 8, -1)

    some = "plain apart" + (" nothing" if of == "cur" else "")
    reads = (shape.split()[0],) if maxima else (f"{of}SoftmaxMax",)
    return content(
        make,
        some if maxima else "plain",
        "f32",
        shape=shape,
        reads=reads,
        alike="a row's statistic stands there eight times",
    )


def _rows(of: str, maxima: bool) -> Domain:
    return by("inputLayoutOptional", {"SBH": _eight("B N S 8", of, maxima),
                                      "TND": _eight("B*S N 8", of, maxima)})  # fmt: skip


def _flow(dtype: str) -> Domain:
    return by("inputLayoutOptional", {"SBH": tensor("S B N*D", dtype),
                                      "TND": tensor("B*S N D", dtype)})  # fmt: skip


def _ring_params(version: int) -> dict[str, Domain]:
    layout = "inputLayoutOptional"
    return {
        "prevAttnOut": _flow("f16 bf16 f32"), "prevSoftmaxMax": _rows("prev", True),
        "prevSoftmaxSum": _rows("prev", False), "curAttnOut": _flow("prevAttnOut"),
        "curSoftmaxMax": _rows("cur", True), "curSoftmaxSum": _rows("cur", False),
        "actualSeqQlenOptional": ignored("rows are merged each by itself", by(layout, {
            "SBH": None, "TND": parts("B", of="B*S", form="ends")})),
        layout: choice("SBH", "TND"),
        **({"inputSoftmaxLayoutOptional": equals(layout)} if version > 1 else {}),
        "attnOutOut": out("prevAttnOut"), "softmaxMaxOut": out("f32"), "softmaxSumOut": out("f32"),
    }  # fmt: skip


@spec("aclnnRingAttentionUpdate", _RING, _SIZES, **_ring_params(1))
@spec("aclnnRingAttentionUpdateV2", _RING, _SIZES, **_ring_params(2))
def ring_update(
    prevAttnOut: Array, curAttnOut: Array, prevSoftmaxMax: Array, prevSoftmaxSum: Array,
    curSoftmaxMax: Array, curSoftmaxSum: Array, inputLayoutOptional: str = "SBH",
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


def _sums(rng: np.random.Generator, pattern: str, draw: Any) -> Array:
    """Logarithms of sums; `infinite`: rows of which a part saw nothing, never all of them."""
    rows = draw["T"]
    draws = rng.uniform(-3, 3, rows) * (20 if pattern == "apart" else 1)
    if pattern == "infinite" and draw["L"] > 1:
        draws[np.arange(rows) % draw["L"] == draw.index] = np.inf
    return draws


@spec("aclnnAttentionUpdate", replace(_RING, source="Liu et al.: Ring Attention, 2023; "
                                      "op-plugin document npu_attention_update"),
      sizes(L=members(3, 1, 2, 5), T=seq(5, 1, 33, 130), D=head_dim(32, 8, 128)),
      lse=several("L", content(_sums, "plain apart infinite", "f32", shape="T")),
      localOut=several("L", tensor("T D", "f32 f16 bf16")), updateType=choice(0, 1),
      out=out("localOut"), lseOut=out("lse"))  # fmt: skip
def attention_update(
    lse: list[Array], localOut: list[Array], updateType: int
) -> tuple[Array, Array | None]:
    """updateType 1 asks for the logarithm of the sum too; an infinite one marks a part that saw
    nothing."""
    whole = np.stack(lse)
    whole = np.where(np.isposinf(whole), -np.inf, whole)
    top = whole.max(0)
    total = np.log(np.exp(whole - top).sum(0)) + top
    out = sum(np.exp(v - total)[:, None] * o for v, o in zip(whole, localOut, strict=True))
    return np.asarray(out), total if updateType else None
