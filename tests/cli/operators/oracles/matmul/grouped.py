"""What torch gives for the rows of matmul, grouped."""

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import group_sizes


def each_group(x, w, sizes, scale, token):
    parts = [p.double() @ m.double() * s for p, m, s in
             zip(x.split(sizes.tolist()), w, scale, strict=True)]  # fmt: skip
    return torch.cat(parts) * token[:, None]


def real(words):
    """The float32 in the low half of each word."""
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


ACTIONS = {0: lambda y: y, 1: F.relu, 2: lambda y: F.gelu(y, approximate="tanh"),
           4: lambda y: y * torch.sigmoid(1.702 * y), 5: F.silu}  # fmt: skip


def reals(value):
    """Floats, or what words hold."""
    return real(value) if value.dtype in (np.uint64, np.int64) else t(value).double()


def spans(a, kind):
    """The sizes of groups, and the expert of each."""
    sizes = torch.as_tensor(np.asarray(a["groupListOptional"]))
    if kind == 2:
        return sizes.reshape(-1, 2)[:, 1], sizes.reshape(-1, 2)[:, 0]
    return group_sizes(sizes, kind), torch.arange(len(sizes))


def grouped(a):
    """Each group by itself, in torch's functions; or sums over a one-hot mark of the group."""
    xs, ws = ([t(v).double() for v in a[n]] for n in ("x", "weight"))
    experts = range(len(xs))
    if a["groupListOptional"] is not None:
        sizes, experts = spans(a, a.get("groupListType", 0))
        if a.get("groupType") == 2:
            which = F.one_hot(torch.repeat_interleave(experts, sizes), len(sizes)).double()
            return [torch.einsum("mk,kg,kn->gmn", xs[0], which, ws[0])]
        xs = xs[0].split(sizes.tolist()) if len(xs) == 1 else xs
    stacked = ws[0].ndim == 3
    tokens = a.get("perTokenScaleOptional")
    tokens = t(tokens[0]).split([len(x) for x in xs]) if tokens is not None else [None] * len(xs)
    y = [group_of(a, x, ws[0][e] if stacked else ws[e], int(e), stacked, token)
         for x, e, token in zip(xs, experts, tokens, strict=True)]  # fmt: skip
    return y if a["splitItem"] < 2 else [torch.cat(y)]


def group_of(a, x, w, expert, stacked, token):
    def own(name):
        if a.get(name) is None:
            return torch.zeros(())
        return reals(a[name][0][expert] if stacked else a[name][expert])

    if a.get("antiquantScaleOptional") is not None:
        scale = torch.atleast_2d(own("antiquantScaleOptional"))
        shift = torch.atleast_2d(own("antiquantOffsetOptional"))
        w = ((w.unflatten(0, (len(scale), -1)) + shift[:, None]) * scale[:, None]).flatten(0, 1)
    bias = own("biasOptional")
    whole = a.get("biasOptional") is not None and a["biasOptional"][0].dtype.kind == "i"
    y = x @ w + (bias if whole else 0)
    y = y if a.get("scaleOptional") is None else y * own("scaleOptional")
    y = y if token is None else y * token[:, None]
    return ACTIONS[a.get("actType", 0)](y + (0 if whole else bias) + own("offsetOptional"))


LAYERS = {"relu": F.relu, "silu": F.silu, "gelu": ACTIONS[2], "fastgelu": ACTIONS[4]}
GATES = {"reglu": F.relu, "swiglu": F.silu, "geglu": ACTIONS[2]}


def experts(a):
    """Every token with its own expert's layers."""
    a = {name.removesuffix("Optional"): value for name, value in a.items()}
    x = t(a["x"]).double()
    counts = a["expertTokens"]
    sizes = torch.as_tensor([len(x)] if counts is None else list(counts))
    if a.get("tokensIndexFlag") and counts is not None:
        sizes = torch.diff(sizes, prepend=torch.zeros(1, dtype=sizes.dtype))
    which = torch.repeat_interleave(torch.arange(len(sizes)), sizes)

    def own(name):
        value = a.get(name)
        if value is None:
            return None
        one = reals(value)
        return (one[None] if counts is None else one)[which].double()

    def layer(y, k):
        w, shift, scale = own(f"weight{k}"), own(f"antiquantOffset{k}"), own(f"antiquantScale{k}")
        if scale is not None:
            blocks = scale.reshape(len(x), -1, 1, w.shape[-1])
            shift = torch.zeros(()) if shift is None else shift.reshape(blocks.shape)
            w = ((w.unflatten(1, (blocks.shape[1], -1)) + shift) * blocks).flatten(1, 2)
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
        shift = 0 if a.get("offset") is None else own("offset").reshape(len(x), -1)
        y = (y * own("scale").reshape(len(x), -1) + shift).round().clamp(-128, 127)
    return layer(y, 2)


def added(a):
    """A one-hot mark of the group in the sum over rows."""
    x = t(a["x"]).double() if a["transposeX"] else t(a["x"]).double().T
    w = t(a["weight"]).double().T if a["transposeWeight"] else t(a["weight"]).double()
    sizes = group_sizes(torch.as_tensor(a["groupList"]), a["groupListType"])
    which = F.one_hot(torch.repeat_interleave(torch.arange(len(sizes)), sizes), len(sizes))
    return t(a["yRef"]) + torch.einsum("tm,tg,tn->gmn", x, which.double(), w)


ORACLES = {
    "aclnnGroupedMatmulAddV2": added,
    **{f"aclnnGroupedMatmul{v}": grouped for v in ("", "V2", "V3", "V4", "V5", "WeightNz")},
    **{f"aclnnFFN{v}": experts for v in ("", "V2", "V3")},
}
