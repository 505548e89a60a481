"""What torch gives for the rows of matmul, grouped_quantized."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import group_sizes
from .grouped import each_group


def finalize(first, second, suffix=""):
    def run(a):
        sizes = group_sizes(a[f"groupList{suffix}"], a["groupListType"])
        scale = t(a[f"scale{suffix}"]).to(torch.int32).view(torch.float32).double()
        token = t(a["pertokenScaleOptional"])
        y = each_group(t(a[first]), t(a[second]), sizes, scale.flatten(1), token)
        if a[f"bias{suffix}"] is not None:
            y = y + t(a[f"bias{suffix}"]).repeat_interleave(sizes, 0) * token[:, None]
        if a[f"logit{suffix}"] is not None:
            y = y * t(a[f"logit{suffix}"])[:, None]
        index = t(a[f"rowIndex{suffix}"])
        out = torch.zeros(int(index.max()) + 1, y.shape[1], dtype=y.dtype).index_add(0, index, y)
        shared, at = a[f"sharedInput{suffix}"], a["sharedInputOffset"]
        if shared is not None:
            out[at : at + len(shared)] += a["sharedInputWeight"] * t(shared)
        return out

    return run


def groups(a):
    sizes = torch.diff(t(a["groupList"]), prepend=torch.tensor([0])).tolist()
    return [part.split(sizes) for part in (t(a["x"]).double(), t(a["xScale"]))], sizes


def swiglu_groups(a):
    (xs, scales), _ = groups(a)
    parts = []
    for x, w, column, row in zip(xs, t(a["weight"]), t(a["weightScale"]), scales, strict=True):
        gate, value = ((x @ w.double()) * column * row[:, None]).chunk(2, -1)
        parts.append(F.silu(gate) * value)
    y = torch.cat(parts)
    scale = y.abs().amax(-1) / 127
    return y / scale[:, None], scale


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


def finalised(a):
    sizes = a["groupList"].tolist()
    rows = torch.cat([x.double() @ w.double() * s for x, w, s in zip(
        t(a["x1"]).split(sizes), t(a["x2"]), t(a["scale"]), strict=True)])  # fmt: skip
    rows = rows * t(a["pertokenScaleOptional"])[:, None] * t(a["logit"])[:, None]
    out = rows[torch.sort(t(a["rowIndex"]), stable=True).indices].unflatten(0, (-1, 2)).sum(1)
    at = a["sharedInputOffset"]
    out[at : at + 2] += a["sharedInputWeight"] * t(a["sharedInput"])
    return out


ORACLES = {
    "aclnnGroupedMatmulFinalizeRouting": finalize("x", "w", "Optional"),
    "aclnnGroupedMatmulFinalizeRoutingV2": finalize("x1", "x2", "Optional"),
    "aclnnGroupedMatmulFinalizeRoutingWeightNz": finalize("x1", "x2"),
    "aclnnGroupedMatmulSwigluQuantV2": swiglu_v2,
    "aclnnQuantGroupedMatmulDequant": dequantised_groups,
    "aclnnGroupedMatmulSwigluQuant": swiglu_groups,
    "aclnnGroupedMatmulFinalizeRoutingWeightNzV2": finalised,
}
