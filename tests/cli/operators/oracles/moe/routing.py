"""What torch gives for the rows of moe, routing."""

import math

import torch
import torch.nn.functional as F

from .._arguments import t


def expert_order(a):
    return torch.sort(t(a["expertIdx"]).flatten(), stable=True).indices


def expanded(a):
    """Rows of active tokens; slots may be numbered in any order."""
    source = t(a["rowIdx"]).flatten()[expert_order(a)].long()
    active = min(len(a["x"]), a["activeNum"]) * a["expertIdx"].shape[1]
    return t(a["x"])[source[:active] % len(a["x"])]


def told(a, *names, otherwise=0):
    return next((a[n] for n in names if a.get(n) is not None), otherwise)


def routed(a):
    """Rows that slots go to (-1: nowhere), rows in all, counts and whether rows are padded."""
    experts = told(a, "expertNumOptional", "expertNum")
    first, last = told(a, "activeExpertRangeOptional", otherwise=(0, experts))
    hot = F.one_hot(t(a["expertIdx"]).long().flatten(), experts)
    hot[:, :first] = hot[:, last:] = 0
    rank, counts = (hot.cumsum(0) * hot).sum(1) - 1, hot.sum(0)
    here, expert = hot.sum(1) > 0, hot.argmax(1)
    if told(a, "dropPadModeOptional", "dropPadMode"):
        capacity = told(a, "expertCapacityOptional", "expertCapacity")
        kept = here & (rank < capacity)
        return torch.where(kept, expert * capacity + rank, -1), experts * capacity, counts, True
    place = torch.where(here, (counts.cumsum(0) - counts)[expert] + rank, -1)
    active = told(a, "activeNumOptional", "activeNum")
    return place, min(active or len(place), int(counts.sum())), counts[first:last], False


def moved(x, place, rows):
    """Each slot's row, at its place."""
    out = torch.zeros(rows, *x.shape[1:], dtype=x.dtype)
    there = (place >= 0) & (place < rows)
    out[place[there]] = x[there]
    return out


def slots_of(a):
    return t(a["x"]).repeat_interleave(a["expertIdx"].shape[1], 0)


def counted(a, counts):
    kind = told(a, "expertTokensCountOrCumsumFlagOptional", "expertTokensCountOrCumsumFlag")
    return {0: None, 1: counts.cumsum(0), 2: counts}[kind]


def before(a, counts, padded):
    asked = told(a, "expertTokensBeforeCapacityFlagOptional", "expertTokensBeforeCapacityFlag")
    return counts if padded and asked else None


def second(a):
    place, rows, counts, padded = routed(a)
    return moved(slots_of(a), place, rows), place, counted(a, counts), before(a, counts, padded)


def by_largest(y):
    scale = y.abs().amax(-1) / 127
    return y / torch.where(scale == 0, 1.0, scale)[:, None], scale


def smooth(a):
    """The factors of each slot's expert; of those that lie elsewhere, any."""
    first, _ = told(a, "activeExpertRangeOptional", otherwise=(0, None))
    factors = t(a["scaleOptional"])
    return factors[(t(a["expertIdx"]).long().flatten() - first).clamp(0, len(factors) - 1)]


def quantised(a):
    place, rows, counts, padded = routed(a)
    x, told_counts = slots_of(a), (counted(a, counts), before(a, counts, padded))
    if a["quantMode"] == 0:
        y = moved(x * t(a["scaleOptional"]) + t(a["offsetOptional"]), place, rows)
        return y, place, *told_counts, None
    if a["scaleOptional"] is not None:
        x = x * smooth(a)
    steps, scale = by_largest(moved(x, place, rows))
    return steps, place, *told_counts, scale


def source_slots(a):
    """Slots by expert, those in front of this rank's behind all others."""
    expert, first = t(a["expertIdx"]).flatten(), a["activeExpertRangeOptional"][0]
    every = torch.cat([(expert == e).nonzero()[:, 0] for e in range(a["expertNum"])])
    front = expert[every] < first
    return torch.cat([every[~front], (expert < first).nonzero()[:, 0]])


def third(a):
    place, rows, counts, _ = routed(a)
    x, k = slots_of(a), a["expertIdx"].shape[1]
    scale = a["scaleOptional"]
    if a["quantMode"] == 0:
        y, scale = moved(x * t(scale) + t(a["offsetOptional"]), place, rows), None
    elif a["quantMode"] == 1:
        if scale is not None:
            x = x * smooth(a)
        y, scale = by_largest(moved(x, place, rows))
    else:
        y = moved(x, place, rows)
        scale = None if scale is None else moved(t(scale).repeat_interleave(k), place, rows)
    kind = a["expertTokensNumType"]
    some = counts.nonzero()[:, 0]
    pairs = torch.zeros(a["expertNum"], 2, dtype=counts.dtype)
    pairs[: len(some)] = torch.stack([some + a["activeExpertRangeOptional"][0], counts[some]], 1)
    numbers = {0: counts.cumsum(0), 1: counts, 2: pairs}[kind]
    return y, source_slots(a) if a["rowIdxType"] else place, numbers, scale


def gathered_gradients(a):
    """Through autograd: what the forward's rows were taken from."""
    flow = t(a["gradExpandedX"])
    flow = flow.flatten(0, -2)
    place, k = t(a["expandedRowIdx"]).long(), a["topK"]
    x = torch.zeros(len(place) // k, flow.shape[1], dtype=flow.dtype, requires_grad=True)
    rows = a["activeNum"] if a["activeNum"] and not a["dropPadMode"] else len(flow)
    moved(x.repeat_interleave(k, 0), place, rows).backward(flow[:rows])
    return x.grad


def replicas(a):
    """Token by token, as the golden of op-plugin's test."""
    places, there = torch.zeros(a["expertIds"].shape), torch.zeros(a["expertIds"].shape)
    for n, row in enumerate(a["expertIds"]):
        for k, expert in enumerate(row):
            count, *where = a["eplbTable"][expert].tolist()
            ranks = math.ceil(a["worldSize"] / count)
            places[n, k] = where[n % count if a["balanceMode"] else a["localRankId"] // ranks]
            if a["expertScalesOptional"] is not None:
                share = a["expertScalesOptional"][n] / a["expertScalesOptional"][n].sum()
                active = a["activeMaskOptional"] is None or a["activeMaskOptional"][n]
                there[n, k] = bool(active and share[k] >= a["pruningThresholdOptional"][0, k])
    return places.long(), None if a["expertScalesOptional"] is None else there.bool()


ORACLES = {
    "aclnnMoeUpdateExpert": replicas,
    "aclnnMoeInitRoutingQuant": lambda a: expanded(a) * a["scale"] + a["offset"],
    "aclnnMoeInitRoutingV2": second,
    "aclnnMoeInitRoutingQuantV2": quantised,
    "aclnnMoeInitRoutingV3": third,
    "aclnnMoeInitRoutingV2Grad": gathered_gradients,
    "aclnnMoeInitRouting": expanded,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnMoeComputeExpertTokens", {"sortedExperts": [0, 0, 2], "numExperts": 3}, [[2, 2, 3]]),
]
