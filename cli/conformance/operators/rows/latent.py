"""What comes before multi-head latent attention, and queries, keys and values from one product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_HEADS, _NOPE, _ROPE, _LATENT, _LOW, _INNER = 2, 8, 4, 16, 12, 10


def turned(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; they lie half a row apart afterwards."""
    pairs = x[..., ::2] + 1j * x[..., 1::2]
    half = x.shape[-1] // 2
    re = pairs.real * cos[..., :half] - pairs.imag * sin[..., :half]
    im = pairs.imag * cos[..., half:] + pairs.real * sin[..., half:]
    return np.concatenate([re, im], -1)


def rms(x: Array, gamma: Array, eps: float) -> Array:
    return x * gamma / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


def _b(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="bfloat16", **more)


def _slots(shape: tuple[int, ...]) -> Arg:
    n = int(np.prod(shape))
    return given(np.arange(n)[::-1].reshape(shape) * 2, "int64")


def _sample(shape: tuple[int, ...], mode: str, **more: Any) -> dict[str, Any]:
    return {
        "tokenX": _b(*shape, _INNER),
        "weightDq": _b(_INNER, _LOW),
        "weightUqQr": _b(_LOW, _HEADS * (_NOPE + _ROPE)),
        "weightUk": _b(_HEADS, _NOPE, _LATENT),
        "weightDkvKr": _b(_INNER, _LATENT + _ROPE),
        "rmsnormGammaCq": _b(_LOW),
        "rmsnormGammaCkv": _b(_LATENT),
        "ropeSin": _b(*shape, _ROPE),
        "ropeCos": _b(*shape, _ROPE),
        "cacheIndex": _slots(shape),
        "cacheIndexOptional": _slots(shape),
        "kvCacheRef": _b(2, 8, 1, _LATENT),
        "krCacheRef": _b(2, 8, 1, _ROPE),
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
    "family": "attention",
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
    rope = turned(q[..., _NOPE:], cos[:, None], sin[:, None])
    kv = x @ weightDkvKr
    latent = rms(kv[:, :_LATENT], rmsnormGammaCkv, rmsnormEpsilonCkv) * kcScale
    return (
        nope.reshape(*lead, _HEADS, -1),
        rope.reshape(*lead, _HEADS, -1),
        _cached(kvCacheRef, latent, cacheIndex),
        _cached(krCacheRef, turned(kv[:, _LATENT:], cos, sin), cacheIndex),
    )


_OUTS: Final = "queryOut:tokenX queryRopeOut:tokenX kvCacheRef:tokenX krCacheRef:tokenX"
_SHAPES: Final = ((3,), (2, 3))
spec(
    "aclnnMlaProlog aclnnMlaPrologV2WeightNz",
    _OUTS,
    **_ROW,
    samples=[take(**_sample(s, "PA_BSND")) for s in _SHAPES],
)(prolog)


@spec(
    "aclnnMlaPrologV3WeightNz",
    _OUTS,
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


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _kv(shape: tuple[int, int], cache: str, **more: Any) -> dict[str, Any]:
    batch, rows = shape
    n = batch * rows
    return {
        "x": _h(batch, rows, 2 * 8 + 2 * 8),
        "cos": _h(batch, rows, 1, 8),
        "sin": _h(batch, rows, 1, 8),
        "kCacheRef": t(batch, 6, 1, 8, dtype="int8", low=-9, high=9),
        "vCacheRef": t(batch, 6, 1, 8, dtype="int8", low=-9, high=9),
        "sizeSplits": (16, 8, 8),
        "indices": given(
            np.arange(batch) if cache == "contiguous" else np.arange(n)[::-1], "int32"
        ),
        "scaleK": t(1, 8, low=9, high=30),
        "scaleV": t(1, 8, low=9, high=30),
        "kvOutput": True,
        "quantModeOptional": "static",
        "layoutOptional": "BSND",
        "cacheModeOptional": cache,
        **more,
    }


def _halves(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    other = np.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * cos + other * sin


@spec(
    "aclnnDequantRopeQuantKvcache",
    "qOut:float16 kOut:float16 vOut:float16 kCacheRef:int8 vCacheRef:int8",
    family="attention",
    tolerance="composite",
    steps=True,
    slack=0.08,  # of 127 steps, with a turned key that may be rounded to half before
    specials=False,
    dtypes=("float16",),
    source="operator document of aclnnDequantRopeQuantKvcache; op-plugin test "
    "npu_rope_quant_kvcache, where scales multiply",
    samples=[
        take(**_kv((2, 3), "contiguous")),
        take(**_kv((2, 2), "page")),
        take(**_kv((2, 1), "contiguous", offsetKOptional=t(1, 8), offsetVOptional=t(1, 8))),
    ],
)
def rope_quant_cache(
    x: Array,
    cos: Array,
    sin: Array,
    kCacheRef: Array,
    vCacheRef: Array,
    indices: Array,
    scaleK: Array,
    scaleV: Array,
    offsetKOptional: Array | None,
    offsetVOptional: Array | None,
    sizeSplits: Sequence[int],
    cacheModeOptional: str,
) -> tuple[Array, ...]:
    q, k, v = (p.reshape(*x.shape[:2], -1, 8) for p in np.split(x, np.cumsum(sizeSplits)[:2], -1))
    q, k = _halves(q, cos, sin), _halves(k, cos, sin)
    caches = []
    for cache, rows, scale, shift in (
        (kCacheRef, k, scaleK, offsetKOptional),
        (vCacheRef, v, scaleV, offsetVOptional),
    ):
        steps = rows * scale + (0 if shift is None else shift)
        new = cache.astype(np.float64)
        if cacheModeOptional == "page":
            new.reshape(-1, *new.shape[2:])[indices] = steps.reshape(-1, *new.shape[2:])
        else:
            for b, at in enumerate(indices):
                new[b, at : at + rows.shape[1]] = steps[b]
        caches.append(new)
    return q, k, v, *caches
