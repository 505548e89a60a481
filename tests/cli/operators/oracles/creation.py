"""What torch gives for the rows of creation."""

import torch

from ._arguments import t

ORACLES = {
    "aclnnRange": lambda a: torch.range(a["start"], a["end"], a["step"], dtype=torch.float64),
    "aclnnArange": lambda a: torch.arange(a["start"], a["end"], a["step"], dtype=torch.float64),
    "aclnnLogSpace": lambda a: torch.logspace(
        a["start"], a["end"], a["steps"], a["base"], dtype=torch.float64
    ),
    "aclnnInplaceFillTensor": lambda a: t(a["selfRef"]).fill_(t(a["value"]).item()),
}
