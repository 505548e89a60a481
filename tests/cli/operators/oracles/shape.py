"""What torch gives for the rows of shape."""

import math

import torch
import torch.nn.functional as F

from ._arguments import autograd, t


def ints(values):
    return [int(v) for v in values]


def repeats_back(a):
    flow, repeats, axis = t(a["yGrad"]), t(a["repeats"]), a["axis"]
    shape = list(flow.shape)
    shape[axis] = len(repeats) if len(repeats) > 1 else shape[axis] // int(repeats)
    x = torch.zeros(shape, dtype=torch.float64)
    return autograd(lambda v: v.repeat_interleave(repeats, axis), x, flow=flow)


def padded(mode):
    return lambda a: F.pad(t(a["self"]), ints(a["padding"]), mode)


def padded_back(mode):
    return lambda a: autograd(
        lambda x: F.pad(x, ints(a["padding"]), mode), a["self"], flow=a["gradOutput"]
    )


PADS = [(kind, mode, rank)
        for kind, mode in (("Reflection", "reflect"), ("Replication", "replicate"),
                           ("Circular", "circular"))
        for rank in (1, 2, 3) if kind != "Circular" or rank > 1]  # fmt: skip
ORACLES = {
    **{f"aclnn{kind}Pad{rank}d": padded(mode) for kind, mode, rank in PADS},
    **{f"aclnn{kind}Pad{rank}dBackward": padded_back(mode) for kind, mode, rank in PADS},
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
    "aclnnExpand": lambda a: t(a["self"]).expand(ints(a["size"])),
    "aclnnFlatten": lambda a: t(a["self"]).reshape(math.prod(a["self"].shape[: a["axis"]]), -1),
    "aclnnPermute": lambda a: t(a["self"]).permute(ints(a["dims"])),
    "aclnnSlice": lambda a: (
        t(a["self"]).movedim(a["dim"], 0)[a["start"] : a["end"] : a["step"]].movedim(0, a["dim"])
    ),
    "aclnnSplitTensor": lambda a: torch.split(t(a["self"]), a["splitSections"], a["dim"]),
    "aclnnSplitWithSize": lambda a: torch.split(t(a["self"]), list(a["splitSize"]), a["dim"]),
    "aclnnRepeatInterleave": lambda a: torch.repeat_interleave(t(a["self"]), t(a["repeats"])),
    "aclnnRepeatInterleaveInt": lambda a: torch.repeat_interleave(t(a["self"]), a["repeats"]),
    "aclnnRepeatInterleaveIntWithDim": lambda a: torch.repeat_interleave(
        t(a["self"]), a["repeats"], a["dim"]
    ),
    "aclnnRepeatInterleaveTensor": lambda a: torch.repeat_interleave(t(a["repeats"])),
    "aclnnRepeatInterleaveGrad": repeats_back,
}
