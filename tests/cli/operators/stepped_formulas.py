"""What torch's own words and autograd give for gates, split losses, caches, regions and steps."""

from __future__ import annotations

import torch
from chosen_formulas import autograd
from test_references import F, t


def fused_top_k(a):
    p = t(a["x"]).sigmoid()
    score = (p + t(a["addNum"])).unflatten(1, (a["groupNum"], -1))
    worth = score.topk(a["topN"], -1).values.sum(-1)
    open_ = torch.zeros_like(worth, dtype=torch.bool)
    open_.scatter_(1, worth.topk(a["groupTopk"], 1).indices, True)
    at = score.masked_fill(~open_[..., None], -torch.inf).flatten(1).topk(a["topK"], 1).indices
    y = p.gather(1, at)
    return (y / y.sum(1, keepdim=True) if a["isNorm"] else y) * a["scale"], at


def bits(words, count):
    return (t(words).int()[:, None] >> torch.arange(7, -1, -1) & 1).flatten()[:count].double()


def cross_entropy_grads(a):
    x, w, g = t(a["input"]), t(a["weight"]), t(a["grad"])
    if a["softmaxOptional"] is not None:
        p = t(a["softmaxOptional"])
    else:
        p = (x @ w.T - t(a["logitsMaxOptional"])[:, None]).exp()
        p = p / t(a["sumExpLogitsOptional"])[:, None]
    own = F.one_hot(t(a["maskedTarget"]), len(w)) * (1 - bits(a["targetMask"], len(x)))[:, None]
    flow = (p - own) * g[:, None]
    return autograd(lambda u, v: u @ v.T, a["input"], a["weight"], flow=flow.numpy())


def parted_sums(a):
    logits, target = t(a["vocabParallelLogits"]), t(a["target"]).long()
    shifted = logits - t(a["globalLogitsMax"])[:, None]
    own = (target >= a["vocabStartIndex"]) & (target < a["vocabEndIndex"])
    offset = (target - a["vocabStartIndex"]) * own
    predicted = shifted.gather(1, offset[:, None])[:, 0] * own
    return predicted, shifted.exp().sum(1), shifted.exp(), offset, ~own


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
            new = (new / t(scale) + t(a[f"{name}OffsetOptional"])).clamp(-128, 127)
        flat[t(a["index"])[keep]] = new[keep]
        wide = a[f"{name}Cache"].shape[3]
        pages = flat.unflatten(1, (-1, wide)).unflatten(0, (2, -1)).transpose(1, 2)
        caches.append(pages.contiguous())
    return q, *caches, q, k, v


def partial_grad(a):
    n = a["cos"].shape[-1]
    begin, end = a["partialSlice"]

    def turn(x):
        part = x[..., begin:end]
        if a["rotaryMode"]:
            pairs = part.unflatten(-1, (-1, 2))
            other = torch.stack([-pairs[..., 1], pairs[..., 0]], -1).flatten(-2)
        else:
            other = torch.cat([-part[..., n // 2 :], part[..., : n // 2]], -1)
        middle = part * t(a["cos"]) + other * t(a["sin"])
        return torch.cat([x[..., :begin], middle, x[..., end:]], -1)

    return autograd(turn, a["dyRef"], flow=a["dyRef"])


def sinkhorn_grad(a):
    """Through the same divisions, of logits whose softmax the first norms are."""
    rounds = len(a["sumOut"]) // 2
    logits = (t(a["normOut"])[0].movedim(-1, 0) - 1e-6).log()

    def forward(x):
        y = x.softmax(-1) + 1e-6
        for axis in (-2, *(-1, -2) * (rounds - 1)):
            y = y / (y.sum(axis, keepdim=True) + 1e-6)
        return y

    return autograd(forward, logits.numpy(), flow=a["gradOutput"])


def rms_grad(a):
    """The statistic is what was kept: its square is one over the mean square and a constant."""
    rstd = t(a["rstd"])
    extra = rstd**-2 - t(a["x"]).square().mean(-1, keepdim=True)

    def norm(x, gamma):
        return x * (x.square().mean(-1, keepdim=True) + extra).rsqrt() * gamma

    dx, dgamma = autograd(norm, a["x"], a["gamma"], flow=a["dy"])
    y = dx / t(a["scalesX"]) if a["divMode"] else dx * t(a["scalesX"])
    return y if a["offsetXOptional"] is None else y + t(a["offsetXOptional"]), dgamma


def adam_w(a):
    """torch's own step, from the second one on."""
    var = torch.nn.Parameter(t(a["varRef"]))
    one = {k: float(a[k][0]) for k in ("lr", "beta1", "beta2", "eps", "weightDecay")}
    optimizer = torch.optim.AdamW([var], one["lr"], (one["beta1"], one["beta2"]), one["eps"],
                                  one["weightDecay"], maximize=a["maximize"],
                                  foreach=False)  # fmt: skip
    optimizer.state[var] = {"step": torch.tensor(2.0), "exp_avg": t(a["mRef"]),
                            "exp_avg_sq": t(a["vRef"])}  # fmt: skip
    var.grad = t(a["grad"])
    optimizer.step()
    return var, optimizer.state[var]["exp_avg"], optimizer.state[var]["exp_avg_sq"]


def causal(a):
    x, states, y = t(a["x"]), t(a["convStatesRef"]).clone(), []
    starts, length = a["queryStartLocOptional"], a["convStatesRef"].shape[1]
    for b, slot in enumerate(a["cacheIndicesOptional"]):
        new = x[starts[b] : starts[b + 1]]
        rows = torch.cat([states[int(slot)], new])
        seen = rows[len(rows) - len(new) - len(a["weight"]) + 1 :]
        bias = None if a["biasOptional"] is None else t(a["biasOptional"])
        out = F.conv1d(seen.T[None], t(a["weight"]).T[:, None], bias, groups=x.shape[1])[0].T
        y.append(F.silu(out) if a["activation"] == "silu" else out)
        states[int(slot)] = rows[-length:]
    return torch.cat(y), states


def region_maxima(a):
    """Each region cut out and pooled to a size: bins that share pixels are torch's too."""
    outs, places = [], []
    for roi in t(a["rois"]):
        wide, high = a["spatial_scale_w"], a["spatial_scale_h"]
        scaled = roi * torch.tensor([1.0, wide, high, wide, high], dtype=roi.dtype)
        image, left, top, right, bottom = scaled.round().int().tolist()
        piece = t(a["x"])[image, :, top : bottom + 1, left : right + 1]
        y, at = F.adaptive_max_pool2d(piece, (a["pooled_h"], a["pooled_w"]), return_indices=True)
        wide = right - left + 1
        outs.append(y)
        places.append((at // wide + top) * a["x"].shape[3] + at % wide + left)
    return torch.stack(outs), torch.stack(places)


def region_grads(a):
    out = t(a["gradInputRef"]).flatten(2).clone()
    for roi, flow, at in zip(a["rois"], t(a["gradOutput"]), t(a["argmax"]), strict=True):
        out[int(roi[0])].scatter_add_(1, at.flatten(1).long(), flow.flatten(1))
    return out.view(*a["gradInputRef"].shape)


def gated_groups(a):
    first, second = t(a["x"]).chunk(2, -1)
    y = F.silu(first) * second * t(a["weightOptional"])
    parts = y.split(t(a["groupIndexOptional"]).tolist())
    scale = torch.stack([p.abs().max() / (a["dstTypeMax"] or 448) for p in parts])
    return torch.cat([p / s for p, s in zip(parts, scale, strict=True)]), scale, y


def dual_level(a):
    x = t(a["x"]).unflatten(-1, (-1, 512))
    first = x.abs().amax(-1) / 6
    left = (x / first.float()[..., None]).half().double().flatten(-2).unflatten(-1, (-1, 32))
    second = (left.abs().amax(-1).log2().floor() - 2).exp2()
    y = (left / second[..., None]).clamp(-6, 6).flatten(-2)
    return y, first, second.unflatten(-1, (-1, 2))


def other_blocks(a):
    real = t(a["x"]) * t(a["mxscale"]).flatten(-2).repeat_interleave(32, -1)
    top, largest = ((15, 57344.0), (8, 448.0))[a["dstType"] - 35]
    blocks = real.unflatten(-1, (-1, 32)).unflatten(-3, (-1, 32)).abs().amax((-1, -3))
    scale = (blocks.log2().floor() - top).exp2()
    rows = scale.repeat_interleave(32, -2)
    whole = rows.repeat_interleave(32, -1)
    columns = scale.repeat_interleave(32, -1)
    pairs = F.pad(columns, (0, 0, 0, columns.shape[-2] % 2), value=2.0**-127)
    return ((real / whole).clamp(-largest, largest), rows.unflatten(-1, (-1, 2)),
            pairs.unflatten(-2, (-1, 2)).movedim(-2, -1))  # fmt: skip


def scattered(a):
    """torch has a reduction as a word, and takes a number as the source."""
    word = {1: {"reduce": "add"}, 2: {"reduce": "multiply"}}.get(a["reduce"], {})
    source = t(a["src"]) if "src" in a else a["value"]
    return t(a["self"]).scatter(a["dim"], t(a["index"]).long(), source, **word)


STEPPED = {
    "aclnnScatter": scattered,
    "aclnnScatterValue": scattered,
    "aclnnMoeFusedTopk": fused_top_k,
    "aclnnFusedLinearCrossEntropyLossGrad": cross_entropy_grads,
    "aclnnCrossEntropySumExpAndIndexLogit": parted_sums,
    "aclnnQkvRmsNormRopeCache": qkv_cache,
    "aclnnMaxPool2dWithMask": lambda a: F.max_pool2d(
        t(a["self"]), a["kernelSize"], a["stride"], a["padding"]),
    "aclnnInplaceAddV3": lambda a: torch.add(a["self"], t(a["other"]), alpha=a["alpha"]),
    "aclnnInplacePartialRotaryMulGrad": partial_grad,
    "aclnnMhcSinkhornBackward": sinkhorn_grad,
    "aclnnRmsNormGradQuant": rms_grad,
    "aclnnApplyAdamW": adam_w,
    "aclnnCausalConv1dFn": causal,
    "aclnnRoiPoolingWithArgMax": region_maxima,
    "aclnnRoiPoolingGradWithArgMax": region_grads,
    "aclnnSwigluGroupQuant": gated_groups,
    "aclnnDynamicDualLevelMxQuant": dual_level,
    "aclnnMxToBlockMxQuant": other_blocks,
}  # fmt: skip
