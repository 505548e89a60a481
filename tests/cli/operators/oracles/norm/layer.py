"""What torch gives for the rows of norm, layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import autograd


def conditioned(a):
    def formula(x, scale, shift, weight, bias):
        y = F.layer_norm(x, (64,), weight, bias, 1e-5)
        return y * (1 + scale[:, None]) + shift[:, None]

    return autograd(formula, a["input"], a["scale"], 0 * a["scale"], a["weightOptional"],
                    a["biasOptional"], flow=a["gradOut"])  # fmt: skip


def layer_gradients(x, flow, gamma, rstd, mean):
    return torch.ops.aten.native_layer_norm_backward(
        t(flow), x, [x.shape[-1]], t(mean), t(rstd), t(gamma), torch.zeros_like(t(gamma)),
        [True] * 3)  # fmt: skip


ORACLES = {
    "aclnnAdaLayerNormBackward": conditioned,
    "aclnnFastLayerNorm": lambda a: F.layer_norm(
        t(a["input"]), a["normalizedShape"], t(a["weightOptional"]), t(a["biasOptional"]), a["eps"]
    ),
    "aclnnAddLayerNorm": lambda a: F.layer_norm(
        t(a["x1"]) + t(a["x2"]) + (0 if a["biasOptional"] is None else t(a["biasOptional"])),
        a["gamma"].shape,
        t(a["gamma"]),
        t(a["beta"]),
        a["epsilon"],
    ),
    "aclnnDeepNorm": lambda a: (
        None,
        None,
        F.layer_norm(
            a["alpha"] * t(a["x"]) + t(a["gx"]),
            a["gamma"].shape,
            t(a["gamma"]),
            t(a["beta"]),
            a["epsilon"],
        ),
    ),
    "aclnnLayerNormBackward": lambda a: torch.ops.aten.native_layer_norm_backward(
        t(a["gradOut"]),
        t(a["input"]),
        a["normalizedShape"],
        t(a["mean"]),
        t(a["rstd"]),
        t(a["weightOptional"]),
        t(a["biasOptional"]),
        [True] * 3,
    ),
    "aclnnAdaLayerNorm": lambda a: (
        F.layer_norm(t(a["x"]), [64], t(a["weightOptional"]), t(a["biasOptional"]), a["epsilon"])
        * (1 + t(a["scale"])[:, None])
        + t(a["shift"])[:, None]
    ),
    "aclnnAdaLayerNormV2": lambda a: (
        F.layer_norm(t(a["x"]), [64], t(a["weightOptional"]), t(a["biasOptional"]), a["epsilon"])
        * (1 + t(a["scale"])[:, None])
        + t(a["shift"])[:, None]
    ),
    "aclnnAddLayerNormGrad": lambda a: (
        layer_gradients(t(a["x1"]) + t(a["x2"]), a["dy"], a["gamma"], a["rstd"], a["mean"])
        if a["dsumOptional"] is None
        else None
    ),
    "aclnnDeepNormGrad": lambda a: (
        None,
        layer_gradients(
            a["alpha"] * t(a["x"]) + t(a["gx"]), a["dy"], a["gamma"], a["rstd"], a["mean"]
        )[0],
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnModulate",
        {"self": [[[2.0]]], "scaleOptional": [[0.5]], "shiftOptional": [[1.0]]},
        [[[[4.0]]]],
    ),
]
