"""What torch gives for the rows of collective, exchange."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, matmul_of


def experts(a, scales=("", "", "", "")):
    """Rows of each expert times its matrix; the shared expert's product."""
    x, w = whole(a, "gmmX", scales[0]), whole(a, "gmmWeight", scales[1], "transGmmWeight")
    parts = x.split(list(a["sendCounts"]))
    y = torch.cat([x @ m for x, m in zip(parts, w, strict=True)])
    if a["mmXOptional"] is None:
        return y, None
    return y, whole(a, "mmXOptional", scales[2]) @ whole(
        a, "mmWeightOptional", scales[3], "transMmWeight"
    )


def whole(a, name, scale="", flag=None):
    """An operand by its scale: one number, or pairs of blocks of 32 along its inner axis."""
    x = t(a[name]).double()
    x = x.mT if flag and not a[flag] else x  # the inner axis last
    if scale:
        factor = t(a[scale]).double()
        if factor.ndim > 1:
            factor = factor if not flag or a[flag] else factor.transpose(-3, -2)
            factor = factor.flatten(-2).repeat_interleave(32, -1)[..., : x.shape[-1]]
        x = x * factor
    return x.mT if flag else x


_SCALES = ("gmmXScale", "gmmWeightScale", "mmXScaleOptional", "mmWeightScaleOptional")


def there(a, scales=("", "", "", "")):
    return *experts(a, scales), t(a["gmmX"]) if a["permuteOutFlag"] else None


def weight(a, name="x2", flag="transposeX2"):
    w = t(a[name]).double()
    return w.mT if a[flag] else w


def add_optional(y, *more):
    for one in more:
        y = y if one is None else y + t(one)
    return y


def rounded_rows(a):
    x = t(a["x1"])
    x = x if a["x1ScaleOptional"] is None else x * t(a["x1ScaleOptional"])
    scale = x.abs().amax(-1, keepdim=True) / 127
    y = add_optional((x / scale).round() @ weight(a), a["biasOptional"])
    return y * scale * t(a["x2Scale"]), t(a["x1"])


def columns(a):
    y = add_optional(t(a["x1"]).double() @ weight(a), a["biasOptional"])
    return y * torch.outer(t(a["x1Scale"]), t(a["x2Scale"]))


ACTIVATIONS = (lambda x: x, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.relu,
               lambda x: x * torch.sigmoid(1.702 * x))  # fmt: skip


def gathered(a):
    plain = add_optional(torch.bmm(t(a["x"]), t(a["weight"])), a["biasOptional"])
    return ACTIVATIONS[a["actType"]](plain), t(a["x"]), plain


def oriented(a):
    return add_optional(t(a["x1"]).double() @ weight(a), a["biasOptional"])


def product(*more):
    return lambda a: add_named(matmul_of(a), a, *more)


ORACLES = {
    "aclnnAlltoAllvGroupedMatMul": there,
    "aclnnGroupedMatMulAlltoAllv": experts,
    "aclnnAlltoAllvQuantGroupedMatMul": lambda a: there(a, _SCALES),
    "aclnnQuantGroupedMatMulAlltoAllv": lambda a: experts(a, _SCALES),
    "aclnnAlltoAllQuantMatmul": rounded_rows,
    "aclnnQuantMatmulAlltoAll": columns,
    "aclnnAlltoAllAllGatherBatchMatMul": gathered,
    "aclnnBatchMatMulReduceScatterAlltoAll": lambda a: add_optional(
        torch.bmm(t(a["x"]), t(a["weight"])), a["biasOptional"]
    ),
    "aclnnAlltoAllMatmul": lambda a: (oriented(a), t(a["x1"])),
    "aclnnMatmulAlltoAll": oriented,
}
