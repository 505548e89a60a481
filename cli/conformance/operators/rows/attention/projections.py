"""Projections before attention: latent (MLA) and packed q, k, v."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from .....spec import Rule, both, equals, head_dim, out, seq, sizes, tensor
from .....spec import heads as heads_
from ...declare import declare
from ...spec import bf16, const, spec, take

_HEADS, _NOPE, _ROPE, _LATENT, _LOW, _INNER = 2, 8, 4, 16, 12, 10


def rotate_pairs(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; they lie half a row apart afterwards."""
    pairs = x[..., ::2] + 1j * x[..., 1::2]
    half = x.shape[-1] // 2
    re = pairs.real * cos[..., :half] - pairs.imag * sin[..., :half]
    im = pairs.imag * cos[..., half:] + pairs.real * sin[..., half:]
    return np.concatenate([re, im], -1)


def rms(x: Array, gamma: Array, eps: float) -> Array:
    return x * gamma / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


def _slots(shape: tuple[int, ...]) -> Arg:
    n = int(np.prod(shape))
    return const(np.arange(n)[::-1].reshape(shape) * 2, "int64")


def _sample(shape: tuple[int, ...], mode: str, **more: Any) -> dict[str, Any]:
    return {
        "tokenX": bf16(*shape, _INNER),
        "weightDq": bf16(_INNER, _LOW),
        "weightUqQr": bf16(_LOW, _HEADS * (_NOPE + _ROPE)),
        "weightUk": bf16(_HEADS, _NOPE, _LATENT),
        "weightDkvKr": bf16(_INNER, _LATENT + _ROPE),
        "rmsnormGammaCq": bf16(_LOW),
        "rmsnormGammaCkv": bf16(_LATENT),
        "ropeSin": bf16(*shape, _ROPE),
        "ropeCos": bf16(*shape, _ROPE),
        "cacheIndex": _slots(shape),
        "cacheIndexOptional": _slots(shape),
        "kvCacheRef": bf16(2, 8, 1, _LATENT),
        "krCacheRef": bf16(2, 8, 1, _ROPE),
        "rmsnormEpsilonCq": 1e-5,
        "rmsnormEpsilonCkv": 1e-5,
        "cacheModeOptional": mode,
        "weightQuantMode": 0,
        "kvCacheQuantMode": 0,
        "queryQuantMode": 0,
        "ckvkrRepoMode": 0,
        "quantScaleRepoMode": 0,
        "tileSize": 128,
        "qcQrScale": 1.0,
        "kcScale": 1.0,
        **more,
    }


def _cached(cache: Array, rows: Array, at: Array) -> Array:
    flat = cache.reshape(-1, cache.shape[-1]).copy()
    flat[at.reshape(-1)] = rows
    return flat.reshape(cache.shape)


_ROW: Final[dict[str, Any]] = {
    "specials": False,
    "tolerance": "gradient",
    "dtypes": ("bfloat16",),
    "rule": {
        "norm": 32.0,
        "reason": "three roundings to bfloat16 between products, as its test has them",
    },
    "source": "op-plugin documents npu_mla_prolog, npu_mla_prolog_v2, npu_mla_prolog_v3; "
    "DeepSeek-V2, arXiv 2405.04434",
}


def prolog(
    tokenX: Array,
    weightDq: Array,
    weightUqQr: Array,
    weightUk: Array,
    weightDkvKr: Array,
    rmsnormGammaCq: Array,
    rmsnormGammaCkv: Array,
    ropeSin: Array,
    ropeCos: Array,
    cacheIndex: Array,
    kvCacheRef: Array,
    krCacheRef: Array,
    rmsnormEpsilonCq: float,
    rmsnormEpsilonCkv: float,
    qcQrScale: float = 1.0,
    kcScale: float = 1.0,
) -> tuple[Array, ...]:
    lead, x = tokenX.shape[:-1], tokenX.reshape(-1, tokenX.shape[-1])
    cos, sin = ropeCos.reshape(len(x), -1), ropeSin.reshape(len(x), -1)
    low = rms(x @ weightDq, rmsnormGammaCq, rmsnormEpsilonCq) * qcQrScale
    q = (low @ weightUqQr).reshape(len(x), _HEADS, -1)
    nope = np.einsum("tnd,ndl->tnl", q[..., :_NOPE], weightUk)
    rope = rotate_pairs(q[..., _NOPE:], cos[:, None], sin[:, None])
    kv = x @ weightDkvKr
    latent = rms(kv[:, :_LATENT], rmsnormGammaCkv, rmsnormEpsilonCkv) * kcScale
    return (
        nope.reshape(*lead, _HEADS, -1),
        rope.reshape(*lead, _HEADS, -1),
        _cached(kvCacheRef, latent, cacheIndex),
        _cached(krCacheRef, rotate_pairs(kv[:, _LATENT:], cos, sin), cacheIndex),
    )


_OUTS: Final = "queryOut:tokenX queryRopeOut:tokenX kvCacheRef:tokenX krCacheRef:tokenX"
_SHAPES: Final = ((3,), (2, 3))
spec(
    "aclnnMlaProlog aclnnMlaPrologV2WeightNz",
    _OUTS,
    uncovered="dequantScaleXOptional dequantScaleWDqOptional dequantScaleWUqQrOptional "
    "dequantScaleWDkvKrOptional quantScaleCkvOptional quantScaleCkrOptional "
    "smoothScalesCqOptional cacheModeOptional dequantScaleQNopeOutOptional",
    **_ROW,
    samples=[take(**_sample(s, "PA_BSND")) for s in _SHAPES],
)(prolog)


@spec(
    "aclnnMlaPrologV3WeightNz",
    _OUTS,
    uncovered="dequantScaleXOptional dequantScaleWDqOptional dequantScaleWUqQrOptional "
    "dequantScaleWDkvKrOptional quantScaleCkvOptional quantScaleCkrOptional "
    "smoothScalesCqOptional actualSeqLenOptional kNopeClipAlphaOptional "
    "cacheModeOptional weightQuantMode kvCacheQuantMode queryQuantMode "
    "ckvkrRepoMode quantScaleRepoMode tileSize dequantScaleQNopeOutOptional "
    "queryNormOutOptional dequantScaleQNormOutOptional",
    **_ROW,
    samples=[
        take(**_sample(s, "PA_BSND", qcQrScale=a, kcScale=b))
        for s in _SHAPES
        for a, b in ((1.0, 1.0), (0.5, 2.0))
    ],
)
def prolog_v3(
    tokenX: Array,
    weightDq: Array,
    weightUqQr: Array,
    weightUk: Array,
    weightDkvKr: Array,
    rmsnormGammaCq: Array,
    rmsnormGammaCkv: Array,
    ropeSin: Array,
    ropeCos: Array,
    cacheIndexOptional: Array,
    kvCacheRef: Array,
    krCacheRef: Array,
    rmsnormEpsilonCq: float,
    rmsnormEpsilonCkv: float,
    qcQrScale: float,
    kcScale: float,
) -> tuple[Array, ...]:
    return prolog(
        tokenX,
        weightDq,
        weightUqQr,
        weightUk,
        weightDkvKr,
        rmsnormGammaCq,
        rmsnormGammaCkv,
        ropeSin,
        ropeCos,
        cacheIndexOptional,
        kvCacheRef,
        krCacheRef,
        rmsnormEpsilonCq,
        rmsnormEpsilonCkv,
        qcQrScale,
        kcScale,
    )


@declare("aclnnTransformBiasRescaleQkv", Rule("gradient", "torch 2.13, "
         "torch._transform_bias_rescale_qkv"),
         sizes(N=heads_(2, 1, 3), D=head_dim(16, 5, 64), S=seq(5, 1, 17)), both("N > S"),
         qkv=tensor("B S 3*N*D", "f32 f16 bf16"), qkvBias=tensor("3*N*D", "qkv"),
         numHeads=equals("N"), qOut=out("qkv"), kOut=out("qkv"), vOut=out("qkv"))  # fmt: skip
def transform_qkv(qkv: Array, qkvBias: Array, numHeads: int) -> tuple[Array, Array, Array]:
    b, s, width = qkv.shape
    parts = (qkv + qkvBias).reshape(b, s, 3, numHeads, -1).transpose(2, 0, 3, 1, 4)
    return parts[0] / np.sqrt(width // 3 // numHeads), parts[1], parts[2]
