"""What torch gives for the rows of matmul, quantized."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .grouped import reals


def turned_product(a):
    y = torch.einsum("mbk,bkn->mbn", t(a["x1"]), t(a["x2"]).permute(a["permX2"]))
    return y * t(a["x1Scale"]).view(-1, 1, 1) * t(a["x2Scale"])


def added_product(a):
    y = torch.mm(t(a["x1"]).T, t(a["x2"])) * t(a["x2Scale"])
    one = a["x1ScaleOptional"]
    return t(a["yRef"]) + (y if one is None else y * t(one))


ENDS = {"": lambda y, x: y, "add": torch.add, "mul": torch.mul, "relu": lambda y, x: F.relu(y),
        "gelu_erf": lambda y, x: F.gelu(y),
        "gelu_tanh": lambda y, x: F.gelu(y, approximate="tanh")}  # fmt: skip


def scaled_product(a, left="x1", scale="scale", rows="pertokenScaleOptional", shift="offset"):
    """int8 matrices; a bias of integers counts products, one of floats results."""
    x1, x2 = (t(a[x]).double().mT if a[turned] else t(a[x]).double()
              for x, turned in ((left, "transposeX1"), ("x2", "transposeX2")))  # fmt: skip
    bias = torch.zeros(()) if a.get("bias") is None else t(a["bias"])
    factor = reals(a[scale])
    if a.get(rows) is not None:
        factor = factor * t(a[rows])[:, None]
    late = 0 if a.get(shift) is None else t(a[shift])
    return x1 @ x2 * factor + (bias if bias.is_floating_point() else bias * factor) + late


def stepped_rows(a):
    x = t(a["x"])
    x = x if a["smoothScaleOptional"] is None else x * t(a["smoothScaleOptional"])
    scale = x.abs().amax(-1) / 127 if a["xScaleOptional"] is None else t(
        a["xScaleOptional"]).expand(len(x))  # fmt: skip
    steps = (x / scale[:, None]).round().clamp(-128, 127)
    scale = scale if a["weightScale"].dtype.kind == "f" else torch.ones(len(x))
    return F.linear(steps, t(a["weight"]).double()) * torch.outer(scale, reals(a["weightScale"]))


ORACLES = {
    "aclnnQuantMatmul": lambda a: (
        (t(a["x1"]).double() @ t(a["x2"]).double() + t(a["bias"])) * a["deqScale"]
    ),
    "aclnnTransposeQuantBatchMatMul": turned_product,
    "aclnnQuantBatchMatmulInplaceAdd": added_product,
    "aclnnFusedQuantMatmul": lambda a: ENDS[a["fusedOpType"]](
        torch.einsum(
            "ij,jk,i,k->ik",
            t(a["x1"]).double(),
            t(a["x2"]).double(),
            t(a["x1Scale"]),
            t(a["x2Scale"]),
        )
        + (
            0
            if a["biasOptional"] is None
            else torch.outer(t(a["x1Scale"]), t(a["x2Scale"]) * t(a["biasOptional"]))
        ),
        None,
    ),
    "aclnnQuantMatmulReduceSumWeightNz": lambda a: torch.einsum(
        "bmk,bkn,n,bm->mn",
        t(a["x1"]).double(),
        t(a["x2"]).double(),
        t(a["x2Scale"]),
        t(a["x1Scale"]),
    ),
    "aclnnQuantMatmulV2": lambda a: scaled_product(
        {**a, "transposeX1": a["adjX1"], "transposeX2": a["adjX2"]}, "x1", "deqScale"
    ),
    "aclnnBatchMatmulQuant": lambda a: scaled_product(a, "x1", "quantParam"),
    "aclnnQuantMatmulV4": scaled_product,
    "aclnnQuantMatmulV5": lambda a: scaled_product(a, "x1", "x2Scale", "x1Scale", "x2Offset"),
    "aclnnQuantMatmulDequant": stepped_rows,
    "aclnnQuantMatmulV3": scaled_product,
}
