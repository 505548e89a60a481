"""What torch gives for the rows of activation, gates."""

import math

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import autograd


def counted(a):
    """Whether a row is one of the groups'."""
    rows, groups = a["x"].shape[:-1], a["groupIndexOptional"]
    tokens = math.prod(rows)
    return (torch.arange(tokens) < (tokens if groups is None else int(groups.sum()))).reshape(
        *rows, 1)  # fmt: skip


def gate(x, a):
    glu, line = x.chunk(2, -1)
    limit = a["clampLimit"]
    if limit > 0:
        glu, line = glu.clamp(max=limit), line.clamp(-limit, limit)
    y = F.silu(glu) * line
    return (y if a["weightOptional"] is None else y * t(a["weightOptional"])) * counted(a)


def gate_gradient(a):
    x = t(a["x"]).requires_grad_()
    gate(x, a).backward(t(a["gradY"]))
    if a["weightOptional"] is None:
        return x.grad, None
    # By the weight: what the gate gave before it, for which the sample has a stand-in.
    weight = t(a["weightOptional"]).requires_grad_()
    (weight * t(a["yOriginOptional"]) * counted(a)).backward(t(a["gradY"]))
    return x.grad, weight.grad


def clipped(a):
    x = t(a["x"])
    glu, line = (x[..., ::2], x[..., 1::2]) if a["interleaved"] else x.chunk(2, a["dim"])
    line = line.clamp(-a["limit"], a["limit"])
    if a.get("clampMode"):
        return counted(a) * F.silu(glu).clamp(max=a["limit"]) * line
    glu = glu.clamp(max=a["limit"])
    return counted(a) * glu * torch.sigmoid(a["alpha"] * glu) * (line + a["bias"])


def geglu_gradient(a):
    """With what the forward pass gave in place of the half that was activated."""
    left = a.get("activateLeft", False)
    gate, value = t(a["self"]).chunk(2, a["dim"])[:: 1 if left else -1]
    how = ("none", "tanh")[a["approximate"]]
    dgate = autograd(lambda x: F.gelu(x, approximate=how) * value, gate.numpy(),
                     flow=a["gradOutput"])[0]  # fmt: skip
    dvalue = t(a["gradOutput"]) * t(a["gelu"])
    return torch.cat((dgate, dvalue) if left else (dvalue, dgate), a["dim"])


ORACLES = {
    "aclnnSwigluGroup": lambda a: gate(t(a["x"]), a),
    "aclnnSwigluGroupGrad": gate_gradient,
    "aclnnClippedSwiglu": clipped,
    "aclnnClippedSwigluV2": clipped,
    "aclnnGeluMul": lambda a: (
        F.gelu(t(a["input"]).chunk(2, -1)[0], approximate=a["approximateOptional"])
        * t(a["input"]).chunk(2, -1)[1]
    ),
    "aclnnGeGluBackward": geglu_gradient,
    "aclnnGeGluV3Backward": geglu_gradient,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnSwiGlu", {"x": [[0.0, 5.0]], "dim": 1}, [[[0.0]]]),
    ("aclnnFatreluMul", {"input": [[1.0] * 65 + [3.0] * 65], "threshold": [2.0]}, [[[0.0] * 65]]),
]
