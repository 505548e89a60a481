"""What torch gives for the rows of resize."""

import torch
import torch.nn.functional as F

from ._arguments import t


def resized(rank, mode):
    """The gradient of torch's interpolate of that rank."""

    def run(a):
        align = a.get("alignCorners")
        x = torch.zeros(a["inputSize"], dtype=torch.float64, requires_grad=True)
        names = ("scales", "scalesD", "scalesH", "scalesW")
        scales = tuple(a[n] for n in names if a.get(n)) or None
        y = F.interpolate(x, None if scales else tuple(a["outputSize"]), scales, mode=mode,
                          align_corners=None if "nearest" in mode else bool(align),
                          recompute_scale_factor=False)  # fmt: skip
        return torch.autograd.grad(y, x, t(a.get("gradOut", a.get("gradOutput"))))[0]

    assert rank
    return run


def interpolated(mode):
    """torch's interpolate, by scales where there are any."""

    def run(a):
        names = ("scaleL", "scale", "scales", "scalesD", "scalesH", "scalesW")
        scales = tuple(a[n] for n in names if a.get(n)) or None
        return F.interpolate(t(a["self"]), None if scales else tuple(a["outputSize"]), scales,
                             mode=mode, recompute_scale_factor=False if scales else None,
                             align_corners=None if "nearest" in mode else bool(a["alignCorners"]),
                             )  # fmt: skip

    return run


FORWARD = {
    "nearest": ("Nearest1d", "Nearest1dV2", "Nearest2d", "Nearest2dV2", "Nearest3d"),
    "nearest-exact": ("NearestExact1d", "NearestExact2d", "NearestExact3d"),
    "linear": ("Linear1d",), "bilinear": ("Bilinear2d",), "bicubic": ("Bicubic2d",),
    "trilinear": ("Trilinear3d",),
}  # fmt: skip


def smoothed(mode, image):
    """torch's smoothed resampling, and its gradient where the image is what flows in."""
    word = getattr(torch.ops.aten, f"_upsample_{mode}2d_aa")

    def run(a):
        rest = (a["alignCorners"], a["scalesH"] or None, a["scalesW"] or None)
        if image != "gradOutput":
            return word(t(a[image]), a["outputSize"], *rest)
        x = torch.zeros(a["inputSize"], dtype=torch.float64, requires_grad=True)
        flow = t(a[image])
        return torch.autograd.grad(word(x, flow.shape[2:], *rest), x, flow)[0]

    return run


ORACLES = {
    **{f"aclnnUpsample{n}": interpolated(mode) for mode, names in FORWARD.items() for n in names},
    "aclnnResize": lambda a: F.interpolate(
        t(a["self"]),
        [int(n * s) for n, s in zip(a["self"].shape[2:], a["scales"][2:], strict=True)],
        mode=a["mode"],
    ),
    "aclnnUpsampleBilinear2dAA": smoothed("bilinear", "input"),
    "aclnnUpsampleBicubic2dAA": smoothed("bicubic", "x"),
    "aclnnUpsampleBilinear2dBackward": lambda a: torch.ops.aten.upsample_bilinear2d_backward(
        t(a.get("gradOut", a.get("gradOutput"))),
        a["outputSize"],
        a["inputSize"],
        a["alignCorners"],
        a["scalesH"] or None,
        a["scalesW"] or None,
    ),
    "aclnnUpsampleNearest3dBackward": lambda a: torch.ops.aten.upsample_nearest3d_backward(
        t(a.get("gradOut", a.get("gradOutput"))),
        a["outputSize"],
        a["inputSize"],
        a["scalesD"] or None,
        a["scalesH"] or None,
        a["scalesW"] or None,
    ),
    "aclnnUpsampleNearest1dBackward": resized(1, "nearest"),
    "aclnnUpsampleNearest2dBackward": resized(2, "nearest"),
    "aclnnUpsampleNearestExact1dBackward": resized(1, "nearest-exact"),
    "aclnnUpsampleNearestExact2dBackward": resized(2, "nearest-exact"),
    "aclnnUpsampleNearestExact3dBackward": resized(3, "nearest-exact"),
    "aclnnUpsampleLinear1dBackward": resized(1, "linear"),
    "aclnnUpsampleBicubic2dBackward": resized(2, "bicubic"),
    "aclnnUpsampleTrilinear3dBackward": resized(3, "trilinear"),
    "aclnnUpsampleBilinear2dAABackward": smoothed("bilinear", "gradOutput"),
    "aclnnUpsampleBicubic2dAAGrad": smoothed("bicubic", "gradOutput"),
}
