"""What torch gives for the rows of pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ._arguments import t
from ._functions import autograd


def pooled(a):
    top, left, bottom, right = a["pads"]
    x = F.pad(t(a["self"]), (left, right, top, bottom), value=-torch.inf)
    y = F.max_pool2d(x, a["kernelShape"], a["strides"], ceil_mode=bool(a["ceilMode"]))
    if not a["ceilMode"]:
        return y
    # ONNX: what would begin in the padding at the end is no window.
    down, across = (-(-(n + p) // s) for n, p, s in zip(
        a["self"].shape[2:], (top, left), a["strides"], strict=True))  # fmt: skip
    return y[:, :, :down, :across]


ORACLES = {
    "aclnnMaxPool": pooled,
    "aclnnMaxUnpool3d": lambda a: F.max_unpool3d(
        t(a["self"]), t(a["indices"]), (1, 2, 2), (1, 2, 2), 0, (1, 2, 1, 4, 4)
    ),
    "aclnnMaxUnpool3dBackward": lambda a: autograd(
        lambda x: F.max_unpool3d(x, t(a["indices"]), (1, 2, 2), (1, 2, 2), 0, (1, 2, 1, 4, 4)),
        a["self"],
        flow=a["gradOutput"],
    ),
    "aclnnMaxPool2dWithMask": lambda a: F.max_pool2d(
        t(a["self"]), a["kernelSize"], a["stride"], a["padding"]
    ),
    "aclnnAdaptiveMaxPool2dBackward": lambda a: torch.ops.aten.adaptive_max_pool2d_backward(
        t(a["gradOutput"]), t(a["self"]), t(a["indices"])
    ),
    "aclnnMaxPool2dWithIndicesBackward": lambda a: torch.ops.aten.max_pool2d_with_indices_backward(
        t(a["gradOutput"]),
        t(a["self"]),
        [2, 2],
        [a["self"].shape[2] // a["gradOutput"].shape[2]] * 2,
        [0, 0],
        [1, 1],
        False,
        t(a["indices"]).long(),
    ),
    "aclnnMaxPool3dWithArgmaxBackward": lambda a: torch.ops.aten.max_pool3d_with_indices_backward(
        t(a["gradOutput"]),
        t(a["self"]),
        [2] * 3,
        [2] * 3,
        [0] * 3,
        [1] * 3,
        False,
        t(a["indices"]).long(),
    ),
    "aclnnGlobalMaxPool": lambda a: F.adaptive_max_pool2d(t(a["self"]), 1),
    "aclnnMaxUnpool2d": lambda a: (
        torch.zeros(2, 3, 30, dtype=torch.float64)
        .scatter(2, t(a["indices"]).flatten(2), t(a["self"]).flatten(2))
        .unflatten(2, (5, 6))
    ),
    "aclnnMaxUnpool2dBackward": lambda a: (
        t(a["gradOutput"]).flatten(2).gather(2, t(a["indices"]).flatten(2)).unflatten(2, (2, 3))
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnGlobalAveragePool", {"self": [[[[1.0, 3.0]]]]}, [[[[[2.0]]]]]),
]
