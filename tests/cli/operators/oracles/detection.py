"""What torch gives for the rows of detection."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from ._arguments import t
from ._functions import autograd


def regions(a):
    """Every sample by grid_sample."""
    x, outs = t(a["self"]), []
    high, wide = x.shape[2:]
    for image, *corners in a["boxes"]:
        x0, y0, x1, y1 = (c * a["spatialScale"] - (0.5 if a["aligned"] else 0) for c in corners)
        sizes = (y1 - y0, x1 - x0) if a["aligned"] else (max(y1 - y0, 1), max(x1 - x0, 1))
        places = []
        for low, size, count in zip((y0, x0), sizes, (a["pooledHeight"], a["pooledWidth"]),
                                    strict=True):  # fmt: skip
            n = a["samplingRatio"] or int(torch.tensor(size / count).ceil())
            places.append((low + size / count * (torch.arange(count * n) + 0.5).double() / n, n))
        (ys, ny), (xs, nx) = places
        grid = torch.stack(torch.meshgrid(2 * xs / (wide - 1) - 1, 2 * ys / (high - 1) - 1,
                                          indexing="xy"), -1)  # fmt: skip
        inside = ((ys >= -1) & (ys <= high))[:, None] & ((xs >= -1) & (xs <= wide))
        y = F.grid_sample(x[int(image)][None], grid[None].double(), padding_mode="border",
                          align_corners=True) * inside  # fmt: skip
        outs.append(F.avg_pool2d(y, (ny, nx))[0])
    return torch.stack(outs)


def chamfer(a):
    def distances(one, two):
        def near(x, y, at):
            return ((x - y.gather(1, t(at).long()[..., None].expand(-1, -1, 2))) ** 2).sum(-1)

        return near(one, two, a["idx1"]), near(two, one, a["idx2"])

    return autograd(distances, a["xyz1"], a["xyz2"], flow=[a["gradDist1"], a["gradDist2"]])


def interpolated(x, a):
    rows = x[..., 0].gather(2, t(a["idx"]).long().flatten(1)[:, None].expand(-1, 3, -1))
    return (rows.unflatten(2, (4, 3)) * t(a["weight"])[:, None]).sum(-1, keepdim=True)


def region_gradients(a):
    """What flows through the samples of regions."""
    blank = torch.zeros(a["inputShape"], dtype=torch.float64)
    return autograd(lambda x: regions({**a, "self": x}), blank, flow=a["gradOutput"])


def largest_samples(a, box, image):
    x, n = t(a["self"])[image], a["samplingRatio"]
    left, top, right, bottom = (box * a["spatialScale"]).tolist()
    steps = []
    for low, high, bins in ((top, bottom, a["outputHeight"]), (left, right, a["outputWidth"])):
        width = max(high - low, 1.0) / bins / n
        steps.append([low + (k + 0.5) * width for k in range(bins * n)])
    samples = torch.zeros(x.shape[0], len(steps[0]), len(steps[1]), dtype=x.dtype)
    for i, row in enumerate(steps[0]):
        for j, column in enumerate(steps[1]):
            corners = [
                (math.floor(row) + p, math.floor(column) + q) for p in (0, 1) for q in (0, 1)
            ]
            shares = [(1 - abs(row - r)) * (1 - abs(column - c)) for r, c in corners]
            samples[:, i, j] = torch.stack([x[:, r, c] * s for (r, c), s in
                                            zip(corners, shares, strict=True)]).amax(0)  # fmt: skip
    return F.max_pool2d(samples[None], n)[0]


def images_apart(a):
    """The mean as regions have it; the largest from every sample's four corners."""
    if a["mode"] == "max":
        return torch.stack(
            [
                largest_samples(a, t(box), int(image))
                for box, image in zip(a["rois"], a["batchIndices"], strict=True)
            ]
        )
    boxes = torch.cat([t(a["batchIndices"])[:, None], t(a["rois"])], 1)
    return regions({**a, "boxes": boxes, "aligned": False, "pooledHeight": a["outputHeight"],
                    "pooledWidth": a["outputWidth"]})  # fmt: skip


def suppressed(a):
    """Corners are whole numbers: boxes are sets of cells of half a step. In order of scores each
    box stays that overlaps none of those before it too much."""
    rows = []
    for image, of_image in enumerate(t(a["scores"])):
        cells = torch.zeros(a["boxes"].shape[1], 192, 192)
        for plane, (x, y, z, w) in zip(cells, t(a["boxes"])[image].int().tolist(), strict=True):
            if a["centerPointBox"]:  # moved, so that none begins below zero
                x, y, z, w = 64 + 2 * x - z, 64 + 2 * y - w, 64 + 2 * x + z, 64 + 2 * y + w
            else:
                x, y, z, w = 2 * x, 2 * y, 2 * z, 2 * w
            plane[min(x, z) : max(x, z), min(y, w) : max(y, w)] = 1
        common = cells.flatten(1) @ cells.flatten(1).T
        union = common.diagonal()[:, None] + common.diagonal() - common
        for kind, of_class in enumerate(of_image):
            kept = []
            for box in of_class.argsort(descending=True).tolist():
                apart = all(common[box, k] <= a["iouThreshold"][0] * union[box, k] for k in kept)
                if apart and of_class[box] > a["scoreThreshold"][0]:
                    kept.append(box)
            rows += [[image, kind, box] for box in kept[: a["maxOutputBoxesPerClass"][0]]]
    return torch.tensor(rows)


def region_maxima(a):
    """Each region cut out and pooled to a size: bins that share pixels are torch's too."""
    outs, places, room = [], [], 64
    plane = F.pad(t(a["x"]), (room,) * 4, value=-torch.inf)
    for roi in t(a["rois"]):
        wide, high = a["spatial_scale_w"], a["spatial_scale_h"]
        scaled = roi * torch.tensor([1.0, wide, high, wide, high], dtype=roi.dtype)
        image, left, top, right, bottom = scaled.round().int().tolist()
        piece = plane[image, :, top + room : bottom + 1 + room, left + room : right + 1 + room]
        y, at = F.adaptive_max_pool2d(piece, (a["pooled_h"], a["pooled_w"]), return_indices=True)
        wide, empty = right - left + 1, y.isinf()
        outs.append(y.masked_fill(empty, 0))
        at = (at // wide + top) * a["x"].shape[3] + at % wide + left
        places.append(at.masked_fill(empty, -1))
    return torch.stack(outs), torch.stack(places)


def region_grads(a):
    out = t(a["gradInputRef"]).flatten(2).clone()
    for roi, flow, at in zip(a["rois"], t(a["gradOutput"]), t(a["argmax"]), strict=True):
        at, flow = at.flatten(1).long(), flow.flatten(1)
        out[int(roi[0])].scatter_add_(1, at.clamp(min=0), flow.masked_fill(at < 0, 0))
    return out.view(*a["gradInputRef"].shape)


ORACLES = {
    "aclnnRoiAlignV2": regions,
    "aclnnChamferDistanceBackward": chamfer,
    "aclnnThreeInterpolateBackward": lambda a: autograd(
        lambda x: interpolated(x, a), np.zeros((2, 3, 5, 1)), flow=a["grad_x"]
    ),
    "aclnnRoiAlign": images_apart,
    "aclnnRoiAlignV2Backward": region_gradients,
    "aclnnNonMaxSuppression": suppressed,
    "aclnnRoiPoolingWithArgMax": region_maxima,
    "aclnnRoiPoolingGradWithArgMax": region_grads,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnIou",
        {
            "bBoxes": [[0.0, 0.0, 2.0, 2.0]],
            "gtBoxes": [[1.0, 1.0, 3.0, 3.0]],
            "eps": 0.0,
            "mode": "iou",
            "aligned": False,
        },
        [[[1 / 7]]],
    ),
    (
        "aclnnIou",
        {
            "bBoxes": [[0.0, 0.0, 2.0, 3.0]],
            "gtBoxes": [[1.0, 1.0, 3.0, 3.0]],
            "eps": 1.0,
            "mode": "iof",
            "aligned": True,
        },
        [[[2 / 5]]],
    ),
]
