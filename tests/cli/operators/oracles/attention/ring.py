"""What torch gives for the rows of attention, ring."""

import torch

from .._arguments import t


def ring(a):
    """By the logarithms of the sums."""
    tops, sums = ([t(a[p + n]) for p in ("prev", "cur")] for n in ("SoftmaxMax", "SoftmaxSum"))
    logs = torch.stack([m + s.log() for m, s in zip(tops, sums, strict=True)])
    share = torch.softmax(logs, 0)[..., :1]
    flows = torch.stack([t(a["prevAttnOut"]), t(a["curAttnOut"])])
    if a.get("inputLayoutOptional", "SBH") == "SBH":
        share = share.permute(0, 3, 1, 2, 4)
        flows = flows.unflatten(-1, (share.shape[3], -1))
    out = (flows * share).sum(0).reshape(a["prevAttnOut"].shape)
    return out, torch.maximum(*tops), (logs.logsumexp(0) - torch.maximum(*tops)).exp()


def merged(a):
    """An infinite sum is of a part that saw nothing."""
    sums = torch.stack(t(a["lse"]))
    sums = sums.masked_fill(sums.isposinf(), -torch.inf)
    out = (sums.softmax(0)[..., None] * torch.stack(t(a["localOut"]))).sum(0)
    return out, sums.logsumexp(0) if a["updateType"] else None


ORACLES = {
    "aclnnRingAttentionUpdateV2": ring,
    "aclnnAttentionUpdate": merged,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnRingAttentionUpdate",
        {
            "prevAttnOut": [[[2.0]]],
            "prevSoftmaxMax": [[[[0.0]]]],
            "prevSoftmaxSum": [[[[1.0]]]],
            "curAttnOut": [[[4.0]]],
            "curSoftmaxMax": [[[[0.0]]]],
            "curSoftmaxSum": [[[[3.0]]]],
        },
        [[[[3.5]]], [[[[0.0]]]], [[[[4.0]]]]],
    ),
]
