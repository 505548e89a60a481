"""What torch gives for the rows of rotary."""

from __future__ import annotations

from functools import partial

import torch

from ._arguments import t
from ._functions import autograd


def partly_turned(a):
    """Quarter turns of pairs as a matrix."""
    first, last = a["partialSlice"]
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    eye = torch.eye((last - first) // 2, dtype=torch.float64)
    turn = torch.kron(eye, quarter) if a["rotary_mode"] == 1 else torch.kron(quarter, eye)
    left, x, right = t(a["xRef"]).split([first, last - first, a["xRef"].shape[-1] - last], -1)
    return torch.cat([left, x * t(a["cos"]) + (x @ turn) * t(a["sin"]), right], -1)


def partial_grad(a):
    n = a["cos"].shape[-1]
    begin, end = a["partialSlice"]

    def turn(x):
        part = x[..., begin:end]
        if a["rotaryMode"]:
            pairs = part.unflatten(-1, (-1, 2))
            other = torch.stack([-pairs[..., 1], pairs[..., 0]], -1).flatten(-2)
        else:
            other = torch.cat([-part[..., n // 2 :], part[..., : n // 2]], -1)
        middle = part * t(a["cos"]) + other * t(a["sin"])
        return torch.cat([x[..., :begin], middle, x[..., end:]], -1)

    return autograd(turn, a["dyRef"], flow=a["dyRef"])


def turned_by(mode, x, c, s):
    if mode == 3:  # neighbours come into halves
        x = x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    pairs = {0: (1, 2, -1), 1: (-1, 2, 1), 2: (2, 2, -1), 3: (1, 2, -1)}[mode]
    low, high = x.unflatten(-1, pairs).unbind(-2)
    return x * c + torch.stack([-high, low], -2).flatten(-3) * s


def rope(a):
    """Pairs as complex numbers, turned by multiplication."""
    cos, sin = t(a["cosSinCache"])[t(a["positions"])].chunk(2, -1)
    turn = torch.complex(cos, sin)[:, None]
    outs = []
    for x in (t(a["queryIn"]), t(a["keyIn"])):
        h = x.reshape(4, -1, 32)
        p, q = h.chunk(2, -1) if a["isNeoxStyle"] else (h[..., 0::2], h[..., 1::2])
        y = torch.complex(p.contiguous(), q.contiguous()) * turn
        parts = (y.real, y.imag)
        whole = torch.cat(parts, -1) if a["isNeoxStyle"] else torch.stack(parts, -1).flatten(-2)
        outs.append(whole.reshape(x.shape))
    return outs


def rotated(a):
    """By the matrix that turns each pair: halves, neighbours, or halves of halves."""
    pair = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    eye = [torch.eye(n, dtype=torch.float64) for n in (64, 2, 32)]
    turn = {"half": torch.kron(pair, eye[0]), "interleave": torch.kron(eye[0], pair),
            "quarter": torch.kron(eye[1], torch.kron(pair, eye[2]))}[a["rotaryMode"]]  # fmt: skip
    return [t(x) * t(a["cos"]) + t(x) @ turn * t(a["sin"]) for x in (a["queryRef"], a["keyRef"])]


ORACLES = {
    "aclnnInplacePartialRotaryMul": partly_turned,
    "aclnnInplacePartialRotaryMulGrad": partial_grad,
    "aclnnRotaryPositionEmbeddingGrad": lambda a: autograd(
        partial(turned_by, a["mode"]), a["xOptional"], a["cos"], a["sin"], flow=a["dy"]
    ),
    "aclnnApplyRotaryPosEmbV2": rotated,
    "aclnnApplyRotaryPosEmb": lambda a: [
        t(x) * t(a["cos"]) + torch.cat([-t(x)[..., 64:], t(x)[..., :64]], -1) * t(a["sin"])
        for x in (a["queryRef"], a["keyRef"])
    ],
    "aclnnRotaryPositionEmbeddingV2": lambda a: (
        t(a["x"]) * t(a["cos"])
        + torch.cat([-t(a["x"])[..., 32:], t(a["x"])[..., :32]], -1) * t(a["sin"])
    ),
    "aclnnRopeWithSinCosCache": rope,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnRotaryPositionEmbedding",
        {"x": [[[[1.0, 2.0]]]], "cos": [[[[0.0, 0.0]]]], "sin": [[[[1.0, 1.0]]]], "mode": 0},
        [[[[[-2.0, 1.0]]]]],
    ),
    (
        "aclnnRotaryPositionEmbedding",
        {
            "x": [[[[1.0, 2.0, 3.0, 4.0]]]],
            "cos": [[[[0.0] * 4]]],
            "sin": [[[[1.0] * 4]]],
            "mode": 1,
        },
        [[[[[-2.0, 1.0, -4.0, 3.0]]]]],
    ),
]
