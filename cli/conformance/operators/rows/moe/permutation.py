"""Tokens permuted into the order of experts, and back."""

from __future__ import annotations

from .....spec import *
from .....spec.words import Sizes
from .._words import *

_SOURCE: Final = ("Megatron-LM, permute and unpermute of moe_utils; op-plugin documents "
                  "npu_moe_token_permute, npu_moe_token_unpermute, and tests of the operators' "
                  "names")  # fmt: skip
_MOVED: Final = Rule("exact", _SOURCE)
_SUM: Final = Rule("gradient", _SOURCE, specials=False)
_SLOTS: Final = sizes(T=tokens(5, 1, 3, 17, 130, 1030), K=topk,
                      H=row(7, 1, 8, 33, 257, 1025, 4097))  # fmt: skip
_FEW: Final = require("T*K*H <= 1 << 17", refuses=None)
_PERMUTED: Final[dict[str, Domain]] = {
    "tokens": tensor("T H", "f32 f16 bf16"),
    "indices": forms(i64=routing("T K", into="E", dtype="i64"), i32=routing("T K", into="E")),
}  # fmt: skip
_FLOATS: Final = "f32 f16 bf16"
_UNPADDED: Final = only(False, "documents: false alone")
_NO_SHAPE: Final = null("of paddedMode")
_PLACES: Final = permutation("T*K", "i32")
_OUT_TOKENS: Final = number(0, 1, "T*K//2", "T*K", "T*K + 3", "-(T*K//3)", "1 - T*K")
# Of the permuted rows, D at the end are not there; or F before and A behind those of this rank.
_CUT: Final = sizes(D=group(0, 1, 4), P="T*K - D")
_PART: Final = sizes(F=group(0, 1, 3), A=group(0, 2, 5), P="T*K - F - A")
_SOME: Final = require("P > 0", refuses=None)
_RANGE: Final = optional(equals("(F, T*K - A)"))
_FROM_START: Final = require("given(rangeOptional) or F == 0", refuses=None)


@spec("aclnnMoeTokenPermute", _MOVED, _SLOTS, sizes(E=experts(3, 1, 8, 65)), _FEW,
      require("rank(indices) == 2 or K == 1", "K <= E", refuses=None),
      tokens=tensor("T H", "f32 f16 bf16 i8"),
      indices=forms(i64=routing("T K", into="E", dtype="i64"), i32=routing("T K", into="E"),
                    single=index("T", into="E")),
      numOutTokens=_OUT_TOKENS, paddedMode=_UNPADDED, permuteTokensOut=out("tokens"),
      sortedIndicesOut=out("i32"))  # fmt: skip
def token_permute(tokens: Array, indices: Array, numOutTokens: int) -> tuple[Array, Array]:
    """numOutTokens: how many rows are kept (0: all), or how many of the last are not, below 0."""
    flat = indices.reshape(-1)
    order = np.argsort(flat, kind="stable")
    head = order[: numOutTokens or None]
    return tokens[head // (flat.size // len(tokens))], np.argsort(order)


def _picked(rows: Array, places: Array) -> Array:
    """The row of each slot; 0 for those whose row is not there."""
    return np.where((places < len(rows))[:, None], rows[np.minimum(places, len(rows) - 1)], 0)


@spec("aclnnMoeTokenPermuteGrad", _SUM, _SLOTS, _CUT, _FEW, _SOME,
      permutedOutputGrad=tensor("P H", _FLOATS), sortedIndices=_PLACES, numTopk=equals("K"),
      paddedMode=_UNPADDED, out=out("permutedOutputGrad"))  # fmt: skip
def token_permute_grad(permutedOutputGrad: Array, sortedIndices: Array, numTopk: int) -> Array:
    picked = _picked(permutedOutputGrad, sortedIndices)
    return picked.reshape(-1, numTopk, picked.shape[-1]).sum(1)


@spec("aclnnMoeTokenUnpermute", _SUM, _SLOTS, _CUT, _FEW, _SOME,
      permutedTokens=tensor("P H", _FLOATS), sortedIndices=_PLACES,
      probsOptional=optional(tensor("T K", "permutedTokens")), paddedMode=_UNPADDED,
      restoreShapeOptional=_NO_SHAPE, out=out("permutedTokens"))  # fmt: skip
def token_unpermute(
    permutedTokens: Array, sortedIndices: Array, probsOptional: Array | None
) -> Array:
    """Without weights each token has one row."""
    picked = _picked(permutedTokens, sortedIndices)
    if probsOptional is None:
        return picked
    shape = (*probsOptional.shape, picked.shape[-1])
    return (picked.reshape(shape) * probsOptional[..., None]).sum(1)


@spec("aclnnMoeTokenUnpermuteGrad", _SUM, _SLOTS, _CUT, _FEW, _SOME,
      require("given(probsOptional) or D == 0", refuses=None),
      permuteTokensOptional=optional(tensor("P H", _FLOATS), iff="given(probsOptional)"),
      unpermutedTokensGrad=tensor("T*K**(1-given(probsOptional)) H", "permuteTokensOptional"),
      sortedIndices=_PLACES, probsOptional=optional(tensor("T K", "permuteTokensOptional")),
      paddedMode=_UNPADDED, restoreShapeOptional=_NO_SHAPE,
      permutedTokensGradOut=out("unpermutedTokensGrad"),
      probsGradOut=out("probsOptional"))  # fmt: skip
def token_unpermute_grad(
    permuteTokensOptional: Array | None, unpermutedTokensGrad: Array, sortedIndices: Array,
    probsOptional: Array | None,
) -> tuple[Array, Array | None]:  # fmt: skip
    rows = len(sortedIndices if permuteTokensOptional is None else permuteTokensOptional)
    return _unpermute_grad(
        unpermutedTokensGrad, sortedIndices, permuteTokensOptional, probsOptional, (0, rows)
    )


def _unpermute_grad(
    flow: Array, places: Array, rows: Array | None, probs: Array | None, span: tuple[int, int]
) -> tuple[Array, Array | None]:
    """Gradients of the rows in [first, last) and of weights."""
    slots, at = inside(places, span)
    flow = flow[slots // (places.size // len(flow))]
    result = np.zeros((span[1] - span[0], flow.shape[1]))
    result[at] = flow if probs is None else flow * probs.reshape(-1)[slots, None]
    if probs is None or rows is None:
        return result, None
    dp = np.zeros(places.size)
    dp[slots] = (flow * rows[at]).sum(-1)
    return result, dp.reshape(probs.shape)


def inside(sortedIndices: Array, span: tuple[int, int]) -> tuple[Array, Array]:
    """(slots, rows) of what lies in [first, last)."""
    slots = np.flatnonzero((sortedIndices >= span[0]) & (sortedIndices < span[1]))
    return slots, sortedIndices[slots] - span[0]


@spec("aclnnMoeTokenPermuteWithEp", _MOVED, _SLOTS, _PART, sizes(E=experts(3, 1, 8, 65)), _FEW,
      require("P > 0 and K <= E", "numOutTokens == 0 or not given(rangeOptional)",
              refuses=None),
      **_PERMUTED, probsOptional=optional(tensor("T K", "tokens")), rangeOptional=_RANGE,
      numOutTokens=_OUT_TOKENS, paddedMode=_UNPADDED, permuteTokensOut=out("tokens"),
      sortedIndicesOut=out("i32"), permuteProbsOut=out("probsOptional"))  # fmt: skip
def permute_with_ep(
    tokens: Array, indices: Array, probsOptional: Array | None,
    rangeOptional: tuple[int, int] | None, numOutTokens: int,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """Of the permuted rows, only [first, last) lie here, or the first numOutTokens."""
    order = np.argsort(indices.reshape(-1), kind="stable")
    here = order[slice(*rangeOptional) if rangeOptional else slice(numOutTokens or None)]
    probs = None if probsOptional is None else probsOptional.reshape(-1)[here]
    return tokens[here // indices.shape[1]], np.argsort(order), probs


@spec("aclnnMoeTokenPermuteWithEpGrad", _SUM, _SLOTS, _PART, _FEW, _SOME, _FROM_START,
      permutedTokensOutputGrad=tensor("P H", _FLOATS), sortedIndices=_PLACES,
      permutedProbsOutputGradOptional=optional(tensor("P", "permutedTokensOutputGrad")),
      numTopk=equals("K"), rangeOptional=_RANGE, paddedMode=_UNPADDED,
      tokenGradOut=out("permutedTokensOutputGrad"),
      probsGradOut=out("permutedProbsOutputGradOptional"))  # fmt: skip
def permute_with_ep_grad(
    permutedTokensOutputGrad: Array, sortedIndices: Array,
    permutedProbsOutputGradOptional: Array | None, numTopk: int,
    rangeOptional: tuple[int, int] | None,
) -> tuple[Array, Array | None]:  # fmt: skip
    slots, rows = inside(sortedIndices, rangeOptional or (0, len(permutedTokensOutputGrad)))
    tokens = np.zeros((sortedIndices.size // numTopk, permutedTokensOutputGrad.shape[1]))
    np.add.at(tokens, slots // numTopk, permutedTokensOutputGrad[rows])
    if permutedProbsOutputGradOptional is None:
        return tokens, None
    probs = np.zeros(sortedIndices.size)
    probs[slots] = permutedProbsOutputGradOptional[rows]
    return tokens, probs.reshape(-1, numTopk)


@spec("aclnnMoeTokenUnpermuteWithEp", _SUM, _SLOTS, _PART, _FEW, _SOME, _FROM_START,
      permutedTokens=tensor("P H", _FLOATS), sortedIndices=_PLACES,
      probsOptional=optional(tensor("T K", "permutedTokens")), numTopk=equals("K"),
      rangeOptional=_RANGE, paddedMode=_UNPADDED, restoreShapeOptional=_NO_SHAPE,
      out=out("permutedTokens"))  # fmt: skip
def unpermute_with_ep(
    permutedTokens: Array, sortedIndices: Array, probsOptional: Array | None, numTopk: int,
    rangeOptional: tuple[int, int] | None,
) -> Array:  # fmt: skip
    slots, rows = inside(sortedIndices, rangeOptional or (0, len(permutedTokens)))
    out = np.zeros((sortedIndices.size // numTopk, permutedTokens.shape[1]))
    weight = 1.0 if probsOptional is None else probsOptional.reshape(-1)[slots, None]
    np.add.at(out, slots // numTopk, permutedTokens[rows] * weight)
    return out


@spec("aclnnMoeTokenUnpermuteWithEpGrad", _SUM, _SLOTS, _PART, _FEW, _SOME, _FROM_START,
      unpermutedTokensGrad=tensor("T H", _FLOATS), sortedIndices=_PLACES,
      permutedTokensOptional=optional(tensor("P H", "unpermutedTokensGrad"),
                                      iff="given(probsOptional)"),
      probsOptional=optional(tensor("T K", "unpermutedTokensGrad")), paddedMode=_UNPADDED,
      restoreShapeOptional=_NO_SHAPE, rangeOptional=equals("(F, T*K - A)"),
      topkNum=equals("K"), permutedTokensGradOut=out("unpermutedTokensGrad"),
      probsGradOut=out("probsOptional"))  # fmt: skip
def unpermute_with_ep_grad(
    unpermutedTokensGrad: Array, sortedIndices: Array, permutedTokensOptional: Array | None,
    probsOptional: Array | None, rangeOptional: tuple[int, int], topkNum: int,
) -> tuple[Array, Array | None]:  # fmt: skip
    del topkNum  # the number of slots of each token
    return _unpermute_grad(unpermutedTokensGrad, sortedIndices, permutedTokensOptional,
                           probsOptional, rangeOptional)  # fmt: skip


# A map of which of E experts takes which of T tokens. Padded, each expert has C rows.
_MAPPED: Final = sizes(T=tokens(5, 1, 3, 33, 130), E=experts(3, 1, 8, 66), C=tokens(4, 1, 3, 17),
                       H=row(7, 1, 33, 257, 1025))  # fmt: skip
_ROOM: Final = require("C <= T", "T*E*H <= 1 << 17", refuses=None)


def _map(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    shape = (draw["T"], draw["E"])
    share = {"sparse": 0.1, "dense": 0.9, "full": 1.0}.get(pattern, 0.5)
    routed = rng.random(shape) < share
    if pattern == "idle_first":
        routed[:, 0] = routed[0] = False
    if pattern == "idle_last":
        routed[:, -1] = routed[-1] = False
    routed[shape[0] // 2, shape[1] // 2] = True
    return routed


_MAP: Final = forms(**{
    dtype: content(_map, "random sparse dense full idle_first idle_last", dtype, shape="T E")
    for dtype in ("bool", "i8")})  # fmt: skip


def _rows(routed: Array, capacity: int = 0) -> Array:
    """The token of each row, expert by expert; padded by tokens that the expert does not take."""
    if not capacity:
        return np.nonzero(routed.T)[1]
    return np.argsort(~routed.T.astype(bool), 1, kind="stable")[:, :capacity].reshape(-1)


def _listed(flag: str, name: str) -> Domain:
    """What the forward pass says of rows: `sorted` by experts, their `places` or `tokens` by
    token."""

    def make(_rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
        padded = draw[flag]
        rows = _rows(draw["routingMapOptional"].values(), draw["C"] if padded else 0)
        order = np.argsort(rows, kind="stable")
        if name == "tokens":
            return rows[order]
        return rows if padded and name == "sorted" else order

    return content(make, "rows", "i32", shape="R", reads=(flag, "routingMapOptional", "C"))


def _rows_by(flag: str) -> Sizes:
    return sizes(R=f"E*C if {flag} else total(routingMapOptional)")


@spec("aclnnMoeTokenPermuteWithRoutingMap", _MOVED, _MAPPED, _ROOM,
      tokens=tensor("T H", _FLOATS), routingMap=_MAP,
      probsOptional=optional(tensor("T E", "tokens")),
      numOutTokens=by("dropAndPad", {False: equals("total(routingMap)"), True: equals("E*C")}),
      dropAndPad=flag(), permuteTokensOut=out("tokens"),
      permuteProbsOutOptional=out("probsOptional"), sortedIndicesOut=out("i32"))  # fmt: skip
def permute_map(
    tokens: Array, routingMap: Array, probsOptional: Array | None, numOutTokens: int,
    dropAndPad: bool,
) -> tuple[Array, Array | None, Array]:  # fmt: skip
    """Padded: each expert has as many rows, of its own tokens first and then of others."""
    capacity = numOutTokens // routingMap.shape[1] if dropAndPad else 0
    token = _rows(routingMap, capacity)
    expert = np.repeat(np.arange(routingMap.shape[1]), capacity or routingMap.astype(bool).sum(0))
    probs = None if probsOptional is None else probsOptional[token, expert]
    return tokens[token], probs, token if dropAndPad else np.argsort(token, kind="stable")


@spec("aclnnMoeTokenPermuteWithRoutingMapGrad", _SUM, _MAPPED, _rows_by("dropAndPad"), _ROOM,
      permutedTokenOutputGrad=tensor("R H", _FLOATS),
      permutedProbsOutputGradOptional=optional(tensor("R", "permutedTokenOutputGrad")),
      sortedIndices=_listed("dropAndPad", "sorted"), routingMapOptional=_MAP,
      numExperts=equals("E"), tokensNum=equals("T"), dropAndPad=flag(),
      tokensGradOut=out("permutedTokenOutputGrad"),
      probsGradOutOptional=out("permutedProbsOutputGradOptional"))  # fmt: skip
def permute_map_grad(
    permutedTokenOutputGrad: Array, permutedProbsOutputGradOptional: Array | None,
    sortedIndices: Array, routingMapOptional: Array, tokensNum: int, numExperts: int,
    dropAndPad: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Padded: sortedIndices are the tokens of rows, as many to each expert."""
    expert, token = np.nonzero(routingMapOptional.T)
    if dropAndPad:
        token = sortedIndices
        expert = np.repeat(np.arange(numExperts), len(token) // numExperts)
    tokens = np.zeros((tokensNum, permutedTokenOutputGrad.shape[1]))
    np.add.at(tokens, token, permutedTokenOutputGrad)
    if permutedProbsOutputGradOptional is None:
        return tokens, None
    probs = np.zeros((tokensNum, numExperts))
    probs[token, expert] = permutedProbsOutputGradOptional
    return tokens, probs


@spec("aclnnMoeTokenUnpermuteWithRoutingMap", Rule(
          "gradient", _SOURCE, {"accumulate": 64, "reason": "a token sums all rows that came "
                                "from it: 200 of both signs where 1,032 rows are padded"},
          specials=False),
      _MAPPED, _rows_by("paddedMode"), _ROOM,
      permutedTokens=tensor("R H", _FLOATS), sortedIndices=_listed("paddedMode", "sorted"),
      routingMapOptional=_MAP, probsOptional=optional(tensor("T E", "permutedTokens")),
      paddedMode=flag(), restoreShapeOptional=equals("(T, H)"),
      unpermutedTokens=out("permutedTokens"), outIndex=out("i32"), permuteTokenId=out("i32"),
      permuteProbs=out("probsOptional"))  # fmt: skip
def unpermute_map(
    permutedTokens: Array, sortedIndices: Array, routingMapOptional: Array,
    probsOptional: Array | None, paddedMode: bool, restoreShapeOptional: tuple[int, int],
) -> tuple[Array, Array, Array, Array | None]:  # fmt: skip
    """Padded: row r belongs to expert r / capacity and to token sortedIndices[r]; else what the map
    says, token by token, lies in the rows sortedIndices."""
    token, expert = np.nonzero(routingMapOptional)
    rows = sortedIndices
    if paddedMode:
        token = sortedIndices
        rows = np.arange(token.size)
        expert = rows // (token.size // routingMapOptional.shape[1])
    probs = None if probsOptional is None else probsOptional[token, expert]
    out = np.zeros(restoreShapeOptional)
    np.add.at(out, token, permutedTokens[rows] * (1.0 if probs is None else probs[:, None]))
    order = np.argsort(token, kind="stable")
    return out, rows[order], token[order], probs


@spec("aclnnMoeTokenUnpermuteWithRoutingMapGrad", _SUM, _MAPPED, _rows_by("dropAndPad"), _ROOM,
      unpermutedTokensGrad=tensor("T H", _FLOATS), outIndex=_listed("dropAndPad", "places"),
      permuteTokenId=_listed("dropAndPad", "tokens"), routingMapOptional=_MAP,
      permutedTokensOptional=optional(tensor("R H", "unpermutedTokensGrad"),
                                      iff="given(probsOptional)"),
      probsOptional=optional(tensor("T E", "unpermutedTokensGrad")), dropAndPad=flag(),
      restoreShapeOptional=equals("(T, H)"), permutedTokensGradOut=out("unpermutedTokensGrad"),
      probsGradOutOptional=out("probsOptional"))  # fmt: skip
def unpermute_map_grad(
    unpermutedTokensGrad: Array, outIndex: Array, permuteTokenId: Array, routingMapOptional: Array,
    permutedTokensOptional: Array | None, probsOptional: Array | None, dropAndPad: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    experts = (
        np.nonzero(routingMapOptional)[1]
        if not dropAndPad
        else outIndex // (outIndex.size // routingMapOptional.shape[1])
    )
    flow = unpermutedTokensGrad[permuteTokenId]
    tokens = np.zeros((outIndex.size, flow.shape[1]))
    if probsOptional is None or permutedTokensOptional is None:
        tokens[outIndex] = flow
        return tokens, None
    probs = np.zeros_like(probsOptional)
    tokens[outIndex] = flow * probsOptional[permuteTokenId, experts][:, None]
    probs[permuteTokenId, experts] = (flow * permutedTokensOptional[outIndex]).sum(-1)
    return tokens, probs
