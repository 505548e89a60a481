"""What torch gives for the rows of matmul, weight_quantized."""

import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named
from .grouped import real


def first_weight(a):
    w = t(a["x2"]).double()
    w = (w.T if a["transposeX2"] else w) * a["antiquantScale"]
    w = w + a["antiquantScale"] * a["antiquantOffset"]
    x = t(a["x1"]).T if a["transposeX1"] else t(a["x1"])
    return add_named(x @ ((w + t(a["addOffset"])) * t(a["mulScale"])), a, "bias")


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


ORACLES = {
    "aclnnWeightQuantBatchMatmul": first_weight,
    **{f"aclnnWeightQuantBatchMatmul{v}": weight_product for v in ("V2", "V3", "Nz")},
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnWeightQuantBatchMatmulV2",
        {
            "x": [[1.0, 2.0]],
            "weight": [[3.0], [4.0]],
            "antiquantScale": [0.5],
            "antiquantOffsetOptional": [1.0],
            "biasOptional": None,
            "antiquantGroupSize": 0,
        },
        [[[7.0]]],
    ),
]
