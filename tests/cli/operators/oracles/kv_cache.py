"""What torch gives for the rows of kv_cache."""

import numpy as np
import torch
import torch.nn.functional as F

from ._arguments import t
from ._functions import add_named


def drafts(a):
    """The golden of op-plugin's test, in torch's words."""
    requests, each = a["specToken"].shape[0], 1 + a["specToken"].shape[1]
    at = t(a["inputPositions"]) + t(a["acceptedNum"]).repeat_interleave(each) + 1
    samples = t(a["sampledTokenIds"])
    ended = torch.cat([samples, torch.full((requests, 1), -1)], 1).argmin(1) - 1
    tokens = torch.cat([samples.gather(1, ended[:, None]), t(a["specToken"])], 1).flatten()
    owner = torch.arange(requests).repeat_interleave(each)
    block = t(a["blockTables"])[owner, at // a["blockSize"]]
    return tokens, at, at + 1, block * a["blockSize"] + at % a["blockSize"]


def scatter_steps(a):
    out = t(a["selfRef"]).double()
    steps = t(a["updates"]) / t(a["quantScales"])[0, 0]
    if a["quantZeroPoints"] is not None:
        steps = steps + t(a["quantZeroPoints"])[0, 0]
    rows = torch.arange(steps.shape[-2])
    for n, place in enumerate(a["indices"].reshape(len(steps), -1)):
        batch, first = place if len(place) == 2 else (n, place[0])
        out[int(batch)].index_copy_(-2, rows + int(first), steps[n].clamp(-128, 127))
    return out


def step_on(a):
    """One sequence after the other."""
    tokens, at, lengths, slots = (
        t(a[n]).clone() for n in ("inputTokens", "inputPositions", "seqLens", "slotMapping")
    )
    for n in range(len(tokens)):
        if n < a["numQueries"]:
            tokens[n], at[n] = int(a["sampledTokenIds"][n, 0]), lengths[n]
            block, place = divmod(int(lengths[n]), a["blockSize"])
            slots[n] = int(a["blockTables"][n, block]) * a["blockSize"] + place
            lengths[n] += 1
        else:
            tokens[n], at[n], slots[n] = 0, 0, -1
    return tokens, at, lengths, slots


def dequantized(a):
    """Products of integers become numbers; a bias of integers is one of products."""
    x, bias = t(a["x"]).double(), a["biasOptional"]
    if a["weightScaleOptional"] is None:
        return x
    early, late = (bias, None) if bias is not None and bias.dtype.kind == "i" else (None, bias)
    x = (x if early is None else x + t(early)) * t(a["weightScaleOptional"])
    if a["activationScaleOptional"] is not None:
        x = x * t(a["activationScaleOptional"]).reshape(*x.shape[:2], 1)
    return x if late is None else x + t(late)


def dequant_rope_cache(a):
    x, cos, sin = dequantized(a), t(a["cos"]), t(a["sin"])
    half = cos.shape[-1] // 2

    def turn(v):
        one, two = v.chunk(2, -1)
        return torch.cat([one * cos[..., :half] - two * sin[..., :half],
                          two * cos[..., half:] + one * sin[..., half:]], -1)  # fmt: skip

    parts = [p.unflatten(-1, (-1, 2 * half)) for p in x.split(list(a["sizeSplits"]), -1)]
    q, k, v = turn(parts[0]), turn(parts[1]), parts[2]
    caches = []
    for cache, rows, part in (("kCacheRef", k, "K"), ("vCacheRef", v, "V")):
        new = t(a[cache]).double()
        steps = add_named(rows * t(a["scale" + part]), a, f"offset{part}Optional")
        slots, each = new.flatten(0, 1), new.shape[1]
        for i, step in enumerate(steps.flatten(0, 1)):
            b, s = divmod(i, x.shape[1])
            page = a["cacheModeOptional"] == "page"
            slots[int(a["indices"][i] if page else b * each + a["indices"][b] + s)] = step
        caches.append(new)
    return *caches, q, k, v


def kv_norm_rope_cache(a):
    latent = F.rms_norm(t(a["kv"])[..., :512], (512,), t(a["gamma"]), a["epsilon"])
    k = t(a["kv"])[..., 512:].unflatten(-1, (32, 2)).transpose(-1, -2).flatten(-2)
    one, two = k.chunk(2, -1)
    rope = k * t(a["cos"]) + torch.cat([-two, one], -1) * t(a["sin"])
    caches, tokens = [], a["kv"].shape[2]
    for name, rows in (("kCacheRef", rope), ("ckvCacheRef", latent)):
        own = {"kCacheRef": "kRope", "ckvCacheRef": "cKv"}[name]
        new, scale = t(a[name]).double().clone(), a.get(f"{own}ScaleOptional")
        mode, index, size = a["cacheModeOptional"], a["index"], new.shape[1]
        for n, row in enumerate(rows.reshape(-1, rows.shape[-1])):
            batch, token = divmod(n, tokens)
            if scale is not None:
                row = add_named(row * t(scale), a, f"{own}OffsetOptional").clamp(-128, 127)
            if mode == "Norm":
                new[batch, 0, int(index[batch, token])] = row
                continue
            slot = int(index[n]) if "BLK" not in mode else (
                int(index[-(-tokens // size) * batch + token // size]) + token % size)  # fmt: skip
            if slot < 0:
                continue
            page, at = divmod(slot, size)
            if mode.endswith("NZ"):
                tile = 16 if scale is None else 32
                new[page].view(-1, size, tile)[:, at] = row.view(-1, tile)
            else:
                new[page, at, 0] = row
        caches.append(new)
    return *caches, rope, latent


def pages(a):
    lens = a["seqLens"]
    lens = np.diff(lens) if a["isSeqLensCumsum"] else lens
    outs = []
    for name in ("keyCache", "valueCache"):
        rows = []
        for b, n in enumerate(lens):
            cache = t(a[name])
            if a["cacheMode"] == "PA_NZ":
                cache = cache.transpose(1, 2)
            whole = cache[t(a["blockTables"])[b].long()].flatten(0, 1)
            first = 0 if a["seqOffsetOptional"] is None else int(a["seqOffsetOptional"][b])
            whole = F.pad(whole, (0, 0, 0, 0, 0, first + int(n)))
            rows.append(whole[first : first + int(n)])
        outs.append(torch.cat(rows))
    return outs


def qkv_cache(a):
    d = a["qkvSize"][3]
    q, k, v = t(a["qkv"]).unflatten(1, (-1, d)).split(list(a["headNums"]), 1)

    def turned(x, gamma):
        x = F.rms_norm(x, (d,), t(gamma), a["epsilon"])
        low, high = x.chunk(2, -1)
        return x * t(a["cos"])[:, None] + torch.cat([-high, low], -1) * t(a["sin"])[:, None]

    q, k, v = (x.flatten(1) for x in (turned(q, a["qGamma"]), turned(k, a["kGamma"]), v))
    caches = []
    for name, new in (("k", k), ("v", v)):
        flat = t(a[f"{name}Cache"]).double().transpose(1, 2).flatten(0, 1).flatten(1).clone()
        keep, scale = t(a["index"]) >= 0, a.get(f"{name}ScaleOptional")
        if scale is not None:
            new = new / t(scale).flatten()
            if a[f"{name}OffsetOptional"] is not None:
                new = new + t(a[f"{name}OffsetOptional"]).flatten()
            new = new.clamp(-128, 127)
        flat[t(a["index"])[keep]] = new[keep]
        wide = a[f"{name}Cache"].shape[3]
        pages = flat.unflatten(1, (-1, wide)).unflatten(0, (len(a[f"{name}Cache"]), -1))
        caches.append(pages.transpose(1, 2).contiguous())
    return q, *caches, q, k, v


ORACLES = {
    "aclnnAdvanceStep": step_on,
    "aclnnAdvanceStepV2": drafts,
    "aclnnDequantRopeQuantKvcache": dequant_rope_cache,
    "aclnnInplaceQuantScatter": scatter_steps,
    "aclnnKvRmsNormRopeCache": kv_norm_rope_cache,
    "aclnnGatherPaKvCache": pages,
    "aclnnQkvRmsNormRopeCache": qkv_cache,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnScatterPaKvCache",
        {
            "key": [[1.0]],
            "value": [[2.0]],
            "keyCacheRef": [[[0.0], [0.0]]],
            "valueCacheRef": [[[0.0], [0.0]]],
            "slotMapping": [1],
            "cacheModeOptional": "Norm",
        },
        [[[[0.0], [1.0]]], [[[0.0], [2.0]]]],
    ),
    (
        "aclnnScatterPaKvCache",
        {
            "key": [[1.0, 2.0]],
            "value": [[3.0, 4.0]],
            "keyCacheRef": [[[[0.0], [0.0]], [[0.0], [0.0]]]],
            "valueCacheRef": [[[[0.0], [0.0]], [[0.0], [0.0]]]],
            "slotMapping": [1],
            "cacheModeOptional": "PA_NZ",
        },
        [[[[[0.0], [1.0]], [[0.0], [2.0]]]], [[[[0.0], [3.0]], [[0.0], [4.0]]]]],
    ),
]
