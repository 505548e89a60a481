"""What torch gives for the rows of state."""

import torch

from ._arguments import t


def compared(a):
    one, two = (t(a[k]).view(torch.int64) for k in ("golden", "realdata"))
    return torch.tensor(0 if torch.equal(one, two) else 503)


ORACLES = {
    "aclnnPrecisionCompare": compared,
}
