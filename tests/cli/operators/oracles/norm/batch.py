"""What torch gives for the rows of norm, batch."""

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import autograd, t


def sums_gathered(a):
    """By the law of total variance."""
    n = t(a["sampleCount"]).double()[:, None]
    means = t(a["totalSum"]) / n
    spread = t(a["totalSquareSum"]) / n - means**2
    share = n / n.sum()
    mean = (share * means).sum(0)
    var = (share * (spread + (means - mean) ** 2)).sum(0)
    unbiased = var / (1 - 1 / n.sum())
    return (torch.lerp(t(a["mean"]), mean, a["momentum"]),
            torch.lerp(t(a["variance"]), unbiased, a["momentum"]), mean,
            (var + a["eps"]).rsqrt())  # fmt: skip


def copies(a):
    return [None if a[n] is None else t(a[n]).clone() for n in ("runningMean", "runningVar")]


def synchronised(a):
    """Statistics of numbers that have just these means and deviations."""
    parts = []
    for mean, inv, n in zip(t(a["mean"]), t(a["invstd"]), a["counts"], strict=True):
        unit = torch.linspace(-1, 1, int(n)).double()
        unit = (unit - unit.mean()) / unit.std(correction=0)
        parts.append(mean + unit[:, None] * (1 / inv**2 - a["eps"]).sqrt())
    mean, var = copies(a)
    _, whole, inv = torch.native_batch_norm(torch.cat(parts), None, None, mean, var, True,
                                            a["momentum"], a["eps"])  # fmt: skip
    return mean, var, whole, inv


def elementwise(a):
    def shaped(v):
        return t(v)[:, None]

    n = float(a["counter"].sum())
    flow = t(a["gradOut"]) - shaped(a["sumDy"]) / n
    flow = flow - (t(a["input"]) - shaped(a["mean"])) * shaped(a["invstd"] ** 2 * a["sumDyXmu"]) / n
    return flow * shaped(a["invstd"] * (1 if a["weight"] is None else a["weight"]))


def reduced(a):
    hat = (t(a["input"]) - t(a["mean"])[:, None]) * t(a["invstd"])[:, None]
    count = hat.shape[1]
    weight, bias = autograd(lambda w, b: hat * w[:, None] + b[:, None], np.ones(count),
                            np.zeros(count), flow=a["gradOut"])  # fmt: skip
    return bias, weight / t(a["invstd"]), weight, bias


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
    "aclnnSyncBatchNormGatherStats": sums_gathered,
    "aclnnBatchNormGatherStatsWithCounts": synchronised,
    "aclnnBatchNormReduceBackward": reduced,
    "aclnnBatchNormElemtBackward": elementwise,
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
