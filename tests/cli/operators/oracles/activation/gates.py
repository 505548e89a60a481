"""What torch gives for the rows of activation, gates."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import autograd


def kept(a):
    tokens, groups = a["x"].shape[0], a["groupIndexOptional"]
    return (torch.arange(tokens) < (tokens if groups is None else int(groups.sum())))[:, None]


def gate(x, a):
    glu, line = x.chunk(2, -1)
    limit = a["clampLimit"]
    if limit > 0:
        glu, line = glu.clamp(max=limit), line.clamp(-limit, limit)
    y = F.silu(glu) * line
    return (y if a["weightOptional"] is None else y * t(a["weightOptional"])) * kept(a)


def gate_gradient(a):
    x = t(a["x"]).requires_grad_()
    gate(x, a).backward(t(a["gradY"]))
    if a["weightOptional"] is None:
        return x.grad, None
    # By the weight: what the gate gave before it, for which the sample has a stand-in.
    weight = t(a["weightOptional"]).requires_grad_()
    (weight * t(a["yOriginOptional"]) * kept(a)).backward(t(a["gradY"]))
    return x.grad, weight.grad


def _first_rows(a, y):
    """Rows of groups as they are, the rest cut off and filled up with 0."""
    if a["groupIndexOptional"] is None:
        return y
    kept = y[: int(t(a["groupIndexOptional"]).sum())]
    return torch.cat([kept, kept.new_zeros(len(y) - len(kept), *y.shape[1:])])


def clipped(a):
    x = t(a["x"])
    glu, line = (x[..., ::2], x[..., 1::2]) if a["interleaved"] else x.chunk(2, a["dim"])
    if a.get("clampMode"):
        return _first_rows(
            a, F.silu(glu).clamp(max=a["limit"]) * line.clamp(-a["limit"], a["limit"])
        )
    glu, line = glu.clamp(max=a["limit"]), line.clamp(-a["limit"], a["limit"])
    return _first_rows(a, glu * torch.sigmoid(a["alpha"] * glu) * (line + a["bias"]))


ORACLES = {
    "aclnnSwigluGroup": lambda a: gate(t(a["x"]), a),
    "aclnnSwigluGroupGrad": gate_gradient,
    "aclnnClippedSwiglu": clipped,
    "aclnnClippedSwigluV2": clipped,
    "aclnnGeluMul": lambda a: (
        F.gelu(t(a["input"])[..., :65], approximate=a["approximateOptional"])
        * t(a["input"])[..., 65:]
    ),
    "aclnnGeGluBackward": lambda a: autograd(
        lambda x: x[:, :32] * F.gelu(x[:, 32:], approximate=("none", "tanh")[a["approximate"]]),
        a["self"],
        flow=a["gradOutput"],
    ),
    "aclnnGeGluV3Backward": lambda a: autograd(
        lambda x: x[:, 32:] * F.gelu(x[:, :32], approximate=("none", "tanh")[a["approximate"]]),
        a["self"],
        flow=a["gradOutput"],
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnSwiGlu", {"x": [[0.0, 5.0]], "dim": 1}, [[[0.0]]]),
    ("aclnnFatreluMul", {"input": [[1.0] * 65 + [3.0] * 65], "threshold": [2.0]}, [[[0.0] * 65]]),
]
