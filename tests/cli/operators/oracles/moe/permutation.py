"""What torch gives for the rows of moe, permutation."""

from __future__ import annotations

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def permuted(a):
    first, last = a["rangeOptional"] or (0, a["numOutTokens"])
    order = torch.sort(t(a["indices"]).flatten(), stable=True).indices
    rows = t(a["tokens"]).repeat_interleave(2, 0)[order][first:last]
    return rows, torch.argsort(order), t(a["probsOptional"]).flatten()[order][first:last]


def held_here(a, slots=10):
    """Which slots' rows lie here, as a matrix of rows by slots."""
    first, last = a["rangeOptional"]
    pick = torch.zeros(slots, slots, dtype=torch.float64)
    pick[t(a["sortedIndices"]).long(), torch.arange(slots)] = 1
    return pick[first:last]


def unpermuted(rows, probs, a):
    return ((held_here(a).T @ rows) * probs.reshape(-1, 1)).unflatten(0, (-1, 2)).sum(1)


def by_map(tokens, probs, a):
    if a["dropAndPad"]:
        at = t(a["sortedIndices"]).long()
        return tokens[at], probs[at, torch.arange(3).repeat_interleave(len(at) // 3)]
    taken = t(a["routingMapOptional"]).T
    return tokens[taken.nonzero()[:, 1]], probs.T[taken]


def padded(rows, probs, a, index):
    experts = torch.arange(12) // 4
    token = t(index).long()
    weight = probs[token, experts]
    out = torch.zeros(5, rows.shape[1], dtype=torch.float64)
    return out.index_add(0, token, rows * weight[:, None]), weight


def rows_by_map(a):
    """Megatron's permute: sorted by whether the expert takes them, cut to its capacity."""
    x, probs, taken = t(a["tokens"]), t(a["probsOptional"]), t(a["routingMap"]).T
    if not a["dropAndPad"]:
        return x[taken.nonzero()[:, 1]], probs.T[taken]
    order = taken.int().sort(descending=True, stable=True, dim=1).indices
    at = order[:, : a["numOutTokens"] // len(taken)]
    return x[at.flatten()], probs.T.gather(1, at).flatten(), at.flatten()


def unpermuted_by_map(rows, probs, a, index):
    """Each token's rows times its weights, one after the other."""
    taken, out = t(a["routingMapOptional"]), torch.zeros(5, 7, dtype=torch.float64)
    for k, (token, expert) in enumerate(taken.nonzero().tolist()):
        out[token] += rows[int(index[k])] * probs[token, expert]
    return out, probs[taken]


def unpermute_by_map(a):
    rows, probs, index = t(a["permutedTokens"]), t(a["probsOptional"]), a["sortedIndices"]
    if a["paddedMode"]:
        out, kept = padded(rows, probs, a, index)
        return out, *reversed(torch.sort(t(index), stable=True)), kept
    out, kept = unpermuted_by_map(rows, probs, a, index)
    return out, t(index), t(a["routingMapOptional"]).nonzero()[:, 0], kept


def padded_gradients(a):
    if not a["dropAndPad"]:
        return autograd(lambda x, p: unpermuted_by_map(x, p, a, a["outIndex"])[0],
                        a["permutedTokensOptional"], a["probsOptional"],
                        flow=a["unpermutedTokensGrad"])  # fmt: skip
    index = np.empty(12, np.int64)
    index[a["outIndex"]] = a["permuteTokenId"]
    return autograd(lambda x, p: padded(x, p, a, index)[0], a["permutedTokensOptional"],
                    a["probsOptional"], flow=a["unpermutedTokensGrad"])  # fmt: skip


ORACLES = {
    "aclnnMoeTokenPermuteWithEp": permuted,
    "aclnnMoeTokenPermuteWithEpGrad": lambda a: autograd(
        lambda x, p: (held_here(a) @ x.repeat_interleave(2, 0), held_here(a) @ p.flatten()),
        np.zeros((5, 7)),
        np.zeros((5, 2)),
        flow=[a["permutedTokensOutputGrad"], a["permutedProbsOutputGradOptional"]],
    ),
    "aclnnMoeTokenUnpermuteWithEp": lambda a: unpermuted(
        t(a["permutedTokens"]), t(a["probsOptional"]), a
    ),
    "aclnnMoeTokenUnpermuteWithEpGrad": lambda a: autograd(
        lambda x, p: unpermuted(x, p, a),
        a["permutedTokensOptional"],
        a["probsOptional"],
        flow=a["unpermutedTokensGrad"],
    ),
    "aclnnMoeTokenPermuteWithRoutingMapGrad": lambda a: autograd(
        lambda x, p: by_map(x, p, a),
        np.zeros((5, 7)),
        np.zeros((5, 3)),
        flow=[a["permutedTokenOutputGrad"], a["permutedProbsOutputGradOptional"]],
    ),
    "aclnnMoeTokenPermuteWithRoutingMap": rows_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMap": unpermute_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMapGrad": padded_gradients,
    "aclnnMoeTokenPermute": lambda a: torch.cat(
        [
            t(a["tokens"])[
                [
                    n
                    for n, r in enumerate(np.atleast_2d(a["indices"].reshape(5, -1)))
                    for c in r
                    if c == e
                ]
            ]
            for e in range(3)
        ]
    )[: a["numOutTokens"] or None],
    "aclnnMoeTokenPermuteGrad": lambda a: autograd(
        lambda x: torch.zeros(10, 7, dtype=torch.float64).index_put(
            (t(a["sortedIndices"]),), x.repeat_interleave(2, 0)
        ),
        np.zeros((5, 7)),
        flow=a["permutedOutputGrad"],
    ),
    "aclnnMoeTokenUnpermuteGrad": lambda a: autograd(
        lambda x, p: (x[t(a["sortedIndices"])].unflatten(0, (-1, 2)) * p[..., None]).sum(1),
        a["permuteTokensOptional"],
        a["probsOptional"],
        flow=a["unpermutedTokensGrad"],
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnMoeTokenUnpermute",
        {"permutedTokens": [[1.0], [10.0]], "sortedIndices": [1, 0], "probsOptional": [[0.5, 2.0]]},
        [[[7.0]]],
    ),
]
