"""What torch gives for the rows of norm, group."""

import torch
import torch.nn.functional as F

from .._arguments import t

ORACLES = {
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
