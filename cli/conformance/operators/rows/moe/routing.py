"""Rows expanded and sorted by expert."""

from __future__ import annotations

from .....spec import *
from .....spec import contents
from .....spec.declaration import Relation
from .._quantizers import dynamic, powers
from .._words import *

_SOURCE: Final = (
    "op-plugin documents npu_moe_init_routing, npu_moe_init_routing_v2, npu_moe_init_routing_quant;"
    " op-plugin tests of these names"
)
_MOVED: Final = Rule("exact", _SOURCE)
_STEPS: Final = Rule("composite", _SOURCE, steps=True, specials=False)
_SLOTS: Final = sizes(T=tokens(5, 1, 3, 17, 130, 1030), K=topk, E=experts(3, 1, 8, 65),
                      H=row(7, 1, 8, 33, 257, 1025, 4097))  # fmt: skip
# No token has an expert twice; results stay of a size that is checked in moments.
_FEW: Final = require("K <= E", "T*K*H <= 1 << 17", refuses=None)
_X: Final = tensor("T H", "f16 bf16 f32")
_EXPERTS: Final = routing("T K", into="E")


def _order(expert: Array) -> Array:
    """Slots sorted by expert, in order among equals; column k of the table comes after k - 1."""
    return np.argsort(expert, kind="stable")


def _row_numbers(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Numbers of slots by columns, as gating gives them, or in any order."""
    t, k = draw["T"], draw["K"]
    every = np.arange(t * k) if pattern == "columns" else rng.permutation(t * k)
    return every.reshape(k, t).T


_FIRST: Final[dict[str, Domain]] = {
    "x": _X, "rowIdx": content(_row_numbers, "columns shuffled", "i32", shape="T K"),
    "expertIdx": _EXPERTS, "activeNum": number("T", 1, "T//2", "T + 3"),
}  # fmt: skip
_PLACES: Final[dict[str, Domain]] = {
    "expandedRowIdxOut": out("i32"), "expandedExpertIdxOut": out("i32"),
}  # fmt: skip


@spec("aclnnMoeInitRouting", _MOVED, _SLOTS, _FEW, **_FIRST, expandedXOut=out("x"), **_PLACES)
def init_routing(
    x: Array, rowIdx: Array, expertIdx: Array, activeNum: int
) -> tuple[Array, Array, Array]:
    """The rows of activeNum tokens are there, those of all are placed."""
    flat, rows = expertIdx.reshape(-1), rowIdx.reshape(-1)
    order = _order(flat)
    source = rows[order]
    places = np.empty(flat.size, np.int64)
    places[source] = np.arange(flat.size)
    active = min(len(x), activeNum) * expertIdx.shape[1]
    return x[source[:active] % len(x)], places, flat[order]


@spec("aclnnMoeInitRoutingQuant", _STEPS, _SLOTS, _FEW,
      pin("values=halves scale=1.0", "half steps"), **_FIRST,
      scale=number(20.0, 1.0, 0.5, -3.0), offset=number(3.0, 0.0, -7.25),
      expandedXOut=out("i8"), **_PLACES)  # fmt: skip
def init_routing_quant(
    x: Array, rowIdx: Array, expertIdx: Array, activeNum: int, scale: float, offset: float
) -> tuple[Array, Array, Array]:
    rows, places, experts = init_routing(x, rowIdx, expertIdx, activeNum)
    return rows * scale + offset, places, experts


def routed(
    expertIdx: Array, experts: int, active: int = 0, capacity: int = 0, padded: bool = False,
    span: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """(slot that fills each row, or -1; row of each slot, or -1; tokens of each expert).

    Rows go by expert, in order among equals; of those only the first `active` count, if not 0.
    Padded, each expert has `capacity` rows, and what is over is dropped. Experts outside `span`
    lie elsewhere.
    """
    flat = expertIdx.reshape(-1)
    first, last = span or (0, experts)
    order = _order(flat)
    local_rows = order[(flat[order] >= first) & (flat[order] < last)]
    counts = np.bincount(flat, minlength=last)[first:last]
    rows = np.full(flat.size, -1)
    if not padded:
        rows[local_rows] = np.arange(len(local_rows))
        return local_rows[: active or None], rows, counts
    place = np.arange(len(local_rows)) - (counts.cumsum() - counts)[flat[local_rows] - first]
    inside = place < capacity
    rows[local_rows[inside]] = (flat[local_rows] * capacity + place)[inside]
    sources = np.full(experts * capacity, -1)
    sources[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return sources, rows, counts


def filled(x: Array, sources: Array, k: int) -> Array:
    """The token of each row's slot; 0 where none fills it."""
    return np.where((sources >= 0)[:, None], x[np.maximum(sources, 0) // k], 0)


_DROPLESS: Final = "documents: of rows without padding"


def _modes(end: str) -> dict[str, Domain]:
    """What is dropped and counted; names of the first version end with Optional."""
    mode = f"dropPadMode{end}"
    return {
        f"activeNum{end}": number(0, 1, "T*K//2", "T*K", "T*K + 3"),
        f"expertCapacity{end}": by(mode, {0: number(0), 1: number("min(2, T)", 1, "T")}),
        f"expertNum{end}": equals("E"), mode: choice(0, 1),
        f"expertTokensCountOrCumsumFlag{end}": by(mode, {
            0: choice(1, 0, 2), 1: only(0, _DROPLESS)}),
        f"expertTokensBeforeCapacityFlag{end}": by(mode, {0: only(False, "of padding"), 1: flag()}),
    }  # fmt: skip


def _bounded(end: str) -> tuple[Relation, ...]:
    return require(f"E*expertCapacity{end}*H <= 1 << 17", refuses=None)


_COUNTS: Final[dict[str, Domain]] = {
    "expandedRowIdxOut": out("i32"), "expertTokensCountOrCumsumOutOptional": out("i32"),
    "expertTokensBeforeCapacityOutOptional": out("i32"),
}  # fmt: skip


@spec("aclnnMoeInitRoutingV2", _MOVED, _SLOTS, _FEW, _bounded("Optional"),
      both("dropPadModeOptional == 1 and load(expertIdx) > expertCapacityOptional"), x=_X,
      expertIdx=_EXPERTS, **_modes("Optional"), expandedXOut=out("x"), **_COUNTS)  # fmt: skip
def init_routing_v2(
    x: Array, expertIdx: Array, expertNumOptional: int, expertTokensCountOrCumsumFlagOptional: int,
    activeNumOptional: int = 0, expertCapacityOptional: int = 0, dropPadModeOptional: int = 0,
    expertTokensBeforeCapacityFlagOptional: bool = False,
) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
    """dropPadMode 1: [experts, capacity] rows; what was there before that is told where asked."""
    padded = dropPadModeOptional == 1
    sources, rows, counts = routed(expertIdx, expertNumOptional, activeNumOptional,
                                   expertCapacityOptional, padded)  # fmt: skip
    x = filled(x, sources, expertIdx.shape[1])
    if padded:
        x = x.reshape(expertNumOptional, expertCapacityOptional, -1)
    flag = expertTokensCountOrCumsumFlagOptional
    expert_counts = None if flag == 0 else np.cumsum(counts) if flag == 1 else counts
    before = counts if padded and expertTokensBeforeCapacityFlagOptional else None
    return x, rows, expert_counts, before


# One scale and one offset; ones leave halves of steps what they are.
_SCALE: Final = forms(any=tensor("1", "f32", 0.5, 30), unit=powers("1", 0, 1))
_OFFSET: Final = forms(any=tensor("1", "f32", -5, 5), unit=powers("1", 0, 1))


def _smooth(rows: str) -> Domain:
    """Factors of columns: none, the same for all experts, or each expert's."""
    return optional(forms(each=tensor(f"{rows} H", "f32", 0.5, 2), all=tensor("1 H", "f32", 0.5)))


@spec("aclnnMoeInitRoutingQuantV2", _STEPS, _SLOTS, _FEW, _bounded(""),
      both("dropPadMode == 1 and load(expertIdx) > expertCapacity",
           "dropPadMode == 1 and quantMode == 1 and given(scaleOptional)"),
      pin("values=halves scaleOptional=unit offsetOptional=unit", "half steps"),
      x=_X, expertIdx=_EXPERTS,
      scaleOptional=by("quantMode", {0: _SCALE, 1: _smooth("E")}),
      offsetOptional=by("quantMode", {0: _OFFSET, 1: null("of mode 0")}),
      **_modes(""), quantMode=choice(0, 1), expandedXOut=out("i8"), **_COUNTS,
      dynamicQuantScaleOutOptional=out("f32"))  # fmt: skip
def init_routing_quant_v2(
    x: Array, expertIdx: Array, scaleOptional: Any, offsetOptional: Any, expertNum: int,
    expertTokensCountOrCumsumFlag: int, quantMode: int, activeNum: int, expertCapacity: int,
    dropPadMode: int, expertTokensBeforeCapacityFlag: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """quantMode 0: one scale and offset; 1: each row by its largest magnitude, smoothed by its
    expert's factors."""
    padded = dropPadMode == 1
    sources, _, _ = routed(expertIdx, expertNum, activeNum, expertCapacity, padded)
    rows, places, expert_counts, before = init_routing_v2(
        x, expertIdx, expertNum, expertTokensCountOrCumsumFlag, activeNum, expertCapacity,
        dropPadMode, expertTokensBeforeCapacityFlag)  # fmt: skip
    if quantMode == 0:
        there = (sources >= 0).reshape(rows.shape[:-1])[..., None]
        steps = np.where(there, rows * scaleOptional + offsetOptional, 0)
        return steps, places, expert_counts, before, None
    smooth = _factors(scaleOptional, expertIdx, sources)
    steps, scale = dynamic(rows, None if smooth is None else smooth.reshape(rows.shape))
    return steps, places, expert_counts, before, scale.reshape(-1)


def _factors(smooth: Array | None, expertIdx: Array, sources: Array, first: int = 0) -> Any:
    """The factors of each row's expert."""
    if smooth is None:
        return None
    expert = expertIdx.reshape(-1)[sources] - first
    return smooth[expert if len(smooth) > 1 else np.zeros_like(expert)]


@spec("aclnnMoeInitRoutingV2Grad", Rule("gradient", _SOURCE), _SLOTS, _FEW,
      sizes(C=tokens(3, 1, 17)), require("E*C*H <= 1 << 17", refuses=None),
      gradExpandedX=by("dropPadMode", {
          0: tensor("T*K H", "f16 bf16 f32"), 1: tensor("E C H", "f16 bf16 f32")}),
      expandedRowIdx=by("dropPadMode", {
          0: permutation("T*K", "i32"), 1: slots("T*K", into="E*C", dtype="i32", hole=-1)}),
      topK=equals("K"), dropPadMode=choice(0, 1),
      activeNum=number(0, 1, "T*K//2", "T*K"), out=out("gradExpandedX"))  # fmt: skip
def init_routing_grad(
    gradExpandedX: Array, expandedRowIdx: Array, topK: int, dropPadMode: int, activeNum: int
) -> Array:
    """What was dropped, or lay behind the active rows, gives nothing."""
    rows = gradExpandedX.reshape(-1, gradExpandedX.shape[-1])
    end = activeNum if activeNum and dropPadMode == 0 else len(rows)
    there = (expandedRowIdx >= 0) & (expandedRowIdx < end)
    flow = np.where(there[:, None], rows[np.maximum(expandedRowIdx, 0)], 0)
    return flow.reshape(-1, topK, rows.shape[-1]).sum(1)


def _sorted(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    return np.repeat(np.arange(draw["E"]), contents.lengths(rng, pattern, draw["E"], draw["T"]))


@spec("aclnnMoeComputeExpertTokens", Rule("exact", _SOURCE), sizes(T=tokens, E=experts),
      sortedExperts=content(_sorted, " ".join(contents.PARTS), "i32", shape="T", reads=("E",)),
      numExperts=number("E", "E + 1", "E + 70"), out=out("i32"))  # fmt: skip
def compute_expert_tokens(sortedExperts: Array, numExperts: int) -> Array:
    return np.searchsorted(sortedExperts, np.arange(numExperts), "right")


_LOCAL: Final = sizes(
    T=tokens(5, 1, 3, 17, 130, 1030), K=topk, H=row(7, 1, 8, 33, 257, 1025, 4097),
    F=experts(0, 1, 5), L=experts(3, 1, 8, 65), R=experts(0, 1, 6), E="F + L + R")  # fmt: skip


@spec("aclnnMoeInitRoutingV3", _STEPS, _LOCAL, _FEW, _bounded(""),
      pin("values=halves quantMode=0 scaleOptional=unit offsetOptional=unit", "half steps"),
      both("rowIdxType == 1 and F > 0", "quantMode == 1 and given(scaleOptional) and F > 0",
           "dropPadMode == 1 and load(expertIdx) > expertCapacity"),
      require("quantMode == -1 or dtype(x) != 'int8'",
              "dropPadMode == 0 or F + R == 0 and quantMode == -1"),
      x=tensor("T H", "f16 bf16 f32 i8"), expertIdx=_EXPERTS,
      scaleOptional=by("quantMode", {
          -1: optional(tensor("T", "f32")), 0: _SCALE, 1: _smooth("L")}),
      offsetOptional=by("quantMode", {
          -1: null("of mode 0"), 0: _OFFSET, 1: null("of mode 0")}),
      activeNum=number(0, 1, "T*K//2", "T*K"),
      expertCapacity=by("dropPadMode", {0: number(-1, 0), 1: number("min(2, T)", 1, "T")}),
      expertNum=equals("E"), dropPadMode=choice(0, 1),
      expertTokensNumType=by("dropPadMode", {0: choice(1, 0, 2), 1: only(1, _DROPLESS)}),
      expertTokensNumFlag=only(True, "documents: true alone"), quantMode=choice(-1, 0, 1),
      activeExpertRangeOptional=equals("(F, F + L)"),
      rowIdxType=by("dropPadMode", {0: choice(0, 1), 1: only(0, _DROPLESS)}),
      expandedXOut=by("quantMode", {-1: out("x"), 0: out("i8"), 1: out("i8")}),
      expandedRowIdxOut=out("i32"), expertTokensCountOrCumsumOut=out("i64"),
      expandedScaleOut=out("f32"))  # fmt: skip
def init_routing_v3(
    x: Array, expertIdx: Array, scaleOptional: Array | None, offsetOptional: Array | None,
    activeNum: int, expertCapacity: int, expertNum: int, dropPadMode: int,
    expertTokensNumType: int, quantMode: int, activeExpertRangeOptional: tuple[int, int],
    rowIdxType: int,
) -> tuple[Array, Array, Array, Array | None]:  # fmt: skip
    """expertTokensNumType 0: running sums, 1: counts, 2: pairs of an expert that has tokens and its
    count. rowIdxType 1: the slot that each row comes from, those of other ranks' experts last (of
    experts behind first); 0: the row that each slot goes to.
    quantMode -1: scales of tokens go with them, 0: one scale and offset, 1: by rows' largest."""
    k, padded, first = expertIdx.shape[1], dropPadMode == 1, activeExpertRangeOptional[0]
    sources, places, counts = routed(expertIdx, expertNum, activeNum, expertCapacity, padded,
                                     activeExpertRangeOptional)  # fmt: skip
    expert_counts = np.cumsum(counts) if expertTokensNumType == 0 else counts
    if expertTokensNumType == 2:
        expert_counts = np.zeros((expertNum, 2), np.int64)
        some = np.flatnonzero(counts)
        expert_counts[: some.size] = np.stack([some + first, counts[some]], 1)
    rows = filled(x, sources, k)
    scale: Array | None = None
    if quantMode == -1 and scaleOptional is not None:
        scale = np.where(sources >= 0, scaleOptional[np.maximum(sources, 0) // k], 0)
    elif quantMode == 0:
        rows = rows * scaleOptional + offsetOptional
    elif quantMode == 1:
        rows, scale = dynamic(rows, _factors(scaleOptional, expertIdx, sources, first))
    if padded:
        rows = rows.reshape(expertNum, expertCapacity, -1)
    if rowIdxType == 1:
        flat = expertIdx.reshape(-1)
        places = _order(np.where(flat < first, expertNum, flat))
    return rows, places, expert_counts, scale


def _replicas(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """For each expert how many replicas it has, and where they are."""
    e, most = draw["E"], draw["F"]
    count = rng.integers(1, most + 1, e) if pattern == "random" else np.full(
        e, most if pattern == "full" else 1)  # fmt: skip
    places = np.argsort(rng.random((e, draw["W"])), 1)[:, :most] if pattern != "one" else (
        rng.integers(0, 999, (e, most)))  # fmt: skip
    return np.column_stack([count, places])


@spec("aclnnMoeUpdateExpert", Rule("exact", "op-plugin test test_npu_moe_update_expert",
                                   specials=False, values="normal"),
      sizes(T=tokens(5, 1, 3, 17, 130), K=topk, E=experts(8, 1, 65), F=group(3, 1, 2, 5),
            W=group(8, 5, 7, 16)), require("K <= E", refuses=None),
      expertIds=forms(i32=_EXPERTS, i64=routing("T K", into="E", dtype="i64")),
      eplbTable=content(_replicas, "random full one", "i32", shape="E F+1", reads=("W",)),
      expertScalesOptional=optional(tensor("T K", "f32", 0.01, 0.25)),
      pruningThresholdOptional=optional(tensor("1 K", "f32", 0.0, 0.4),
                                        iff="given(expertScalesOptional)"),
      activeMaskOptional=optional(mask("T", patterns="random none all_but_one"),
                                  only="given(expertScalesOptional)"),
      localRankId=number("W // 2", 0, "W - 1"), worldSize=equals("W"), balanceMode=choice(0, 1),
      balancedExpertIds=out("expertIds"), balancedActiveMask=out("bool"))  # fmt: skip
def update_expert(
    expertIds: Array, eplbTable: Array, expertScalesOptional: Array | None,
    pruningThresholdOptional: Array | None, activeMaskOptional: Array | None, localRankId: int,
    worldSize: int, balanceMode: int,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Ranks share an expert's replicas in turns of as many neighbours (balanceMode 0), tokens one
    by one (1). A share below its threshold of the token's sum is dropped."""
    count = eplbTable[expertIds, 0]
    tokens = np.arange(len(expertIds))[:, None]
    turn = tokens % count if balanceMode else localRankId // -(-worldSize // count)
    places = eplbTable[expertIds, 1 + turn]
    if expertScalesOptional is None or pruningThresholdOptional is None:
        return places, None
    least = pruningThresholdOptional * expertScalesOptional.sum(1, keepdims=True)
    there = expertScalesOptional >= least
    if activeMaskOptional is not None:
        there &= activeMaskOptional.astype(bool)[:, None]
    return places, there
