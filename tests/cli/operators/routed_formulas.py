"""What torch's own words and autograd give for routed tokens, packed sequences and caches."""

from __future__ import annotations

import numpy as np
import torch
from test_references import F, t


def autograd(formula, *leaves, flow):
    made = [t(x).requires_grad_() for x in leaves]
    outs = formula(*made)
    return list(torch.autograd.grad(outs, made, [t(f) for f in flow]
                                    if isinstance(outs, tuple) else t(flow)))  # fmt: skip


def attend(q, k, v, scale, bias, share):
    """[T, N, D] of one sequence by torch's own words; weights are multiplied by `share`."""
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], 0) for x in (k, v))
    weights = torch.softmax(q @ k.mT * scale + bias, -1) * share
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
    if a.get("attenMaskOptional") is not None and not a.get("sparseMode"):
        bias = bias.masked_fill(t(a["attenMaskOptional"])[:sq, :sk].bool(), -torch.inf)
    slopes = a.get("realShiftOptional", a.get("pseShiftOptional"))
    if slopes is None:
        return bias
    first, second = ((a.get(n) or (0,))[0] for n in ("qStartIdxOptional", "kvStartIdxOptional"))
    far = torch.cdist(first + torch.arange(sq)[:, None].double(),
                      second + torch.arange(sk)[:, None].double())  # fmt: skip
    return bias - t(slopes)[:, None, None] * (far.sqrt() if a["pseType"] == 3 else far)


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
        outs.append(attend(q[b:c], k[d:e], v[d:e], a["scaleValue"], added(a, i, sq, sk), share))
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


def expert_order(a):
    return torch.sort(t(a["expertIdx"]).flatten(), stable=True).indices


def expanded(a):
    return t(a["x"])[expert_order(a) // a["expertIdx"].shape[1]]


def permuted(a):
    first, last = a["rangeOptional"] or (0, a["numOutTokens"])
    order = torch.sort(t(a["indices"]).flatten(), stable=True).indices
    rows = t(a["tokens"]).repeat_interleave(2, 0)[order][first:last]
    return rows, torch.argsort(order), t(a["probsOptional"]).flatten()[order][first:last]


def held_here(a, slots=10):
    """Which slots' rows lie here, as a matrix of rows by slots."""
    first, last = a["rangeOptional"]
    pick = torch.zeros(slots, slots, dtype=torch.float64)
    pick[t(a["sortedIndices"]).long(), torch.arange(slots)] = 1
    return pick[first:last]


def unpermuted(rows, probs, a):
    return ((held_here(a).T @ rows) * probs.reshape(-1, 1)).unflatten(0, (-1, 2)).sum(1)


def by_map(tokens, probs, a):
    if a["dropAndPad"]:
        at = t(a["sortedIndices"]).long()
        return tokens[at], probs[at, torch.arange(3).repeat_interleave(len(at) // 3)]
    taken = t(a["routingMapOptional"]).T
    return tokens[taken.nonzero()[:, 1]], probs.T[taken]


def padded(rows, probs, a, index):
    experts = torch.arange(12) // 4
    token = t(index).long()
    weight = probs[token, experts]
    out = torch.zeros(5, rows.shape[1], dtype=torch.float64)
    return out.index_add(0, token, rows * weight[:, None]), weight


def rows_by_map(a):
    """Megatron's permute: sorted by whether the expert takes them, cut to its capacity."""
    x, probs, taken = t(a["tokens"]), t(a["probsOptional"]), t(a["routingMap"]).T
    if not a["dropAndPad"]:
        return x[taken.nonzero()[:, 1]], probs.T[taken]
    order = taken.int().sort(descending=True, stable=True, dim=1).indices
    at = order[:, : a["numOutTokens"] // len(taken)]
    return x[at.flatten()], probs.T.gather(1, at).flatten(), at.flatten()


def unpermuted_by_map(rows, probs, a, index):
    """Each token's rows times its weights, one after the other."""
    taken, out = t(a["routingMapOptional"]), torch.zeros(5, 7, dtype=torch.float64)
    for k, (token, expert) in enumerate(taken.nonzero().tolist()):
        out[token] += rows[int(index[k])] * probs[token, expert]
    return out, probs[taken]


def unpermute_by_map(a):
    rows, probs, index = t(a["permutedTokens"]), t(a["probsOptional"]), a["sortedIndices"]
    if a["paddedMode"]:
        out, kept = padded(rows, probs, a, index)
        return out, *reversed(torch.sort(t(index), stable=True)), kept
    out, kept = unpermuted_by_map(rows, probs, a, index)
    return out, t(index), t(a["routingMapOptional"]).nonzero()[:, 0], kept


def padded_gradients(a):
    if not a["dropAndPad"]:
        return autograd(lambda x, p: unpermuted_by_map(x, p, a, a["outIndex"])[0],
                        a["permutedTokensOptional"], a["probsOptional"],
                        flow=a["unpermutedTokensGrad"])  # fmt: skip
    index = np.empty(12, np.int64)
    index[a["outIndex"]] = a["permuteTokenId"]
    return autograd(lambda x, p: padded(x, p, a, index)[0], a["permutedTokensOptional"],
                    a["probsOptional"], flow=a["unpermutedTokensGrad"])  # fmt: skip


def gated(a):
    """A group's worth is its best score, or the sum of its two best; only the best groups count."""
    x, n = t(a["x"]), a["groupCount"]
    score = x.sigmoid() if a["normType"] == 1 else x.softmax(-1)
    steer = score if a["biasOptional"] is None else score + t(a["biasOptional"])
    worth = steer.unflatten(-1, (n, -1)).topk(2 if a["groupSelectMode"] else 1).values.sum(-1)
    last = worth.topk(a["kGroup"]).values[:, -1:]
    shut = (worth < last).repeat_interleave(x.shape[-1] // n, -1)
    at = steer.masked_fill(shut, -torch.inf).topk(a["k"]).indices
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


def groups(a):
    sizes = torch.diff(t(a["groupList"]), prepend=torch.tensor([0])).tolist()
    return [part.split(sizes) for part in (t(a["x"]).double(), t(a["xScale"]))], sizes


def swiglu_groups(a):
    (xs, scales), _ = groups(a)
    parts = []
    for x, w, column, row in zip(xs, t(a["weight"]), t(a["weightScale"]), scales, strict=True):
        gate, value = ((x @ w.double()) * column * row[:, None]).chunk(2, -1)
        parts.append(F.silu(gate) * value)
    y = torch.cat(parts)
    scale = y.abs().amax(-1) / 127
    return y / scale[:, None], scale


def finalised(a):
    sizes = a["groupList"].tolist()
    rows = torch.cat([x.double() @ w.double() * s for x, w, s in zip(
        t(a["x1"]).split(sizes), t(a["x2"]), t(a["scale"]), strict=True)])  # fmt: skip
    rows = rows * t(a["pertokenScaleOptional"])[:, None] * t(a["logit"])[:, None]
    out = rows[torch.sort(t(a["rowIndex"]), stable=True).indices].unflatten(0, (-1, 2)).sum(1)
    at = a["sharedInputOffset"]
    out[at : at + 2] += a["sharedInputWeight"] * t(a["sharedInput"])
    return out


def delta_rule(a):
    """S (I - beta k k^T) a + beta v k^T, in whole matrices."""
    states, out, begin = t(a["stateRef"]).clone(), t(a["value"]).clone(), 0
    for b, length in enumerate(a["actualSeqLengths"]):
        accepted = 1 if a["numAcceptedTokens"] is None else int(a["numAcceptedTokens"][b])
        s = states[int(a["ssmStateIndices"][begin + accepted - 1])]
        for i in range(begin, begin + int(length)):
            new = []
            for n in range(4):
                k, beta = t(a["key"])[i, n // 2][:, None], float(a["beta"][i, n])
                keep = torch.eye(16).double() - beta * k @ k.T
                own = 1 if a.get("gk") is None else t(a["gk"])[i, n].exp()
                new.append(float(np.exp(a["g"][i, n])) * (s[n] * own) @ keep
                           + beta * t(a["value"])[i, n][:, None] @ k.T)  # fmt: skip
                out[i, n] = new[-1] @ t(a["query"])[i, n // 2] * a["scaleValue"]
            s = torch.stack(new)
            states[int(a["ssmStateIndices"][i])] = s
        begin += int(length)
    return out, states


def ring(a):
    """By the logarithms of the sums."""
    tops, sums = ([t(a[p + n]) for p in ("prev", "cur")] for n in ("SoftmaxMax", "SoftmaxSum"))
    logs = torch.stack([m + s.log() for m, s in zip(tops, sums, strict=True)])
    share = torch.softmax(logs, 0)[..., :1]
    flows = torch.stack([t(a["prevAttnOut"]), t(a["curAttnOut"])])
    if a["inputLayoutOptional"] == "SBH":
        share = share.permute(0, 3, 1, 2, 4)
        flows = flows.unflatten(-1, (share.shape[3], -1))
    out = (flows * share).sum(0).reshape(a["prevAttnOut"].shape)
    return out, torch.maximum(*tops), (logs.logsumexp(0) - torch.maximum(*tops)).exp()


def cached(a):
    latent = F.rms_norm(t(a["kv"])[..., :512], (512,), t(a["gamma"]), a["epsilon"])
    k = t(a["kv"])[..., 512:].unflatten(-1, (32, 2)).transpose(-1, -2).flatten(-2)
    one, two = k.chunk(2, -1)
    rope = k * t(a["cos"]) + torch.cat([-two, one], -1) * t(a["sin"])
    caches = []
    for name, rows in (("kCacheRef", rope), ("ckvCacheRef", latent)):
        own = {"kCacheRef": "kRope", "ckvCacheRef": "cKv"}[name]
        new, scale = t(a[name]).double().clone(), a.get(f"{own}ScaleOptional")
        mode, index = a["cacheModeOptional"], a["index"]
        for n, row in enumerate(rows.reshape(-1, rows.shape[-1])):
            if scale is not None:
                row = (row * t(scale) + t(a[f"{own}OffsetOptional"])).clamp(-128, 127)
            if mode == "Norm":
                new[n // 2, 0, int(index[n // 2, n % 2])] = row
                continue
            if "BLK" in mode:
                batch, token = divmod(n, 18)
                slot = int(index[2 * batch + token // 16]) // 16 * 16 + token % 16
            else:
                slot = int(index[n])
            if slot < 0:
                continue
            page, at = divmod(slot, 16)
            if mode == "PA_NZ":
                new[page].view(-1, 16, 16)[:, at] = row.view(-1, 16)
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
            whole = torch.cat([whole, torch.zeros(9, 2, 16)])
            first = 0 if a["seqOffsetOptional"] is None else int(a["seqOffsetOptional"][b])
            rows.append(whole[first : first + int(n)])
        outs.append(torch.cat(rows))
    return outs


def normed(a):
    y = F.rms_norm(t(a["x1"]) + t(a["x2"]), (64,), t(a["gamma"]), a["epsilon"])
    return y if a["betaOptional"] is None else y + t(a["betaOptional"])


def by_scale(y):
    scale = y.abs().amax(-1) / 127
    return y / scale[..., None], scale


def normed_dynamic(a):
    one, two = (by_scale(normed(a) * t(a[f"smoothScale{n}Optional"])) for n in (1, 2))
    return one[0], two[0], t(a["x1"]) + t(a["x2"]), one[1], two[1]


def synchronised(a):
    """Statistics of numbers that have just these means and deviations."""
    parts = []
    for mean, inv, n in zip(t(a["mean"]), t(a["invstd"]), a["counts"], strict=True):
        unit = torch.linspace(-1, 1, int(n)).double()
        unit = (unit - unit.mean()) / unit.std(correction=0)
        parts.append(mean + unit[:, None] * (1 / inv**2 - a["eps"]).sqrt())
    mean, var = t(a["runningMean"]).clone(), t(a["runningVar"]).clone()
    _, whole, inv = torch.native_batch_norm(torch.cat(parts), None, None, mean, var, True,
                                            a["momentum"], a["eps"])  # fmt: skip
    return whole, inv, mean, var


def elementwise(a):
    def shaped(v):
        return t(v)[:, None]

    n = float(a["counter"].sum())
    flow = t(a["gradOut"]) - shaped(a["sumDy"]) / n
    flow = flow - (t(a["input"]) - shaped(a["mean"])) * shaped(a["invstd"] ** 2 * a["sumDyXmu"]) / n
    return flow * shaped(a["invstd"] * a["weight"])


def reduced(a):
    hat = (t(a["input"]) - t(a["mean"])[:, None]) * t(a["invstd"])[:, None]
    weight, bias = autograd(lambda w, b: hat * w[:, None] + b[:, None], np.ones(3), np.zeros(3),
                            flow=a["gradOut"])  # fmt: skip
    return bias, weight / t(a["invstd"]), weight, bias


def chamfer(a):
    def distances(one, two):
        def near(x, y, at):
            return ((x - y.gather(1, t(at).long()[..., None].expand(-1, -1, 2))) ** 2).sum(-1)

        return near(one, two, a["idx1"]), near(two, one, a["idx2"])

    return autograd(distances, a["xyz1"], a["xyz2"], flow=[a["gradDist1"], a["gradDist2"]])


def sinkhorn(a):
    k = t(a["cost"]).exp()
    d0, d1, gap = torch.ones(9).double(), torch.ones(4).double(), 1.0
    while gap > a["tol"]:
        d0 = (1 / 9) / ((d1 * k).sum(1) + 1e-8)
        new = (1 / 4) / ((d0[:, None] * k).sum(0) + 1e-8)
        gap, d1 = float((d1 - new).abs().mean()), new
    return d1 * k * d0[:, None]


def interpolated(x, a):
    rows = x[..., 0].gather(2, t(a["idx"]).long().flatten(1)[:, None].expand(-1, 3, -1))
    return (rows.unflatten(2, (4, 3)) * t(a["weight"])[:, None]).sum(-1, keepdim=True)


def signs(a):
    bits = (np.append(a["self"], [-1] * (-a["self"].size % 8)) >= 0).reshape(-1, 8)
    return torch.tensor([sum(1 << i for i in range(8) if row[i]) for row in bits])


def blocks(x, weight, ends):
    """Sequences' windows through torch's unfold."""
    outs = []
    for part in x.split(np.diff(ends, prepend=0).tolist()):
        if len(part) >= 32:
            seen = part.unfold(0, 32, 16)  # [blocks, N, D, 32]
            outs.append(torch.einsum("bndw,wn->bnd", seen, weight))
    return torch.cat(outs)


def cross_entropy_grad(a):
    logits = t(a["logProb"]).clone()
    logits.requires_grad_()
    # Rows of logarithms that do not sum to 1: nll of them, whose log_softmax' derivative takes the
    # given ones as its result.
    weight = torch.ones(logits.shape[1], dtype=torch.float64)
    if a["weightOptional"] is not None:
        weight = t(a["weightOptional"])
    target, mean = t(a["target"]), a["reductionOptional"] == "mean"
    hard = F.nll_loss(logits, target, weight, reduction="none", ignore_index=a["ignoreIndex"])
    kept = target != a["ignoreIndex"]
    spread = -(logits * weight).mean(1) * kept
    loss = (1 - a["labelSmoothing"]) * hard + a["labelSmoothing"] * spread
    if mean:
        loss = loss.sum() / (weight[target] * kept).sum()
    elif a["reductionOptional"] == "sum":
        loss = loss.sum()
    flow = torch.autograd.grad(loss, logits, t(a["gradLoss"]))[0]
    return torch.ops.aten._log_softmax_backward_data(flow, t(a["logProb"]), 1, torch.float64)


def adapted(a):
    own = [None if a[n] is None else t(a[n]) for n in ("weightOptional", "biasOptional")]
    y = F.layer_norm(t(a["x"]), (64,), *own, a["epsilon"]) * (1 + t(a["scale"])) + t(a["shift"])
    return by_scale(y if a["smoothScalesOptional"] is None else y * t(a["smoothScalesOptional"]))


def cell(gates, cx):
    i, f, g, o = gates.chunk(4, -1)
    new = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh(), new


def one_cell(a):
    gates = t(a["inputGates"]) + t(a["hiddenGates"])
    for name in ("inputBiasOptional", "hiddenBiasOptional"):
        gates = gates if a[name] is None else gates + t(a[name])
    i, f, g, o = gates.chunk(4, -1)
    return *cell(gates, t(a["cx"])), torch.cat(
        [i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], -1
    )


def cell_gradients(a):
    i, f, g, o = t(a["storage"]).chunk(4, -1)
    gates = torch.cat([torch.logit(i), torch.logit(f), torch.atanh(g), torch.logit(o)], -1)
    flows = [a["gradHyOptional"], np.zeros((3, 16)) if a["gradCOptional"] is None
             else a["gradCOptional"]]  # fmt: skip
    dgates, dcx = autograd(cell, gates.numpy(), a["cx"], flow=flows)
    return dgates, dcx, dgates.sum(0)


def lstm(a):
    net = torch.nn.LSTM(6, 8, a["numLayers"], bias=a["hasBias"], batch_first=a["batchFirst"],
                        bidirectional=a["bidirectional"]).double().eval()  # fmt: skip
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        y, (h, c) = net(t(a["input"]), tuple(t(a["hx"])))
    return y, h, c


def quantised_norm(a):
    y = t(a["x1"]).double() @ t(a["x2"]).double()
    y = (y if a["bias"] is None else y + t(a["bias"])) * t(a["dequantScale"])
    total = y.reshape(a["residual"].shape) + t(a["residual"])
    return total, F.rms_norm(total, (6,), t(a["gamma"]), a["epsilon"])


def combined_norm(a):
    flat = t(a["expertIds"]).flatten()
    slots = torch.argsort(torch.argsort(flat, stable=True))
    rows = t(a["expandX"])[slots] * t(a["expertScales"]).flatten()[:, None]
    x = rows.unflatten(0, (4, 2)).sum(1)[:, None] + t(a["residualX"])
    rstd = (x.square().mean(-1, keepdim=True) + a["normEps"]).rsqrt()
    return F.rms_norm(x, (32,), t(a["gamma"]), a["normEps"]), rstd, x


ROUTED = {
    "aclnnNsaCompress": lambda a: blocks(
        t(a["input"]), t(a["weight"]), a["actSeqLenOptional"]),
    "aclnnNsaCompressGrad": lambda a: autograd(
        lambda x, w: blocks(x, w, a["actSeqLenOptionalOptional"]), a["input"], a["weight"],
        flow=a["outputGrad"]),
    "aclnnCrossEntropyLossGrad": cross_entropy_grad,
    "aclnnAdaLayerNormQuant": adapted,
    "aclnnThnnFusedLstmCell": one_cell,
    "aclnnThnnFusedLstmCellBackward": cell_gradients,
    "aclnnLSTM": lstm,
    "aclnnQuantMatmulAllReduceAddRmsNorm": quantised_norm,
    "aclnnMoeDistributeCombineAddRmsNorm": combined_norm,
    "aclnnAllGatherAdd": lambda a: (torch.add(t(a["a"]), t(a["b"])), t(a["a"])),
    "aclnnFlashAttentionVarLenScore": packed_forward,
    "aclnnFlashAttentionVarLenScoreV3": packed_forward,
    "aclnnFlashAttentionUnpaddingScoreGrad": packed_backward,
    "aclnnFlashAttentionUnpaddingScoreGradV3": packed_backward_rope,
    "aclnnMoeInitRoutingQuant": lambda a: expanded(a) * a["scale"] + a["offset"],
    "aclnnMoeTokenPermuteWithEp": permuted,
    "aclnnMoeTokenPermuteWithEpGrad": lambda a: autograd(
        lambda x, p: (held_here(a) @ x.repeat_interleave(2, 0), held_here(a) @ p.flatten()),
        np.zeros((5, 7)), np.zeros((5, 2)), flow=[
            a["permutedTokensOutputGrad"], a["permutedProbsOutputGradOptional"]]),
    "aclnnMoeTokenUnpermuteWithEp": lambda a: unpermuted(
        t(a["permutedTokens"]), t(a["probsOptional"]), a),
    "aclnnMoeTokenUnpermuteWithEpGrad": lambda a: autograd(
        lambda x, p: unpermuted(x, p, a), a["permutedTokensOptional"], a["probsOptional"],
        flow=a["unpermutedTokensGrad"]),
    "aclnnMoeTokenPermuteWithRoutingMapGrad": lambda a: autograd(
        lambda x, p: by_map(x, p, a), np.zeros((5, 7)), np.zeros((5, 3)), flow=[
            a["permutedTokenOutputGrad"], a["permutedProbsOutputGradOptional"]]),
    "aclnnMoeTokenPermuteWithRoutingMap": rows_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMap": unpermute_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMapGrad": padded_gradients,
    "aclnnMoeGatingTopK": gated,
    "aclnnMoeGatingTopKBackward": gate_backward,
    **dict.fromkeys(("aclnnGroupedBiasAddGrad", "aclnnGroupedBiasAddGradV2"), lambda a: autograd(
        lambda b: b.repeat_interleave(torch.tensor([4, 5, 3]), 0) if a["gradY"].ndim == 2
        else b[:, None].expand(-1, 5, -1), np.zeros((3, 9)), flow=a["gradY"])),
    "aclnnGroupedMatmulAdd": lambda a: t(a["yRef"]) + torch.stack([
        torch.einsum("mk,mn->kn", x, w) for x, w in zip(
            t(a["x"]).split([4, 5, 3]), t(a["weight"]).split([4, 5, 3]), strict=True)]),
    "aclnnGroupedMatmulSwigluQuant": swiglu_groups,
    "aclnnGroupedMatmulFinalizeRoutingWeightNzV2": finalised,
    "aclnnRecurrentGatedDeltaRule": delta_rule,
    "aclnnRingAttentionUpdateV2": ring,
    "aclnnKvRmsNormRopeCache": cached,
    "aclnnGatherPaKvCache": pages,
    "aclnnAddRmsNormQuantV2": lambda a: (
        normed(a) / t(a["scales1"]) + t(a["zeroPoints1Optional"]), None, t(a["x1"]) + t(a["x2"])),
    "aclnnAddRmsNormDynamicQuantV2": normed_dynamic,
    "aclnnBatchNormGatherStatsWithCounts": synchronised,
    "aclnnBatchNormReduceBackward": reduced,
    "aclnnBatchNormElemtBackward": elementwise,
    "aclnnScale": lambda a: torch.einsum("abcd,b->abcd", t(a["x"]), t(a["scale"]))
    + t(a["bias"])[:, None, None] if a["numAxes"] == 1 else torch.einsum(
        "abcd,bc->abcd", t(a["x"]), t(a["scale"])),
    "aclnnSignBitsPack": signs,
    "aclnnSignBitsUnpack": lambda a: torch.tensor([
        1.0 if int(byte) >> i & 1 else -1.0 for byte in a["self"] for i in range(8)]),
    "aclnnChamferDistanceBackward": chamfer,
    "aclnnSinkhorn": sinkhorn,
    "aclnnMaskedSoftmaxWithRelPosBias": lambda a: F.softmax(
        t(a["x"]) * a["scaleValue"] + t(a["relativePosBias"])
        + (0 if a["attenMaskOptional"] is None else t(a["attenMaskOptional"])), -1),
    "aclnnThreeInterpolateBackward": lambda a: autograd(
        lambda x: interpolated(x, a), np.zeros((2, 3, 5, 1)), flow=a["grad_x"]),
    "aclnnMaxUnpool3d": lambda a: F.max_unpool3d(
        t(a["self"]), t(a["indices"]), (1, 2, 2), (1, 2, 2), 0, (1, 2, 1, 4, 4)),
    "aclnnMaxUnpool3dBackward": lambda a: autograd(
        lambda x: F.max_unpool3d(x, t(a["indices"]), (1, 2, 2), (1, 2, 2), 0, (1, 2, 1, 4, 4)),
        a["self"], flow=a["gradOutput"]),
    "aclnnBatchMatmulQuant": lambda a: torch.bmm(t(a["x1"]), t(a["x2"])) * 10.0,
}  # fmt: skip
