"""What torch gives for the rows of moe, gating."""

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def gating_by_groups(a):
    """A group's worth is its best score, or the sum of its two best; only the best groups count."""
    x, n = t(a["x"]), a["groupCount"]
    score = x.sigmoid() if a["normType"] == 1 else x.softmax(-1)
    steer = score if a["biasOptional"] is None else score + t(a["biasOptional"])
    worth = steer.unflatten(-1, (n, -1)).topk(2 if a["groupSelectMode"] else 1).values.sum(-1)
    last = worth.topk(a["kGroup"]).values[:, -1:]
    shut = (worth < last).repeat_interleave(x.shape[-1] // n, -1)
    at = steer.masked_fill(shut, -torch.inf).topk(a["k"]).indices
    if a.get("tid2eidOptional") is not None:
        at = t(a["tid2eidOptional"])[t(a["inputIdsOptional"]).long()].long()
    y = score.gather(-1, at)
    if a["normType"] == 1 or a["renorm"]:
        y = y / (y.sum(-1, keepdim=True) + a["eps"])
    return y * a["routedScalingFactor"], at, score


def gate_backward(a):
    # The scores are given, and those of a softmax need not sum to 1.
    scores, at = t(a["xNorm"]), t(a["expertIdx"]).long()

    def gate(s):
        y = a["routedScalingFactor"] * s.gather(1, at)
        whole = a["normType"] == 1 or a["renorm"]
        return y / (s.gather(1, at).sum(-1, keepdim=True) + a["eps"]) if whole else y

    flow = autograd(gate, scores.numpy(), flow=a["gradY"])
    flow = flow[0] if isinstance(flow, tuple | list) else flow
    if a["normType"] == 1:
        return torch.ops.aten.sigmoid_backward(flow, scores)
    return torch.ops.aten._softmax_backward_data(flow, scores, 1, torch.float64)


def sinkhorn(a):
    k = t(a["cost"]).exp()
    d0, d1, gap = torch.ones(9).double(), torch.ones(4).double(), 1.0
    while gap > a["tol"]:
        d0 = (1 / 9) / ((d1 * k).sum(1) + 1e-8)
        new = (1 / 4) / ((d0[:, None] * k).sum(0) + 1e-8)
        gap, d1 = float((d1 - new).abs().mean()), new
    return d1 * k * d0[:, None]


def grouped_bias(a):
    """The gradient of a bias that is repeated over the rows of its group."""
    ends, width = t(a["groupIdxOptional"]), a["gradY"].shape[-1]
    if ends is None:
        sizes = torch.full((len(a["gradY"]),), a["gradY"].shape[1])
    elif a["groupIdxType"]:
        sizes = ends
    else:
        sizes = ends.diff(prepend=ends[:1] * 0)
    flow = a["gradY"].reshape(-1, width)
    return autograd(lambda b: b.repeat_interleave(sizes, 0), np.zeros((len(sizes), width)),
                    flow=flow)  # fmt: skip


def softmax_gating(a):
    x = t(a["x"])
    best = x.topk(a["k"], -1)
    y = best.values.softmax(-1) if a["renorm"] else x.softmax(-1).gather(-1, best.indices)
    at = best.indices
    if a["finishedOptional"] is not None:
        at = at.masked_fill(t(a["finishedOptional"])[:, None].bool(), x.shape[-1])
    return y, at


def fused_top_k(a):
    p = t(a["x"]).sigmoid()
    score = (p + t(a["addNum"])).unflatten(1, (a["groupNum"], -1))
    worth = score.topk(a["topN"], -1).values.sum(-1)
    open_ = torch.zeros_like(worth, dtype=torch.bool)
    open_.scatter_(1, worth.topk(a["groupTopk"], 1).indices, True)
    at = score.masked_fill(~open_[..., None], -torch.inf).flatten(1).topk(a["topK"], 1).indices
    y = p.gather(1, at)
    return (y / y.sum(1, keepdim=True) if a["isNorm"] else y) * a["scale"], at


ORACLES = {
    "aclnnMoeGatingTopK": gating_by_groups,
    "aclnnMoeGatingTopKBackward": gate_backward,
    "aclnnGroupedBiasAddGrad": grouped_bias,
    "aclnnSinkhorn": sinkhorn,
    "aclnnMoeGatingTopKSoftmaxV2": softmax_gating,
    "aclnnMoeFusedTopk": fused_top_k,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnMoeGatingTopKSoftmax",
        {"x": [[0.0, np.log(3.0)]], "finishedOptional": None, "k": 1},
        [[[0.75]], [[1]], [[0]]],
    ),
]
