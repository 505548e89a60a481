"""What torch gives for the rows of pooling."""

import torch
import torch.nn.functional as F

from ._arguments import autograd, t


def pooled(a):
    top, left, bottom, right = a["pads"]
    x = F.pad(t(a["self"]), (left, right, top, bottom), value=-torch.inf)
    y = F.max_pool2d(x, a["kernelShape"], a["strides"], ceil_mode=bool(a["ceilMode"]))
    if not a["ceilMode"]:
        return y
    # ONNX: what would begin in the padding at the end is no window.
    down, across = (-(-(n + p) // s) for n, p, s in zip(
        a["self"].shape[-2:], (top, left), a["strides"], strict=True))  # fmt: skip
    return y[..., :down, :across]


def unpooled(x, a):
    """What `indices` say, plane by plane."""
    rank = len(a["outputSize"])
    planes = x.shape[:-rank]
    flat = x.new_zeros(*planes, int(torch.tensor(a["outputSize"]).prod()))
    at = t(a["indices"]).flatten(-rank)
    return flat.scatter(-1, at, x.flatten(-rank)).unflatten(-1, a["outputSize"])


def chosen(x, a, rank):
    """The elements of planes that `indices` name."""
    at = t(a["indices"]).long()
    return x.flatten(-rank).gather(-1, at.flatten(-rank)).reshape(at.shape)


ORACLES = {
    "aclnnMaxPool": pooled,
    "aclnnMaxPool2dWithMask": lambda a: F.max_pool2d(
        t(a["self"]), a["kernelSize"], a["stride"], a["padding"], ceil_mode=a["ceilMode"]
    ),
    "aclnnAdaptiveMaxPool2dBackward": lambda a: torch.ops.aten.adaptive_max_pool2d_backward(
        t(a["gradOutput"]), t(a["self"]), t(a["indices"])
    ),
    "aclnnAdaptiveMaxPool3dBackward": lambda a: autograd(
        lambda x: chosen(x, a, 3), a["self"], flow=a["gradOutput"]
    ),
    **{
        f"aclnnAdaptiveAvgPool{n}dBackward": lambda a, n=n, pool=pool: autograd(
            lambda x: pool(x, a["gradOutput"].shape[-n:]), a["self"], flow=a["gradOutput"]
        )
        for n, pool in ((2, F.adaptive_avg_pool2d), (3, F.adaptive_avg_pool3d))
    },
    **{
        f"aclnnMaxPool{name}Backward": lambda a, n=n: autograd(
            lambda x: chosen(x, a, n), a["self"], flow=a["gradOutput"]
        )
        for n, name in ((2, "2dWithIndices"), (3, "3dWithArgmax"))
    },
    "aclnnGlobalMaxPool": lambda a: t(a["self"]).flatten(2).amax(2),
    "aclnnGlobalAveragePool": lambda a: t(a["self"]).flatten(2).mean(2),
    **{f"aclnnMaxUnpool{n}d": lambda a: unpooled(t(a["self"]), a) for n in (2, 3)},
    **{
        f"aclnnMaxUnpool{n}dBackward": lambda a, n=n: chosen(t(a["gradOutput"]), a, n)
        for n in (2, 3)
    },
}  # fmt: skip
