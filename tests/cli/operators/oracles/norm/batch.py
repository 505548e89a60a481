"""What torch gives for the rows of norm, batch."""

import torch
import torch.nn.functional as F

from .._arguments import t


def copies(a):
    return [None if a[n] is None else t(a[n]).clone() for n in ("runningMean", "runningVar")]


def batch_norm(a):
    return torch.ops.aten.native_batch_norm_backward(
        t(a["gradOut"]), t(a["input"]), t(a["weight"]), t(a["runningMean"]), t(a["runningVar"]),
        t(a["saveMean"]), t(a["saveInvstd"]), a["training"], a["eps"], [True] * 3,
    )  # fmt: skip


def forward_batch_norm(a):
    mean, var = copies(a)
    y, *saved = torch.native_batch_norm(t(a["input"]), t(a["weight"]), t(a["bias"]), mean, var,
                                        a["training"], a["momentum"], a["eps"])  # fmt: skip
    return (mean, var, y, *saved) if a["training"] else (mean, var, y)


def axes(x):
    return 0, *range(2, x.ndim)


ORACLES = {
    "aclnnBatchNormBackward": batch_norm,
    "aclnnBatchNorm": forward_batch_norm,
    "aclnnBatchNormElemt": lambda a: F.batch_norm(
        t(a["input"]), t(a["mean"]), 1 / t(a["invstd"]) ** 2, t(a["weight"]), t(a["bias"]), eps=0.0
    ),
    "aclnnBatchNormStats": lambda a: (
        t(a["input"]).mean(axes(a["input"])),
        (t(a["input"]).var(axes(a["input"]), correction=0) + a["eps"]).rsqrt(),
    ),
    "aclnnBatchNormReduce": lambda a: (
        t(a["x"]).sum(axes(a["x"])),
        (t(a["x"]) ** 2).sum(axes(a["x"])),
    ),
}
