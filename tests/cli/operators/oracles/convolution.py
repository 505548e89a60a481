"""What torch gives for the rows of convolution."""

import torch
import torch.nn.functional as F

from ._arguments import t

ORACLES = {
    "aclnnConvolutionBackward": lambda a: list(
        torch.ops.aten.convolution_backward(
            t(a["gradOutput"]),
            t(a["input"]),
            t(a["weight"]),
            [a["gradOutput"].shape[1]],
            a["stride"],
            a["padding"],
            a["dilation"],
            a["transposed"],
            a["outputPadding"],
            a["groups"],
            list(a["outputMask"]),
        )
    ),
    "aclnnConvDepthwise2d": lambda a: F.conv2d(
        t(a["self"]), t(a["weight"]), t(a["bias"]), a["stride"], a["padding"], a["dilation"],
        a["self"].shape[1],
    ),
}  # fmt: skip
