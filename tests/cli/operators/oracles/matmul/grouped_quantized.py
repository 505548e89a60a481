"""What torch gives for the rows of matmul, grouped_quantized."""

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import group_sizes
from .grouped import each_group, reals
from .quantized import stepped_rows


def finalize(first, second, suffix=""):
    def run(a):
        sizes = group_sizes(torch.as_tensor(a[f"groupList{suffix}"]), a["groupListType"])
        scale = reals(a[f"scale{suffix}"])
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
    """Each group's rows by themselves: nothing is shared between rows."""
    cuts, ends = [0, *a["groupList"].tolist()[:-1]], a["groupList"].tolist()
    parts = []
    for g, (begin, end) in enumerate(zip(cuts, ends, strict=True)):
        scale = a["xScaleOptional"]
        rows = scale if scale is None or len(scale) == 1 else scale[begin:end]
        own = {"x": a["x"][begin:end], "weight": a["weight"][g], "xScaleOptional": rows,
               "weightScale": a["weightScale"][g]}  # fmt: skip
        parts.append(stepped_rows({**a, **own}))
    return torch.cat(parts)


ORACLES = {
    "aclnnGroupedMatmulFinalizeRoutingV3": finalize("x1", "x2", "Optional"),
    "aclnnGroupedMatmulFinalizeRoutingWeightNz": finalize("x1", "x2"),
    "aclnnGroupedMatmulFinalizeRoutingWeightNzV2": finalize("x1", "x2"),
    "aclnnGroupedMatmulSwigluQuantV2": swiglu_v2,
    "aclnnQuantGroupedMatmulDequant": dequantised_groups,
    "aclnnGroupedMatmulSwigluQuant": swiglu_groups,
}
