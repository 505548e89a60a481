"""What torch's own words give for quantised products of groups, feature maps and statistics."""

from __future__ import annotations

import numpy as np
import torch
from routed_formulas import swiglu_groups
from test_references import F, t


def swiglu_v2(a):
    sizes = a["groupList"] if a["groupListType"] else np.diff(a["groupList"], prepend=0)
    ends = np.cumsum(sizes)
    return swiglu_groups({**a, "groupList": ends, "weight": a["weight"][0],
                          "weightScale": a["weightScale"][0]})  # fmt: skip


def dequantised_groups(a):
    x = t(a["x"])
    scale = x.abs().amax(-1, keepdim=True) / 127
    parts = (torch.round(x / scale)).split([4, 5, 3])
    rows = [p @ w.double().T * s for p, w, s in zip(parts, t(a["weight"]), t(a["weightScale"]),
                                                     strict=True)]  # fmt: skip
    return torch.cat(rows) * scale


def sums_gathered(a):
    """By the law of total variance."""
    n = t(a["sampleCount"]).double()[:, None]
    means = t(a["totalSum"]) / n
    spread = t(a["totalSquareSum"]) / n - means**2
    share = n / n.sum()
    mean = (share * means).sum(0)
    var = (share * (spread + (means - mean) ** 2)).sum(0)
    unbiased = var / (1 - 1 / n.sum())
    return (mean, (var + a["eps"]).rsqrt(), torch.lerp(t(a["mean"]), mean, a["momentum"]),
            torch.lerp(t(a["variance"]), unbiased, a["momentum"]))  # fmt: skip


def sampled_levels(a):
    """Through torch's grid_sample, a level at a time."""
    total = 0
    for level, (h, w) in enumerate(a["spatialShape"].tolist()):
        start = int(a["levelStartIndex"][level])
        image = t(a["value"])[:, start : start + h * w].permute(0, 2, 3, 1).reshape(4, 8, h, w)
        grid = t(a["location"])[:, :, :, level].permute(0, 2, 1, 3, 4).flatten(0, 1) * 2 - 1
        seen = F.grid_sample(image, grid, align_corners=False)  # [4, 8, Q, P]
        weight = t(a["attnWeight"])[:, :, :, level].permute(0, 2, 1, 3).flatten(0, 1)
        total = total + (seen * weight[:, None]).sum(-1)
    return total.unflatten(0, (2, 2)).permute(0, 3, 1, 2).flatten(2)


def scattered_steps(a):
    out = t(a["selfRef"]).double()
    steps = t(a["updates"]) / t(a["quantScales"])
    out[0, 5:8], out[1, 0:3] = steps[0], steps[1]
    return out


def packed_scales(a):
    scale = torch.from_numpy(a["deqScale"].astype("uint32").view("float32").astype("float64"))
    right = t(a["x2"]).double()
    return (mm_double(a["x1"], right.T if a["adjX2"] else right) + t(a["bias"])) * scale


def mm_double(left, right):
    return t(left).double() @ right


PRODUCTS = {
    "aclnnGroupedMatmulSwigluQuantV2": swiglu_v2,
    "aclnnQuantGroupedMatmulDequant": dequantised_groups,
    "aclnnQuantMatmulReduceSumWeightNz": lambda a: torch.einsum(
        "bmk,bkn,n,bm->mn", t(a["x1"]).double(), t(a["x2"]).double(), t(a["x2Scale"]),
        t(a["x1Scale"])),
    "aclnnQuantMatmulV2": packed_scales,
    "aclnnSyncBatchNormGatherStats": sums_gathered,
    "aclnnMultiScaleDeformableAttnFunction": sampled_levels,
    "aclnnInplaceQuantScatter": scattered_steps,
}  # fmt: skip
