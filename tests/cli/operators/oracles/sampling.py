"""What torch gives for the rows of sampling."""

import numpy as np
import torch

from ._arguments import t


def sampled(a):
    tokens, kept = [], torch.full(a["logits"].shape, -torch.inf, dtype=torch.float64)
    for r, row in enumerate(t(a["logits"])):
        many = int(a["topK"][r]) or len(row)
        best, at = torch.sort(row, descending=True, stable=True)
        p = best[:many].softmax(-1)
        inside = torch.cat([torch.zeros(1), p.cumsum(-1)[:-1]]) < float(a["topP"][r])
        inside |= float(a["topP"][r]) >= 1
        inside[0] = True
        p, at = p[inside], at[:many][inside]
        if a.get("minPs") is not None and a["minPs"][r] > 0:
            p, at = p[p >= p[0] * a["minPs"][r]], at[p >= p[0] * a["minPs"][r]]
        kept[r, at] = row[at]
        q = 1 if a.get("q") is None else t(a["q"])[r, : len(p)] + a["eps"]
        tokens.append(at[(p / q).argmax()])
    return torch.stack(tokens), kept


ORACLES = {
    "aclnnTopKTopPSample": sampled,
    "aclnnTopKTopPSampleV2": sampled,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnApplyTopKTopP",
        {"logits": [[1.0, 3.0, 2.0]], "p": [1.0], "k": [2]},
        [[[-np.inf, 3.0, 2.0]]],
    ),
]
