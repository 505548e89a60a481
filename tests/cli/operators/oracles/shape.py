"""What torch gives for the rows of shape."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from ._arguments import t
from ._functions import autograd


def tiles(a):
    x = t(a["srcTensor"])
    wide = 32 if x.dtype == torch.int8 else 16
    x = F.pad(x, (0, -x.shape[-1] % wide, 0, -x.shape[-2] % 16))
    return x.unflatten(-1, (-1, wide)).unflatten(-3, (-1, 16)).movedim(-2, -4)


def moved(a):
    x = t(a["x"])
    if a["transpose_first"]:
        return x.permute(a["perm"]).reshape(a["shape"])
    return x.reshape(a["shape"]).permute(a["perm"])


ORACLES = {
    "aclnnNpuFormatCast": tiles,
    "aclnnConfusionTranspose": moved,
    "aclnnDiag": lambda a: torch.diag(t(a["self"]), a["diagonal"]),
    "aclnnDiagFlat": lambda a: torch.diagflat(t(a["self"]), a["diagonal"]),
    "aclnnChannelShuffle": lambda a: F.channel_shuffle(t(a["self"]), a["groups"]),
    "aclnnInplaceFillDiagonal": lambda a: t(a["selfRef"]).fill_diagonal_(
        a["fillValue"], wrap=a["wrap"]
    ),
    "aclnnRepeatInterleaveWithDim": lambda a: torch.repeat_interleave(
        t(a["self"]), t(a["repeats"]), a["dim"]
    ),
    "aclnnUnfoldGrad": lambda a: torch.ops.aten.unfold_backward(
        t(a["gradOut"]), a["inputSizes"], a["dim"], a["size"], a["step"]
    ),
    "aclnnChunkCat": lambda a: torch._chunk_cat(t(a["tensors"]), a["dim"], a["numChunks"]),
    "aclnnExpand": lambda a: t(a["self"]).expand(a["size"]),
    "aclnnFlatten": lambda a: t(a["self"]).reshape(math.prod(a["self"].shape[: a["axis"]]), -1),
    "aclnnPermute": lambda a: t(a["self"]).permute(a["dims"]),
    "aclnnSlice": lambda a: (
        t(a["self"])[:, a["start"] : a["end"] : a["step"]]
        if a["dim"]
        else t(a["self"])[a["start"] : a["end"] : a["step"]]
    ),
    "aclnnSplitTensor": lambda a: torch.split(t(a["self"]), a["splitSections"], a["dim"]),
    "aclnnSplitWithSize": lambda a: torch.split(t(a["self"]), list(a["splitSize"]), a["dim"]),
    "aclnnRepeatInterleave": lambda a: torch.repeat_interleave(t(a["self"]), t(a["repeats"])),
    "aclnnRepeatInterleaveInt": lambda a: torch.repeat_interleave(t(a["self"]), a["repeats"]),
    "aclnnRepeatInterleaveIntWithDim": lambda a: torch.repeat_interleave(
        t(a["self"]), a["repeats"], a["dim"]
    ),
    "aclnnRepeatInterleaveTensor": lambda a: torch.repeat_interleave(t(a["repeats"])),
    "aclnnRepeatInterleaveGrad": lambda a: autograd(
        lambda x: x.repeat_interleave(t(a["repeats"]), a["axis"]), np.zeros((3, 4)), flow=a["yGrad"]
    ),
}
