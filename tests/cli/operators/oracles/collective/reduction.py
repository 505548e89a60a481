"""What torch gives for the rows of collective, reduction."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .exchange import add_optional, product


def members(a):
    bias = t(a["bias"]) if a["bias"] else [None] * len(a["x"])
    return [F.linear(x, w.T, b) for x, w, b in zip(t(a["x"]), t(a["weight"]), bias, strict=True)]


def normed(y, a):
    total = y.reshape(a["residual"].shape) + t(a["residual"])
    gamma = t(a["gamma"])
    return total, F.rms_norm(total, gamma.shape, gamma, a["epsilon"])


def scales_of(packed):
    """Floats, or those whose bits are the low halves of words."""
    if packed.dtype.kind == "f":
        return t(packed)
    bits = torch.tensor((packed & 0xFFFFFFFF).astype("int64")).to(torch.int32)
    return bits.view(torch.float32).double()


def quantized(bias, scale, token="", third=""):
    """Integer products by scales of columns and of rows."""

    def formula(a):
        y = t(a["x1"]).double() @ t(a["x2"]).double()
        y = add_optional(y, a[bias]) * scales_of(a[scale])
        if token and a.get(token) is not None:
            y = torch.diag(t(a[token]).double()) @ y.flatten(0, -2)
        y = y.reshape(*a["x1"].shape[:-1], -1)
        return add_optional(y, a[third]) if third else y

    return formula


def weighted(a):
    """Weights restored by columns or by groups of rows."""
    scale, offset = (None if a[n] is None else t(a[n]).double()
                     for n in ("antiquantScale", "antiquantOffset"))  # fmt: skip
    weight = t(a["x2"]).double()
    group = a["antiquantGroupSize"]
    weight = weight.unflatten(0, (-1, group)) if group else weight[:, None]
    if offset is not None:
        weight = weight + (offset[:, None] if group else offset)
    weight = (weight * (scale[:, None] if group else scale)).flatten(0, 1)
    return add_optional(t(a["x1"]) @ weight, a["bias"], *(a[n] for n in ("x3",) if n in a))


def with_norm(formula):
    return lambda a: normed(formula(a), a)


def restored(a):
    scales = t(a["scales"]).reshape(*a["x"].shape[:-1], -1)
    x = t(a["x"]).double().unflatten(-1, (scales.shape[-1], -1))
    return (x * scales[..., None]).flatten(-2)


_DEQUANTIZED = quantized("bias", "dequantScale")
ORACLES = {
    "aclnnQuantAllReduce": restored,
    "aclnnGroupedMatMulAllReduce": members,
    "aclnnQuantMatmulAllReduceV5": quantized("biasOptional", "x2Scale", "x1ScaleOptional",
                                             "x3Optional"),
    "aclnnQuantMatmulAllReduceV3": quantized("biasOptional", "dequantScale",
                                             "pertokenScaleOptional", "x3Optional"),
    "aclnnMatmulAllReduceV3": product("bias", "x3"),
    "aclnnMatmulReduceScatterV2": product("bias"),
    "aclnnMatmulAllReduceAddRmsNorm": with_norm(product("bias")),
    "aclnnQuantMatmulAllReduceAddRmsNorm": with_norm(_DEQUANTIZED),
    "aclnnWeightQuantMatmulAllReduceV2": weighted,
    "aclnnWeightQuantMatmulAllReduceAddRmsNorm": with_norm(weighted),
}  # fmt: skip
