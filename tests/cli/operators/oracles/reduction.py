"""What torch gives for the rows of reduction."""

import numpy as np
import torch

from ._arguments import t


def segments(a):
    """Backward through sums whose exponentials the sample holds."""
    y = t(a["gradSelf"])
    size = y.shape[-1]
    x = torch.zeros(y.shape[:-1], dtype=torch.float64)
    x[..., 1:] = y.diagonal(-1, -2, -1).log()
    x.requires_grad_()
    sums = torch.stack([torch.stack([x[..., j + 1 : i + 1].sum(-1) for j in range(size)], -1)
                        for i in range(size)], -2)  # fmt: skip
    sums.exp().tril().backward(t(a["gradOutput"]))
    return x.grad


def sums(a):
    x = t(a["self"])
    n = range(x.shape[-1])
    rows = [[x[..., j + 1 : i + 1].sum(-1).exp() * (j <= i) for j in n] for i in n]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


ORACLES = {
    "aclnnExpSegsumBackward": segments,
    "aclnnTrace": lambda a: torch.trace(t(a["self"])),
    "aclnnAminmaxDim": lambda a: torch.aminmax(t(a["self"]), dim=a["dim"], keepdim=a["keepDim"]),
    "aclnnVar": lambda a: torch.var(
        t(a["self"]), a["dim"], correction=int(a["unbiased"]), keepdim=a["keepdim"]
    ),
    "aclnnVarMean": lambda a: torch.var_mean(
        t(a["self"]), a["dim"], correction=a["correction"], keepdim=a["keepdim"]
    ),
    "aclnnStdMeanCorrection": lambda a: torch.std_mean(
        t(a["self"]), a["dim"], correction=a["correction"], keepdim=a["keepdim"]
    ),
    "aclnnNorm": lambda a: torch.norm(t(a["self"]), a["pScalar"], a["dim"] or None, a["keepdim"]),
    "aclnnBincount": lambda a: torch.bincount(t(a["self"]), t(a["weights"]), a["minlength"]),
    "aclnnHistc": lambda a: torch.histc(t(a["self"]), a["bins"], a["min"], a["max"]),
    "aclnnAminmax": lambda a: (
        torch.amin(t(a["self"]), a["dim"], a["keepDim"]),
        torch.amax(t(a["self"]), a["dim"], a["keepDim"]),
    ),
    "aclnnAminmaxAll": lambda a: torch.aminmax(t(a["self"])),
    "aclnnMeanV2": lambda a: (
        t(a["self"])
        if not a["dim"] and a["noopWithEmptyAxes"]
        else torch.mean(t(a["self"]), a["dim"], a["keepDim"])
    ),
    "aclnnReduceNansum": lambda a: torch.nansum(t(a["self"]), a["dim"], a["keepDim"]),
    "aclnnMaxV2": lambda a: (
        t(a["self"])
        if not a["dims"] and a["noopWithEmptyDims"]
        else (torch.amax(t(a["self"]), a["dims"] or None, a["keepDims"]))
    ),
    "aclnnReduceLogSum": lambda a: t(a["data"]).sum(a["axes"], a["keepDims"]).log(),
    "aclnnInplaceCumprod": lambda a: torch.cumprod(t(a["input"]), a["dim"]),
    "aclnnExpSegsum": sums,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnCumsumV2",
        {"self": [1.0, 2.0, 3.0], "dim": 0, "exclusive": True, "reverse": True},
        [[5.0, 3.0, 0.0]],
    ),
    (
        "aclnnReduceNansum",
        {"self": [[1.0, np.nan]], "dim": (1,), "keepDim": False, "dtype": 0},
        [[1.0]],
    ),
]
