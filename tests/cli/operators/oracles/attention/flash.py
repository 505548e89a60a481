"""What torch gives for the rows of attention, flash."""

import torch
import torch.nn.functional as F

from .._arguments import t


def through(forward, leaves, flow, place=0, **renamed):
    """Gradients of result `place` of a formula by leaves; `renamed`: what it calls a parameter."""

    def gradients(a):
        tensors = {n: t(a[n]).requires_grad_() for n in leaves if a[n] is not None}
        fed = a | tensors
        out = forward(fed | {own: fed[theirs] for own, theirs in renamed.items()})
        out = out[place] if isinstance(out, tuple) else out
        return torch.autograd.grad(out, list(tensors.values()), t(a[flow]).reshape(out.shape))

    return gradients


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
    return torch.einsum("bn,ij->bnij", -slopes, far.sqrt() if a.get("pseType", 1) == 3 else far)


def flash(a):
    """Shifts are added to scaled scores; type 1 has them scaled too. Dropped weights are those of
    an identity in the values' place."""
    width = a["query"].shape[-1] // (a["headNum"] if a["inputLayout"] in ("BSH", "SBH") else 1)
    q, k, v = (split(t(a[n]), a["inputLayout"], width) for n in ("query", "key", "value"))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    bias = torch.zeros(q.shape[2], k.shape[2], dtype=torch.float64)
    if a.get("pseType", 1) > 1 and a["realShiftOptional"] is not None:
        bias = bias + leaning(a, q.shape[2], k.shape[2])
    elif a["realShiftOptional"] is not None:
        bias = t(a["realShiftOptional"]) * (a["scaleValue"] if a.get("pseType", 1) == 1 else 1)
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
    total = (scores.logsumexp(-1, keepdim=True) - top).exp().nan_to_num(0)
    out = out.masked_fill(top.isneginf(), 0)  # rows that see nothing
    eight = (*q.shape[:3], 8)
    return top.expand(eight), total.expand(eight), None, joined(out, a["inputLayout"])


def attention_gradients(a):
    """By what is added to scores, unless that is slopes, and by a sink too; not of rows that see
    nothing."""
    if flash({**a, "key": a["keyIn"], "realShiftOptional": a["pseShiftOptional"],
              "sinkOptional": a.get("sinkInOptional")})[0].isneginf().any():  # fmt: skip
        return None
    a = {"pseType": 1, **a}
    added = ("pseShiftOptional",) if a.get("pseType", 1) < 2 else ()
    leaves = ("query", "keyIn", "value", *added, *(("sinkInOptional",) if
              a.get("sinkInOptional") is not None else ()))  # fmt: skip
    grads = list(through(flash, leaves, "dy", 3, key="keyIn", realShiftOptional="pseShiftOptional",
                         sinkOptional="sinkInOptional")(a))  # fmt: skip
    sink = grads.pop() if "sinkInOptional" in leaves else None
    shift = grads.pop() if len(grads) == 4 else None
    return (*grads, shift) if "sinkInOptional" not in a else (*grads, shift, sink)


ORACLES = {
    "aclnnFlashAttentionScoreGrad": lambda a: (attention_gradients(a) or (None,))[:4],
    "aclnnFlashAttentionScoreGradV2": attention_gradients,
    "aclnnFlashAttentionScoreGradV3": attention_gradients,
    "aclnnFlashAttentionScoreGradV4": lambda a: (attention_gradients(a) or (None,))[:3],
    "aclnnFlashAttentionScore": flash,
    "aclnnFlashAttentionScoreV2": flash,
    "aclnnFlashAttentionScoreV3": flash,
}
