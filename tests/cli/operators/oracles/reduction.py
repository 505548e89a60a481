"""What torch gives for the rows of reduction."""

import torch

from ._arguments import t

ORACLES = {
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
}
