"""What torch gives for the rows of convolution."""

import torch
import torch.nn.functional as F

from ._arguments import t


def sequences(a, states, starts, slots, fresh, accepted, bias, pad):
    """Results and states of causal convolutions, sequence by sequence."""
    x, w, states = t(a["x"]), t(a["weight"]), t(states).clone()
    flat, width = x.reshape(-1, x.shape[-1]), len(w) - 1
    lengths = torch.full((len(x),), x.shape[1]) if starts is None else t(starts).diff()
    y = []
    for b, new in enumerate(flat.split(lengths.tolist())):
        slot = b if slots is None else int(slots[b])
        if slot == pad:
            y.append(torch.full_like(new, torch.nan))
            continue
        begin = states.shape[1] - width if accepted is None else int(accepted[b]) - 1
        before = states[slot, : begin + width]
        if fresh is not None and fresh[b]:
            begin, before = 0, torch.zeros_like(before[:1]).expand(width, -1)
        rows = torch.cat([before, new])
        out = rows[:0] if not len(new) else F.conv1d(
            rows[begin:].T[None], w.T[:, None], bias, groups=x.shape[-1])[0].T  # fmt: skip
        y.append(out)
        kept = min(states.shape[1], len(rows))
        states[slot, states.shape[1] - kept :] = rows[-kept:]
    return torch.cat(y).reshape(x.shape), states


def fused(a):
    done = a["numComputedTokens"]
    y, states = sequences(a, a["convStates"], a["queryStartLoc"], a["cacheIndices"],
                          None if done is None else done == 0, a["numAcceptedTokens"], None,
                          a["padSlotId"])  # fmt: skip
    if a["convMode"]:
        return None
    return states, y + t(a["x"]) if a["residualConnection"] else y


def fused_inplace(a):
    """Rows of sequences that are passed over keep what they were."""
    if (both := fused(a)) is None:
        return None
    states, y = both
    return torch.where(y.isnan(), t(a["x"]), y), states


def causal(a):
    initial = a.get("initialStateModeOptional")
    y, states = sequences(a, a["convStatesRef"], a["queryStartLocOptional"],
                          a["cacheIndicesOptional"], None if initial is None else initial == 0,
                          a.get("numAcceptedTokensOptional"), t(a["biasOptional"]),
                          a["nullBlockId"])  # fmt: skip
    return states, y if a["activation"] == "none" else F.silu(y)


ORACLES = {
    "aclnnFusedCausalConv1d": fused,
    "aclnnInplaceFusedCausalConv1d": fused_inplace,
    "aclnnCausalConv1dFn": causal,
    "aclnnCausalConv1dUpdate": causal,
    "aclnnConvolutionBackward": lambda a: list(
        torch.ops.aten.convolution_backward(
            t(a["gradOutput"]),
            t(a["input"]),
            t(a["weight"]),
            [a["gradOutput"].shape[1]],
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
        t(a["self"]), t(a["weight"]), t(a["bias"]), a["stride"], a["padding"], a["dilation"],
        a["self"].shape[1],
    ),
}  # fmt: skip
