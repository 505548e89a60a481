"""What torch gives for the rows of convolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ._arguments import t


def convolved(a):
    x, states, w = t(a["x"]), t(a["convStates"]).clone(), t(a["weight"])
    y = x.clone()
    for b, (begin, end) in enumerate(((0, 4), (4, 7))):
        slot, fresh = int(a["cacheIndices"][b]), a.get("initialStateMode") is not None
        fresh = fresh and not a["initialStateMode"][b]
        before = torch.zeros(2, 6, dtype=x.dtype) if fresh else states[slot]
        rows = torch.cat([before, x[begin:end]])
        kept = min(states.shape[1], len(rows))
        tail = rows[-(end - begin) - 2 :].T[None]
        bias = None if a.get("bias") is None else t(a["bias"])
        out = F.conv1d(tail, w.T[:, None], bias, groups=6)[0].T
        states[slot, states.shape[1] - kept :] = rows[-kept:]
        out = F.silu(out) if a["activationMode"] else out
        y[begin:end] = out + x[begin:end] if a["residualConnection"] else out
    return y, states


def causal(a):
    x, states, y = t(a["x"]), t(a["convStatesRef"]).clone(), []
    starts, length = a["queryStartLocOptional"], a["convStatesRef"].shape[1]
    for b, slot in enumerate(a["cacheIndicesOptional"]):
        new = x[starts[b] : starts[b + 1]]
        rows = torch.cat([states[int(slot)], new])
        seen = rows[len(rows) - len(new) - len(a["weight"]) + 1 :]
        bias = None if a["biasOptional"] is None else t(a["biasOptional"])
        out = F.conv1d(seen.T[None], t(a["weight"]).T[:, None], bias, groups=x.shape[1])[0].T
        y.append(F.silu(out) if a["activation"] == "silu" else out)
        states[int(slot)] = rows[-length:]
    return torch.cat(y), states


ORACLES = {
    "aclnnFusedCausalConv1d": convolved,
    "aclnnCausalConv1dFn": causal,
    "aclnnConvolutionBackward": lambda a: list(
        torch.ops.aten.convolution_backward(
            t(a["gradOutput"]),
            t(a["input"]),
            t(a["weight"]),
            [a["weight"].shape[0]],
            a["stride"],
            a["padding"],
            a["dilation"],
            a["transposed"],
            a["outputPadding"],
            a["groups"],
            list(a["outputMask"]),
        )
    ),
    "aclnnConvDepthwise2d": lambda a: F.conv2d(
        t(a["self"]), t(a["weight"]), t(a["bias"]), (1, 2), (1, 1), (1, 1), 3
    ),
}
