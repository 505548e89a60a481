"""What torch gives for the rows of activation, softmax."""

import torch

from .._arguments import t

ORACLES = {
    "aclnnSoftmaxBackward": lambda a: torch.ops.aten._softmax_backward_data(
        t(a["gradOutput"]), t(a["output"]), a["dim"], torch.float64
    ),
    "aclnnLogSoftmaxBackward": lambda a: torch.ops.aten._log_softmax_backward_data(
        t(a["gradOutput"]), t(a["output"]), a["dim"], torch.float64
    ),
    "aclnnScaledMaskedSoftmax": lambda a: (
        (t(a["x"]) * a["scale"])
        .masked_fill(
            torch.ones(a["x"].shape[-2:]).triu(1) > 0 if a["fixedTriuMask"] else t(a["mask"]),
            -10000.0,
        )
        .softmax(-1)
    ),
    "aclnnScaledMaskedSoftmaxBackward": lambda a: (
        torch.ops.aten._softmax_backward_data(
            t(a["gradOutput"]), t(a["y"]), -1, torch.float64
        ).masked_fill(t(a["mask"]), 0.0)
        * a["scale"]
    ),
}
