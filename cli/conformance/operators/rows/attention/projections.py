"""Projections before attention: latent (MLA) and packed q, k, v."""

from __future__ import annotations

from .....spec import *
from .....spec import heads as heads_
from .._words import *


def rotate_pairs(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; they lie half a row apart afterwards."""
    pairs = x[..., ::2] + 1j * x[..., 1::2]
    half = x.shape[-1] // 2
    re = pairs.real * cos[..., :half] - pairs.imag * sin[..., :half]
    im = pairs.imag * cos[..., half:] + pairs.real * sin[..., half:]
    return np.concatenate([re, im], -1)


def rms(x: Array, gamma: Array, eps: float) -> Array:
    return x * gamma / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


def _cached(cache: Array, rows: Array, at: Array, mode: str) -> Array:
    """The cache [blocks, block, 1, width] with rows at their slots; in PA_NZ 16 elements of each
    row of a block lie together."""
    blocks, block, width = cache.shape[0], cache.shape[1], cache.shape[-1]
    piece = 16 if mode == "PA_NZ" else width
    pieces = cache.reshape(blocks, width // piece, block, piece).copy()
    at = at.reshape(-1)
    pieces[at // block, :, at % block] = rows.reshape(len(at), -1, piece)
    return pieces.reshape(cache.shape)


def prolog(
    tokenX: Array, weightDq: Array, weightUqQr: Array, weightUk: Array, weightDkvKr: Array,
    rmsnormGammaCq: Array, rmsnormGammaCkv: Array, ropeSin: Array, ropeCos: Array,
    cacheIndex: Array, kvCacheRef: Array, krCacheRef: Array, rmsnormEpsilonCq: float,
    rmsnormEpsilonCkv: float, cacheModeOptional: str, qcQrScale: float = 1.0, kcScale: float = 1.0,
) -> tuple[Array, ...]:  # fmt: skip
    heads, inner, latent = weightUk.shape
    lead, x = tokenX.shape[:-1], tokenX.reshape(-1, tokenX.shape[-1])
    cos, sin = ropeCos.reshape(len(x), -1), ropeSin.reshape(len(x), -1)
    low = rms(x @ weightDq, rmsnormGammaCq, rmsnormEpsilonCq) * qcQrScale
    q = (low @ weightUqQr).reshape(len(x), heads, -1)
    nope = np.einsum("tnd,ndl->tnl", q[..., :inner], weightUk)
    rope = rotate_pairs(q[..., inner:], cos[:, None], sin[:, None])
    kv = x @ weightDkvKr
    keys = rms(kv[:, :latent], rmsnormGammaCkv, rmsnormEpsilonCkv) * kcScale
    return (_cached(kvCacheRef, keys, cacheIndex, cacheModeOptional),
            _cached(krCacheRef, rotate_pairs(kv[:, latent:], cos, sin), cacheIndex,
                    cacheModeOptional),
            nope.reshape(*lead, heads, -1), rope.reshape(*lead, heads, -1))  # fmt: skip


_QUANTIZED: Final = "of the quantised forms, whose roundings no document states"
_QUANTIZED_PARAMS: Final = """dequantScaleXOptional dequantScaleWDqOptional
dequantScaleWUqQrOptional dequantScaleWDkvKrOptional quantScaleCkvOptional quantScaleCkrOptional
smoothScalesCqOptional"""
_MODES: Final = """weightQuantMode kvCacheQuantMode queryQuantMode ckvkrRepoMode
quantScaleRepoMode"""
_PROLOG: Final = Rule(
    "gradient", "op-plugin documents npu_mla_prolog, npu_mla_prolog_v2, npu_mla_prolog_v3; "
    "DeepSeek-V2, arXiv 2405.04434", specials=False, values="normal", strided=False,
    numbers={"norm": 32.0, "reason": "three roundings to bfloat16 between products, as its test "
                                     "has them"})  # fmt: skip
# D, and so the width of a piece of PA_NZ, is a multiple of 16.
_WIDTHS: Final = sizes({"*B": leading(3, 1, "2x3", 17, "1x5")}, H=row(10, 33, 130, 1030),
                       R=row(12, 33, 130), N=heads_(2, 1, 3), I=row(8, 33, 128),
                       L=row(16, 32, 128, 512), D=head_dim(16, 32, 64), P=pages(2, 1, 5),
                       Z=page(16, 128))  # fmt: skip
_SLOTS: Final = slots("*B", into="P*Z")
_INPUTS: Final[dict[str, Domain]] = {
    "tokenX": tensor("*B H", "bf16"), "weightDq": tensor("H R", "bf16"),
    "weightUqQr": tensor("R N*(I+D)", "bf16"), "weightUk": tensor("N I L", "bf16"),
    "weightDkvKr": tensor("H L+D", "bf16"), "rmsnormGammaCq": tensor("R", "bf16"),
    "rmsnormGammaCkv": tensor("L", "bf16"), "ropeSin": tensor("*B D", "bf16"),
    "ropeCos": tensor("*B D", "bf16"),
}  # fmt: skip
_CACHES: Final[dict[str, Domain]] = {
    "kvCacheRef": inout(tensor("P Z 1 L", "bf16")),
    "krCacheRef": inout(tensor("P Z 1 D", "bf16")),
}
_SCALES: Final[dict[str, Domain]] = dict.fromkeys(_QUANTIZED_PARAMS.split(), null(_QUANTIZED))
_NORMS: Final[dict[str, Domain]] = {
    "rmsnormEpsilonCq": number(1e-5, 0.25), "rmsnormEpsilonCkv": number(1e-5, 0.25),
    "cacheModeOptional": choice("PA_BSND", "PA_NZ"),
}  # fmt: skip
_OUTS: Final[dict[str, Domain]] = {"queryOut": out("tokenX"), "queryRopeOut": out("tokenX")}
_OUT_SCALE: Final[dict[str, Domain]] = {"dequantScaleQNopeOutOptional": null(_QUANTIZED)}
_ROOM: Final = require("P*Z*H >= size(tokenX)", refuses=None)
for _name, _late in (("aclnnMlaProlog", {}), ("aclnnMlaPrologV2WeightNz", _OUT_SCALE)):
    spec(_name, _PROLOG, _WIDTHS, _ROOM, **_INPUTS, cacheIndex=_SLOTS, **_CACHES, **_SCALES,
         **_NORMS, **_OUTS, **_late)(prolog)  # fmt: skip
spec("aclnnMlaPrologV3WeightNz", _PROLOG, _WIDTHS, _ROOM, **_INPUTS, **_CACHES,
     cacheIndexOptional=_SLOTS, **_SCALES, actualSeqLenOptional=null(_QUANTIZED),
     kNopeClipAlphaOptional=null(_QUANTIZED), **_NORMS,
     **dict.fromkeys(_MODES.split(), only(0, _QUANTIZED)), tileSize=only(128, _QUANTIZED),
     qcQrScale=number(1.0, 0.5, -1.0), kcScale=number(1.0, 2.0, -1.0), **_OUTS, **_OUT_SCALE,
     queryNormOutOptional=null(_QUANTIZED), dequantScaleQNormOutOptional=null(_QUANTIZED))(
    lambda tokenX, weightDq, weightUqQr, weightUk, weightDkvKr, rmsnormGammaCq, rmsnormGammaCkv,
    ropeSin, ropeCos, cacheIndexOptional, kvCacheRef, krCacheRef, rmsnormEpsilonCq,
    rmsnormEpsilonCkv, cacheModeOptional, qcQrScale, kcScale:
    prolog(tokenX, weightDq, weightUqQr, weightUk, weightDkvKr, rmsnormGammaCq, rmsnormGammaCkv,
           ropeSin, ropeCos, cacheIndexOptional, kvCacheRef, krCacheRef, rmsnormEpsilonCq,
           rmsnormEpsilonCkv, cacheModeOptional, qcQrScale, kcScale))  # fmt: skip


@spec("aclnnTransformBiasRescaleQkv", Rule("gradient", "torch 2.13, "
      "torch._transform_bias_rescale_qkv"),
      sizes(N=heads_(2, 1, 3), D=head_dim(16, 5, 64), S=seq(5, 1, 17)), both("N > S"),
      qkv=tensor("B S 3*N*D", "f32 f16 bf16"), qkvBias=tensor("3*N*D", "qkv"),
      numHeads=equals("N"), qOut=out("qkv"), kOut=out("qkv"), vOut=out("qkv"))  # fmt: skip
def transform_qkv(qkv: Array, qkvBias: Array, numHeads: int) -> tuple[Array, Array, Array]:
    b, s, width = qkv.shape
    parts = (qkv + qkvBias).reshape(b, s, 3, numHeads, -1).transpose(2, 0, 3, 1, 4)
    return parts[0] / np.sqrt(width // 3 // numHeads), parts[1], parts[2]
