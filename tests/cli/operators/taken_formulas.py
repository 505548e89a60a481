"""What torch's own words give where rows take scales, offsets, modes and lists of their header."""

from __future__ import annotations

import numpy as np
import torch
from test_references import F, t


def real(words):
    """The float32 in the low half of each word."""
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


def scaled_product(a, left="x1", scale="scale", rows="pertokenScaleOptional", shift="offset"):
    """int8 matrices; a bias of integers counts products, one of floats results."""
    x1, x2 = (t(a[x]).double().mT if a[turned] else t(a[x]).double()
              for x, turned in ((left, "transposeX1"), ("x2", "transposeX2")))  # fmt: skip
    bias = torch.zeros(()) if a["bias"] is None else t(a["bias"])
    factor = t(a[scale])
    if a[rows] is not None:
        factor = factor * t(a[rows])[:, None]
    late = 0 if a[shift] is None else t(a[shift])
    return x1 @ x2 * factor + (bias if bias.is_floating_point() else bias * factor) + late


def weight_product(a):
    blocks = a["antiquantGroupSize"] or 1

    def lines(name):
        value = t(a[name])
        return value.repeat_interleave(blocks, 0) if blocks > 1 else value

    w = t(a["weight"]).double() * lines("antiquantScale")
    if a["antiquantOffsetOptional"] is not None:
        w = w + lines("antiquantOffsetOptional") * lines("antiquantScale")
    y = F.linear(t(a["x"]), w.T, None if a["biasOptional"] is None else t(a["biasOptional"]))
    if a.get("quantScaleOptional") is not None:
        y = y * real(a["quantScaleOptional"])
    return y if a.get("quantOffsetOptional") is None else y + t(a["quantOffsetOptional"])


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


TAKEN = {
    "aclnnQuantMatmulV4": scaled_product,
    "aclnnQuantMatmulV5": lambda a: scaled_product(
        a, "x1", "x2Scale", "x1Scale", "x2Offset"),
    **{f"aclnnWeightQuantBatchMatmul{v}": weight_product for v in ("V2", "Nz")},
    **{f"aclnnGroupedMatmul{v}": grouped for v in ("", "V2", "V3", "V4")},
    **{f"aclnnFFN{v}": experts for v in ("", "V2", "V3")},
}  # fmt: skip


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
    return x * (t(factors)[groups_of(a, len(x))] if a.get("groupIndexOptional") is not None
                else t(factors))  # fmt: skip


def asymmetric(a):
    """From the least and the largest: steps reach over the whole range."""
    y, most = smoothed(a), 7 if a["dstType"] == 29 else 127
    dims = {"pertoken": (-1,), "pertensor": tuple(range(y.ndim)), "perchannel": (-2,)}[
        a.get("quantMode", "pertoken")]  # fmt: skip
    top, low = torch.amax(y, dims, True), torch.amin(y, dims, True)
    if a.get("isSymmetrical"):
        scale = torch.maximum(top, -low) / most
        return y / scale, scale.squeeze(dims), None
    scale = (top - low) / (2 * most + 1)
    return most - (top - y) / scale, scale.squeeze(dims), (most - top / scale).squeeze(dims)


def halves(y, left=True):
    first, second = y.chunk(2, -1)
    return F.silu(first if left else second) * (second if left else first)


def by_largest(y, most=127):
    scale = y.abs().amax(-1, True) / most
    return y / scale, scale[..., 0]


def swish_steps(a):
    x = t(a["x"])
    which = groups_of(a, len(x), sizes=bool(a.get("groupListType")))
    y = halves(x, a["activateLeft"]) * t(a["smoothScalesOptional"]).reshape(
        len(a["smoothScalesOptional"]), -1)[which]  # fmt: skip
    if a["quantModeOptional"] == "static":
        return y + t(a["offsetsOptional"]).reshape(len(a["offsetsOptional"]), -1)[which], None
    steps, scale = by_largest(y, 7 if a.get("dstType") == 29 else 127)
    return steps, 1 / scale


def dequantised_swish(a):
    which = groups_of(a, len(a["x"]), sizes=True)
    scale = t(a["weightScaleOptional"])[which] * t(a["activationScaleOptional"])
    y = t(a["x"]) * scale
    if (bias := a["biasOptional"]) is not None:  # of integers it is scaled with the products
        y = y + t(bias)[which] * (scale if bias.dtype.kind == "i" else 1)
    if a.get("swigluMode"):
        first, second = (y.unflatten(-1, (-1, 2)).unbind(-1) if a["swigluMode"] == 1
                         else y.chunk(2, -1))  # fmt: skip
        limit = a["clampLimit"]
        first = first.clamp(max=limit)
        y = first * torch.sigmoid(first * a["gluAlpha"]) * (
            F.hardtanh(second, -limit, limit) + a["gluBias"])  # fmt: skip
    else:
        y = halves(y, a["activateLeft"])
    factor = t(a["quantScaleOptional"])[which]
    if a["quantModeOptional"] == "static":
        return y / factor + t(a["quantOffsetOptional"])[which], None
    return by_largest(y * factor)


def rms(x, gamma, eps):
    return F.rms_norm(x, gamma.shape, gamma, eps)


def added_norm_steps(a):
    x = t(a["x1"]) + t(a["x2"])
    y = rms(x, t(a["gamma"]), a["epsilon"])
    power = -1 if a["divMode"] else 1
    first, second = (
        y * t(a[f"scales{n}"]) ** power + (0 if a[z] is None else t(a[z]))
        for n, z in (("1", "zeroPoints1Optional"), ("2Optional", "zeroPoints2Optional"))
    )
    return first, second, x


def norm_steps(a):
    y = rms(t(a["x"]), t(a["gamma"]), a["epsilon"])
    y = y if a["betaOptional"] is None else y + t(a["betaOptional"])
    return by_largest(y if a["smoothScalesOptional"] is None else y * t(a["smoothScalesOptional"]))


def stepped_rows(a):
    x = t(a["x"])
    x = x if a["smoothScaleOptional"] is None else x * t(a["smoothScaleOptional"])
    scale = x.abs().amax(-1) / 127 if a["xScaleOptional"] is None else t(
        a["xScaleOptional"]).expand(len(x))  # fmt: skip
    steps = (x / scale[:, None]).round().clamp(-128, 127)
    return F.linear(steps, t(a["weight"]).double()) * torch.outer(scale, t(a["weightScale"]))


def packed_product(a):
    real_scale = a["scale"] & np.uint64(0xFFFFFFFF)
    return scaled_product({**a, "pertokenScaleOptional": None, "real": real(
        real_scale).numpy()}, "x1", "real")  # fmt: skip


def along(value, x, axis):
    return t(value).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def stepped(a):
    x = t(a["x"])
    axis = a.get("axis", -1)
    y = x * along(a["scale"], x, axis) ** (2 if a["sqrtMode"] else 1)
    y = y if a["offset"] is None else y + along(a["offset"], x, axis)
    return {"round": lambda v: v, "floor": torch.floor, "ceil": torch.ceil,
            "trunc": torch.trunc}[a["roundMode"]](y)  # fmt: skip


TAKEN |= {
    "aclnnDynamicQuantV2": asymmetric, "aclnnDynamicQuantV3": asymmetric,
    "aclnnAscendQuant": stepped, "aclnnAscendQuantV3": stepped,
    "aclnnSwiGluQuant": swish_steps, "aclnnSwiGluQuantV2": swish_steps,
    "aclnnDequantSwigluQuant": dequantised_swish, "aclnnDequantSwigluQuantV2": dequantised_swish,
    "aclnnAddRmsNormQuant": added_norm_steps, "aclnnRmsNormDynamicQuant": norm_steps,
    "aclnnQuantMatmulDequant": stepped_rows, "aclnnQuantMatmulV3": packed_product,
    "aclnnGroupQuant": lambda a: t(a["x"]) * t(a["scale"])[groups_of(
        a, len(a["x"]), "groupIndex")] + (0 if a["offsetOptional"] is None
                                         else t(a["offsetOptional"])),
}  # fmt: skip
