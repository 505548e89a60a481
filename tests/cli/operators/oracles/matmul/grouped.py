"""What torch gives for the rows of matmul, grouped."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import group_sizes


def each_group(x, w, sizes, scale, token):
    parts = [p.double() @ m.double() * s for p, m, s in
             zip(x.split(sizes.tolist()), w, scale, strict=True)]  # fmt: skip
    return torch.cat(parts) * token[:, None]


def grouped_weight(a):
    sizes = group_sizes(a["groupListOptional"], a["groupListType"])
    scale, token = t(a["scaleOptional"])[0], t(a["perTokenScaleOptional"])[0]
    y = each_group(t(a["x"])[0], t(a["weight"])[0], sizes, scale, token)
    if a["biasOptional"] is None:
        return y
    return y + (t(a["biasOptional"])[0] * scale).repeat_interleave(sizes, 0) * token[:, None]


def real(words):
    """The float32 in the low half of each word."""
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


ACTIONS = {0: lambda y: y, 1: F.relu, 2: lambda y: F.gelu(y, approximate="tanh"),
           4: lambda y: y * torch.sigmoid(1.702 * y), 5: F.silu}  # fmt: skip


def spread(value, which):
    """[rows, N] of a tensor [groups, N], by each row's group."""
    return (real(value) if value.dtype.kind == "u" else t(value))[which]


def grouped(a):
    """Row by row, each with its own group's matrix; or sums over a one-hot mark of the group."""
    if len(a["x"]) > 1:
        shifts = t(a["biasOptional"] or [np.zeros(1)] * len(a["x"]))
        return [p @ q + b for p, q, b in zip(t(a["x"]), t(a["weight"]), shifts, strict=True)]
    x, w = t(a["x"][0]).double(), t(a["weight"][0]).double()
    sizes = torch.as_tensor(a["groupListOptional"])
    if not a.get("groupListType"):
        sizes = torch.diff(sizes, prepend=torch.zeros(1, dtype=sizes.dtype))
    which = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    if a.get("groupType") == 2:
        return torch.einsum("mk,kg,kn->gmn", x, F.one_hot(which).double(), w)

    def part(name):
        value = a.get(name)
        return None if value is None else spread(value[0], which)

    scale, shift = part("antiquantScaleOptional"), part("antiquantOffsetOptional")
    each = w[which]  # [rows, K, N]
    if scale is not None:
        blocks = scale.shape[1] if scale.ndim == 3 else 1
        cut = each.unflatten(1, (blocks, -1))
        lines = (cut + shift.reshape(len(x), blocks, 1, -1)) * scale.reshape(
            len(x), blocks, 1, -1)  # fmt: skip
        each = lines.flatten(1, 2)
    y = (x[:, None] @ each)[:, 0]
    bias, factor = part("biasOptional"), part("scaleOptional")
    late = bias is not None and bias.is_floating_point()
    y = y if bias is None or late else y + bias
    y = y if factor is None else y * factor
    tokens = a.get("perTokenScaleOptional")
    y = y if tokens is None else y * t(tokens[0])[:, None]
    y = y + bias if late else y
    after = part("offsetOptional")
    return ACTIONS[a.get("actType", 0)](y if after is None else y + after)


LAYERS = {"relu": F.relu, "silu": F.silu, "gelu": ACTIONS[2], "fastgelu": ACTIONS[4]}
GATES = {"reglu": F.relu, "swiglu": F.silu, "geglu": ACTIONS[2]}


def experts(a):
    """Every token with its own expert's layers."""
    x = t(a["x"]).double()
    told = a["expertTokens"]
    sizes = torch.as_tensor([len(x)] if told is None else list(told))
    if a.get("tokensIndexFlag") and told is not None:
        sizes = torch.diff(sizes, prepend=torch.zeros(1, dtype=sizes.dtype))
    which = torch.repeat_interleave(torch.arange(len(sizes)), sizes)

    def own(name):
        value = a.get(name)
        if value is None:
            return None
        one = t(value)
        return (one[None] if told is None else one)[which].double()

    def layer(y, k):
        w, shift, scale = own(f"weight{k}"), own(f"antiquantOffset{k}"), own(f"antiquantScale{k}")
        if scale is not None:
            w = w * scale[:, None] + (shift * scale)[:, None]
        y = torch.einsum("mk,mkn->mn", y, w)
        y = y if a[f"bias{k}"] is None else y + own(f"bias{k}")
        return y if a.get(f"deqScale{k}") is None else y * own(f"deqScale{k}")

    y = layer(x, 1)
    if a["activation"] in GATES:
        first, second = y.tensor_split(2, -1)
        y = GATES[a["activation"]](first) * second
    else:
        y = LAYERS[a["activation"]](y)
    if a.get("scale") is not None:
        shift = 0 if a.get("offset") is None else own("offset")[:, None]
        y = (y * own("scale")[:, None] + shift).round().clamp(-128, 127)
    return layer(y, 2)


ORACLES = {
    "aclnnGroupedMatmulWeightNz": grouped_weight,
    "aclnnGroupedMatmulAdd": lambda a: (
        t(a["yRef"])
        + torch.stack(
            [
                torch.einsum("mk,mn->kn", x, w)
                for x, w in zip(
                    t(a["x"]).split([4, 5, 3]), t(a["weight"]).split([4, 5, 3]), strict=True
                )
            ]
        )
    ),
    **{f"aclnnGroupedMatmul{v}": grouped for v in ("", "V2", "V3", "V4")},
    **{f"aclnnFFN{v}": experts for v in ("", "V2", "V3")},
}
