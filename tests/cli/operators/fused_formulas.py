"""What torch's own words give for collectives of one rank, prologs, windows and sequences."""

from __future__ import annotations

import torch
from test_references import F, t


def plus(y, a, *names):
    for name in names:
        y = y if a.get(name) is None else y + t(a[name])
    return y


def mm(a, left="x1", right="x2"):
    return torch.matmul(t(a[left]).double(), t(a[right]).double())


def product(*more):
    return lambda a: plus(mm(a), a, *more)


def with_norm(a):
    total = plus(mm(a), a, "bias").reshape(a["residual"].shape) + t(a["residual"])
    gamma = t(a["gamma"])
    return total, F.rms_norm(total, gamma.shape, gamma, a["epsilon"])


def quantised(bias, third):
    def formula(a):
        y = plus(mm(a), a, bias) * t(a["dequantScale"])
        if a.get("pertokenScaleOptional") is not None and third == "x3Optional":
            y = torch.diag(t(a["pertokenScaleOptional"])) @ y
        return plus(y, a, third)

    return formula


def dispatched(a):
    ids = t(a["expertIds"])
    rows, ends, place = [], [], torch.zeros(ids.numel(), dtype=torch.long)
    for expert in range(3):
        at = (ids.reshape(-1) == expert).nonzero()[:, 0]
        rows += [t(a["x"])[i // ids.shape[1]] for i in at]
        place[at] = torch.arange(len(at))
        ends.append(len(rows))
    ends = torch.tensor(ends)
    numbers = ends.diff(prepend=torch.tensor([0])) if a["expertTokenNumsType"] else ends
    return torch.stack(rows), place, numbers, ends


def combined(a):
    flat, out = t(a["expertIds"]).reshape(-1), torch.zeros(4, 32, dtype=torch.float64)
    weights = t(a["expertScales"]).reshape(-1)
    for row, at in enumerate(sorted(range(len(flat)), key=lambda i: (int(flat[i]), i))):
        out[at // 2] += weights[at] * t(a["expandX"])[row]
    return plus(out, a, "sharedExpertXOptional")


def neighbours(x, cos, sin):
    x = x.reshape(*x.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def prolog(a):
    x = t(a["tokenX"])
    low = F.rms_norm(x @ t(a["weightDq"]), (12,), t(a["rmsnormGammaCq"]), a["rmsnormEpsilonCq"])
    low = low * a.get("qcQrScale", 1.0)
    q = (low @ t(a["weightUqQr"])).unflatten(-1, (2, 12))
    nope = torch.stack([q[..., n, :8] @ t(a["weightUk"])[n] for n in range(2)], -2)
    cos, sin = t(a["ropeCos"]), t(a["ropeSin"])
    kv = x @ t(a["weightDkvKr"])
    latent = F.rms_norm(kv[..., :16], (16,), t(a["rmsnormGammaCkv"]), a["rmsnormEpsilonCkv"])
    caches = []
    at = a["cacheIndexOptional"] if a.get("cacheIndexOptional") is not None else a["cacheIndex"]
    for name, rows in (("kvCacheRef", latent * a.get("kcScale", 1.0)),
                       ("krCacheRef", neighbours(kv[..., 16:], cos, sin))):  # fmt: skip
        cache = t(a[name]).clone()
        cache.view(-1, cache.shape[-1])[t(at).reshape(-1)] = rows.reshape(-1, cache.shape[-1])
        caches.append(cache)
    return nope, neighbours(q[..., 8:], cos[..., None, :], sin[..., None, :]), *caches


def cached(a):
    x, cos, sin = t(a["x"]), t(a["cos"]), t(a["sin"])

    def turn(v):
        one, two = v.chunk(2, -1)
        return torch.cat([one * cos[..., :4] - two * sin[..., :4],
                          two * cos[..., 4:] + one * sin[..., 4:]], -1)  # fmt: skip

    q, k, v = x.split(list(a["sizeSplits"]), -1)
    q, k, v = turn(q.unflatten(-1, (2, 8))), turn(k.unflatten(-1, (1, 8))), v.unflatten(-1, (1, 8))
    caches = []
    for cache, rows, part in (("kCacheRef", k, "K"), ("vCacheRef", v, "V")):
        new = t(a[cache]).double()
        steps = plus(rows * t(a["scale" + part]), a, f"offset{part}Optional")
        slots = new.flatten(0, 1)
        for i, step in enumerate(steps.flatten(0, 1)):
            b, s = divmod(i, x.shape[1])
            page = a["cacheModeOptional"] == "page"
            slots[int(a["indices"][i] if page else b * 6 + a["indices"][b] + s)] = step
        caches.append(new)
    return q, k, v, *caches


def unpacked(words):
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


def window_scores(a):
    score = plus(mm({**a, "key": a["key"].swapaxes(-1, -2)}, "query", "key"), a,
                 "biasDequant1Optional") * unpacked(a["scaleDequant1"])  # fmt: skip
    score = plus(score, a, "paddingMask1Optional", "paddingMask2Optional").softmax(-1)
    steps = plus(score * t(a["scaleQuant"]), a, "biasQuantOptional").round().clamp(-128, 127)
    return plus(steps @ t(a["value"]).double(), a, "biasDequant2Optional") * unpacked(
        a["scaleDequant2"])  # fmt: skip


def window_projection(a):
    n = a["headNum"]
    y = F.layer_norm(t(a["x"]), (32 * n,), t(a["gamma"]), t(a["beta"]), a["epsilon"])
    steps = (y * t(a["quantScale"]) + t(a["quantOffset"])).round().clamp(-128, 127)
    w = t(a["weight"]).double()
    y = (steps @ (w.T if a["weightTranspose"] else w) + t(a["bias"])) * unpacked(a["dequantScale"])
    image = y.reshape(2, a["oriHeight"], a["oriWeight"], -1)
    windows = torch.cat([image[b : b + 1, i : i + 2, j : j + 2] for b in range(2)
                         for i in range(0, image.shape[1], 2)
                         for j in range(0, image.shape[2], 2)])  # fmt: skip
    parts = windows.reshape(len(windows), 4, -1).split(32 * n, -1)
    return [part.unflatten(-1, (n, 32)).transpose(1, 2) for part in parts]


def first_weight(a):
    w = t(a["x2"]).double()
    w = (w.T if a["transposeX2"] else w) * 0.5 + 1.0  # (x + 2) / 2
    x = t(a["x1"]).T if a["transposeX1"] else t(a["x1"])
    return plus(x @ ((w + t(a["addOffset"])) * t(a["mulScale"])), a, "bias")


def compared(a):
    one, two = (t(a[k]).view(torch.int64) for k in ("golden", "realdata"))
    return torch.tensor(0 if torch.equal(one, two) else 503)


def convolved(a):
    x, states, w = t(a["x"]), t(a["convStates"]).clone(), t(a["weight"])
    y = x.clone()
    for b, (begin, end) in enumerate(((0, 4), (4, 7))):
        slot, fresh = int(a["cacheIndices"][b]), a.get("initialStateMode") is not None
        fresh = fresh and not a["initialStateMode"][b]
        before = torch.zeros(2, 6, dtype=x.dtype) if fresh else states[slot]
        rows = torch.cat([before, x[begin:end]])
        kept = min(states.shape[1], len(rows))
        tail = rows[-(end - begin) - 2 :].T[None]
        bias = None if a.get("bias") is None else t(a["bias"])
        out = F.conv1d(tail, w.T[:, None], bias, groups=6)[0].T
        states[slot, states.shape[1] - kept :] = rows[-kept:]
        out = F.silu(out) if a["activationMode"] else out
        y[begin:end] = out + x[begin:end] if a["residualConnection"] else out
    return y, states


def sampled(a):
    tokens, kept = [], torch.full(a["logits"].shape, -torch.inf, dtype=torch.float64)
    for r, row in enumerate(t(a["logits"])):
        many = int(a["topK"][r]) or len(row)
        best, at = torch.sort(row, descending=True, stable=True)
        p = best[:many].softmax(-1)
        inside = torch.cat([torch.zeros(1), p.cumsum(-1)[:-1]]) < float(a["topP"][r])
        inside |= float(a["topP"][r]) >= 1
        inside[0] = True
        p, at = p[inside], at[:many][inside]
        if a.get("minPs") is not None and a["minPs"][r] > 0:
            p, at = p[p >= p[0] * a["minPs"][r]], at[p >= p[0] * a["minPs"][r]]
        kept[r, at] = row[at]
        q = 1 if a.get("q") is None else t(a["q"])[r, : len(p)] + a["eps"]
        tokens.append(at[(p / q).argmax()])
    return torch.stack(tokens), kept


def finalised(a):
    out = torch.zeros(4, 5, dtype=torch.float64)
    x, rows = t(a["xOptional"]), t(a["expandedX"]).flatten(0, -2)
    for token in range(4):
        for k in range(2):
            expert = int(a["expertIdxOptional"][token, k])
            slot = int(a["expandedRowIdx"][k * 4 + token if a["dropPadMode"] < 2
                                           else token * 2 + k])  # fmt: skip
            row = rows[slot] if slot >= 0 else torch.zeros_like(rows[0])
            if a.get("biasOptional") is not None:
                row = row + t(a["biasOptional"])[expert]
            if expert in range(*a["zeroExpertRange"]):
                row = torch.zeros_like(row)
            elif expert in range(*a["copyExpertRange"]):
                row = x[token]
            elif expert in range(*a["constantExpertRange"]):
                a1, a2, v = (t(a[f"{n}Optional"])[expert - a["constantExpertRange"][0]]
                             for n in ("a1", "a2", "v"))  # fmt: skip
                row = a1 * x[token] + a2 * v
            out[token] += a["scalesOptional"][token, k] * row
    return plus(out, a, "x1Optional")


FUSED = {
    "aclnnMatmulAllReduce": product("bias"),
    "aclnnMatmulAllReduceV2": product("bias", "x3"),
    "aclnnMatmulReduceScatter": product("bias"),
    "aclnnAllGatherMatmul": lambda a: (product("bias")(a), t(a["x1"])),
    "aclnnAlltoAllMatmul": lambda a: (product("biasOptional")(a), t(a["x1"])),
    "aclnnMatmulAlltoAll": product("biasOptional"),
    "aclnnMatmulAllReduceAddRmsNorm": with_norm,
    "aclnnQuantMatmulAllReduce": quantised("bias", "x3"),
    "aclnnQuantMatmulAllReduceV2": quantised("biasOptional", "x3Optional"),
    "aclnnWeightQuantMatmulAllReduce": lambda a: plus(
        t(a["x1"]) @ (plus(t(a["x2"]).double(), a, "antiquantOffset") * t(a["antiquantScale"])), a,
        "bias", "x3"),
    "aclnnDistributeBarrier": lambda a: t(a["xRef"]),
    "aclnnMoeDistributeDispatch": dispatched,
    "aclnnMoeDistributeDispatchV2": lambda a: tuple(dispatched(a)[i] for i in (0, 2, 3)),
    "aclnnMoeDistributeCombine": combined,
    "aclnnMoeDistributeCombineV2": combined,
    "aclnnMlaProlog": prolog,
    "aclnnMlaPrologV3WeightNz": prolog,
    "aclnnDequantRopeQuantKvcache": cached,
    "aclnnSwinAttentionScoreQuant": window_scores,
    "aclnnSwinTransformerLnQkvQuant": window_projection,
    "aclnnWeightQuantBatchMatmul": first_weight,
    "aclnnPrecisionCompare": compared,
    "aclnnFusedCausalConv1d": convolved,
    "aclnnTopKTopPSample": sampled,
    "aclnnTopKTopPSampleV2": sampled,
    "aclnnMoeFinalizeRoutingV3": finalised,
}  # fmt: skip
