"""What torch's own words and autograd give for chosen keys, recurrences, labels and regions."""

from __future__ import annotations

import torch
from routed_formulas import autograd
from test_references import F, t


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


def gru(a):
    net = torch.nn.GRU(6, 8, a["numLayers"], bias=a["hasBias"], batch_first=a["batchFirst"],
                       bidirectional=a["bidirection"]).double()  # fmt: skip
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        return net(t(a["input"]), t(a["hx"]))


def delta(a):
    """Token by token."""
    q, k, v, beta, g = (t(a[n]) for n in ("query", "key", "value", "beta", "gOptional"))
    group, begin, outs, states = v.shape[1] // k.shape[1], 0, [], []
    for b, length in enumerate(a["actualSeqLengths"]):
        s = t(a["initialState"])[b]
        for i in range(begin, begin + int(length)):
            key = k[i].repeat_interleave(group, 0)
            s = s * g[i].exp()[:, None, None]
            gap = beta[i][:, None] * (v[i] - (s * key[:, None]).sum(-1))
            s = s + gap[..., None] * key[:, None]
            query = q[i].repeat_interleave(group, 0)
            outs.append((s * query[:, None]).sum(-1) * a["scaleValue"])
        begin += int(length)
        states.append(s)
    return torch.stack(outs), torch.stack(states)


def sequences(a):
    lengths = a["targetlengths"] if "targetlengths" in a else a["targetLengths"]
    return t(a["logProbs"]), t(a["targets"]), a["inputLengths"], lengths


def ctc(a):
    nll, alpha = torch.ops.aten._ctc_loss(*sequences(a), a["blank"], a["zeroInfinity"])
    nll = nll.where(torch.isfinite(nll) | (not a["zeroInfinity"]), 0)
    states = 2 * torch.tensor(a["targetlengths"]) + 1  # torch leaves the rest as it was
    mine = torch.arange(alpha.shape[2]) < states[:, None, None]
    mine = (
        mine & (torch.arange(alpha.shape[1]) < torch.tensor(a["inputLengths"])[:, None])[..., None]
    )
    return nll, alpha.where(mine, torch.nan)


def ctc_back(a):
    own = sequences(a)
    nll, alpha = torch.ops.aten._ctc_loss(*own, a["blank"], True)
    return torch.ops.aten._ctc_loss_backward(t(a["gradOut"]), *own, nll, alpha, a["blank"], True)


def part_of_vocabulary(a):
    logits = t(a["input"]) @ t(a["weight"]).T
    target, first = t(a["target"]), a["vocabStartIndex"]
    here = (target >= first) & (target <= a["vocabEndIndex"])
    local = torch.where(here, target - first, 0)
    top = logits.amax(1)
    own = logits.gather(1, local[:, None])[:, 0] - top
    weights = 2 ** torch.arange(7, -1, -1)
    byte = ((~here).unflatten(0, (-1, 8)) * weights).sum(-1)
    return (top, (logits.logsumexp(1) - top).exp(), torch.where(here, own, 0), byte, local,
            logits)  # fmt: skip


def losses_of_parts(a):
    p = (t(a["vocabParallelLogitsOptional"]) - t(a["logitsMax"])[:, None]).exp()
    total = t(a["sumExpLogits"])
    return total.log() - t(a["predictedLogits"]), p / total[:, None]


def regions(a):
    """Every sample by grid_sample."""
    x, outs = t(a["self"]), []
    high, wide = x.shape[2:]
    for image, *corners in a["boxes"]:
        x0, y0, x1, y1 = (c * a["spatialScale"] - (0.5 if a["aligned"] else 0) for c in corners)
        sizes = (y1 - y0, x1 - x0) if a["aligned"] else (max(y1 - y0, 1), max(x1 - x0, 1))
        places = []
        for low, size, count in zip((y0, x0), sizes, (a["pooledHeight"], a["pooledWidth"]),
                                    strict=True):  # fmt: skip
            n = a["samplingRatio"] or int(torch.tensor(size / count).ceil())
            places.append((low + size / count * (torch.arange(count * n) + 0.5).double() / n, n))
        (ys, ny), (xs, nx) = places
        grid = torch.stack(torch.meshgrid(2 * xs / (wide - 1) - 1, 2 * ys / (high - 1) - 1,
                                          indexing="xy"), -1)  # fmt: skip
        inside = ((ys >= -1) & (ys <= high))[:, None] & ((xs >= -1) & (xs <= wide))
        y = F.grid_sample(x[int(image)][None], grid[None].double(), padding_mode="border",
                          align_corners=True) * inside  # fmt: skip
        outs.append(F.avg_pool2d(y, (ny, nx))[0])
    return torch.stack(outs)


def pooled(a):
    top, left, bottom, right = a["pads"]
    x = F.pad(t(a["self"]), (left, right, top, bottom), value=-torch.inf)
    y = F.max_pool2d(x, a["kernelShape"], a["strides"], ceil_mode=bool(a["ceilMode"]))
    if not a["ceilMode"]:
        return y
    # ONNX: what would begin in the padding at the end is no window.
    down, across = (-(-(n + p) // s) for n, p, s in zip(
        a["self"].shape[2:], (top, left), a["strides"], strict=True))  # fmt: skip
    return y[:, :, :down, :across]


def adapted(a):
    y, begin = t(a["y"]).clone(), a["yOffset"]
    for row, i in enumerate(a["indices"]):
        if i >= 0:
            low = t(a["weightAOptional"])[i, a["layerIdx"]] @ t(a["x"])[row]
            up = t(a["weightB"])[i, a["layerIdx"]] @ low
            y[row, begin : begin + a["ySliceSize"]] += a["scale"] * up
    return y


def streams(x, res, out, post):
    mixed = (res[..., None] * x[..., None, :]).sum(-3)
    return post[..., None] * out[..., None, :] + mixed


def finalized(a):
    bias = t(a["biasOptional"])
    experts = t(a["expertIdxOptional"])[:, 0]

    def formula(rows, scales):
        flat, at = rows.flatten(0, -2), t(a["expandedRowIdx"]).long()
        at = torch.where(at < len(flat), at, -1) % (len(flat) + 1)  # a row of 0 behind the others
        own = F.pad(flat, (0, 0, 0, 1))[at]
        return scales * (own if bias is None else own + bias[experts.long()])

    return autograd(formula, a["expandedXOptional"], a["scalesOptional"], flow=a["gradY"])


def conditioned(a):
    def formula(x, scale, shift, weight, bias):
        y = F.layer_norm(x, (64,), weight, bias, 1e-5)
        return y * (1 + scale[:, None]) + shift[:, None]

    return autograd(formula, a["input"], a["scale"], 0 * a["scale"], a["weightOptional"],
                    a["biasOptional"], flow=a["gradOut"])  # fmt: skip


def listed_caches(a):
    caches = [v.clone() for v in t(a["varRef"])]
    for i, wanted in enumerate(a["maskOptional"]):
        if wanted:
            rows = torch.arange(a["updates"].shape[1:][a["axis"]]) + int(a["indice"][i])
            caches[i].index_copy_(a["axis"], rows, t(a["updates"])[i])
    return caches


CHOSEN = {
    "aclnnSparseFlashAttention": sparse_flash,
    "aclnnNsaSelectedAttention": selected,
    "aclnnBlockSparseAttention": block_sparse,
    "aclnnLightningIndexer": indexer,
    "aclnnFusedFloydAttention": floyd,
    "aclnnGRU": gru,
    "aclnnChunkGatedDeltaRule": delta,
    "aclnnCtcLoss": ctc,
    "aclnnCtcLossBackward": ctc_back,
    "aclnnFusedLinearOnlineMaxSum": part_of_vocabulary,
    "aclnnFusedCrossEntropyLossWithMaxSum": losses_of_parts,
    "aclnnRoiAlignV2": regions,
    "aclnnMaxPool": pooled,
    "aclnnAddLora": adapted,
    "aclnnMhcPost": lambda a: streams(*(t(a[n]) for n in ("x", "hRes", "hOut", "hPost"))),
    "aclnnMhcPostBackward": lambda a: autograd(
        streams, *(a[n] for n in ("x", "hRes", "hOut", "hPost")), flow=a["gradOutput"]
    ),
    "aclnnMoeFinalizeRoutingV2Grad": finalized,
    "aclnnAdaLayerNormBackward": conditioned,
    "aclnnScatterList": listed_caches,
    "aclnnQuantMatmul": lambda a: (
        (t(a["x1"]).double() @ t(a["x2"]).double() + t(a["bias"])) * a["deqScale"]
    ),
}
