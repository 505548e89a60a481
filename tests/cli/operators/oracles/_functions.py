"""Words of torch that oracles of several families use."""

import math
from itertools import product

import torch

from ._arguments import t


def group_sizes(groups, kind):
    groups = t(groups)
    return groups if kind else groups.diff(prepend=torch.zeros(1, dtype=groups.dtype))


def add_named(y, a, *names):
    for name in names:
        y = y if a.get(name) is None else y + t(a[name])
    return y


def matmul_of(a, left="x1", right="x2"):
    return torch.matmul(t(a[left]).double(), t(a[right]).double())


# A small type by aclDataType, or the largest number of float4 e2m1, of which torch has none.
MX_DTYPES = {35: torch.float8_e5m2, 36: torch.float8_e4m3fn, 40: 6.0}


def largest(kind):
    return kind if isinstance(kind, float) else torch.finfo(kind).max


def exponent(block, kind, how):
    peak, top = block.abs().max().item(), largest(kind)
    if peak == 0:
        return -127
    return math.ceil(math.log2(peak / top)) if how else (
        math.floor(math.log2(peak)) - math.floor(math.log2(top)))  # fmt: skip


def clamped(x, kind):
    return x.clamp(-largest(kind), largest(kind))


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


def single(x):
    """As float32, in which kernels find the peaks."""
    return x.float().double()


def autograd(formula, *leaves, flow):
    made = [t(x).requires_grad_() for x in leaves]
    outs = formula(*made)
    return list(torch.autograd.grad(outs, made, [t(f) for f in flow]
                                    if isinstance(outs, tuple) else t(flow)))  # fmt: skip


def by_largest(y, most=127):
    scale = y.abs().amax(-1, True) / most
    return y / scale, scale[..., 0]
