"""What torch gives for the rows of moe, combination."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, autograd


def finalize_gradients(a):
    bias = t(a["biasOptional"])
    experts = t(a["expertIdxOptional"])[:, 0]

    def formula(rows, scales):
        flat, at = rows.flatten(0, -2), t(a["expandedRowIdx"]).long()
        at = torch.where(at < len(flat), at, -1) % (len(flat) + 1)  # a row of 0 behind the others
        own = F.pad(flat, (0, 0, 0, 1))[at]
        return scales * (own if bias is None else own + bias[experts.long()])

    return autograd(formula, a["expandedXOptional"], a["scalesOptional"], flow=a["gradY"])


def finalize_v3(a):
    out = torch.zeros(4, 5, dtype=torch.float64)
    x, rows = t(a["xOptional"]), t(a["expandedX"]).flatten(0, -2)
    for token in range(4):
        for k in range(2):
            expert = int(a["expertIdxOptional"][token, k])
            slot = int(a["expandedRowIdx"][k * 4 + token if a["dropPadMode"] < 2
                                           else token * 2 + k])  # fmt: skip
            row = rows[slot] if slot >= 0 else torch.zeros_like(rows[0])
            if a.get("biasOptional") is not None:
                row = row + t(a["biasOptional"])[expert]
            if expert in range(*a["zeroExpertRange"]):
                row = torch.zeros_like(row)
            elif expert in range(*a["copyExpertRange"]):
                row = x[token]
            elif expert in range(*a["constantExpertRange"]):
                a1, a2, v = (t(a[f"{n}Optional"])[expert - a["constantExpertRange"][0]]
                             for n in ("a1", "a2", "v"))  # fmt: skip
                row = a1 * x[token] + a2 * v
            out[token] += a["scalesOptional"][token, k] * row
    return add_named(out, a, "x1Optional")


def finalize(a):
    """A product with a matrix that has each token's weight at its rows."""
    rows, scales = t(a["expandedX"]).flatten(0, -2), t(a["scalesOptional"])
    tokens, k = scales.shape
    place = t(a["expandedRowIdx"]).long()
    place = place.view(k, tokens).T if a["dropPadMode"] < 2 else place.view(tokens, k)
    hot = F.one_hot(place + 1, len(rows) + 1)[..., 1:].double()
    y = torch.einsum("tk,tkr,rh->th", scales, hot, rows)
    y = y + torch.einsum("tk,tkh->th", scales, t(a["biasOptional"])[
        t(a["expertIdxOptional"]).long()])  # fmt: skip
    return y + t(a["x1Optional"]) + (0 if a["x2Optional"] is None else t(a["x2Optional"]))


def finalize_slots(a, x1, scales, bias, expert):
    slots = t(a["expandedRowIdx"]).reshape(2, 5).T
    rows = t(a["expandedX"])[slots] + t(bias)[t(expert)]
    return t(x1) + (t(scales)[..., None] * rows).sum(1)


ORACLES = {
    "aclnnMoeFinalizeRoutingV2Grad": finalize_gradients,
    "aclnnMoeFinalizeRoutingV3": finalize_v3,
    "aclnnMoeFinalizeRoutingV2": finalize,
    "aclnnMoeFinalizeRouting": lambda a: finalize_slots(
        a,
        a["x1"] + (0 if a["x2Optional"] is None else a["x2Optional"]),
        a["scales"],
        a["bias"],
        a["expandedExpertIdx"],
    ),
}
