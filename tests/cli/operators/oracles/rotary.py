"""What torch gives for the rows of rotary."""

from functools import partial

import numpy as np
import torch

from ._arguments import t
from ._functions import autograd


def partly_turned(a):
    begin, end = a["partialSlice"]
    x = t(a["xRef"])
    part = turned_by(a["rotary_mode"], x[..., begin:end], t(a["cos"]), t(a["sin"]))
    return torch.cat([x[..., :begin], part, x[..., end:]], -1)


def partial_grad(a):
    begin, end = a["partialSlice"]

    def turn(x):
        middle = turned_by(a["rotaryMode"], x[..., begin:end], t(a["cos"]), t(a["sin"]))
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
    turns = torch.complex(*t(a["cosSinCache"])[t(a["positions"])].chunk(2, -1))
    if turns.dim() > 2:
        sections = turns.split(list(a["mropeSection"]), -1)
        turns = torch.cat([part[n] for n, part in enumerate(sections)], -1)
    turn, wide, outs = turns[:, None], a["cosSinCache"].shape[-1], []
    for x in (t(a["queryIn"]), t(a["keyIn"])):
        h, rest = x.reshape(len(x), -1, a["headSize"]).split([wide, a["headSize"] - wide], -1)
        p, q = h.chunk(2, -1) if a["isNeoxStyle"] else (h[..., 0::2], h[..., 1::2])
        y = torch.complex(p.contiguous(), q.contiguous()) * turn
        parts = (y.real, y.imag)
        whole = torch.cat(parts, -1) if a["isNeoxStyle"] else torch.stack(parts, -1).flatten(-2)
        outs.append(torch.cat([whole, rest], -1).reshape(x.shape))
    return outs


def interleaved_sections(a):
    """As vLLM lays them: columns of height and width over those of time, three apart."""
    if a["cacheMode"] != 1 or a["positions"].ndim < 2:
        return rope(a)
    table, half = t(a["cosSinCache"])[t(a["positions"])], a["cosSinCache"].shape[-1] // 2
    mixed = table[0].clone()
    for n in (1, 2):
        for at in range(n, min(3 * a["mropeSection"][n], half), 3):
            mixed[:, [at, at + half]] = table[n][:, [at, at + half]]
    plain = {"cosSinCache": mixed.numpy(), "positions": np.arange(len(mixed))}
    return rope({**a, **plain})


def rotated(a):
    """By the matrix that turns each pair: halves, neighbours, or halves of halves."""
    pair = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    half = a["cos"].shape[-1] // 2
    eye = [torch.eye(n, dtype=torch.float64) for n in (half, 2, half // 2)]
    mode = a.get("rotaryMode", "half")
    turn = {"half": torch.kron(pair, eye[0]), "interleave": torch.kron(eye[0], pair),
            "quarter": torch.kron(eye[1], torch.kron(pair, eye[2]))}[mode]  # fmt: skip
    return [t(x) * t(a["cos"]) + t(x) @ turn * t(a["sin"]) for x in (a["queryRef"], a["keyRef"])]


def turned_grad(a):
    x = np.zeros_like(a["dy"]) if a["xOptional"] is None else a["xOptional"]
    grads = autograd(partial(turned_by, a["mode"]), x, a["cos"], a["sin"], flow=a["dy"])
    return grads[:1] if a["xOptional"] is None else grads


ORACLES = {
    "aclnnInplacePartialRotaryMul": partly_turned,
    "aclnnInplacePartialRotaryMulGrad": partial_grad,
    "aclnnRotaryPositionEmbeddingGrad": turned_grad,
    "aclnnApplyRotaryPosEmbV2": rotated,
    "aclnnApplyRotaryPosEmb": rotated,
    "aclnnRotaryPositionEmbedding": lambda a: turned_by(
        a["mode"], *map(t, (a["x"], a["cos"], a["sin"]))
    ),
    "aclnnInterleaveRope": lambda a: turned_by(3, t(a["x"]), t(a["cos"]), t(a["sin"])),
    "aclnnRotaryPositionEmbeddingV2": lambda a: (
        t(a["x"]) * t(a["cos"])
        + torch.einsum("...i,ij->...j", t(a["x"]), t(a["rotate"])) * t(a["sin"])
    ),
    "aclnnRopeWithSinCosCache": rope,
    "aclnnRopeWithSinCosCacheV2": interleaved_sections,
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
