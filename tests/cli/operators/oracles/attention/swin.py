"""What torch gives for the rows of attention, swin."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, matmul_of


def unpacked(words):
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


def window_scores(a):
    score = add_named(matmul_of({**a, "key": a["key"].swapaxes(-1, -2)}, "query", "key"), a,
                 "biasDequant1Optional") * unpacked(a["scaleDequant1"])  # fmt: skip
    score = add_named(score, a, "paddingMask1Optional", "paddingMask2Optional").softmax(-1)
    steps = add_named(score * t(a["scaleQuant"]), a, "biasQuantOptional").round().clamp(-128, 127)
    return add_named(steps @ t(a["value"]).double(), a, "biasDequant2Optional") * unpacked(
        a["scaleDequant2"])  # fmt: skip


def window_projection(a):
    n = a["headNum"]
    y = F.layer_norm(t(a["x"]), (32 * n,), t(a["gamma"]), t(a["beta"]), a["epsilon"])
    steps = (y * t(a["quantScale"]) + t(a["quantOffset"])).round().clamp(-128, 127)
    w = t(a["weight"]).double()
    y = (steps @ (w.T if a["weightTranspose"] else w) + t(a["bias"])) * unpacked(a["dequantScale"])
    image = y.reshape(2, a["oriHeight"], a["oriWeight"], -1)
    windows = torch.cat([image[b : b + 1, i : i + 2, j : j + 2] for b in range(2)
                         for i in range(0, image.shape[1], 2)
                         for j in range(0, image.shape[2], 2)])  # fmt: skip
    parts = windows.reshape(len(windows), 4, -1).split(32 * n, -1)
    return [part.unflatten(-1, (n, 32)).transpose(1, 2) for part in parts]


ORACLES = {
    "aclnnSwinAttentionScoreQuant": window_scores,
    "aclnnSwinTransformerLnQkvQuant": window_projection,
    "aclnnMaskedSoftmaxWithRelPosBias": lambda a: F.softmax(
        t(a["x"]) * a["scaleValue"]
        + t(a["relativePosBias"])
        + (0 if a["attenMaskOptional"] is None else t(a["attenMaskOptional"])),
        -1,
    ),
}
