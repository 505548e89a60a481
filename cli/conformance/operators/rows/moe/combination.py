"""Rows of experts gathered and summed by token."""

from __future__ import annotations

from .....spec import *
from .._words import *

_SUM: Final = Rule("gradient", "op-plugin document npu_moe_finalize_routing", specials=False)
# Experts are E; where rows are padded, each has C of them.
_SLOTS: Final = sizes(T=tokens(5, 1, 3, 17, 130, 1030), K=topk, E=experts(3, 1, 8, 65),
                      H=row(7, 1, 33, 257, 1025, 4097))  # fmt: skip
_CAPACITY: Final = sizes(C=tokens(3, 1, 17))
_FEW: Final = require("K <= E", "T*K*H <= 1 << 17", "E*H <= 1 << 17", refuses=None)
_FLOATS: Final = "f32 f16 bf16"
_EVERY: Final = permutation("T*K", "i32")
_PLACED: Final = slots("T*K", into="E*C", dtype="i32", hole=-1)
_SUMMANDS: Final[dict[str, Domain]] = {
    "x1Optional": optional(tensor("T H", "expandedX")),
    "x2Optional": optional(tensor("T H", "expandedX"), only="given(x1Optional)"),
}  # fmt: skip


@spec("aclnnMoeFinalizeRouting", _SUM, _SLOTS, _FEW, expandedX=tensor("T*K H", _FLOATS),
      x1=tensor("T H", "expandedX"), x2Optional=optional(tensor("T H", "expandedX")),
      bias=tensor("E H", "expandedX"), scales=tensor("T K", "expandedX"),
      expandedRowIdx=_EVERY, expandedExpertIdx=routing("T K", into="E"),
      out=out("expandedX"))  # fmt: skip
def finalize_routing(
    expandedX: Array, x1: Array, x2Optional: Array | None, bias: Array, scales: Array,
    expandedRowIdx: Array, expandedExpertIdx: Array,
) -> Array:  # fmt: skip
    """The slot of token t and its k-th expert is expandedRowIdx[k * tokens + t]."""
    return finalize_v2(expandedX, expandedRowIdx, x1, x2Optional, bias, scales,
                       expandedExpertIdx, 0)  # fmt: skip


def _gathered(expandedX: Array, places: Array, scales: Array | None, mode: int) -> Array:
    """Rows of tokens lie by columns of the table (modes 0, 1) or by lines (2, 3); those dropped
    (1, 3) are 0."""
    tokens, k = (places.size, 1) if scales is None else scales.shape
    rows = expandedX.reshape(-1, expandedX.shape[-1])
    table = places.reshape(k, tokens).T if mode < 2 else places.reshape(tokens, k)
    return np.where((table >= 0)[..., None], rows[np.maximum(table, 0)], 0)


def _summed(rows: Array, scales: Array | None, *more: Array | None) -> Array:
    out = (rows if scales is None else rows * scales[..., None]).sum(1)
    return out + sum(x for x in more if x is not None)


def _final_params(all_experts: str) -> dict[str, Domain]:
    """What every version since the second has in common, before its modes."""
    return {
        "expandedX": by("dropPadMode", {
            0: tensor("T*K H", _FLOATS), 1: tensor("E C H", _FLOATS),
            2: tensor("T*K H", _FLOATS), 3: tensor("E C H", _FLOATS)}),
        "expandedRowIdx": by("dropPadMode", {0: _EVERY, 1: _PLACED, 2: _EVERY, 3: _PLACED}),
        **_SUMMANDS, "biasOptional": optional(tensor(f"{all_experts} H", "expandedX")),
        "scalesOptional": forms(given=tensor("T K", "expandedX"), none=None),
        "expertIdxOptional": optional(routing("T K", into=all_experts)),
    }  # fmt: skip


_ONE: Final = require("given(scalesOptional) or K == 1", "E*C*H <= 1 << 17", refuses=None)


@spec("aclnnMoeFinalizeRoutingV2", _SUM, _SLOTS, _CAPACITY, _FEW, _ONE,
      require("given(expertIdxOptional) or not given(biasOptional)"),
      **_final_params("E"), dropPadMode=choice(0, 1, 2, 3), out=out("expandedX"))  # fmt: skip
def finalize_v2(
    expandedX: Array, expandedRowIdx: Array, x1Optional: Array | None, x2Optional: Array | None,
    biasOptional: Array | None, scalesOptional: Array | None, expertIdxOptional: Array | None,
    dropPadMode: int,
) -> Array:  # fmt: skip
    rows = _gathered(expandedX, expandedRowIdx, scalesOptional, dropPadMode)
    if biasOptional is not None:
        rows = rows + biasOptional[expertIdxOptional]
    return _summed(rows, scalesOptional, x1Optional, x2Optional)


# Behind the E experts that have rows: Z that give nothing, Y that give the token, Q constants.
_SPECIAL: Final = sizes(Z=experts(1, 0, 3), Y=experts(1, 0, 2), Q=experts(1, 0, 2),
                        A="E + Z + Y + Q")  # fmt: skip


def _special_params(fourth: bool) -> dict[str, Domain]:
    constant = optional(tensor("Q H", "expandedX"), iff="Q > 0")
    return {
        **_final_params("A"), "expertIdxOptional": routing("T K", into="A"),
        "xOptional": tensor("T H", "expandedX"),
        "a1Optional": constant, "a2Optional": constant, "vOptional": constant,
        "dropPadMode": choice(0, 1, 2, 3), "zeroExpertRange": equals("(E, E + Z)"),
        "copyExpertRange": equals("(E + Z, E + Z + Y)"),
        "constantExpertRange": equals("(E + Z + Y, A)"),
        **({"k": equals("K")} if fourth else {}), "out": out("expandedX"),
    }  # fmt: skip


def finalised(
    expandedX: Array,
    expandedRowIdx: Array,
    x1Optional: Array | None,
    x2Optional: Array | None,
    biasOptional: Array | None,
    scalesOptional: Array | None,
    expertIdxOptional: Array,
    xOptional: Array,
    a1Optional: Array | None,
    a2Optional: Array | None,
    vOptional: Array | None,
    dropPadMode: int,
    zeroExpertRange: Sequence[int],
    copyExpertRange: Sequence[int],
    constantExpertRange: Sequence[int],
) -> Array:
    """Experts of three ranges give nothing, the token, or a1 x + a2 v of their own constants."""
    rows = _gathered(expandedX, expandedRowIdx, scalesOptional, dropPadMode)
    if biasOptional is not None:
        rows = rows + biasOptional[expertIdxOptional]
    token = np.broadcast_to(xOptional[:, None], rows.shape)

    def of(span: Sequence[int]) -> Array:
        return ((expertIdxOptional >= span[0]) & (expertIdxOptional < span[1]))[..., None]

    mixed = 0 * rows
    if a1Optional is not None and a2Optional is not None and vOptional is not None:
        own = np.clip(expertIdxOptional - constantExpertRange[0], 0, len(a1Optional) - 1)
        mixed = a1Optional[own] * token + (a2Optional * vOptional)[own]
    rows = np.select([of(zeroExpertRange), of(copyExpertRange), of(constantExpertRange)],
                     [0 * rows, token, mixed], rows)  # fmt: skip
    return _summed(rows, scalesOptional, x1Optional, x2Optional)


for _version in (3, 4):
    spec(f"aclnnMoeFinalizeRoutingV{_version}", _SUM, _SLOTS, _CAPACITY, _SPECIAL, _FEW, _ONE,
         **_special_params(_version == 4))(finalised)  # fmt: skip


@spec("aclnnMoeFinalizeRoutingV2Grad", Rule(
          "gradient", "op-plugin document npu_moe_finalize_routing, differentiated",
          specials=False),
      _SLOTS, _CAPACITY, sizes(K=topk(1)), _FEW, _ONE,
      require("given(expertIdxOptional) or not given(biasOptional)"),
      gradY=tensor("T H", _FLOATS),
      expandedRowIdx=by("dropPadMode", {0: _EVERY, 1: _PLACED}),
      expandedXOptional=optional(by("dropPadMode", {
          0: tensor("min(activeNum+T*K*(activeNum==0),T*K) H", "gradY"),
          1: tensor("E C H", "gradY")}), iff="given(scalesOptional)"),
      scalesOptional=forms(given=tensor("T K", "gradY"), none=None),
      expertIdxOptional=optional(routing("T K", into="E")),
      biasOptional=optional(tensor("E H", "gradY")), dropPadMode=choice(0, 1),
      activeNum=number(0, "ceil(T*K, 2)", "T*K"), expertNum=equals("E"),
      expertCapacity=by("dropPadMode", {0: number(0), 1: equals("C")}),
      gradExpandedXOut=out("gradY"), gradScalesOut=out("scalesOptional"))  # fmt: skip
def finalize_gradients(
    gradY: Array, expandedRowIdx: Array, expandedXOptional: Array | None,
    scalesOptional: Array | None, expertIdxOptional: Array | None, biasOptional: Array | None,
    dropPadMode: int, activeNum: int, expertNum: int, expertCapacity: int,
) -> tuple[Array, Array | None]:  # fmt: skip
    """One expert a token: in which order the slots of several lie is not published. Only the first
    activeNum rows (0: all), or those of every expert's capacity (dropPadMode 1), are there."""
    padded = (expertNum, expertCapacity) if dropPadMode else (activeNum or len(gradY),)
    rows = np.zeros((int(np.prod(padded)), gradY.shape[1]))
    slots = np.where(expandedRowIdx < len(rows), expandedRowIdx, -1)
    there = slots >= 0
    rows[slots[there]] = (gradY if scalesOptional is None else scalesOptional * gradY)[there]
    if scalesOptional is None or expandedXOptional is None:
        return rows.reshape(*padded, -1), None
    outs = np.where(there[:, None], expandedXOptional.reshape(rows.shape)[slots], 0)
    if biasOptional is not None and expertIdxOptional is not None:
        outs = outs + biasOptional[expertIdxOptional[:, 0]]
    return rows.reshape(*padded, -1), np.einsum("th,th->t", gradY, outs)[:, None]
