"""What torch gives for the rows of attention, projections."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._arguments import t


def neighbours(x, cos, sin):
    x = x.reshape(*x.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def prolog(a):
    x = t(a["tokenX"])
    low = F.rms_norm(x @ t(a["weightDq"]), (12,), t(a["rmsnormGammaCq"]), a["rmsnormEpsilonCq"])
    low = low * a.get("qcQrScale", 1.0)
    q = (low @ t(a["weightUqQr"])).unflatten(-1, (2, 12))
    nope = torch.stack([q[..., n, :8] @ t(a["weightUk"])[n] for n in range(2)], -2)
    cos, sin = t(a["ropeCos"]), t(a["ropeSin"])
    kv = x @ t(a["weightDkvKr"])
    latent = F.rms_norm(kv[..., :16], (16,), t(a["rmsnormGammaCkv"]), a["rmsnormEpsilonCkv"])
    caches = []
    at = a["cacheIndexOptional"] if a.get("cacheIndexOptional") is not None else a["cacheIndex"]
    for name, rows in (("kvCacheRef", latent * a.get("kcScale", 1.0)),
                       ("krCacheRef", neighbours(kv[..., 16:], cos, sin))):  # fmt: skip
        cache = t(a[name]).clone()
        cache.view(-1, cache.shape[-1])[t(at).reshape(-1)] = rows.reshape(-1, cache.shape[-1])
        caches.append(cache)
    return nope, neighbours(q[..., 8:], cos[..., None, :], sin[..., None, :]), *caches


ORACLES = {
    "aclnnMlaProlog": prolog,
    "aclnnMlaPrologV3WeightNz": prolog,
    "aclnnTransformBiasRescaleQkv": lambda a: torch.ops.aten._transform_bias_rescale_qkv(
        t(a["qkv"]).clone(), t(a["qkvBias"]), a["numHeads"]
    ),
}
