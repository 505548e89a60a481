"""What torch gives for the rows of moe, combination."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, autograd


def finalize_gradients(a):
    if a["scalesOptional"] is None:
        return None
    bias, experts = t(a["biasOptional"]), t(a["expertIdxOptional"])

    def formula(rows, scales):
        flat, at = rows.flatten(0, -2), t(a["expandedRowIdx"]).long()
        at = torch.where(at < len(flat), at, -1) % (len(flat) + 1)  # a row of 0 behind the others
        own = F.pad(flat, (0, 0, 0, 1))[at]
        return scales * (own if bias is None else own + bias[experts[:, 0].long()])

    return autograd(formula, a["expandedXOptional"], a["scalesOptional"], flow=a["gradY"])


def finalize_v3(a):
    tokens, width = a["xOptional"].shape
    k = a["expertIdxOptional"].shape[1]
    out = torch.zeros(tokens, width, dtype=torch.float64)
    x, rows = t(a["xOptional"]), t(a["expandedX"]).flatten(0, -2)
    for token in range(tokens):
        for n in range(k):
            expert = int(a["expertIdxOptional"][token, n])
            slot = int(a["expandedRowIdx"][n * tokens + token if a["dropPadMode"] < 2
                                           else token * k + n])  # fmt: skip
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
            out[token] += (
                row if a["scalesOptional"] is None else a["scalesOptional"][token, n] * row
            )
    return add_named(out, a, "x1Optional", "x2Optional")


def finalize(a):
    """A product with a matrix that has each token's weight at its rows."""
    if a["scalesOptional"] is None:
        return None
    rows, scales = t(a["expandedX"]).flatten(0, -2), t(a["scalesOptional"])
    tokens, k = scales.shape
    place = t(a["expandedRowIdx"]).long()
    place = place.view(k, tokens).T if a.get("dropPadMode", 0) < 2 else place.view(tokens, k)
    hot = F.one_hot(place + 1, len(rows) + 1)[..., 1:].double()
    y = torch.einsum("tk,tkr,rh->th", scales, hot, rows)
    if a["biasOptional"] is not None:
        own = t(a["biasOptional"])[t(a["expertIdxOptional"]).long()]
        y = y + torch.einsum("tk,tkh->th", scales, own)
    return add_named(y, a, "x1Optional", "x2Optional")


FIRST = {"x1": "x1Optional", "bias": "biasOptional", "scales": "scalesOptional",
         "expandedExpertIdx": "expertIdxOptional"}  # fmt: skip


ORACLES = {
    "aclnnMoeFinalizeRoutingV2Grad": finalize_gradients,
    "aclnnMoeFinalizeRoutingV3": finalize_v3,
    "aclnnMoeFinalizeRoutingV2": finalize,
    "aclnnMoeFinalizeRouting": lambda a: finalize({FIRST.get(n, n): v for n, v in a.items()}),
}
