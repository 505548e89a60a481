"""What torch's autograd gives through attention to chosen keys, pairs of axes, sampled levels."""

from __future__ import annotations

import chosen_formulas as chosen
import torch
from product_formulas import sampled_levels
from stated_formulas import flash
from test_references import t


def through(forward, leaves, flow, place=0, **renamed):
    """Gradients of result `place` of a formula by leaves; `renamed`: what it calls a parameter."""

    def gradients(a):
        tensors = {n: t(a[n]).requires_grad_() for n in leaves if a[n] is not None}
        fed = a | tensors
        out = forward(fed | {own: fed[theirs] for own, theirs in renamed.items()})
        out = out[place] if isinstance(out, tuple) else out
        return torch.autograd.grad(out, list(tensors.values()), t(a[flow]).reshape(out.shape))

    return gradients


def attention_gradients(a):
    """By what is added to scores, unless that is slopes, and by a sink too."""
    added = ("pseShiftOptional",) if a["pseType"] < 2 else ()
    leaves = ("query", "keyIn", "value", *added, *(("sinkInOptional",) if
              a.get("sinkInOptional") is not None else ()))  # fmt: skip
    grads = list(through(flash, leaves, "dy", 3, key="keyIn", realShiftOptional="pseShiftOptional",
                         sinkOptional="sinkInOptional")(a))  # fmt: skip
    sink = grads.pop() if "sinkInOptional" in leaves else None
    shift = grads.pop() if len(grads) == 4 else None
    return (*grads, shift) if "sinkInOptional" not in a else (*grads, shift, sink)


GRADIENTS = {
    "aclnnNsaSelectedAttentionGrad": through(
        chosen.selected, ("query", "key", "value"), "attentionOutGrad", 2),
    "aclnnSparseFlashAttentionGrad": through(
        chosen.sparse_flash, ("query", "key", "value", "queryRopeOptional", "keyRopeOptional"),
        "dOut", sparseBlockSizeOptional="sparseBlockSize"),
    "aclnnBlockSparseAttentionGrad": through(
        chosen.block_sparse, ("query", "key", "value"), "dout"),
    "aclnnFusedFloydAttentionGrad": through(
        chosen.floyd, ("query", "key1", "value1", "key2", "value2"), "dy", 2,
        scaleValueOptional="scaleValue"),
    **{f"aclnnFlashAttentionScoreGrad{v}": through(
        flash, ("query", "keyIn", "value", "pseShiftOptional"), "dy", 3, key="keyIn",
        realShiftOptional="pseShiftOptional") for v in ("",)},
    "aclnnFlashAttentionScoreGradV2": attention_gradients,
    "aclnnFlashAttentionScoreGradV3": attention_gradients,
    "aclnnMultiScaleDeformableAttentionGrad": through(
        sampled_levels, ("value", "location", "attnWeight"), "gradOutput"),
}  # fmt: skip


def recurrence(word, gates, a, ways):
    """torch's own net with the sample's weights, backward from what flows into its results."""
    net = word(6, 8, a["numLayers"], bidirectional=ways == 2).double()
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
    x = t(a["input"]).requires_grad_()
    begin = [v.requires_grad_() for v in (t(a["hx"]) if gates == 4 else [t(a["hx"])])]
    y, last = net(x, tuple(begin) if gates == 4 else begin[0])
    outs = (y, *last) if gates == 4 else (y, last)
    flows = [t(a[n]) for n in ("dy", "dh", "dc")[: len(outs)]]
    return torch.autograd.grad(outs, (x, *begin, *net.parameters()), flows)


GRADIENTS |= {
    "aclnnGRUBackward": lambda a: recurrence(torch.nn.GRU, 3, a, 1 + a["bidirection"]),
    "aclnnLstmBackward": lambda a: recurrence(torch.nn.LSTM, 4, a, 1 + a["bidirectional"]),
}
