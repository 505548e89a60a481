"""What torch gives for the rows of quantization, gates."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import by_largest
from .dynamic import groups_of


def gelu_steps(a):
    y = F.gelu(t(a["self"]), approximate=a["approximate"])
    scale = 1 if a["inputScaleOptional"] is None else t(a["inputScaleOptional"])
    if a["quantMode"] == "static":
        return y * scale + (0 if a["inputOffsetOptional"] is None else t(a["inputOffsetOptional"]))
    y = y * scale
    step = y.abs().amax(-1) / 127
    return y / step[:, None], step


def gated_groups(a):
    first, second = t(a["x"]).chunk(2, -1)
    y = F.silu(first) * second * t(a["weightOptional"])
    parts = y.split(t(a["groupIndexOptional"]).tolist())
    scale = torch.stack([p.abs().max() / (a["dstTypeMax"] or 448) for p in parts])
    return torch.cat([p / s for p, s in zip(parts, scale, strict=True)]), scale, y


def halves(y, left=True):
    first, second = y.chunk(2, -1)
    return F.silu(first if left else second) * (second if left else first)


def swish_steps(a):
    x = t(a["x"])
    which = groups_of(a, len(x), sizes=bool(a.get("groupListType")))
    y = halves(x, a["activateLeft"])
    if (smooth := a["smoothScalesOptional"]) is not None:
        y = y * t(smooth).reshape(len(smooth), -1)[which]
    if a["quantModeOptional"] == "static":
        return y + t(a["offsetsOptional"]).reshape(len(a["offsetsOptional"]), -1)[which], None
    steps, scale = by_largest(y, 7 if a.get("dstType") == 29 else 127)
    return steps, 1 / scale


def dequantised_swish(a):
    which = groups_of(a, len(a["x"]), sizes=True)
    scale = t(a["weightScaleOptional"])[which] * t(a["activationScaleOptional"])
    y = t(a["x"]) * scale
    if (bias := a["biasOptional"]) is not None:  # of integers it is scaled with the products
        y = y + t(bias)[which] * (scale if bias.dtype.kind == "i" else 1)
    if a.get("swigluMode"):
        first, second = (y.unflatten(-1, (-1, 2)).unbind(-1) if a["swigluMode"] == 1
                         else y.chunk(2, -1))  # fmt: skip
        limit = a["clampLimit"]
        first = first.clamp(max=limit)
        y = first * torch.sigmoid(first * a["gluAlpha"]) * (
            F.hardtanh(second, -limit, limit) + a["gluBias"])  # fmt: skip
    else:
        y = halves(y, a["activateLeft"])
    factor = t(a["quantScaleOptional"])[which]
    if a["quantModeOptional"] == "static":
        return y / factor + t(a["quantOffsetOptional"])[which], None
    return by_largest(y * factor)


ORACLES = {
    "aclnnGeluQuant": gelu_steps,
    "aclnnSwigluGroupQuant": gated_groups,
    "aclnnSwiGluQuant": swish_steps,
    "aclnnSwiGluQuantV2": swish_steps,
    "aclnnDequantSwigluQuant": dequantised_swish,
    "aclnnDequantSwigluQuantV2": dequantised_swish,
}
