"""What torch gives for the rows of norm, layer."""

import torch
import torch.nn.functional as F

from .._arguments import t


def row(condition, x):
    return t(condition).reshape(*x.shape[:-2], 1, x.shape[-1])


def modulated(y, a):
    return y * (1 + row(a["scale"], y)) + row(a["shift"], y)


def adapted(a):
    x = t(a["x"])
    own = t(a["weightOptional"]), t(a["biasOptional"])
    return modulated(F.layer_norm(x, x.shape[-1:], *own, a["epsilon"]), a)


def conditioned(a):
    x, flow = t(a["input"]), t(a["gradOut"])
    weight, bias = t(a["weightOptional"]), t(a["biasOptional"])
    by_norm = flow * (1 + row(a["scale"], x))
    dx, dw, db = layer_gradients(x, by_norm, weight, a["rstd"], a["mean"])
    y = (x - t(a["mean"])) * t(a["rstd"])
    y = (y if weight is None else y * weight) + (0 if bias is None else bias)
    return (dx, (flow * y).sum(-2), flow.sum(-2), None if weight is None else dw,
            None if bias is None else db)  # fmt: skip


def layer_gradients(x, flow, gamma, rstd, mean, dims=None):
    shape = x.shape[-1:] if dims is None else dims
    gamma = torch.ones(*shape).double() if gamma is None else t(gamma)
    return torch.ops.aten.native_layer_norm_backward(
        t(flow), x, shape, t(mean), t(rstd), gamma, 0 * gamma, [True] * 3
    )


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
    "aclnnLayerNormBackward": lambda a: layer_gradients(
        t(a["input"]), a["gradOut"], a["weightOptional"], a["rstd"], a["mean"], a["normalizedShape"]
    ),
    "aclnnAdaLayerNorm": adapted,
    "aclnnAdaLayerNormV2": adapted,
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
