"""What torch gives for exponents that blocks share: one block after the other, by logarithms."""

from __future__ import annotations

import math
from itertools import product

import torch
from test_references import F, t

KINDS = {35: torch.float8_e5m2, 36: torch.float8_e4m3fn}


def exponent(block, kind, how):
    peak, top = block.abs().max().item(), torch.finfo(kind).max
    if peak == 0:
        return -127
    return math.ceil(math.log2(peak / top)) if how else (
        math.floor(math.log2(peak)) - math.floor(math.log2(top)))  # fmt: skip


def clamped(x, kind):
    top = torch.finfo(kind).max
    return x.clamp(-top, top)


def shared(x, axis, kind, how=0):
    """(x over its scales, scales) by blocks along an axis."""
    rows = x.movedim(axis, -1)
    y, pairs = rows.clone(), -(-rows.shape[-1] // 64)
    scales = torch.full((*rows.shape[:-1], 2 * pairs), 2.0**-127, dtype=torch.float64)
    for place in product(*map(range, rows.shape[:-1])):
        for k, block in enumerate(rows[place].split(32)):
            power = 2.0 ** exponent(block, kind, how)
            y[(*place, slice(32 * k, 32 * k + 32))] = clamped(block / power, kind)
            scales[(*place, k)] = power
    return y.movedim(-1, axis), scales.unflatten(-1, (-1, 2)).movedim(-2, axis % x.ndim)


def back(a):
    flat = t(a["mxscale"]).movedim(-1, a["axis"] % a["x"].ndim + 1).flatten(
        a["axis"] % a["x"].ndim, a["axis"] % a["x"].ndim + 1)  # fmt: skip
    wide = flat.repeat_interleave(32, a["axis"])
    return t(a["x"]) * wide.narrow(a["axis"], 0, a["x"].shape[a["axis"]])


def squared(x, kind):
    """Tiles of 32 by 32, by their own loops."""
    m, n = x.shape[-2:]
    y = x.clone()
    across = torch.full((*x.shape[:-1], -(-n // 64) * 2), 2.0**-127, dtype=torch.float64)
    down = torch.full((*x.shape[:-2], -(-m // 64) * 2, n), 2.0**-127, dtype=torch.float64)
    for b in range(math.prod(x.shape[:-2])):
        for i in range(0, m, 32):
            for j in range(0, n, 32):
                tile = x.reshape(-1, m, n)[b, i : i + 32, j : j + 32]
                power = 2.0 ** exponent(tile, kind, 0)
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


def single(x):
    """As float32, in which kernels find the peaks."""
    return x.float().double()


def norm(x, a):
    y = F.rms_norm(x, x.shape[-1:], t(a["gamma"]), a["epsilon"])
    y = y if a["beta"] is None else y + t(a["beta"])
    return (
        *shared(single(y), -1, KINDS[a["dstType"]]),
        ((x * x).mean(-1, True) + a["epsilon"]).rsqrt(),
    )


def added(a):
    x = t(a["x1"]) + t(a["x2"])
    y, scale, rstd = norm(x, a)
    return y, x, scale, rstd


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
    return both(x.grad, a, KINDS[a["dstDtype"]])


MICROSCALING = {
    "aclnnDynamicMxQuant": lambda a: shared(
        t(a["x"]), a["axis"], KINDS[a["dstType"]], a["scaleAlg"]),
    "aclnnDynamicMxQuantWithDualAxis": lambda a: (
        *shared(t(a["x"]), -1, KINDS[a["dstType"]]), *shared(t(a["x"]), -2, KINDS[a["dstType"]])),
    "aclnnAntiMxQuant": back,
    "aclnnDynamicBlockMxQuant": lambda a: squared(t(a["x"]), KINDS[a["dstType"]]),
    "aclnnGroupedDynamicMxQuant": lambda a: by_groups(
        t(a["x"]), a["groupIndex"], KINDS[a["dstType"]]),
    "aclnnGroupedDynamicMxQuantWithDualAxis": lambda a: (
        *shared(t(a["x"]), -1, KINDS[a["dstDtype"]]),
        *by_groups(t(a["x"]), a["groupIndex"], KINDS[a["dstDtype"]])),
    "aclnnRmsNormDynamicMxQuant": lambda a: norm(t(a["x"]), a),
    "aclnnAddRmsNormDynamicMxQuant": added,
    "aclnnSwigluMxQuant": lambda a: shared(
        single(gate(t(a["x"]), a["activateLeft"])), -1, KINDS[a["dstType"]], a["scaleAlg"]),
    "aclnnSwigluMxQuantWithDualAxis": lambda a: both(
        gate(t(a["x"]), a["activateLeft"]), a, KINDS[a["dstType"]]),
    "aclnnSwigluBackwardMxQuantWithDualAxis": back_through_gate,
}  # fmt: skip
