"""What torch gives for the rows of attention, sparse."""

import torch
import torch.nn.functional as F

from .._arguments import t


def masked(q, k, v, seen, scale, sink=None):
    """(result, log of the sum, largest) of [N, T, D] under a mask [N, T, S]; a sink is a key more,
    whose value is zero."""
    scores = (q @ k.transpose(1, 2) * scale).masked_fill(~seen, -torch.inf)
    sink = torch.full((len(q),), -torch.inf, dtype=q.dtype) if sink is None else t(sink)
    scores = torch.cat([scores, sink[:, None, None].expand(-1, scores.shape[1], 1)], -1)
    nothing = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)
    return weights @ F.pad(v, (0, 0, 0, 1)), scores.logsumexp(-1), scores.amax(-1)


def sums(lse, most):
    return torch.where(most.isneginf(), 0.0, (lse - most).exp())


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
               "returnSoftmaxLse": True,
               **{x: a[x][q][None] for x in ("query", "queryRopeOptional", "sparseIndices")},
               **{x: a[x][k][None] for x in ("key", "keyRopeOptional", "value")}}  # fmt: skip


def sparse_flash(a):
    if a.get("layoutQueryOptional") == "TND":
        y, top, total = zip(*map(sparse_flash, packed_as_batches(a)), strict=True)
        statistics = a.get("returnSoftmaxLse", True)
        return torch.cat(y, 1)[0], *(
            torch.cat(s, 2)[0] if statistics else None for s in (top, total)
        )
    n, out, top, total = a["query"].shape[-2], [], [], []
    for b in range(len(a["query"])):
        q = torch.cat([t(a["query"])[b], t(a["queryRopeOptional"])[b]], -1)
        k = torch.cat([t(a["key"])[b], t(a["keyRopeOptional"])[b]], -1)
        seen = listed(a["sparseIndices"][b], len(k), a["sparseBlockSizeOptional"], n)
        if a.get("actualSeqLengthsKvOptional") is not None:
            seen[..., a["actualSeqLengthsKvOptional"][b] :] = False
        if a.get("sparseMode") == 3:
            seen = seen.tril(len(k) - len(q))
        y, lse, most = masked(widened(q, n), widened(k, n), widened(t(a["value"])[b], n), seen,
                              a["scaleValue"], a.get("sinksOptional"))  # fmt: skip
        out.append(y.transpose(0, 1))
        top.append(most.T)
        total.append(sums(lse, most).T)
    if not a.get("returnSoftmaxLse", True):
        return torch.stack(out), None, None
    return torch.stack(out), torch.stack(top)[:, None], torch.stack(total)[:, None]


def selected(a):
    outs, n = [], a["query"].shape[1]
    spans = [list(zip((0, *e[:-1]), e, strict=True))
             for e in (a["actualSeqQLenOptional"], a["actualSeqKvLenOptional"])]  # fmt: skip
    for (b, c), (d, e) in zip(*spans, strict=True):
        seen = listed(a["topkIndices"][b:c], e - d, a["selectedBlockSize"], n)
        if a["attenMaskOptional"] is not None:
            seen = seen & ~t(a["attenMaskOptional"]).bool()[: c - b, : e - d]
        y, lse, most = masked(widened(t(a["query"])[b:c], n), widened(t(a["key"])[d:e], n),
                              widened(t(a["value"])[d:e], n), seen, a["scaleValue"])  # fmt: skip
        outs.append((most.T, sums(lse, most).T, y.transpose(0, 1)))
    top, total, out = (torch.cat(part) for part in zip(*outs, strict=True))
    return top[..., None].expand(-1, -1, 8), total[..., None].expand(-1, -1, 8), out


def block_sparse(a):
    high, wide = a["blockShapeOptional"]
    open_ = t(a["blockSparseMaskOptional"]).bool()
    open_ = open_.repeat_interleave(high, 2).repeat_interleave(wide, 3)
    packed, results = a["qInputLayout"] == "TND", []
    for b, seen in enumerate(open_):
        q, k, v = (_sequence(a, n, b, packed) for n in ("query", "key", "value"))
        k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
        seen = seen[:, : q.shape[1], : k.shape[1]].clone()
        if not packed and a["actualSeqLengthsKvOptional"] is not None:
            seen[..., a["actualSeqLengthsKvOptional"][b] :] = False
        y, lse, _ = masked(q, k, v, seen, a["scaleValue"])
        results.append((y, lse[..., None]))
    out, lse = ([r[n].transpose(0, 1) if packed else r[n] for r in results] for n in (0, 1))
    join = torch.cat if packed else torch.stack
    return join(out), join(lse) if a.get("softmaxLseFlag", 1) else None


def _sequence(a, name, b, packed):
    if not packed:
        return t(a[name])[b]
    ends = (0, *a[f"actualSeqLengths{'' if name == 'query' else 'Kv'}Optional"])
    return t(a[name])[ends[b] : ends[b + 1]].transpose(0, 1)


def indexer(a):
    packed = a["layoutQueryOptional"] == "TND"
    names = [("query", "Query"), ("weights", "Query"), ("key", "Key")]
    if packed:
        ends = {n: (0, *a[f"actualSeqLengths{k}Optional"].tolist()) for n, k in names}
        rows = [[t(a[n])[ends[n][b] : ends[n][b + 1]] for n, _ in names]
                for b in range(len(ends["key"]) - 1)]  # fmt: skip
    else:
        rows = [[t(a[n])[b] for n, _ in names] for b in range(len(a["query"]))]
    parts = []
    for b, (q, w, k) in enumerate(rows):
        if not packed and a["actualSeqLengthsKeyOptional"] is not None:
            k = k[: a["actualSeqLengthsKeyOptional"][b]]
        worth = (torch.einsum("qnd,kd->qkn", q, k[:, 0]).relu() * w[:, None]).sum(-1)
        if a["sparseMode"] == 3:
            worth = worth.masked_fill(~torch.ones_like(worth).tril(len(k) - len(q)).bool(),
                                      -torch.inf)  # fmt: skip
        best = torch.sort(worth, dim=-1, descending=True, stable=True)
        room = (0, max(0, a["sparseCount"] - worth.shape[-1]))
        values = F.pad(best.values, room, value=-torch.inf)[:, None, : a["sparseCount"]]
        indices = F.pad(best.indices, room)[:, None, : a["sparseCount"]]
        none = values.isneginf()
        parts.append((indices.masked_fill(none, -1), values.masked_fill(none, 0)))
    join = torch.cat if packed else torch.stack
    indices, values = (join(x) for x in zip(*parts, strict=True))
    return indices, values if a["returnValues"] else None


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
