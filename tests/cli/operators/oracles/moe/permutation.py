"""What torch gives for the rows of moe, permutation."""

import numpy as np
import torch

from .._arguments import t
from .._functions import autograd


def permuted(a):
    first, last = a["rangeOptional"] or (0, a["numOutTokens"] or None)
    order = torch.sort(t(a["indices"]).flatten(), stable=True).indices
    rows = t(a["tokens"]).repeat_interleave(a["indices"].shape[1], 0)[order][first:last]
    probs = None if a["probsOptional"] is None else t(a["probsOptional"]).flatten()[order]
    return rows, torch.argsort(order), None if probs is None else probs[first:last]


def held_here(a, rows):
    """Which slots' rows lie here, as a matrix of rows by slots."""
    first, last = a["rangeOptional"] or (0, len(rows))
    slots = len(a["sortedIndices"])
    pick = torch.zeros(slots, slots, dtype=torch.float64)
    pick[t(a["sortedIndices"]).long(), torch.arange(slots)] = 1
    return pick[first:last]


def permute_gradients(a):
    flow, probs = a["permutedTokensOutputGrad"], a["permutedProbsOutputGradOptional"]
    pick, k = held_here(a, flow), a["numTopk"]
    tokens = len(a["sortedIndices"]) // k
    leaves = [np.zeros((tokens, flow.shape[1])), np.zeros((tokens, k))]
    if probs is None:
        return autograd(lambda x: pick @ x.repeat_interleave(k, 0), leaves[0], flow=flow)
    return autograd(lambda x, p: (pick @ x.repeat_interleave(k, 0), pick @ p.flatten()), *leaves,
                    flow=[flow, probs])  # fmt: skip


def unpermuted(rows, probs, a):
    spread = held_here(a, rows).T @ rows
    if probs is not None:
        spread = spread * probs.reshape(-1, 1)
    return spread.unflatten(0, (-1, a.get("numTopk") or a["topkNum"])).sum(1)


def unpermute_gradients(a):
    if a["probsOptional"] is None:
        return None
    return autograd(lambda x, p: unpermuted(x, p, a), a["permutedTokensOptional"],
                    a["probsOptional"], flow=a["unpermutedTokensGrad"])  # fmt: skip


def weighted(a, rows, probs):
    """Rows of all slots, with a weight each."""
    return (rows[t(a["sortedIndices"]).long()].unflatten(0, (-1, probs.shape[1]))
            * probs[..., None]).sum(1)  # fmt: skip


def weighted_gradients(a):
    if a["probsOptional"] is None:
        return None
    return autograd(lambda x, p: weighted(a, x, p), a["permuteTokensOptional"],
                    a["probsOptional"], flow=a["unpermutedTokensGrad"])  # fmt: skip


def by_map(a, tokens, probs):
    taken = t(a["routingMapOptional"]).bool().T
    if a["dropAndPad"]:
        at = t(a["sortedIndices"]).long()
        return tokens[at], probs[
            at, torch.arange(len(taken)).repeat_interleave(len(at) // len(taken))
        ]
    return tokens[taken.nonzero()[:, 1]], probs.T[taken]


def map_gradients(a):
    flow, probs = a["permutedTokenOutputGrad"], a["permutedProbsOutputGradOptional"]
    leaves = [
        np.zeros((a["tokensNum"], flow.shape[1])),
        np.zeros((a["tokensNum"], a["numExperts"])),
    ]
    if probs is None:
        return autograd(lambda x: by_map(a, x, t(leaves[1]))[0], leaves[0], flow=flow)
    return autograd(lambda x, p: by_map(a, x, p), *leaves, flow=[flow, probs])


def rows_by_map(a):
    """Megatron's permute: sorted by whether the expert takes them, cut to its capacity."""
    x, taken = t(a["tokens"]), t(a["routingMap"]).bool().T
    probs = torch.zeros(taken.T.shape) if a["probsOptional"] is None else t(a["probsOptional"])
    if not a["dropAndPad"]:
        return x[taken.nonzero()[:, 1]], probs.T[taken]
    order = taken.int().sort(descending=True, stable=True, dim=1).indices
    at = order[:, : a["numOutTokens"] // len(taken)]
    return x[at.flatten()], probs.T.gather(1, at).flatten(), at.flatten()


def token_rows(a, rows, probs, flag, index):
    """Each token's rows times its weights, one after the other; and the weights."""
    taken = t(a["routingMapOptional"]).bool()
    out, weights = torch.zeros(len(taken), rows.shape[1], dtype=torch.float64), []
    if a[flag]:
        each = len(index) // taken.shape[1]
        places = [(int(token), n // each, n) for n, token in enumerate(index)]
    else:
        places = [(n, e, int(index[k])) for k, (n, e) in enumerate(taken.nonzero().tolist())]
    for token, expert, row in places:
        weights.append(probs[token, expert])
        out[token] += rows[row] * weights[-1]
    return out, torch.stack(weights)


def unpermute_by_map(a):
    rows, index, probs = t(a["permutedTokens"]), a["sortedIndices"], a["probsOptional"]
    taken = t(a["routingMapOptional"]).bool()
    weights = torch.ones(taken.shape, dtype=torch.float64) if probs is None else t(probs)
    out, kept = token_rows(a, rows, weights, "paddedMode", index)
    kept = None if probs is None else kept
    if a["paddedMode"]:
        return out, *reversed(torch.sort(t(index), stable=True)), kept
    return out, t(index), taken.nonzero()[:, 0], kept


def token_row_gradients(a):
    if a["probsOptional"] is None:
        return None
    index = a["outIndex"]
    if a["dropAndPad"]:
        index = np.empty(len(a["outIndex"]), np.int64)
        index[a["outIndex"]] = a["permuteTokenId"]
    return autograd(lambda x, p: token_rows(a, x, p, "dropAndPad", index)[0],
                    a["permutedTokensOptional"], a["probsOptional"],
                    flow=a["unpermutedTokensGrad"])  # fmt: skip


ORACLES = {
    "aclnnMoeTokenPermuteWithEp": permuted,
    "aclnnMoeTokenPermuteWithEpGrad": permute_gradients,
    "aclnnMoeTokenUnpermuteWithEp": lambda a: unpermuted(
        t(a["permutedTokens"]), t(a["probsOptional"]), a
    ),
    "aclnnMoeTokenUnpermuteWithEpGrad": unpermute_gradients,
    "aclnnMoeTokenPermuteWithRoutingMapGrad": map_gradients,
    "aclnnMoeTokenPermuteWithRoutingMap": rows_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMap": unpermute_by_map,
    "aclnnMoeTokenUnpermuteWithRoutingMapGrad": token_row_gradients,
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
            (t(a["sortedIndices"]).long(),), x.repeat_interleave(2, 0)
        ),
        np.zeros((5, 7)),
        flow=a["permutedOutputGrad"],
    ),
    "aclnnMoeTokenUnpermuteGrad": weighted_gradients,
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnMoeTokenUnpermute",
        {"permutedTokens": [[1.0], [10.0]], "sortedIndices": [1, 0], "probsOptional": [[0.5, 2.0]]},
        [[[7.0]]],
    ),
]
