"""What torch gives for the rows of attention, compression."""

from __future__ import annotations

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def blocks(x, weight, ends):
    """Sequences' windows through torch's unfold."""
    outs = []
    for part in x.split(np.diff(ends, prepend=0).tolist()):
        if len(part) >= 32:
            seen = part.unfold(0, 32, 16)  # [blocks, N, D, 32]
            outs.append(torch.einsum("bndw,wn->bnd", seen, weight))
    return torch.cat(outs)


ORACLES = {
    "aclnnNsaCompress": lambda a: blocks(t(a["input"]), t(a["weight"]), a["actSeqLenOptional"]),
    "aclnnNsaCompressGrad": lambda a: autograd(
        lambda x, w: blocks(x, w, a["actSeqLenOptionalOptional"]),
        a["input"],
        a["weight"],
        flow=a["outputGrad"],
    ),
}
