"""What torch gives for the rows of attention, deformable."""

import torch.nn.functional as F

from .._arguments import t
from .flash import through


def sampled_levels(a):
    """Through torch's grid_sample, a level at a time."""
    total = 0
    for level, (h, w) in enumerate(a["spatialShape"].tolist()):
        start = int(a["levelStartIndex"][level])
        image = t(a["value"])[:, start : start + h * w].permute(0, 2, 3, 1).reshape(4, 8, h, w)
        grid = t(a["location"])[:, :, :, level].permute(0, 2, 1, 3, 4).flatten(0, 1) * 2 - 1
        seen = F.grid_sample(image, grid, align_corners=False)  # [4, 8, Q, P]
        weight = t(a["attnWeight"])[:, :, :, level].permute(0, 2, 1, 3).flatten(0, 1)
        total = total + (seen * weight[:, None]).sum(-1)
    return total.unflatten(0, (2, 2)).permute(0, 3, 1, 2).flatten(2)


ORACLES = {
    "aclnnMultiScaleDeformableAttentionGrad": through(
        sampled_levels, ("value", "location", "attnWeight"), "gradOutput"
    ),
    "aclnnMultiScaleDeformableAttnFunction": sampled_levels,
}
