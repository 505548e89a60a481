"""What torch gives for attention with its options, and for ONNX's and TensorFlow's operators."""

from __future__ import annotations

import math

import torch
from chosen_formulas import autograd, regions
from test_references import F, t


def split(x, layout, width):
    """[B, N, S, D]; `width` is D."""
    if layout in ("BSH", "SBH"):
        x = x.unflatten(-1, (-1, width))
    if layout == "SBH":
        x = x.transpose(0, 1)
    return x if layout == "BNSD" else x.transpose(1, 2)


def joined(x, layout):
    """The layout of [B, N, S, D]."""
    if layout == "BNSD":
        return x
    x = x.transpose(1, 2) if layout != "SBH" else x.permute(2, 0, 1, 3)
    return x if layout == "BSND" else x.flatten(2)


def visible(a, rows, columns):
    """[Sq, Sk] of a sparse mode: triangles from the upper left, the lower right, or a band."""
    whole, gap = torch.ones(rows, columns, dtype=torch.bool), columns - rows
    mode = a["sparseMode"]
    if mode == 4:
        return whole.tril(gap + a["nextTokens"]).triu(gap - a["preTokens"])
    if mode in (2, 3):
        return whole.tril(0 if mode == 2 else gap)
    if mode == 6:
        first = torch.arange(columns) < torch.tensor(a["prefixOptional"])[:, None, None, None]
        return first | whole.tril(gap)
    mask = a["attenMaskOptional"]
    return whole if mask is None else ~t(mask).bool()


def leaning(a, rows, columns):
    """ALiBi's bias, position by position."""
    first, second = ((a.get(f"{n}StartIdxOptional") or (0,))[0] for n in ("q", "kv"))
    far = torch.tensor([[abs(i + first - j - second) for j in range(columns)]
                        for i in range(rows)], dtype=torch.float64)  # fmt: skip
    slopes = t(a["realShiftOptional"]).reshape(-1, a["headNum"])
    return torch.einsum("bn,ij->bnij", -slopes, far.sqrt() if a["pseType"] == 3 else far)


def flash(a):
    """Shifts are added to scaled scores; type 1 has them scaled too. Dropped weights are those of
    an identity in the values' place."""
    width = a["query"].shape[-1] // (a["headNum"] if a["inputLayout"] in ("BSH", "SBH") else 1)
    q, k, v = (split(t(a[n]), a["inputLayout"], width) for n in ("query", "key", "value"))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    bias = torch.zeros(q.shape[2], k.shape[2], dtype=torch.float64)
    if a["pseType"] > 1 and a["realShiftOptional"] is not None:
        bias = bias + leaning(a, q.shape[2], k.shape[2])
    elif a["realShiftOptional"] is not None:
        bias = t(a["realShiftOptional"]) * (a["scaleValue"] if a["pseType"] == 1 else 1)
    bias = bias.masked_fill(~visible(a, q.shape[2], k.shape[2]), -torch.inf)
    if a["dropMaskOptional"] is None:
        out = F.scaled_dot_product_attention(q, k, v, bias, scale=a["scaleValue"])
    else:
        one = torch.eye(k.shape[2], dtype=torch.float64).expand(*k.shape[:2], -1, -1)
        weights = F.scaled_dot_product_attention(q, k, one, bias, scale=a["scaleValue"])
        bits = t(a["dropMaskOptional"]).flatten()[:, None] >> torch.arange(8) & 1
        bits = bits.flatten()[: weights.numel()].reshape(weights.shape)
        out = (weights * bits / a["keepProb"]) @ v
    scores = q @ k.transpose(-1, -2) * a["scaleValue"] + bias
    if (sink := a.get("sinkOptional")) is not None:  # a column more, without a value
        column = (sink if torch.is_tensor(sink) else t(sink)).reshape(-1, 1, 1)
        scores = torch.cat([scores, column.expand(*scores.shape[:-1], 1)], -1)
        out = scores.softmax(-1)[..., :-1] @ v
    top = scores.amax(-1, keepdim=True)
    total = (scores.logsumexp(-1, keepdim=True) - top).exp()
    eight = (*q.shape[:3], 8)
    return top.expand(eight), total.expand(eight), None, joined(out, a["inputLayout"])


def region_gradients(a):
    """What flows through the samples of regions."""
    blank = torch.zeros(a["inputShape"], dtype=torch.float64)
    return autograd(lambda x: regions({**a, "self": x}), blank, flow=a["gradOutput"])


def images_apart(a):
    """The mean as regions have it; the largest from every sample's four corners."""
    if a["mode"] == "max":
        return torch.stack(
            [
                largest_samples(a, t(box), int(image))
                for box, image in zip(a["rois"], a["batchIndices"], strict=True)
            ]
        )
    boxes = torch.cat([t(a["batchIndices"])[:, None], t(a["rois"])], 1)
    return regions({**a, "boxes": boxes, "aligned": False, "pooledHeight": a["outputHeight"],
                    "pooledWidth": a["outputWidth"]})  # fmt: skip


def largest_samples(a, box, image):
    x, n = t(a["self"])[image], a["samplingRatio"]
    left, top, right, bottom = (box * a["spatialScale"]).tolist()
    steps = []
    for low, high, bins in ((top, bottom, a["outputHeight"]), (left, right, a["outputWidth"])):
        width = max(high - low, 1.0) / bins / n
        steps.append([low + (k + 0.5) * width for k in range(bins * n)])
    samples = torch.zeros(x.shape[0], len(steps[0]), len(steps[1]), dtype=x.dtype)
    for i, row in enumerate(steps[0]):
        for j, column in enumerate(steps[1]):
            corners = [
                (math.floor(row) + p, math.floor(column) + q) for p in (0, 1) for q in (0, 1)
            ]
            shares = [(1 - abs(row - r)) * (1 - abs(column - c)) for r, c in corners]
            samples[:, i, j] = torch.stack([x[:, r, c] * s for (r, c), s in
                                            zip(corners, shares, strict=True)]).amax(0)  # fmt: skip
    return F.max_pool2d(samples[None], n)[0]


def adam(a):
    """torch's first step, its rate and epsilon rid of their own correction of the moments. Nesterov
    momentum decays the mean twice."""
    p, m, v, g = (t(a[n]).clone() for n in ("varRef", "m", "v", "grad"))
    one, two, p1, p2, lr, eps = (float(a[n][0]) for n in (
        "beta1", "beta2", "beta1Power", "beta2Power", "lr", "epsilon"))  # fmt: skip
    if a["useNesterov"]:
        m = m.lerp(g, 1 - one)
    unbiased = (1 - two) ** 0.5
    torch.optim._functional.adam(
        [p], [g], [m], [v], [], [torch.tensor(0.0)], foreach=False, fused=False, amsgrad=False,
        beta1=one, beta2=two, lr=lr * (1 - p2) ** 0.5 / (1 - p1) * (1 - one) / unbiased,
        weight_decay=0.0, eps=eps / unbiased, maximize=False)  # fmt: skip
    return p


def moved(a):
    x = t(a["x"])
    if a["transpose_first"]:
        return x.permute(a["perm"]).reshape(a["shape"])
    return x.reshape(a["shape"]).permute(a["perm"])


def suppressed(a):
    """Corners are whole numbers: boxes are sets of cells of half a step. In order of scores each
    box stays that overlaps none of those before it too much."""
    rows = []
    for image, of_image in enumerate(t(a["scores"])):
        cells = torch.zeros(a["boxes"].shape[1], 192, 192)
        for plane, (x, y, z, w) in zip(cells, t(a["boxes"])[image].int().tolist(), strict=True):
            if a["centerPointBox"]:  # moved, so that none begins below zero
                x, y, z, w = 64 + 2 * x - z, 64 + 2 * y - w, 64 + 2 * x + z, 64 + 2 * y + w
            else:
                x, y, z, w = 2 * x, 2 * y, 2 * z, 2 * w
            plane[min(x, z) : max(x, z), min(y, w) : max(y, w)] = 1
        common = cells.flatten(1) @ cells.flatten(1).T
        union = common.diagonal()[:, None] + common.diagonal() - common
        for kind, of_class in enumerate(of_image):
            kept = []
            for box in of_class.argsort(descending=True).tolist():
                apart = all(common[box, k] <= a["iouThreshold"][0] * union[box, k] for k in kept)
                if apart and of_class[box] > a["scoreThreshold"][0]:
                    kept.append(box)
            rows += [[image, kind, box] for box in kept[: a["maxOutputBoxesPerClass"][0]]]
    return torch.tensor(rows)


def both_ways(a):
    net = torch.nn.LSTM(6, 8, bias=a["isbias"], batch_first=a["batchFirst"],
                        bidirectional=a["bidirection"]).double().eval()  # fmt: skip
    kinds = ("wIh", "wHh", "bIh", "bHh") if a["isbias"] else ("wIh", "wHh")
    ways = ("", "Reverse") if a["bidirection"] else ("",)
    names = [f"{n}{way}Optional" for way in ways for n in kinds]
    names[:2] = "wIh", "wHh"
    with torch.no_grad():
        for own, name in zip(net.parameters(), names, strict=True):
            own.copy_(t(a[name]))
        y, (h, c) = net(t(a["x"]), (t(a["initH"]), t(a["initC"])))
    return y, h, c


def partly_turned(a):
    """Quarter turns of pairs as a matrix."""
    first, last = a["partialSlice"]
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    eye = torch.eye((last - first) // 2, dtype=torch.float64)
    turn = torch.kron(eye, quarter) if a["rotary_mode"] == 1 else torch.kron(quarter, eye)
    left, x, right = t(a["xRef"]).split([first, last - first, a["xRef"].shape[-1] - last], -1)
    return torch.cat([left, x * t(a["cos"]) + (x @ turn) * t(a["sin"]), right], -1)


STATED = {
    "aclnnFlashAttentionScore": flash,
    "aclnnFlashAttentionScoreV2": flash,
    "aclnnFlashAttentionScoreV3": flash,
    "aclnnRoiAlign": images_apart,
    "aclnnRoiAlignV2Backward": region_gradients,
    "aclnnApplyAdam": adam,
    "aclnnConfusionTranspose": moved,
    "aclnnNonMaxSuppression": suppressed,
    "aclnnBidirectionLSTM": both_ways,
    "aclnnInplacePartialRotaryMul": partly_turned,
}
