"""What torch gives for the rows of attention, inference."""

import torch

from .._arguments import t


def told(a, *names):
    return next((a[n] for n in names if a.get(n) is not None), None)


def either(a, name):
    return told(a, name, name + "Optional")


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
    if layout == "NBSD":
        return x.transpose(0, 1)
    x = x.transpose(1, 2)
    return x if layout == "BSND" else x.flatten(-2)


def padded(x, ends):
    """[B, N, S, D] of packed [T, N, D], with zeros behind each sequence."""
    parts = x.split([b - a for a, b in zip((0, *ends[:-1]), ends, strict=True)])
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).transpose(1, 2)


def spread(scale, mode, x):
    """A parameter of channels or of tokens over [B, N, S, D]."""
    scale = t(scale)
    if scale.numel() == 1:
        return scale.reshape(())
    if mode == 1:
        return scale.expand(len(x), -1)[:, None, : x.shape[2], None]
    return scale.reshape(1, x.shape[1], 1, x.shape[3])


def cache(a, name, at, heads, lengths):
    x = torch.cat([t(m) for m in a[name]]) if isinstance(a[name], list) else t(a[name])
    table = told(a, "blocktable", "blockTableOptional")
    layout = a["inputLayout"].split("_")[0]
    x = x.double()
    if table is not None:
        x = torch.stack([torch.cat([x[int(b)] for b in line])[: max(lengths)] for line in table])
        layout = "BSH"
    x = padded(x, lengths) if layout == "TND" else split(x, layout, heads)
    scale, offset = either(a, "antiquantScale"), either(a, "antiquantOffset")
    mode = a.get("antiquantMode", 0)
    if scale is not None:
        scale, offset = scale[at], None if offset is None else offset[at]
    if a.get(f"{name}AntiquantScaleOptional") is not None:
        scale, offset = (a[f"{name}Antiquant{p}Optional"] for p in ("Scale", "Offset"))
        mode = a[f"{name}AntiquantMode"]
    if scale is None:
        return x
    return (x + (0 if offset is None else spread(offset, mode, x))) * spread(scale, mode, x)


def number(word):
    if word is None:
        return 1.0
    if word.dtype.kind == "u":
        return float(word.astype("uint32").view("float32")[0])
    return float(word.reshape(-1)[0])


def seen(a, sq, sk, lq, lk):
    """[sq, sk] of what the sparse mode lets the rows of lengths lq and lk see."""
    far = torch.arange(sk)[None] - torch.arange(sq)[:, None]
    mode = a.get("sparseMode", 0)
    before, after = a.get("preTokens", 65536), a.get("nextTokens", 65536)
    if mode == 2:
        return far <= 0
    if mode == 3:
        return far <= lk - lq
    if mode == 4:
        return (far >= lk - lq - before) & (far <= lk - lq + after)
    if either(a, "attenMask") is not None and lq > 1:
        return (far >= -before) & (far <= after)
    return torch.ones(sq, sk, dtype=torch.bool)


def inferred(a):
    n = a["numHeads"]
    kv = a["numKeyValueHeads"] or n
    first, _, last = a["inputLayout"].partition("_")
    packed = first == "TND"
    incremental = "blocktable" in a
    ends = None if incremental else either(a, "actualSeqLengths")
    lengths = (
        told(a, "actualSeqLengthsKv", "actualSeqLengthsKvOptional", "actualSeqLengths")
        if incremental
        else either(a, "actualSeqLengthsKv")
    )
    ends, lengths = (e if e is None else list(map(int, e)) for e in (ends, lengths))
    q = t(a["query"]).double()
    q = padded(q, ends) if packed else split(q, first, n)
    k, v = (cache(a, name, i, kv, lengths) for i, name in enumerate(("key", "value")))
    sizes = (torch.diff(torch.tensor((0, *e))).tolist() if packed else e or [x.shape[2]] * len(x)
             for e, x in ((ends, q), (lengths, k)))  # fmt: skip
    sizes_q, sizes_k = (list(s) for s in sizes)
    extra = 0
    if a.get("keySharedPrefixOptional") is not None:
        told_rows = a["actualSharedPrefixLenOptional"]
        extra = told_rows[0] if told_rows else a["keySharedPrefixOptional"].shape[2]
        k, v = (torch.cat([t(a[f"{p}SharedPrefixOptional"])[:, :, :extra].expand(
            len(x), -1, -1, -1), x], 2) for p, x in (("key", k), ("value", v)))  # fmt: skip
    score = q @ k.repeat_interleave(n // kv, 1).mT
    if a.get("queryRopeOptional") is not None:
        score = score + t(a["queryRopeOptional"]) @ t(a["keyRopeOptional"]).repeat_interleave(
            n // kv, 1).mT  # fmt: skip
    score = score * number(told(a, "deqScale1", "dequantScale1", "deqScale1Optional"))
    score = score * a["scaleValue"]
    shift, slope = either(a, "pseShift"), a.get("pseType", 0)
    if shift is not None and slope > 1:
        far = (torch.arange(q.shape[2])[:, None] + a["qStartIdxOptional"][0]
               - torch.arange(k.shape[2]) - a["kvStartIdxOptional"][0]).abs()  # fmt: skip
        score = score - t(shift)[:, None, None] * (far.double().sqrt() if slope == 3 else far)
    elif shift is not None:
        score = score + t(shift)
    counted = torch.zeros(q.shape[0], 1, q.shape[2], dtype=torch.bool)
    mask, sparse = either(a, "attenMask"), a.get("sparseMode", 0)
    if mask is not None and sparse < 2:
        own = t(mask).bool()
        own = own[:, None] if own.dim() == 3 else own
        own = own[..., : k.shape[2]]
        if own.dim() == 2 and score.shape[2] == 1:  # a row for each sequence
            own = own[:, None, None]
        score = score.masked_fill(own, -torch.inf)
    for b, (lq, lk) in enumerate(zip(sizes_q, sizes_k, strict=True)):
        ahead = [
            x - m - int(p[0]) if p is not None else 0
            for x, m, p in (
                (q.shape[2], lq, a.get("queryPaddingSizeOptional")),
                (k.shape[2] - extra, lk, told(a, "kvPaddingSizeOptional", "kvPaddingSize")),
            )
        ]
        i, j = ahead
        keep = torch.zeros(q.shape[2], k.shape[2], dtype=torch.bool)
        last_key = j + lk + extra
        keep[i : i + lq, j:last_key] = seen(a, lq, lk + extra, lq, lk + extra)
        score[b] = score[b].masked_fill(~keep, -torch.inf)
        counted[b, :, i : i + lq] = True
    sink = a.get("learnableSinkOptional")
    if sink is not None:
        score = torch.cat([score, t(sink)[None, :, None, None].expand(*score.shape[:3], 1)], -1)
        v = torch.cat([v, torch.zeros(*v.shape[:2], 1, v.shape[3])], 2)
    values = v.repeat_interleave(n // kv, 1)
    steps = told(a, "quantScale1", "quantScale1Optional")
    if steps is None:
        out = torch.softmax(score, -1).nan_to_num(0.0) @ values
    else:
        whole = (score - score.amax(-1, True)).exp()
        out = (whole * number(steps)).round() @ values / whole.sum(-1, True)
        out = out * number(told(a, "deqScale2", "dequantScale2", "deqScale2Optional"))
    scale, offset = either(a, "quantScale2"), either(a, "quantOffset2")
    if scale is not None:
        out = out * t(scale).reshape(1, -1, 1, 1 if scale.size == 1 else out.shape[3])
        if offset is not None:
            out = out + t(offset).reshape(1, -1, 1, 1 if offset.size == 1 else out.shape[3])
    out = out * counted[..., None]
    if packed:
        return torch.cat(
            [o[:, :m].transpose(0, 1) for o, m in zip(out, sizes_q, strict=True)]
        ), None
    return joined(out, last or first), score.logsumexp(-1, True)


ORACLES = {
    **dict.fromkeys(
        (
            "aclnnPromptFlashAttention",
            "aclnnPromptFlashAttentionV2",
            *(f"aclnnIncreFlashAttention{v}" for v in ("", "V2", "V3", "V4")),
        ),
        lambda a: inferred(a)[0],
    ),
}
