"""What torch gives for the rows of attention, swin."""

import numpy as np
import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import add_named, matmul_of


def unpacked(words):
    return torch.from_numpy(words.astype("uint32").view("float32").astype("float64"))


def window_scores(a):
    key = a["key"] if a["keyTranspose"] else a["key"].swapaxes(-1, -2)
    score = add_named(matmul_of({**a, "key": key}, "query", "key"), a,
                 "biasDequant1Optional") * unpacked(a["scaleDequant1"])  # fmt: skip
    for name in ("paddingMask1Optional", "paddingMask2Optional"):
        if a[name] is not None:
            a = {**a, name: np.concatenate([a[name]] * (len(score) // len(a[name])))}
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
    image = y.reshape(len(y), a["oriHeight"], a["oriWeight"], -1)
    high, wide = a["hWinSize"], a["wWinSize"]
    windows = torch.cat([image[b : b + 1, i : i + high, j : j + wide] for b in range(len(image))
                         for i in range(0, image.shape[1], high)
                         for j in range(0, image.shape[2], wide)])  # fmt: skip
    parts = windows.reshape(len(windows), high * wide, -1).split(32 * n, -1)
    return [part.unflatten(-1, (n, 32)).transpose(1, 2) for part in parts]


def relative(a):
    """In five dims: [batch, windows, heads, rows, columns]."""
    x, mask = t(a["x"]), a["attenMaskOptional"]
    square = x.shape[-2:]
    windows = 1 if mask is None else int(np.prod(mask.shape)) // square.numel()
    score = x.reshape(-1, windows, *x.shape[-3:]) * a["scaleValue"]
    score = score + t(a["relativePosBias"]).reshape(1, 1, -1, *square)
    score = score + (0 if mask is None else t(mask).reshape(1, windows, 1, *square))
    return F.softmax(score, -1).reshape(x.shape)


ORACLES = {
    "aclnnSwinAttentionScoreQuant": window_scores,
    "aclnnSwinTransformerLnQkvQuant": window_projection,
    "aclnnMaskedSoftmaxWithRelPosBias": relative,
}
