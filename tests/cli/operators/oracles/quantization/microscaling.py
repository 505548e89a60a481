"""What torch gives for the rows of quantization, microscaling."""

import math

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import MX_DTYPES, clamped, exponent, shared, single


def back(a):
    flat = t(a["mxscale"]).movedim(-1, a["axis"] % a["x"].ndim + 1).flatten(
        a["axis"] % a["x"].ndim, a["axis"] % a["x"].ndim + 1)  # fmt: skip
    wide = flat.repeat_interleave(32, a["axis"])
    return t(a["x"]) * wide.narrow(a["axis"], 0, a["x"].shape[a["axis"]])


def squared(x, kind, how=0):
    """Tiles of 32 by 32, by their own loops."""
    m, n = x.shape[-2:]
    y = x.clone()
    across = torch.full((*x.shape[:-1], -(-n // 64) * 2), 2.0**-127, dtype=torch.float64)
    down = torch.full((*x.shape[:-2], -(-m // 64) * 2, n), 2.0**-127, dtype=torch.float64)
    for b in range(math.prod(x.shape[:-2])):
        for i in range(0, m, 32):
            for j in range(0, n, 32):
                tile = x.reshape(-1, m, n)[b, i : i + 32, j : j + 32]
                power = 2.0 ** exponent(tile, kind, how)
                y.view(-1, m, n)[b, i : i + 32, j : j + 32] = clamped(tile / power, kind)
                across.view(-1, m, across.shape[-1])[b, i : i + 32, j // 32] = power
                down.view(-1, down.shape[-2], n)[b, i // 32, j : j + 32] = power
    return y, across.unflatten(-1, (-1, 2)), down.unflatten(-2, (-1, 2)).movedim(-2, -1)


def by_groups(x, ends, kind, how=0):
    scales = torch.full((len(x) // 64 + len(ends), x.shape[1], 2), 2.0**-127, dtype=torch.float64)
    parts, begin = [], 0
    for g, end in enumerate(ends):
        y, s = shared(x[begin:end], 0, kind, how) if end > begin else (x[begin:end], scales[:0])
        parts.append(y)
        line = begin // 64 + g
        scales[line : line + len(s)] = s
        begin = int(end)
    return torch.cat(parts), scales


def gate(x, left):
    a, b = x.chunk(2, -1)
    return F.silu(a) * b if left else F.silu(b) * a


def both(x, a, kind):
    x, ends, how = single(x), a["groupIndexOptional"], a["scaleAlg"]
    columns = shared(x, -2, kind, how) if ends is None else by_groups(x, ends, kind, how)
    return (*shared(x, -1, kind, how), *columns)


def back_through_gate(a):
    x = t(a["x"]).requires_grad_()
    gate(x, a["activateLeft"]).backward(t(a["yGrad"]))
    return both(x.grad, a, MX_DTYPES[a["dstDtype"]])


def dual_level(a):
    smooth = a["smoothScaleOptional"]
    x = t(a["x"]) if smooth is None else t(a["x"]) * t(smooth)
    first = [part.abs().amax(-1) / 6 for part in x.split(512, -1)]
    left = [(part.float() / scale.float()[..., None]).half().double()
            for part, scale in zip(x.split(512, -1), first, strict=True)]  # fmt: skip
    y, second = shared(torch.cat(left, -1), -1, MX_DTYPES[40])
    return y, torch.stack(first, -1), second


def gated(a):
    if a["swigluMode"]:
        left, right = t(a["x"]).unflatten(-1, (-1, 2)).unbind(-1)
        left, right = (
            left.clamp(max=a["clampLimit"]),
            right.clamp(-a["clampLimit"], a["clampLimit"]),
        )
        y = left * torch.sigmoid(a["gluAlpha"] * left) * (right + a["gluBias"])
    else:
        y = gate(t(a["x"]), a["activateLeft"])
    if a["groupIndexOptional"] is not None:
        y.view(-1, y.shape[-1])[int(a["groupIndexOptional"].sum()) :] = 0
    return shared(single(y), a["axis"], MX_DTYPES[a["dstType"]], a["scaleAlg"])


def other_blocks(a):
    real = t(a["x"]) * t(a["mxscale"]).flatten(-2).repeat_interleave(32, -1)
    top, largest = ((15, 57344.0), (8, 448.0))[a["dstType"] - 35]
    blocks = real.unflatten(-1, (-1, 32)).unflatten(-3, (-1, 32)).abs().amax((-1, -3))
    scale = (blocks.log2().floor() - top).exp2()
    rows = scale.repeat_interleave(32, -2)
    whole = rows.repeat_interleave(32, -1)
    columns = scale.repeat_interleave(32, -1)
    pairs = F.pad(columns, (0, 0, 0, columns.shape[-2] % 2), value=2.0**-127)
    return ((real / whole).clamp(-largest, largest), rows.unflatten(-1, (-1, 2)),
            pairs.unflatten(-2, (-1, 2)).movedim(-2, -1))  # fmt: skip


ORACLES = {
    "aclnnDynamicMxQuant": lambda a: shared(
        t(a["x"]), a["axis"], MX_DTYPES[a["dstType"]], a["scaleAlg"]
    ),
    "aclnnDynamicMxQuantWithDualAxis": lambda a: (
        *shared(t(a["x"]), -1, MX_DTYPES[a["dstType"]], a["scaleAlg"]),
        *shared(t(a["x"]), -2, MX_DTYPES[a["dstType"]], a["scaleAlg"]),
    ),
    "aclnnAntiMxQuant": back,
    "aclnnDynamicBlockMxQuant": lambda a: squared(
        t(a["x"]), MX_DTYPES[a["dstType"]], a["scaleAlg"]
    ),
    "aclnnGroupedDynamicMxQuant": lambda a: by_groups(
        t(a["x"]), a["groupIndex"], MX_DTYPES[a["dstType"]], a["scaleAlg"]
    ),
    "aclnnGroupedDynamicMxQuantWithDualAxis": lambda a: (
        *shared(t(a["x"]), -1, MX_DTYPES[a["dstDtype"]], a["scaleAlg"]),
        *by_groups(t(a["x"]), a["groupIndex"], MX_DTYPES[a["dstDtype"]], a["scaleAlg"]),
    ),
    "aclnnSwigluMxQuant": gated,
    "aclnnSwigluMxQuantWithDualAxis": lambda a: both(
        gate(t(a["x"]), a["activateLeft"]), a, MX_DTYPES[a["dstType"]]
    ),
    "aclnnSwigluBackwardMxQuantWithDualAxis": back_through_gate,
    "aclnnDynamicDualLevelMxQuant": dual_level,
    "aclnnMxToBlockMxQuant": other_blocks,
}
