"""What torch gives for the rows of attention, flash_varlen."""

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def attend(q, k, v, scale, bias, share, sink=None):
    """[T, N, D] of one sequence by torch's own words; weights are multiplied by `share`; a sink is
    a key more, without a value. Rows that see nothing give zeros."""
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], 0) for x in (k, v))
    scores = q @ k.mT * scale + bias
    beside = torch.full((len(q),), -torch.inf, dtype=q.dtype) if sink is None else t(sink)
    scores = torch.cat([scores, beside[:, None, None].expand(-1, scores.shape[1], 1)], -1)
    nothing = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)[..., :-1] * share
    return (weights @ v).transpose(0, 1)


def visible(a, b, sq, sk):
    """What sequence `b` sees: 2 from the upper left, 3 and 6 from the lower right, 4 a band."""
    ones = torch.ones(sq, sk, dtype=torch.bool)
    corner = sk - sq
    match a.get("sparseMode", 0):
        case 2:
            return ones.tril()
        case 3:
            return ones.tril(corner)
        case 4:
            return ones.tril(corner + a["nextTokens"]).triu(corner - a["preTokens"])
        case 6:
            return ones.tril(corner) | (torch.arange(sk) < a["prefixOptional"][b])
    return ones


def added(a, b, sq, sk):
    bias = torch.zeros(sq, sk, dtype=torch.float64).masked_fill(~visible(a, b, sq, sk), -torch.inf)
    if a.get("attenMaskOptional") is not None and a.get("sparseMode", 0) < 2:
        bias = bias.masked_fill(t(a["attenMaskOptional"])[:sq, :sk].bool(), -torch.inf)
    slopes = a.get("realShiftOptional", a.get("pseShiftOptional"))
    if slopes is None or a.get("pseType", 1) < 2:
        return bias
    first, second = ((a.get(n) or (0,))[0] for n in ("qStartIdxOptional", "kvStartIdxOptional"))
    far = torch.cdist(first + torch.arange(sq)[:, None].double(),
                      second + torch.arange(sk)[:, None].double())  # fmt: skip
    slopes = t(slopes).reshape(-1, a["query"].shape[1])
    return bias - slopes[b % len(slopes), :, None, None] * (
        far.sqrt() if a["pseType"] == 3 else far
    )


def packed(q, k, v, a):
    ends = a["actualSeqQLenOptional"], a["actualSeqKvLenOptional"]
    spans = [list(zip((0, *e[:-1]), e, strict=True)) for e in ends]
    outs, bits = [], a.get("dropMaskOptional")
    kept = None if bits is None else np.unpackbits(bits, bitorder="little")
    for i, ((b, c), (d, e)) in enumerate(zip(*spans, strict=True)):
        sq, sk, share = c - b, e - d, 1.0
        if kept is not None:
            now, kept = np.split(kept, [q.shape[1] * sq * sk])
            share = t(now.reshape(q.shape[1], sq, sk)) / a["keepProb"]
        outs.append(attend(q[b:c], k[d:e], v[d:e], a["scaleValue"], added(a, i, sq, sk), share,
                           a.get("sinkOptional", a.get("sinkInOptional"))))  # fmt: skip
    return torch.cat(outs)


def joined(a, name, rope):
    return t(a[name]) if a.get(rope) is None else torch.cat([t(a[name]), t(a[rope])], -1)


def packed_forward(a):
    q, k = joined(a, "query", "queryRope"), joined(a, "key", "keyRope")
    return None, None, None, packed(q, k, t(a["value"]), a)


def packed_backward(a):
    q, k = joined(a, "query", "queryRope"), joined(a, "keyIn", "keyInRope")
    return autograd(lambda q, k, v: packed(q, k, v, a), q.numpy(), k.numpy(), a["value"],
                    flow=a["dy"])  # fmt: skip


def packed_backward_rope(a):
    dq, dk, dv = packed_backward(a)
    d = a["query"].shape[-1]
    if a.get("queryRope") is None:
        return dq, None, dk, None, dv
    return dq[..., :d], dq[..., d:], dk[..., :d], dk[..., d:], dv


ORACLES = {
    "aclnnFlashAttentionVarLenScore": packed_forward,
    "aclnnFlashAttentionVarLenScoreV3": packed_forward,
    "aclnnFlashAttentionVarLenScoreV5": packed_forward,
    "aclnnFlashAttentionUnpaddingScoreGrad": packed_backward,
    "aclnnFlashAttentionUnpaddingScoreGradV2": packed_backward,
    "aclnnFlashAttentionUnpaddingScoreGradV3": packed_backward_rope,
    "aclnnFlashAttentionUnpaddingScoreGradV4": packed_backward,
    "aclnnFlashAttentionUnpaddingScoreGradV5": packed_backward_rope,
}
