"""What torch gives for the rows of matmul, dense."""

from __future__ import annotations

import torch

from .._arguments import t
from .quantized import ENDS


def adapted(a):
    y, begin = t(a["y"]).clone(), a["yOffset"]
    for row, i in enumerate(a["indices"]):
        if i >= 0:
            low = t(a["weightAOptional"])[i, a["layerIdx"]] @ t(a["x"])[row]
            up = t(a["weightB"])[i, a["layerIdx"]] @ low
            y[row, begin : begin + a["ySliceSize"]] += a["scale"] * up
    return y


ORACLES = {
    "aclnnAddLora": adapted,
    "aclnnFusedMatmul": lambda a: ENDS[a["fusedOpType"]](
        t(a["x1"]) @ t(a["x2"]) + (0 if a["bias"] is None else t(a["bias"])),
        None if a["x3"] is None else t(a["x3"]),
    ),
    "aclnnAddbmm": lambda a: torch.addbmm(
        t(a["self"]), t(a["batch1"]), t(a["batch2"]), beta=a["beta"], alpha=a["alpha"]
    ),
    "aclnnAddmv": lambda a: torch.addmv(
        t(a["self"]), t(a["mat"]), t(a["vec"]), beta=a["beta"], alpha=a["alpha"]
    ),
    "aclnnAddr": lambda a: torch.addr(
        t(a["self"]), t(a["vec1"]), t(a["vec2"]), beta=a["betaOptional"], alpha=a["alphaOptional"]
    ),
    "aclnnMv": lambda a: torch.mv(t(a["self"]), t(a["vec"])),
    "aclnnDot": lambda a: torch.dot(t(a["self"]), t(a["tensor"])),
    "aclnnGer": lambda a: torch.outer(t(a["self"]), t(a["vec2"])),
    "aclnnMatmulWeightNz": lambda a: t(a["self"]) @ t(a["mat2"]),
    "aclnnTransposeBatchMatMul": lambda a: torch.einsum("mbk,bkn->mbn", t(a["x1"]), t(a["x2"])),
    "aclnnEinsum": lambda a: torch.einsum(a["equation"], *t(a["tensors"])),
    "aclnnAddmmWeightNz": lambda a: torch.addmm(
        t(a["self"]), t(a["mat1"]), t(a["mat2"]), beta=a["beta"], alpha=a["alpha"]
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnGemm",
        {
            "A": [[1.0, 2.0]],
            "B": [[3.0], [4.0]],
            "C": [[1.0]],
            "alpha": 2.0,
            "beta": 0.5,
            "transA": 0,
            "transB": 0,
        },
        [[[22.5]]],
    ),
]
