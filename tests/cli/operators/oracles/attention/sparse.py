"""What torch gives for the rows of attention, sparse."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t


def masked(q, k, v, seen, scale):
    """(result, log of the sum) of [N, T, D] under a mask [N, T, S]."""
    scores = (q @ k.transpose(1, 2) * scale).masked_fill(~seen, -torch.inf)
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], seen[None], scale=scale)[0]
    return out, scores.logsumexp(-1), scores.amax(-1)


def widened(x, count):
    return x.transpose(0, 1).repeat_interleave(count // x.shape[1], 0)


def listed(lists, keys, size, count):
    """[N, T, S] from lists [T, M, n]."""
    blocks = torch.arange(keys) // size
    seen = (t(lists)[..., None] == blocks).any(2).transpose(0, 1)
    return seen.repeat_interleave(count // seen.shape[0], 0)


def packed_as_batches(a):
    """Sequences of TND, each as a batch of one."""
    ends = [(0, *a[f"actualSeqLengths{x}Optional"].tolist()) for x in ("Query", "Kv")]
    for b in range(len(ends[0]) - 1):
        q, k = (slice(e[b], e[b + 1]) for e in ends)
        yield {**a, "layoutQueryOptional": "BSND", "actualSeqLengthsKvOptional": None,
               **{x: a[x][q][None] for x in ("query", "queryRopeOptional", "sparseIndices")},
               **{x: a[x][k][None] for x in ("key", "keyRopeOptional", "value")}}  # fmt: skip


def sparse_flash(a):
    if a.get("layoutQueryOptional") == "TND":
        y, top, total = zip(*map(sparse_flash, packed_as_batches(a)), strict=True)
        return torch.cat(y, 1)[0], torch.cat(top, 2)[0], torch.cat(total, 2)[0]
    n, out, top, total = 2, [], [], []
    for b in range(len(a["query"])):
        q = torch.cat([t(a["query"])[b], t(a["queryRopeOptional"])[b]], -1)
        k = torch.cat([t(a["key"])[b], t(a["keyRopeOptional"])[b]], -1)
        seen = listed(a["sparseIndices"][b], len(k), a["sparseBlockSizeOptional"], n)
        if a.get("actualSeqLengthsKvOptional") is not None:
            seen[..., a["actualSeqLengthsKvOptional"][b] :] = False
        if a.get("sparseMode") == 3:
            seen = seen.tril(len(k) - len(q))
        y, lse, most = masked(widened(q, n), widened(k, n), widened(t(a["value"])[b], n), seen,
                              a["scaleValue"])  # fmt: skip
        out.append(y.transpose(0, 1))
        top.append(most.T)
        total.append((lse - most).exp().T)
    return torch.stack(out), torch.stack(top)[:, None], torch.stack(total)[:, None]


def selected(a):
    outs, n = [], a["query"].shape[1]
    spans = [list(zip((0, *e[:-1]), e, strict=True))
             for e in (a["actualSeqQLenOptional"], a["actualSeqKvLenOptional"])]  # fmt: skip
    for (b, c), (d, e) in zip(*spans, strict=True):
        seen = listed(a["topkIndices"][b:c], e - d, a["selectedBlockSize"], n)
        y, lse, most = masked(widened(t(a["query"])[b:c], n), widened(t(a["key"])[d:e], n),
                              widened(t(a["value"])[d:e], n), seen, a["scaleValue"])  # fmt: skip
        outs.append((most.T, (lse - most).exp().T, y.transpose(0, 1)))
    top, total, out = (torch.cat(part) for part in zip(*outs, strict=True))
    return top[..., None].expand(-1, -1, 8), total[..., None].expand(-1, -1, 8), out


def block_sparse(a):
    high, wide = a["blockShapeOptional"]
    seen = t(a["blockSparseMaskOptional"]).bool()
    seen = seen.repeat_interleave(high, 2).repeat_interleave(wide, 3)
    q, k, v = t(a["query"])[0], t(a["key"])[0], t(a["value"])[0]
    k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
    out, lse, _ = masked(q, k, v, seen[0, :, : q.shape[1], : k.shape[1]], a["scaleValue"])
    return out[None], lse[None, ..., None]


def indexer(a):
    products = torch.einsum("bqnd,bkd->bqkn", t(a["query"]), t(a["key"])[:, :, 0]).relu()
    worth = (products * t(a["weights"])[:, :, None]).sum(-1)
    best = worth.topk(a["sparseCount"])
    return best.indices[:, :, None], best.values[:, :, None]


def floyd(a):
    def pairs(first, second):
        return t(first)[..., :, None, :, :] + t(second).transpose(-3, -2)[..., None, :, :, :]

    k, v = pairs(a["key1"], a["key2"]), pairs(a["value1"], a["value2"])
    scores = (t(a["query"])[..., None, :] * k).sum(-1) * a["scaleValueOptional"]
    top = scores.amax(-1)
    total = (scores - top[..., None]).exp().sum(-1)
    out = (scores.softmax(-1)[..., None] * v).sum(-2)
    return *(x[..., None].expand(*x.shape, 8) for x in (top, total)), out


ORACLES = {
    "aclnnSparseFlashAttention": sparse_flash,
    "aclnnNsaSelectedAttention": selected,
    "aclnnBlockSparseAttention": block_sparse,
    "aclnnLightningIndexer": indexer,
    "aclnnFusedFloydAttention": floyd,
}
