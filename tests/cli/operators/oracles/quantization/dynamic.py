"""What torch gives for the rows of quantization, dynamic."""

import torch

from .._arguments import t
from .._functions import group_sizes


def flat(a):
    between = torch.matmul(t(a["x"]), t(a["kroneckerP2"])).half().double()
    y = torch.matmul(t(a["kroneckerP1"]), between).half().double()
    scale = y.flatten(1).abs().amax(1) / 7 / a["clipRatio"]
    return y / scale.view(-1, 1, 1), scale


def rotated(a):
    r = t(a["rotation"])
    y = t(a["x"]) @ torch.block_diag(*[r] * (a["x"].shape[-1] // len(r)))
    scale = y.abs().amax(-1) / 127
    return y / scale[:, None], scale


def peaks(a):
    sizes = group_sizes(a["groupList"], False).tolist()
    parts, scale = t(a["x"]).split(sizes), t(a["scale"])
    return (torch.cat([p / s for p, s in zip(parts, scale, strict=True)]),
            torch.stack([p.abs().max() for p in parts]))  # fmt: skip


def block_steps(a):
    parts = [[(c / s, s) for c in r.split(a["colBlockSize"], -1)
              for s in [c.abs().amax((-2, -1), True).div(127).clamp(min=a["minScale"])]]
             for r in t(a["x"]).split(a["rowBlockSize"], -2)]  # fmt: skip
    return tuple(
        torch.cat([torch.cat([p[k] for p in row], -1) for row in parts], -2) for k in (0, 1)
    )


def groups_of(a, rows, key="groupIndexOptional", sizes=False):
    """Each row's group: those of `key` end there, or have so many rows."""
    if a.get(key) is None:
        return torch.zeros(rows, dtype=torch.long)
    ends = t(a[key]).long()
    ends = ends.cumsum(0) if sizes else ends
    return (torch.arange(rows)[:, None] >= ends).sum(1)


def smoothed(a):
    x = t(a["x"])
    factors = a["smoothScalesOptional"]
    if factors is None:
        return x
    if a.get("groupIndexOptional") is None:
        return x * t(factors)
    lead = x.shape[:-1]
    return x * t(factors)[groups_of(a, lead.numel())].unflatten(0, lead)


def asymmetric(a):
    """From the least and the largest: steps reach over the whole range."""
    y, most = smoothed(a), {2: 127, 29: 7, 35: 57344, 36: 448}[a["dstType"]]
    dims = {"pertoken": (-1,), "pertensor": tuple(range(y.ndim)), "perchannel": (-2,)}[
        a.get("quantMode", "pertoken")]  # fmt: skip
    top, low = torch.amax(y, dims, True), torch.amin(y, dims, True)
    if a.get("isSymmetrical"):
        scale = torch.maximum(top, -low) / most
        return y / scale, scale.squeeze(dims), None
    scale = (top - low) / (2 * most + 1)
    return most - (top - y) / scale, scale.squeeze(dims), (most - top / scale).squeeze(dims)


ORACLES = {
    "aclnnFlatQuant": flat,
    "aclnnRotateQuant": rotated,
    "aclnnQuantMax": lambda a: (t(a["x"]) / t(a["scale"]), t(a["x"]).abs().max()[None]),
    "aclnnGroupedQuantMax": peaks,
    "aclnnDynamicBlockQuant": block_steps,
    **{f"aclnnDynamicQuantV{v}": asymmetric for v in (2, 3, 4)},
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnDynamicQuant",
        {"x": [[1.0, -2.0]], "smoothScalesOptional": None},
        [[[63.5, -127.0]], [2 / 127]],
    ),
]
