"""What torch gives for the rows of image."""

import colorsys

import torch
import torch.nn.functional as F

from ._arguments import t


def planes(x):
    return t(x).permute(0, 3, 1, 2).double()


def pixels(x):
    return x.permute(0, 2, 3, 1)


def filling(a):
    """A plane of each channel's own fill."""
    return torch.tensor(a["fill"], dtype=torch.float64).view(1, -1, 1, 1)


def padded(a):
    left, top, right, bottom = a["padding"]
    x, sides = planes(a["self"]), (left, right, top, bottom)
    mode = ("constant", "replicate", "reflect")[a["paddingMode"]] if a["paddingMode"] < 3 else ""
    if mode == "constant":
        return pixels(F.pad(x - filling(a), sides) + filling(a))
    if mode:
        return pixels(F.pad(x, sides, mode))
    x = torch.cat([x[:, :, :top].flip(2), x, x[:, :, x.shape[2] - bottom :].flip(2)], 2)
    parts = [x[..., :left].flip(3), x, x[..., x.shape[3] - right :].flip(3)]
    return pixels(torch.cat(parts, 3))


def erased(a):
    out = t(a["self"]).clone()
    rows, columns = (slice(a[k], a[k] + a[n]) for k, n in (("top", "height"), ("left", "width")))
    out[:, rows, columns] = torch.tensor(a["value"]).to(out.dtype)
    return out


def scaled(x, size, mode):
    name = ("bilinear", "nearest", "bicubic")[mode]
    corners = {} if name == "nearest" else {"align_corners": False}
    return pixels(F.interpolate(x, size, mode=name, **corners).clamp(0, 1))


def window(a):
    x = planes(a["self"])[:, :, a["top"] :, a["left"] :]
    return scaled(x[:, :, : a["height"], : a["width"]], a["size"], a["interpolationMode"])


def gray(a):
    weights = torch.tensor([0.2989, 0.587, 0.114], dtype=torch.float64).view(1, 3, 1, 1)
    return F.conv2d(planes(a["self"]), weights)


def blended(a, other):
    return pixels((other + (planes(a["self"]) - other) * a["factor"]).clamp(0, 1))


def smooth(a):
    x = planes(a["self"])
    kernel = torch.ones(3, 1, 3, 3, dtype=torch.float64)
    kernel[:, :, 1, 1] = 5
    inner = F.conv2d(x, kernel / 13, groups=3)
    out = x.clone()
    out[:, :, 1:-1, 1:-1] = inner
    return blended(a, out)


def hue(a):
    def turned(pixel):
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        return colorsys.hsv_to_rgb(h + a["factor"] + 1, s, v)

    rows = [turned(p) for p in t(a["self"]).flatten(0, 2).tolist()]
    return torch.tensor(rows, dtype=torch.float64)


def converted(a):
    x, mode = t(a["self"]), a["convertMode"]
    color = x.expand(-1, -1, -1, 3) if x.shape[3] == 1 else x[..., :3]
    color = color.flip(3) if mode in (2, 3, 4, 5) else color
    alpha = {5: x[..., 3:]}.get(mode, torch.full_like(x[..., :1], 255))
    return torch.cat([color, alpha], 3) if mode in (0, 2, 5, 9) else color


def table(a, make):
    x = t(a["self"]).long()
    out = [make(plane.bincount(minlength=256))[plane] for plane in x[0].flatten(0, 1).T]
    return torch.stack(out, -1)


def equalized(count):
    step = int(count.sum() - count[count.nonzero()[-1]]) // 255
    return ((count.cumsum(0) - count + step // 2) // step).clamp(max=255)


def stretched(a):
    def make(count):
        count[list(a["ignore"])] = 0
        total = count.cumsum(0)
        cut = [total[-1] * c // 100 for c in a["cutoff"]]
        low = int((total > cut[0]).nonzero()[0])
        high = int((total >= total[-1] - cut[1]).nonzero()[0])
        scale = 255.0 / (high - low)
        return (torch.arange(256, dtype=torch.float64) * scale - low * scale).long().clamp(0, 255)

    return table(a, make)


def blurred(a):
    (kx, ky), (sx, sy) = a["kernelSize"], a["sigma"]

    def bell(size, deviation):
        at = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
        return torch.softmax(-((at / deviation) ** 2) / 2, 0)

    kernel = torch.outer(bell(ky, sy), bell(kx, sx)).expand(3, 1, ky, kx)
    if a["paddingMode"] == 3:
        return None
    mode = ("constant", "replicate", "reflect")[a["paddingMode"]]
    x = F.pad(planes(a["self"]), (kx // 2, kx // 2, ky // 2, ky // 2), mode)
    return pixels(F.conv2d(x, kernel, groups=3))


def sampled(a, back):
    """torch's grids run from -1 to 1; the fill is a constant image's part that stays outside."""
    x, edge = planes(a["self"]), a["paddingMode"] == 1
    fill = 0.0 if edge else filling(a)
    high, wide = x.shape[2:]
    v, u = torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
    at = torch.stack([u, v, torch.ones_like(u)], -1).double() @ back.T
    at = at[..., :2] / at[..., 2:]
    grid = (at * 2 + 1) / torch.tensor([wide, high]) - 1
    mode = ("bilinear", "nearest")[a["interpolationMode"]]
    beyond = "border" if edge else "zeros"
    y = F.grid_sample(x - fill, grid[None], mode, beyond, align_corners=False)
    return pixels(y + fill)


def inverse(a):
    matrix = torch.tensor([*a["matrix"], 0, 0, 1][:9], dtype=torch.float32).double().view(3, 3)
    return sampled(a, matrix.inverse())


def rotated(a):
    high, wide = a["self"].shape[1:3]
    x, y = a["center"] or ((wide - 1) / 2, (high - 1) / 2)
    turn = torch.deg2rad(torch.tensor(a["angle"], dtype=torch.float64))
    move = torch.eye(3, dtype=torch.float64)
    move[0, 2], move[1, 2] = x, y
    spin = torch.eye(3, dtype=torch.float64)
    spin[:2, :2] = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()]).view(2, 2)
    return sampled(a, move @ spin @ move.inverse())


ORACLES = {
    "acldvppHWC2CHW": lambda a: t(a["self"]).movedim(3, 1),
    "acldvppCHW2HWC": lambda a: t(a["self"]).movedim(1, 3),
    "acldvppImgToTensor": lambda a: t(a["self"]).movedim(3, 1).double().div(255),
    "acldvppHorizontalFlip": lambda a: t(a["self"]).flip(2),
    "acldvppVerticalFlip": lambda a: t(a["self"]).flip(1),
    "acldvppCrop": lambda a: (
        t(a["self"]).narrow(1, a["top"], a["height"]).narrow(2, a["left"], a["width"])
    ),
    "acldvppErase": erased,
    "acldvppPad": padded,
    "acldvppResize": lambda a: scaled(planes(a["self"]), a["size"], a["interpolationMode"]),
    "acldvppCropAndResize": window,
    "acldvppAdjustBrightness": lambda a: blended(a, torch.zeros(1, dtype=torch.float64)),
    "acldvppAdjustContrast": lambda a: blended(a, gray(a).mean()),
    "acldvppAdjustSaturation": lambda a: blended(a, gray(a)),
    "acldvppAdjustSharpness": smooth,
    "acldvppAdjustHue": hue,
    "acldvppRgbToGrayscale": lambda a: pixels(gray(a).expand(-1, a["outputChannelsNum"], -1, -1)),
    "acldvppInvert": lambda a: t(a["self"]) ^ 255,
    "acldvppPosterize": lambda a: t(a["self"]) & (0xFF << 8 - a["bits"]) & 0xFF,
    "acldvppSolarize": lambda a: torch.where(
        t(a["self"]).clamp(*(int(v) for v in a["threshold"])) == t(a["self"]),
        t(a["self"]) ^ 255,
        t(a["self"]),
    ),
    "acldvppNormalize": lambda a: (
        (t(a["self"]) - torch.tensor(a["mean"]).double()) / torch.tensor(a["std"]).double()
    ),
    "acldvppConvertColor": converted,
    "acldvppEqualize": lambda a: table(a, equalized),
    "acldvppAutoContrast": stretched,
    "acldvppGaussianBlur": blurred,
    "acldvppWarpAffine": inverse,
    "acldvppWarpPerspective": inverse,
    "acldvppRotate": rotated,
}
