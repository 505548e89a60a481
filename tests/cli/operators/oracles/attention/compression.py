"""What torch gives for the rows of attention, compression."""

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def blocks(x, weight, ends, stride):
    """Sequences' windows through torch's unfold."""
    outs, size = [x[:0] * weight.sum()], len(weight)
    for part in x.split(np.diff(ends, prepend=0).tolist()):
        if len(part) >= size:
            seen = part.unfold(0, size, stride)  # [blocks, N, D, size]
            outs.append(torch.einsum("bndw,wn->bnd", seen, weight))
    return torch.cat(outs)


ORACLES = {
    "aclnnNsaCompress": lambda a: blocks(
        t(a["input"]), t(a["weight"]), a["actSeqLenOptional"], a["compressStride"]
    ),
    "aclnnNsaCompressGrad": lambda a: autograd(
        lambda x, w: blocks(x, w, a["actSeqLenOptionalOptional"], a["compressStride"]),
        a["input"],
        a["weight"],
        flow=a["outputGrad"],
    ),
}
