"""What torch's own words give for attention of inference."""

from __future__ import annotations

import torch
from test_references import t


def told(a, *names):
    return next((a[n] for n in names if a.get(n) is not None), None)


def split(x, layout, heads):
    """[B, N, S, D]."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x, layout):
    if layout == "BNSD":
        return x
    x = x.transpose(1, 2)
    return x if layout == "BSND" else x.flatten(-2)


def cache(a, name, at, heads, lengths):
    x = a[name][0] if isinstance(a[name], list) else a[name]
    table = told(a, "blocktable", "blockTableOptional")
    layout = a["inputLayout"]
    x = t(x).double()
    if table is not None:
        rows = [x[line][: max(lengths)] if x.ndim == 2 else
                torch.cat([x[int(b)] for b in line])[: max(lengths)] for line in table]  # fmt: skip
        x, layout = torch.stack(rows), "BSH"
    scale = told(a, "antiquantScale", "antiquantScaleOptional")
    if scale is not None:
        offset = told(a, "antiquantOffset", "antiquantOffsetOptional")
        x = (x + (0 if offset is None else t(offset)[at])) * t(scale)[at]
    return split(x, layout, heads)


def inferred(a):
    n = a["numHeads"]
    kv = a["numKeyValueHeads"] or n
    q = split(t(a["query"]), a["inputLayout"], n)
    lengths = told(a, "actualSeqLengthsKv", "actualSeqLengthsKvOptional", "actualSeqLengths")
    k, v = (cache(a, name, i, kv, lengths).repeat_interleave(n // kv, 1)
            for i, name in enumerate(("key", "value")))  # fmt: skip
    score = q @ k.mT * a["scaleValue"]
    if a.get("pseShift") is not None:
        score = score + t(a["pseShift"])
    for b, length in enumerate(lengths or ()):
        score[b, ..., length:] = -torch.inf
    mask = told(a, "attenMask", "attenMaskOptional")
    if mask is not None:
        score = score.masked_fill(t(mask).bool(), -torch.inf)
    return joined(torch.softmax(score, -1) @ v, a["inputLayout"]), score.logsumexp(-1, True)


def fused(a):
    out, log = inferred(a)
    return (out, log) if a["softmaxLseFlag"] else (out, None)


INFERENCE = {
    **dict.fromkeys(("aclnnPromptFlashAttention", "aclnnPromptFlashAttentionV2",
                     "aclnnIncreFlashAttention", "aclnnIncreFlashAttentionV3"),
                    lambda a: inferred(a)[0]),
    **dict.fromkeys(("aclnnFusedInferAttentionScore", "aclnnFusedInferAttentionScoreV2"), fused),
}  # fmt: skip
