"""What torch gives for the rows of collective, reduction."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, matmul_of
from .exchange import add_optional, product


def members(a):
    bias = t(a["bias"]) or [None] * len(a["x"])
    return [F.linear(x, w.T, b) for x, w, b in zip(t(a["x"]), t(a["weight"]), bias, strict=True)]


def quantised_sum(a):
    y = add_optional(t(a["x1"]).double() @ t(a["x2"]).double(), a["biasOptional"]) * t(a["x2Scale"])
    if a["x1ScaleOptional"] is not None:
        y = (y.T * t(a["x1ScaleOptional"])).T
    return add_optional(y, a["x3Optional"])


def with_norm(a):
    total = add_named(matmul_of(a), a, "bias").reshape(a["residual"].shape) + t(a["residual"])
    gamma = t(a["gamma"])
    return total, F.rms_norm(total, gamma.shape, gamma, a["epsilon"])


def quantised(bias, third):
    def formula(a):
        y = add_named(matmul_of(a), a, bias) * t(a["dequantScale"])
        if a.get("pertokenScaleOptional") is not None and third == "x3Optional":
            y = torch.diag(t(a["pertokenScaleOptional"])) @ y
        return add_named(y, a, third)

    return formula


def reduced_norm(a):
    def none(name):
        return 0 if a[name] is None else t(a[name])

    weight = (t(a["x2"]).double() + none("antiquantOffset")) * t(a["antiquantScale"])
    total = (t(a["x1"]) @ weight + none("bias")).reshape(a["residual"].shape) + t(a["residual"])
    return total, F.rms_norm(total, (6,), t(a["gamma"]), a["epsilon"])


def quantised_norm(a):
    y = t(a["x1"]).double() @ t(a["x2"]).double()
    y = (y if a["bias"] is None else y + t(a["bias"])) * t(a["dequantScale"])
    total = y.reshape(a["residual"].shape) + t(a["residual"])
    return total, F.rms_norm(total, (6,), t(a["gamma"]), a["epsilon"])


ORACLES = {
    "aclnnQuantAllReduce": lambda a: (
        t(a["x"]).unflatten(-1, (-1, 32)) * t(a["scales"]).flatten(1)[..., None]
    ).flatten(1),
    "aclnnGroupedMatMulAllReduce": members,
    "aclnnQuantMatmulAllReduceV4": quantised_sum,
    "aclnnMatmulAllReduce": product("bias"),
    "aclnnMatmulAllReduceV2": product("bias", "x3"),
    "aclnnMatmulReduceScatter": product("bias"),
    "aclnnMatmulAllReduceAddRmsNorm": with_norm,
    "aclnnQuantMatmulAllReduce": quantised("bias", "x3"),
    "aclnnQuantMatmulAllReduceV2": quantised("biasOptional", "x3Optional"),
    "aclnnWeightQuantMatmulAllReduce": lambda a: add_named(
        t(a["x1"])
        @ (add_named(t(a["x2"]).double(), a, "antiquantOffset") * t(a["antiquantScale"])),
        a,
        "bias",
        "x3",
    ),
    "aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm": reduced_norm,
    "aclnnQuantMatmulAllReduceAddRmsNorm": quantised_norm,
}
