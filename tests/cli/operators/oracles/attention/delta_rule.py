"""What torch gives for the rows of attention, delta_rule."""

import numpy as np
import torch

from .._arguments import t


def delta(a):
    """Token by token."""
    q, k, v, beta = (t(a[n]) for n in ("query", "key", "value", "beta"))
    g = torch.zeros(beta.shape) if a["gOptional"] is None else t(a["gOptional"])
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
    heads, group = out.shape[1], out.shape[1] // a["key"].shape[1]
    for b, length in enumerate(a["actualSeqLengths"]):
        if not length:
            continue
        accepted = 1 if a["numAcceptedTokens"] is None else int(a["numAcceptedTokens"][b])
        s = states[int(a["ssmStateIndices"][begin + accepted - 1])]
        for i in range(begin, begin + int(length)):
            new = []
            for n in range(heads):
                k, beta = (
                    t(a["key"])[i, n // group][:, None],
                    1.0 if a["beta"] is None else float(a["beta"][i, n]),
                )
                keep = torch.eye(len(k)).double() - beta * k @ k.T
                own = 1 if a.get("gk") is None else t(a["gk"])[i, n].exp()
                decay = 1.0 if a["g"] is None else float(np.exp(a["g"][i, n]))
                new.append(decay * (s[n] * own) @ keep
                           + beta * t(a["value"])[i, n][:, None] @ k.T)  # fmt: skip
                out[i, n] = new[-1] @ t(a["query"])[i, n // group] * a["scaleValue"]
            s = torch.stack(new)
            states[int(a["ssmStateIndices"][i])] = s
        begin += int(length)
    return states, out


ORACLES = {
    "aclnnChunkGatedDeltaRule": delta,
    "aclnnRecurrentGatedDeltaRule": delta_rule,
}
