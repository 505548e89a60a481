"""What torch gives for the rows of norm, layer."""

import torch
import torch.nn.functional as F

from .._arguments import t


def layer_gradients(x, flow, gamma, rstd, mean, dims=None):
    shape = x.shape[-1:] if dims is None else dims
    gamma = torch.ones(*shape).double() if gamma is None else t(gamma)
    return torch.ops.aten.native_layer_norm_backward(
        t(flow), x, shape, t(mean), t(rstd), gamma, 0 * gamma, [True] * 3
    )


ORACLES = {
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
