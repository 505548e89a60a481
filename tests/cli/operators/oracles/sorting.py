"""What torch gives for the rows of sorting."""

import torch

from ._arguments import t

ORACLES = {
    "aclnnArgsort": lambda a: torch.argsort(
        t(a["self"]), dim=a["dim"], descending=a["descending"], stable=True
    ),
    "aclnnMedianDim": lambda a: torch.median(t(a["self"]), a["dim"], a["keepDim"]),
    "aclnnNanMedianDim": lambda a: torch.nanmedian(t(a["self"]), a["dim"], a["keepDim"]),
    "aclnnMedian": lambda a: torch.median(t(a["self"])),
    "aclnnNanMedian": lambda a: torch.nanmedian(t(a["self"])),
}
