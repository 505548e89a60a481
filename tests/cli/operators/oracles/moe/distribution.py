"""What torch gives for the rows of moe, distribution."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named


def dispatched(a):
    ids = t(a["expertIds"])
    rows, ends, place = [], [], torch.zeros(ids.numel(), dtype=torch.long)
    for expert in range(3):
        at = (ids.reshape(-1) == expert).nonzero()[:, 0]
        rows += [t(a["x"])[i // ids.shape[1]] for i in at]
        place[at] = torch.arange(len(at))
        ends.append(len(rows))
    ends = torch.tensor(ends)
    numbers = ends.diff(prepend=torch.tensor([0])) if a["expertTokenNumsType"] else ends
    return torch.stack(rows), place, numbers, ends


def combined(a):
    flat, out = t(a["expertIds"]).reshape(-1), torch.zeros(4, 32, dtype=torch.float64)
    weights = t(a["expertScales"]).reshape(-1)
    for row, at in enumerate(sorted(range(len(flat)), key=lambda i: (int(flat[i]), i))):
        out[at // 2] += weights[at] * t(a["expandX"])[row]
    return add_named(out, a, "sharedExpertXOptional")


def combined_norm(a):
    flat = t(a["expertIds"]).flatten()
    slots = torch.argsort(torch.argsort(flat, stable=True))
    rows = t(a["expandX"])[slots] * t(a["expertScales"]).flatten()[:, None]
    x = rows.unflatten(0, (4, 2)).sum(1)[:, None] + t(a["residualX"])
    rstd = (x.square().mean(-1, keepdim=True) + a["normEps"]).rsqrt()
    return F.rms_norm(x, (32,), t(a["gamma"]), a["normEps"]), rstd, x


ORACLES = {
    "aclnnMoeDistributeDispatch": dispatched,
    "aclnnMoeDistributeDispatchV2": lambda a: tuple(dispatched(a)[i] for i in (0, 2, 3)),
    "aclnnMoeDistributeCombine": combined,
    "aclnnMoeDistributeCombineV2": combined,
    "aclnnMoeDistributeCombineAddRmsNorm": combined_norm,
}
