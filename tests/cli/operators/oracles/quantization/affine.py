"""What torch gives for the rows of quantization, affine."""

import torch

from .._arguments import t
from .dynamic import groups_of


def along(value, x, axis):
    return t(value).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def stepped(a):
    x = t(a["x"])
    axis = a.get("axis", -1)
    y = x * along(a["scale"], x, axis) ** (2 if a["sqrtMode"] else 1)
    y = y if a["offset"] is None else y + along(a["offset"], x, axis)
    return {"round": lambda v: v, "floor": torch.floor, "ceil": torch.ceil,
            "trunc": torch.trunc}[a["roundMode"]](y)  # fmt: skip


ORACLES = {
    "aclnnAscendQuant": stepped,
    "aclnnAscendQuantV3": stepped,
    "aclnnGroupQuant": lambda a: (
        t(a["x"]) * t(a["scale"])[groups_of(a, len(a["x"]), "groupIndex")]
        + (0 if a["offsetOptional"] is None else t(a["offsetOptional"]))
    ),
    "aclnnFakeQuantPerTensorAffineCachemask": lambda a: (
        torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            t(a["self"]).float(),
            t(a["scale"]).float(),
            t(a["zeroPoint"]).int(),
            torch.tensor([int(a["fakeQuantEnabled"])]),
            a["quantMin"],
            a["quantMax"],
        )[0].double()
    ),
    "aclnnFakeQuantPerChannelAffineCachemask": lambda a: torch.fake_quantize_per_channel_affine(
        t(a["self"]).float(),
        t(a["scale"]).float(),
        t(a["zeroPoint"]),
        a["axis"] % a["self"].ndim,
        a["quantMin"],
        a["quantMax"],
    ).double(),
    "aclnnQuantize": lambda a: (
        t(a["x"]) / along(a["scales"], a["x"], a["axis"])
        + (0 if a["zeroPoints"] is None else along(a["zeroPoints"], a["x"], a["axis"]))
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnAscendQuant",
        {
            "x": [[1.0, -2.0]],
            "scale": [3.0],
            "offset": [1.0],
            "sqrtMode": False,
            "roundMode": "round",
        },
        [[[4.0, -5.0]]],
    ),
    (
        "aclnnAscendQuantV3",
        {
            "x": [[1.0, -2.0], [2.0, 3.0]],
            "scale": [3.0, 5.0],
            "offset": [1.0, 2.0],
            "sqrtMode": False,
            "roundMode": "round",
            "axis": -2,
        },
        [[[4.0, -5.0], [12.0, 17.0]]],
    ),
    (
        "aclnnAscendAntiQuant",
        {"x": [[5.0]], "scale": [2.0], "offset": [1.0], "sqrtMode": True},
        [[[24.0]]],
    ),
    (
        "aclnnDequantBias",
        {
            "x": [[10.0]],
            "weightScale": [0.5],
            "activateScaleOptional": [2.0],
            "biasOptional": [1.0],
        },
        [[[11.0]]],
    ),
    (
        "aclnnGroupQuant",
        {
            "x": [[1.0], [1.0]],
            "scale": [[2.0], [3.0]],
            "groupIndex": [1, 2],
            "offsetOptional": None,
        },
        [[[2.0], [3.0]]],
    ),
]
