"""What torch gives for the rows of attention, projections."""

import torch
import torch.nn.functional as F

from .._arguments import t


def neighbours(x, cos, sin):
    x = x.reshape(*x.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def stored(cache, rows, at, mode):
    """Rows at their slots; PA_NZ lays 16 elements of each row of a block together."""
    block, width = cache.shape[1], cache.shape[-1]
    if mode == "PA_NZ":
        cache = cache.reshape(-1, width // 16, block, 16).transpose(1, 2)
    flat = cache.reshape(-1, width).clone()
    flat[at.reshape(-1)] = rows.reshape(-1, width)
    if mode == "PA_NZ":
        flat = flat.reshape(-1, block, width // 16, 16).transpose(1, 2)
    return flat


def prolog(a):
    x, up = t(a["tokenX"]), t(a["weightUk"])
    heads, inner, latent = up.shape
    gamma = t(a["rmsnormGammaCq"])
    low = F.rms_norm(x @ t(a["weightDq"]), gamma.shape, gamma, a["rmsnormEpsilonCq"])
    low = low * a.get("qcQrScale", 1.0)
    q = (low @ t(a["weightUqQr"])).unflatten(-1, (heads, -1))
    nope = torch.stack([q[..., n, :inner] @ up[n] for n in range(heads)], -2)
    cos, sin = t(a["ropeCos"]), t(a["ropeSin"])
    kv, gamma = x @ t(a["weightDkvKr"]), t(a["rmsnormGammaCkv"])
    keys = F.rms_norm(kv[..., :latent], gamma.shape, gamma, a["rmsnormEpsilonCkv"])
    at = a["cacheIndexOptional"] if a.get("cacheIndexOptional") is not None else a["cacheIndex"]
    caches = [
        stored(t(a[name]), rows, t(at), a["cacheModeOptional"]).reshape(a[name].shape)
        for name, rows in (("kvCacheRef", keys * a.get("kcScale", 1.0)),
                           ("krCacheRef", neighbours(kv[..., latent:], cos, sin)))
    ]  # fmt: skip
    return *caches, nope, neighbours(q[..., inner:], cos[..., None, :], sin[..., None, :])


ORACLES = {
    "aclnnMlaProlog": prolog,
    "aclnnMlaPrologV3WeightNz": prolog,
    "aclnnTransformBiasRescaleQkv": lambda a: torch.ops.aten._transform_bias_rescale_qkv(
        t(a["qkv"]).clone(), t(a["qkvBias"]), a["numHeads"]
    ),
}
