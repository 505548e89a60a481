"""What torch gives for the rows of attention, delta_rule."""

from __future__ import annotations

import numpy as np
import torch

from .._arguments import t


def delta(a):
    """Token by token."""
    q, k, v, beta, g = (t(a[n]) for n in ("query", "key", "value", "beta", "gOptional"))
    group, begin, outs, states = v.shape[1] // k.shape[1], 0, [], []
    for b, length in enumerate(a["actualSeqLengths"]):
        s = t(a["initialState"])[b]
        for i in range(begin, begin + int(length)):
            key = k[i].repeat_interleave(group, 0)
            s = s * g[i].exp()[:, None, None]
            gap = beta[i][:, None] * (v[i] - (s * key[:, None]).sum(-1))
            s = s + gap[..., None] * key[:, None]
            query = q[i].repeat_interleave(group, 0)
            outs.append((s * query[:, None]).sum(-1) * a["scaleValue"])
        begin += int(length)
        states.append(s)
    return torch.stack(outs), torch.stack(states)


def delta_rule(a):
    """S (I - beta k k^T) a + beta v k^T, in whole matrices."""
    states, out, begin = t(a["stateRef"]).clone(), t(a["value"]).clone(), 0
    for b, length in enumerate(a["actualSeqLengths"]):
        accepted = 1 if a["numAcceptedTokens"] is None else int(a["numAcceptedTokens"][b])
        s = states[int(a["ssmStateIndices"][begin + accepted - 1])]
        for i in range(begin, begin + int(length)):
            new = []
            for n in range(4):
                k, beta = t(a["key"])[i, n // 2][:, None], float(a["beta"][i, n])
                keep = torch.eye(16).double() - beta * k @ k.T
                own = 1 if a.get("gk") is None else t(a["gk"])[i, n].exp()
                new.append(float(np.exp(a["g"][i, n])) * (s[n] * own) @ keep
                           + beta * t(a["value"])[i, n][:, None] @ k.T)  # fmt: skip
                out[i, n] = new[-1] @ t(a["query"])[i, n // 2] * a["scaleValue"]
            s = torch.stack(new)
            states[int(a["ssmStateIndices"][i])] = s
        begin += int(length)
    return out, states


ORACLES = {
    "aclnnChunkGatedDeltaRule": delta,
    "aclnnRecurrentGatedDeltaRule": delta_rule,
}
