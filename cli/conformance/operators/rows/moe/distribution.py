"""Tokens sent to the ranks of their experts, and back."""

from __future__ import annotations

from collections.abc import Mapping

from .....spec import *
from .....spec import contents
from ...group import OWN_GROUP
from .._functions import plus
from .._ignored import RANKS
from .._quantizers import dynamic
from .._words import *

_SOURCE: Final = ("op-plugin documents npu_moe_distribute_dispatch_v2 and "
                  "npu_moe_distribute_combine_v2, and its tests")  # fmt: skip
_DISPATCH: Final = Rule("composite", _SOURCE, steps=True, specials=False,
                        values="normal")  # fmt: skip
_COMBINE: Final = Rule("gradient", _SOURCE, specials=False)
_ONE_RANK: Final = null(RANKS)
_RESERVED: Final = null("reserved: documents ask for null")
_SIZES: Final = sizes(T=batch(4, 1, 3, 33, 130), K=topk(2, 1, 3, 8), E=experts(4, 1, 3, 8, 65),
                      H=row(32, 8, 33, 1032))  # fmt: skip
# How many experts give nothing, the token itself, or a mix of it with a constant.
_SPECIAL: Final = sizes(Z=batch(1, 0, 2), C=batch(2, 0, 1), V=batch(2, 0, 3))
_FIT: Final = require("K <= E")
# What both directions say of ranks and experts; tokens of one rank that has all experts.
_HEAD: Final[dict[str, Domain]] = {
    "groupEp": only(OWN_GROUP, RANKS), "epWorldSize": only(1, RANKS), "epRankId": only(0, RANKS),
    "moeExpertNum": equals("E"), "groupTp": only("", RANKS), "tpWorldSize": only(0, RANKS),
    "tpRankId": only(0, RANKS), "expertShardType": only(0, "documents allow 0"),
    "sharedExpertNum": only(0, RANKS), "sharedExpertRankNum": only(0, RANKS),
    "globalBs": only(0, "says where ranks have different numbers of tokens"),
    "commAlg": only("", "chooses between algorithms of one result"), "elasticInfo": _ONE_RANK,
    "performanceInfo": _ONE_RANK, "zeroExpertNum": equals("Z"), "copyExpertNum": equals("C"),
    "constExpertNum": equals("V"), "expertIds": routing("T K", into="E"),
}  # fmt: skip


def _any_expert(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Experts of tokens, special ones among them; the very first is one that a rank has."""
    every = sum(draw[n] for n in "EZCV")
    ids = contents.routing(rng, pattern, (draw["T"], draw["K"]), every)
    ids[0] = np.sort(ids[0])
    if ids[0, 0] >= draw["E"]:
        ids[0, 0] = 0
    return ids


_ALL_IDS: Final = {"expertIds": content(_any_expert, " ".join(contents.ROUTING), "i32",
                                        shape="T K", reads=("E", "Z", "C", "V"))}  # fmt: skip


def _params(names: str, domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """Header parameters with the domains that they have in every version."""
    return {n: domains[n.removesuffix("Optional").removesuffix("Out")] for n in names.split()}


def _active(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Tokens that take part come first; of several experts of a token some may not."""
    tokens, top = draw["T"], draw["K"]
    count = {"all": tokens, "half": -(-tokens // 2), "one": 1, "choices": -(-2 * tokens // 3)}
    mask = np.arange(tokens) < count[pattern]
    if pattern != "choices":
        return mask
    each = rng.random((tokens, top)) < 0.6
    each[0, 0] = True
    return np.asarray(mask[:, None] & each)


_SENT: Final[dict[str, Domain]] = {
    **_HEAD, "x": tensor("T H", "f16 bf16"),
    "scales": by("quantMode", {0: None, 2: optional(tensor("E H", "f32", 0.5, 2))}),
    "xActiveMask": optional(content(_active, "half choices one all", "bool", reads=("T", "K"))),
    "expertScales": optional(tensor("T K", "f32", 0, 1)), "quantMode": choice(0, 2),
    "expertTokenNumsType": choice(0, 1),
    "expandX": by("quantMode", {0: out("x"), 2: out("i8")}), "dynamicScales": out("f32"),
    "expandIdx": out("i32"), "expertTokenNums": out("i64"), "epRecvCounts": out("i32"),
    "tpRecvCounts": _ONE_RANK, "expandScales": out("f32"),
    "assistInfoForCombine": null("no document says how it lies"),
}  # fmt: skip
_TO: Final = """groupEp epWorldSize epRankId moeExpertNum groupTp tpWorldSize tpRankId
expertShardType sharedExpertNum sharedExpertRankNum quantMode globalBs expertTokenNumsType"""
_TOKENS: Final = "x expertIds scalesOptional xActiveMaskOptional expertScalesOptional"
_RECEIVED: Final = """expandXOut dynamicScalesOut assistInfoForCombineOut expertTokenNumsOut
epRecvCountsOut tpRecvCountsOut expandScalesOut"""


def _expert_order(expertIds: Array, mask: Array | None, experts: int) -> Array:
    """Places of [tokens, choices] whose expert some rank has, by expert and then by place."""
    flat = expertIds.reshape(-1)
    live = np.ones(expertIds.shape, bool)
    if mask is not None:
        live &= mask.astype(bool).reshape(len(mask), -1)
    order = np.argsort(flat, kind="stable")
    return np.asarray(order[(live.reshape(-1) & (flat < experts))[order]])


def dispatch_v2(
    x: Array, expertIds: Array, scalesOptional: Array | None, xActiveMaskOptional: Array | None,
    expertScalesOptional: Array | None, moeExpertNum: int, quantMode: int,
    expertTokenNumsType: int,
) -> tuple[Array | None, ...]:  # fmt: skip
    order = _expert_order(expertIds, xActiveMaskOptional, moeExpertNum)
    expert = expertIds.reshape(-1)[order]
    counts = np.bincount(expert, minlength=moeExpertNum)
    rows, scales = x[order // expertIds.shape[1]], None
    if quantMode:
        rows, scales = dynamic(rows if scalesOptional is None else rows * scalesOptional[expert])
    weights = None if expertScalesOptional is None else expertScalesOptional.reshape(-1)[order]
    numbers = counts if expertTokenNumsType else counts.cumsum()
    return rows, scales, numbers, counts.cumsum(), weights


spec("aclnnMoeDistributeDispatchV2", _DISPATCH, _SIZES, _FIT,
     **_params(f"{_TOKENS} {_TO} commAlg {_RECEIVED}", _SENT))(dispatch_v2)  # fmt: skip
for _name, _late in (("V3", "elasticInfoOptional"),
                     ("V4", "elasticInfoOptional performanceInfoOptional")):  # fmt: skip
    spec(f"aclnnMoeDistributeDispatch{_name}", _DISPATCH, _SIZES, _SPECIAL, _FIT,
         **_params(f"{_TOKENS} {_late} {_TO} commAlg zeroExpertNum copyExpertNum constExpertNum "
                   f"{_RECEIVED}", _SENT | _ALL_IDS))(dispatch_v2)  # fmt: skip


@spec("aclnnMoeDistributeDispatch", _DISPATCH, _SIZES, _FIT,
      **_params(f"x expertIds scales xActiveMask expertScales {_TO} expandX dynamicScales "
                "expandIdx expertTokenNums epRecvCounts tpRecvCounts expandScales",
                _SENT | {"xActiveMask": _RESERVED}))  # fmt: skip
def dispatch(
    x: Array, expertIds: Array, scales: Array | None, expertScales: Array | None,
    moeExpertNum: int, quantMode: int, expertTokenNumsType: int,
) -> tuple[Array | None, ...]:  # fmt: skip
    rows, dynamic_scales, *others = dispatch_v2(x, expertIds, scales, None, expertScales,
                                                moeExpertNum, quantMode,
                                                expertTokenNumsType)  # fmt: skip
    flat = expertIds.reshape(-1)
    place = np.array([(flat[:i] == e).sum() for i, e in enumerate(flat)])
    return rows, dynamic_scales, place, *others


def _counts(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Where the rows of each expert end."""
    ids = draw["expertIds"].values().reshape(-1)
    return np.bincount(ids[ids < draw["E"]], minlength=draw["E"]).cumsum()


def _places(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Which of its expert's rows each choice of a token is."""
    flat = draw["expertIds"].values().reshape(-1)
    return np.array([(flat[:i] == e).sum() for i, e in enumerate(flat)])


def _nothing(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    return np.zeros(draw["T"] * draw["K"] * 128)


_LATE: Final = null("no document says what tokens that take no part get")
_BACK: Final[dict[str, Domain]] = {
    **_HEAD, "expandX": tensor("T*K H", "bf16 f16"),
    "expandIdx": content(_places, "places", "i32", reads=("expertIds",)),
    "assistInfoForCombine": content(_nothing, "zeros", "i32", reads=("T", "K"),
                                    alike="no document says what it holds"),
    "epSendCounts": content(_counts, "ends", "i32", reads=("expertIds", "E")),
    "expertScales": tensor("T K", "f32", 0, 1), "tpSendCounts": _ONE_RANK, "xActiveMask": _LATE,
    "activationScale": _RESERVED, "weightScale": _RESERVED, "groupList": _RESERVED,
    "expandScales": null("of hierarchical communication"),
    "sharedExpertX": optional(forms(rows=tensor("T H", "expandX"),
                                    deep=tensor("T 1 H", "expandX"))),
    "oriX": optional(tensor("T H", "expandX"), iff="C + V > 0"),
    **{n: optional(tensor("V H", "expandX"), iff="V > 0")
       for n in ("constExpertAlpha1", "constExpertAlpha2", "constExpertV")},
    "outDtype": only(0, "reserved"), "commQuantMode": only(0, RANKS),
    "groupListType": only(0, "reserved"), "residualX": tensor("T 1 H", "expandX"),
    "gamma": tensor("H", "expandX"), "normEps": number(1e-5, 0.3), "x": out("expandX"),
    "y": out("expandX"), "rstd": out("f32"),
}  # fmt: skip
_FROM: Final = """groupEp epWorldSize epRankId moeExpertNum groupTp tpWorldSize tpRankId
expertShardType sharedExpertNum sharedExpertRankNum globalBs outDtype commQuantMode
groupListType"""
_OLD: Final = """tpSendCountsOptional xActiveMaskOptional activationScaleOptional
weightScaleOptional groupListOptional expandScalesOptional sharedExpertXOptional"""
_MIX: Final = """elasticInfoOptional oriXOptional constExpertAlpha1Optional
constExpertAlpha2Optional constExpertVOptional"""
_NUMBERS: Final = "zeroExpertNum copyExpertNum constExpertNum"
_ROWS: Final = "expandX expertIds assistInfoForCombine epSendCounts expertScales"


def combined(
    expandX: Array, expertIds: Array, expertScales: Array, moeExpertNum: int,
    sharedExpertXOptional: Array | None = None, oriXOptional: Array | None = None,
    constExpertAlpha1Optional: Array | None = None, constExpertAlpha2Optional: Array | None = None,
    constExpertVOptional: Array | None = None, zeroExpertNum: int = 0, copyExpertNum: int = 0,
) -> Array:  # fmt: skip
    """Beyond the experts of ranks come those that give nothing, the token itself, and a mix of
    it with a constant."""
    home = np.zeros((expertIds.size, expandX.shape[1]))
    order = _expert_order(expertIds, None, moeExpertNum)
    home[order] = expandX[: len(order)]
    copies = moeExpertNum + zeroExpertNum
    for at, expert in enumerate(expertIds.reshape(-1)):
        if expert < copies:
            continue
        assert oriXOptional is not None
        token, mix = oriXOptional[at // expertIds.shape[1]], expert - copies - copyExpertNum
        if mix < 0:
            home[at] = token
            continue
        assert constExpertAlpha1Optional is not None
        assert constExpertAlpha2Optional is not None
        assert constExpertVOptional is not None
        constant = constExpertAlpha2Optional[mix] * constExpertVOptional[mix]
        home[at] = constExpertAlpha1Optional[mix] * token + constant
    y = (home.reshape(*expertIds.shape, -1) * expertScales[..., None]).sum(1)
    shared = sharedExpertXOptional
    return plus(y, None if shared is None else shared.reshape(y.shape))


def combined_norm(
    expandX: Array, expertIds: Array, expertScales: Array, residualX: Array, gamma: Array,
    moeExpertNum: int, normEps: float, sharedExpertXOptional: Array | None = None,
    oriXOptional: Array | None = None, constExpertAlpha1Optional: Array | None = None,
    constExpertAlpha2Optional: Array | None = None, constExpertVOptional: Array | None = None,
    zeroExpertNum: int = 0, copyExpertNum: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    y = combined(expandX, expertIds, expertScales, moeExpertNum, sharedExpertXOptional,
                 oriXOptional, constExpertAlpha1Optional, constExpertAlpha2Optional,
                 constExpertVOptional, zeroExpertNum, copyExpertNum)  # fmt: skip
    x = y.reshape(residualX.shape) + residualX
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + normEps)
    return x * rstd * gamma, rstd, x


spec("aclnnMoeDistributeCombine", _COMBINE, _SIZES, _FIT, **_params(
    "expandX expertIds expandIdx epSendCounts expertScales tpSendCounts xActiveMask "
    f"activationScale weightScale groupList expandScales {_FROM} x", _BACK))(
    lambda expandX, expertIds, expertScales, moeExpertNum: combined(
        expandX, expertIds, expertScales, moeExpertNum))  # fmt: skip
spec("aclnnMoeDistributeCombineV2", _COMBINE, _SIZES, _FIT, **_params(
    f"{_ROWS} {_OLD} {_FROM} commAlg xOut", _BACK))(
    lambda expandX, expertIds, expertScales, moeExpertNum, sharedExpertXOptional: combined(
        expandX, expertIds, expertScales, moeExpertNum, sharedExpertXOptional))  # fmt: skip
for _name, _late in (("V3", ""), ("V4", "performanceInfoOptional")):
    spec(f"aclnnMoeDistributeCombine{_name}", _COMBINE, _SIZES, _SPECIAL, _FIT, **_params(
        f"{_ROWS} {_OLD} {_MIX} {_late} {_FROM} commAlg {_NUMBERS} xOut", _BACK | _ALL_IDS))(
        combined)  # fmt: skip
spec("aclnnMoeDistributeCombineAddRmsNorm", _COMBINE, _SIZES, _FIT, **_params(
    f"{_ROWS} residualX gamma {_OLD} {_FROM} commAlg normEps yOut rstdOut xOut", _BACK))(
    lambda expandX, expertIds, expertScales, residualX, gamma, moeExpertNum, normEps,
    sharedExpertXOptional: combined_norm(expandX, expertIds, expertScales, residualX, gamma,
                                         moeExpertNum, normEps, sharedExpertXOptional))  # fmt: skip
spec("aclnnMoeDistributeCombineAddRmsNormV2", _COMBINE, _SIZES, _SPECIAL, _FIT, **_params(
    f"{_ROWS} residualX gamma {_OLD} {_MIX} {_FROM} commAlg normEps {_NUMBERS} yOut rstdOut xOut",
    _BACK | _ALL_IDS))(combined_norm)  # fmt: skip
