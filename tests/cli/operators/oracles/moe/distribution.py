"""What torch gives for the rows of moe, distribution."""

import torch
import torch.nn.functional as F

from .._arguments import t


def dispatched(a, first=""):
    """Rows, scales, places, numbers, ends, weights: expert by expert."""
    ids, late = t(a["expertIds"]), "" if first else "Optional"
    mask = torch.ones(ids.shape, dtype=torch.bool)
    if a.get("xActiveMaskOptional") is not None:
        mask &= t(a["xActiveMaskOptional"]).bool().reshape(len(ids), -1)
    smooth, weights = a[f"scales{late}"], a[f"expertScales{late}"]
    rows, ends, chosen, place = [], [], [], torch.zeros(ids.numel(), dtype=torch.long)
    for expert in range(a["moeExpertNum"]):
        every = (ids.reshape(-1) == expert).nonzero()[:, 0]
        place[every] = torch.arange(len(every))
        for i in every[mask.reshape(-1)[every]].tolist():
            row = t(a["x"])[i // ids.shape[1]]
            rows.append(row if smooth is None else row * t(smooth)[expert])
            chosen.append(i)
        ends.append(len(rows))
    rows, ends, scales = torch.stack(rows), torch.tensor(ends), None
    if a["quantMode"]:
        scales = rows.abs().amax(-1) / 127
        rows = rows / scales[:, None]
    numbers = ends.diff(prepend=torch.tensor([0])) if a["expertTokenNumsType"] else ends
    return rows, scales, place, numbers, ends, (
        None if weights is None else t(weights).reshape(-1)[chosen])  # fmt: skip


def late(a):
    return tuple(v for i, v in enumerate(dispatched(a)) if i != 2)


def combined(a):
    ids, experts = t(a["expertIds"]), a["moeExpertNum"]
    out = torch.zeros(len(ids), a["expandX"].shape[1], dtype=torch.float64)
    row = 0
    for expert in range(experts):
        for token, choice in (ids == expert).nonzero().tolist():
            out[token] += t(a["expertScales"])[token, choice] * t(a["expandX"])[row]
            row += 1
    for token, choice in (ids >= experts).nonzero().tolist():
        weight, at = t(a["expertScales"])[token, choice], int(ids[token, choice]) - experts
        at -= a["zeroExpertNum"]
        if at < 0:
            continue
        own = t(a["oriXOptional"])[token]
        if (at := at - a["copyExpertNum"]) >= 0:
            first, second, constant = (t(a[f"constExpert{n}Optional"])[at]
                                       for n in ("Alpha1", "Alpha2", "V"))  # fmt: skip
            own = own * first + second * constant
        out[token] += weight * own
    shared = a.get("sharedExpertXOptional")
    return out if shared is None else out + t(shared).reshape(out.shape)


def combined_norm(a):
    x = combined(a)[:, None] + t(a["residualX"])
    rstd = (x.square().mean(-1, keepdim=True) + a["normEps"]).rsqrt()
    return F.rms_norm(x, x.shape[-1:], t(a["gamma"]), a["normEps"]), rstd, x


ORACLES = {
    "aclnnMoeDistributeDispatch": lambda a: dispatched(a, "first"),
    "aclnnMoeDistributeDispatchV2": late,
    "aclnnMoeDistributeDispatchV3": late,
    "aclnnMoeDistributeDispatchV4": late,
    "aclnnMoeDistributeCombine": combined,
    "aclnnMoeDistributeCombineV2": combined,
    "aclnnMoeDistributeCombineV3": combined,
    "aclnnMoeDistributeCombineV4": combined,
    "aclnnMoeDistributeCombineAddRmsNorm": combined_norm,
    "aclnnMoeDistributeCombineAddRmsNormV2": combined_norm,
}
