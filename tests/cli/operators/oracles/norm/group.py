"""What torch gives for the rows of norm, group."""

import torch
import torch.nn.functional as F

from .._arguments import t


def swish_gradients(a):
    """The gate's by autograd, then torch's own of the norm."""
    x, groups = t(a["x"]), a["numGroups"]
    shape = (1, -1, *(1,) * (x.ndim - 2))
    parts = x.reshape(len(x), groups, -1)
    hat = ((parts - t(a["mean"])[..., None]) * t(a["rstd"])[..., None]).reshape(x.shape)
    y = (hat * t(a["gamma"]).reshape(shape) + t(a["beta"]).reshape(shape)).requires_grad_()
    flow = torch.autograd.grad(y * torch.sigmoid(a["swishScale"] * y), y, t(a["dy"]))[0]
    return torch.ops.aten.native_group_norm_backward(
        flow, x, t(a["mean"]), t(a["rstd"]), t(a["gamma"]), *x.shape[:2],
        x[0, 0].numel(), groups, [True] * 3)  # fmt: skip


ORACLES = {
    "aclnnGroupNormSwishGrad": swish_gradients,
    "aclnnGroupNormSilu": lambda a: F.silu(
        F.group_norm(t(a["self"]), a["group"], t(a["gamma"]), t(a["beta"]), a["eps"])
    ),
    "aclnnGroupNormBackward": lambda a: torch.ops.aten.native_group_norm_backward(
        t(a["gradOut"]),
        t(a["input"]),
        t(a["mean"]),
        t(a["rstd"]),
        t(a["gamma"]),
        a["N"],
        a["C"],
        a["HxW"],
        a["group"],
        [True] * 3,
    ),
    "aclnnGroupNormSwish": lambda a: (
        lambda y: y * torch.sigmoid(a["swishScale"] * y) if a["activateSwish"] else y
    )(F.group_norm(t(a["x"]), a["numGroups"], t(a["gamma"]), t(a["beta"]), a["eps"])),
    "aclnnInstanceNorm": lambda a: F.instance_norm(
        t(a["x"]), weight=t(a["gamma"]), bias=t(a["beta"]), eps=a["eps"]
    ),
}
