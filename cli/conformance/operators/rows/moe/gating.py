"""Experts and weights of tokens, chosen from their scores."""

from __future__ import annotations

from .....spec import *
from .._functions import softmax
from .._words import *

_GATE: Final = Rule("composite", "Shazeer et al.: Outrageously Large Neural Networks, 2017; "
                    "op-plugin documents npu_moe_gating_top_k_softmax, npu_moe_gating_top_k",
                    specials=False, values="normal integer opposed positive")  # fmt: skip
_EXPERTS: Final = sizes(
    {"*B": leading("5", "1", "2x3", "130", "1030")}, E=experts(8, 1, 4, 65, 257, 1024), K=topk
)
_FEW: Final = require("K <= E", refuses=None)


def best(x: Array, k: int) -> Array:
    """The places of the k largest, the first among equals."""
    return np.argsort(-x, -1, kind="stable")[..., :k]


def _finished(at: Array, finished: Array | None, experts: int) -> Array:
    """Rows that are finished have expert `experts`, which does not exist."""
    return at if finished is None else np.where(finished[..., None], experts, at)


_SCORES: Final[dict[str, Domain]] = {
    "x": tensor("*B E", "f16 bf16 f32"),
    "finishedOptional": optional(mask("*B", patterns="random none all_but_one")),
    "k": equals("K"),
}  # fmt: skip
_SELECTION: Final[dict[str, Domain]] = {"yOut": out("x"), "expertIdxOut": out("i32")}


@spec("aclnnMoeGatingTopKSoftmax", _GATE, _EXPERTS, _FEW, **_SCORES, **_SELECTION,
      rowIdxOut=out("i32"))  # fmt: skip
def gating_softmax(x: Array, finishedOptional: Array | None, k: int) -> tuple[Array, Array, Array]:
    """Slots are numbered by columns: first the best expert of every token."""
    p = softmax(x)
    at = best(p, k)
    numbers = np.arange(at.size).reshape(k, -1).T.reshape(at.shape)
    return np.take_along_axis(p, at, -1), _finished(at, finishedOptional, x.shape[-1]), numbers


@spec("aclnnMoeGatingTopKSoftmaxV2", _GATE, _EXPERTS, _FEW, **_SCORES, renorm=choice(0, 1),
      outputSoftmaxResultFlag=by("renorm", {0: flag(), 1: only(False, "of renorm 0")}),
      **_SELECTION, softmaxResultOutOptional=out("f32"))  # fmt: skip
def gating_softmax_v2(
    x: Array, finishedOptional: Array | None, k: int, renorm: int, outputSoftmaxResultFlag: bool
) -> tuple[Array, Array, Array | None]:
    """renorm 1: softmax over the chosen logits only."""
    at = best(x, k)
    p = softmax(x)
    y = softmax(np.take_along_axis(x, at, -1)) if renorm else np.take_along_axis(p, at, -1)
    at = _finished(at, finishedOptional, x.shape[-1])
    return y, at, p if outputSoftmaxResultFlag else None


# G groups of W experts, of which P are open.
_GROUPS: Final = sizes(N=tokens(5, 1, 3, 130), G=group(1, 4, 2, 8), P=group(1, 2, 4, 8),
                       W=experts(16, 1, 3, 32, 129), K=topk, E="G*W")  # fmt: skip
_CLOSED: Final = both("P < G", "given(biasOptional) and groupSelectMode == 1 and P < G",
                     "normType == 0 and renorm == 1")  # fmt: skip
_NEGATIVE: Final = tuple(
    pin(f"G=4 P={p} W=3 groupSelectMode={mode} normType=1 biasOptional=low",
        "open experts whose scores are below 0, beside closed ones")
    for mode, p in ((0, 2), (1, 2), (1, 1)))  # fmt: skip
_OPEN: Final = require("P <= G and K <= P*W", refuses=None)


def _gate_params(hashed: bool) -> dict[str, Domain]:
    by_id: dict[str, Domain] = {
        "inputIdsOptional": optional(index("N", into="V", dtype="i32")),
        "tid2eidOptional": optional(routing("V K", into="E"), iff="given(inputIdsOptional)"),
    }  # fmt: skip
    return {
        "x": tensor("N E", "f16 bf16 f32"), "biasOptional": optional(forms(
            around=tensor("E", "x", -1, 1), low=tensor("E", "x", -3, -1.5))),
        **(by_id if hashed else {}),
        "k": equals("K"), "kGroup": equals("P"), "groupCount": equals("G"),
        "groupSelectMode": choice(0, 1), "renorm": choice(0, 1), "normType": choice(0, 1),
        "outFlag": only(True, "without it nothing is stated of outOut"),
        "routedScalingFactor": number(1.0, 2.5, -0.5), "eps": number(1e-20, 0.5),
        **_SELECTION, "outOut": out("f32"),
    }  # fmt: skip


def gating_top_k(
    x: Array,
    biasOptional: Array | None,
    k: int,
    kGroup: int,
    groupCount: int,
    groupSelectMode: int,
    renorm: int,
    normType: int,
    routedScalingFactor: float,
    eps: float,
    inputIdsOptional: Array | None = None,
    tid2eidOptional: Array | None = None,
) -> tuple[Array, Array, Array]:
    """DeepSeek-V3's gate: bias steers the choice, the weight is the score itself. A table of
    experts by token number takes the place of the choice."""
    score = softmax(x) if normType == 0 else 1 / (1 + np.exp(-x))
    steer = score if biasOptional is None else score + biasOptional
    if groupCount > 1:
        parts = steer.reshape(len(x), groupCount, -1)
        worth = np.sort(parts, -1)[..., -2:].sum(-1) if groupSelectMode else parts.max(-1)
        keep = np.zeros((len(x), groupCount), bool)
        np.put_along_axis(keep, best(worth, kGroup), True, -1)
        steer = np.where(np.repeat(keep, parts.shape[-1], -1), steer, -np.inf)
    at = best(steer, k) if tid2eidOptional is None else tid2eidOptional[inputIdsOptional]
    y = np.take_along_axis(score, at, -1)
    if normType == 1 or renorm == 1:
        y = y / (y.sum(-1, keepdims=True) + eps)
    return y * routedScalingFactor, at, score


spec("aclnnMoeGatingTopK", _GATE, _GROUPS, _OPEN, _CLOSED, *_NEGATIVE, **_gate_params(False))(
    gating_top_k
)
spec("aclnnMoeGatingTopKV2", _GATE, _GROUPS, sizes(V=rows(9, 1, 130)), _OPEN, _CLOSED,
     *_NEGATIVE, **_gate_params(True))(gating_top_k)  # fmt: skip


@spec("aclnnMoeGatingTopKBackward", Rule(
          "gradient", "derivative of DeepSeek-V3's gate; op-plugin test "
          "test_npu_moe_gating_top_k_backward", specials=False, sparse=True),
      sizes(N=tokens, E=experts(8, 1, 4, 65, 257), K=topk), _FEW,
      dtypes("""xNorm gradY
                f32   f32|f16|bf16"""),
      xNorm=tensor("N E", "f32", 0.1, 0.9), gradY=tensor("N K", "f32"),
      expertIdx=routing("N K", into="E"), renorm=choice(0, 1), normType=choice(1, 0),
      routedScalingFactor=number(1.0, 2.5, -0.5), eps=number(1e-20, 0.5),
      out=out("gradY"))  # fmt: skip
def gating_backward(
    xNorm: Array, gradY: Array, expertIdx: Array, renorm: int, normType: int,
    routedScalingFactor: float, eps: float,
) -> Array:  # fmt: skip
    """y = f s / (sum of the chosen s + eps) of s = sigmoid(x) (normType 1) or softmax(x) (0), which
    is divided with renorm alone."""
    s = np.take_along_axis(xNorm, expertIdx, -1)
    total = s.sum(-1, keepdims=True) + eps
    ds = routedScalingFactor * gradY
    if normType == 1 or renorm == 1:
        ds = ds / total - (ds * s).sum(-1, keepdims=True) / total**2
    flow = np.zeros_like(xNorm)
    np.put_along_axis(flow, expertIdx, ds, -1)
    # Softmax takes from each what all of them give it, the sigmoid what it gives itself.
    by_x = flow * xNorm
    return xNorm * (flow - (by_x if normType == 1 else by_x.sum(-1, keepdims=True)))


_BIAS: Final = Rule("gradient", "derivative of adding one bias to each group's rows",
                    specials=False)  # fmt: skip
_BIAS_SIZES: Final = sizes(T=tokens(12, 1, 17, 257), G=group(3, 1, 8), C=rows(5, 1, 17),
                           H=row(9, 1, 33, 257, 1025))  # fmt: skip
_EQUAL: Final = overload("equal", gradY=tensor("G C H"),
                         groupIdxOptional=null("the first dimension counts groups"))  # fmt: skip


def _listed(form: str) -> Domain:
    return forms(i32=parts("G", of="T", form=form, dtype="i32"), i64=parts("G", of="T", form=form))


def grouped_bias_grad(gradY: Array, groupIdxOptional: Array | None, groupIdxType: int = 0) -> Array:
    """Ends of groups, or their sizes (type 1); without them the first dimension counts groups."""
    ends = groupIdxOptional
    if ends is not None and groupIdxType == 1:
        ends = np.cumsum(ends)
    groups = gradY if ends is None else np.split(gradY, ends[:-1])
    return np.stack([g.sum(0) for g in groups])


spec("aclnnGroupedBiasAddGrad", _BIAS, _BIAS_SIZES, overload("listed"), _EQUAL,
     gradY=tensor("T H", "f32 f16 bf16"), groupIdxOptional=_listed("ends"),
     out=out("gradY"))(grouped_bias_grad)  # fmt: skip
spec("aclnnGroupedBiasAddGradV2", _BIAS, _BIAS_SIZES, overload("listed"), _EQUAL,
     gradY=tensor("T H", "f32 f16 bf16"),
     groupIdxOptional=by("groupIdxType", {0: _listed("ends"), 1: _listed("sizes")}),
     groupIdxType=choice(0, 1), out=out("gradY"))(grouped_bias_grad)  # fmt: skip


@spec("aclnnMoeFusedTopk", Rule(
          "composite", "document of Ascend Transformer Boost, FusedAddTopkDivOperation: "
          "sigmoid, added bias (positive here: whether a closed group counts as 0 is open), "
          "best groups by their best, best experts, division by their sum", specials=False,
          # Graded scores lie nearer to each other than float32 tells apart.
          values="normal integer opposed positive"),
      sizes(N=tokens(4, 1, 3, 130), G=group(3, 1, 2, 8), P=group(2, 1, 3), W=experts(4, 1, 33),
            M=group(2, 1, 4), K=topk(4, 1, 3), E="G*W"),
      require("P <= G and K <= P*W and M <= W", refuses=None),
      x=tensor("N E", "f32 f16 bf16"), addNum=tensor("E", "x", 0.1, 1),
      mappingNum=null("of enableExpertMapping"), mappingTable=null("of enableExpertMapping"),
      groupNum=equals("G"), groupTopk=equals("P"), topN=equals("M"), topK=equals("K"),
      activateType=only(0, "the document has the sigmoid alone"), isNorm=flag(True),
      scale=number(1.5, 1.0, -0.5),
      enableExpertMapping=only(False, "which replica a token takes is not published"),
      y=out("f32"), indices=out("i32"))  # fmt: skip
def fused_top_k(
    x: Array, addNum: Array, groupNum: int, groupTopk: int, topN: int, topK: int, isNorm: bool,
    scale: float,
) -> tuple[Array, Array]:  # fmt: skip
    p = np.exp(-np.logaddexp(0, -x))
    score = (p + addNum).reshape(len(x), groupNum, -1)
    worth = np.sort(score, -1)[..., -topN:].sum(-1)
    shut = np.argsort(-worth, -1, kind="stable")[:, groupTopk:]
    np.put_along_axis(score, shut[..., None], -np.inf, 1)
    at = np.argsort(-score.reshape(len(x), -1), -1, kind="stable")[:, :topK]
    y = np.take_along_axis(p, at, -1)
    return (y / y.sum(-1, keepdims=True) if isNorm else y) * scale, at


@spec("aclnnSinkhorn", Rule("gradient", "Megatron-LM, sinkhorn of moe_utils; Clark et al.: "
                            "Unified Scaling Laws for Routed Language Models, 2022"),
      sizes(R=rows(9, 1, 3, 65, 257), C=experts(4, 1, 8, 65)),
      cost=tensor("R C", "f32", -3, 3), tol=scalar("f32", 1e-4, 1e-3),
      p=out("cost"))  # fmt: skip
def sinkhorn(cost: Array, tol: float) -> Array:
    """Rows and columns of exp(cost) are scaled in turn until columns hardly move."""
    k = np.exp(cost)
    rows, columns, gap = np.ones(len(k)), np.ones(k.shape[1]), np.inf
    while gap > tol:
        rows = 1 / (len(k) * (k @ columns + 1e-8))
        new = 1 / (k.shape[1] * (rows @ k + 1e-8))
        gap, columns = np.abs(columns - new).mean(), new
    return rows[:, None] * k * columns
