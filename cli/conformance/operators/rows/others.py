"""Drawn values by tensors of seeds, updates of attention, rotary caches, gates of other models."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....judge.precision import Array
from .. import drawn
from ..formulas import gradient, words
from ..spec import given, spec, t, take

_RANDOM: Final[dict[str, Any]] = {
    "family": "random",
    "tolerance": "random",
    "source": "Knuth: The Art of Computer Programming 3.3 and 3.4; torch's documents",
}
_SEEDS: Final[dict[str, Any]] = {"seedTensor": given([7], "int64"),
                                 "offsetTensor": given([0], "int64"), "offset": 0}  # fmt: skip
for _name, _draws, _more in (
    ("InplaceNormalTensor", drawn.normal, {"mean": 1.0, "std": 2.0, **_SEEDS}),
    ("InplaceUniformTensor", drawn.uniform, {"from": -1.0, "to": 2.0, **_SEEDS,
                              "seedTensor": given([7], "uint64"),
                              "offsetTensor": given([0], "uint64")}),
    ("InplaceRandomTensor", drawn.integers, {"from": -5, "to": 9, **_SEEDS}),
    ("InplaceRandomWithoutFromTo", drawn.integers, {"seed": 7, "offset": 0}),
    ("InplaceRandomWithoutFromToTensor", drawn.integers, _SEEDS),
):  # fmt: skip
    # Numbers below zero have no place in the unsigned types.
    signed = ("float16", "bfloat16", "float32", "int8", "int16", "int32", "int64")
    spec(f"aclnn{_name}", "selfRef:selfRef", draws=_draws, **_RANDOM,
         dtypes=signed if "from" in _more else (),
         samples=[take(selfRef=t(33, 65), **_more)])(
        lambda selfRef: np.zeros_like(selfRef))  # fmt: skip
spec("aclnnMultinomial", "out:int64", **_RANDOM, draws=drawn.categories, samples=[
    take(self=t(331, 9, low=0.1, high=1), numsamples=n, replacement=r, seed=7, offset=0)
    for n, r in ((4, True), (4, False), (9, False))])(
    lambda self, numsamples: np.zeros((len(self), numsamples)))  # fmt: skip
spec("aclnnMultinomialTensor", "out:int64", **_RANDOM, draws=drawn.categories, samples=[
    take(self=t(331, 9, low=0.1, high=1), numsamples=4, replacement=r, **_SEEDS)
    for r in (True, False)])(
    lambda self, numsamples: np.zeros((len(self), numsamples)))  # fmt: skip
spec("aclnnDropoutGenMask aclnnDropoutGenMaskV2", "out:uint8", **_RANDOM,
     draws=drawn.kept, samples=[
    take(shape=(65, 128), prob=p, seed=7, offset=0, probDataType=0) for p in (0.5, 0.1)])(
    lambda shape: np.zeros(int(np.prod(shape)) // 8))  # fmt: skip


@spec("aclnnAttentionUpdate", "out:localOut lseOut:lse", family="attention", tolerance="gradient",
      dtypes=("float32",), source="Liu et al.: Ring Attention, 2023; op-plugin document "
      "npu_attention_update", samples=[
          take(lse=[t(5), t(5, high=3), t(5)], localOut=[t(5, 32), t(5, 32), t(5, 32)],
               updateType=u) for u in (0, 1)])  # fmt: skip
def attention_update(
    lse: list[Array], localOut: list[Array], updateType: int
) -> tuple[Array, Array | None]:
    """updateType 1 asks for the logarithm of the sum too."""
    whole = np.stack(lse)
    top = whole.max(0)
    total = np.log(np.exp(whole - top).sum(0)) + top
    out = sum(np.exp(v - total)[:, None] * o for v, o in zip(lse, localOut, strict=True))
    return out, total if updateType else None


def clipped_swiglu(
    x: Array, groupIndexOptional: Array | None, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool,
) -> Array:  # fmt: skip
    """gpt-oss: the gate is cut above, the other half on both sides; rows of no group are 0."""
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, dim)
    gate, value = np.minimum(a, limit), np.clip(b, -limit, limit)
    y = gate / (1 + np.exp(-alpha * gate)) * (value + bias)
    return y if groupIndexOptional is None else np.where(counted(x, groupIndexOptional), y, 0)


def counted(x: Array, groups: Array) -> Array:
    """Whether a row is among the first ones, as many as the sizes of the groups add up to."""
    return np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) < groups.sum()


spec("aclnnClippedSwiglu", "out:x", family="activation", tolerance="gradient", specials=False,
     dtypes=("float16", "bfloat16", "float32"), source="gpt-oss, public model code: swiglu with "
     "limit; op-plugin document npu_clipped_swiglu", samples=[
         take(x=t(3, 64, low=-4, high=4), groupIndexOptional=g, dim=-1, alpha=1.702, limit=2.0,
              bias=1.0, interleaved=i)
         for i in (True, False) for g in (None, given([1, 0, 1], "int64"))])(
    clipped_swiglu)  # fmt: skip


@spec("aclnnExpSegsum", "out:self", family="arithmetic", tolerance="gradient", sparse=True,
      dtypes=("float32",), source="Dao, Gu: Transformers are SSMs, 2024: exp of segment sums",
      samples=[take(self=t(2, 3, 4, 16, low=-1, high=0.2))])  # fmt: skip
def exp_segsum(self: Array) -> Array:
    run = np.cumsum(self, -1)
    gap = run[..., :, None] - run[..., None, :]
    return np.where(np.tril(np.ones(gap.shape[-2:], bool)), np.exp(gap), 0.0)


@spec("aclnnTransformBiasRescaleQkv", "qOut:qkv kOut:qkv vOut:qkv", family="attention",
      tolerance="gradient", dtypes=("float16", "bfloat16", "float32"),
      source="torch 2.13, torch._transform_bias_rescale_qkv", samples=[
          take(qkv=t(2, 5, 3 * 2 * 16), qkvBias=t(96), numHeads=2)])  # fmt: skip
def transform_qkv(qkv: Array, qkvBias: Array, numHeads: int) -> tuple[Array, Array, Array]:
    b, s, width = qkv.shape
    parts = (qkv + qkvBias).reshape(b, s, 3, numHeads, -1).transpose(2, 0, 3, 1, 4)
    return parts[0] / np.sqrt(width // 3 // numHeads), parts[1], parts[2]


@spec("aclnnUniqueDim", "valueOut:self inverseOut:int64 countsOut:int64", family="sort",
      tolerance="exact", specials=False, fixed_layout=True,
      source="torch 2.13, document of torch.unique", samples=[
          take(self=given([[3, 1], [2, 5], [3, 1], [2, 4]], "int64"), sorted=True,
               returnInverse=True, dim=0)])  # fmt: skip
def unique_dim(self: Array, dim: int) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts


spec("aclnnDropoutV3Grad", "gradX:gradY", family="arithmetic", tolerance="composite", sparse=True,
     dtypes=("float16", "bfloat16", "float32"), source="Srivastava et al.: Dropout, 2014; the mask "
     "is one bit an element", samples=[
         take(gradY=t(4, 64), mask=t(32, dtype="uint8", low=0, high=255), scale=2.0)])(
    lambda gradY, mask, scale: gradY * scale * np.unpackbits(
        mask.astype(np.uint8), bitorder="little").reshape(gradY.shape))  # fmt: skip

_SWISH: Final[dict[str, Any]] = {"family": "norm", "tolerance": "gradient", "dtypes": ("float32",),
                                 "source": "derivative of Wu, He: Group Normalization, 2018, then "
                                 "x sigmoid(scale x)"}  # fmt: skip


def _group_swish(
    x: Tensor, gamma: Tensor, beta: float, numGroups: int, swishScale: float
) -> Tensor:
    y = F.group_norm(x, numGroups, gamma, beta, 1e-5)
    return y * torch.sigmoid(swishScale * y)


def _swish_samples() -> list[Any]:
    x = t(2, 4, 9).array().astype(np.float64)
    parts = x.reshape(2, 2, -1)
    rstd = 1 / np.sqrt(parts.var(-1) + 1e-5)
    return [take(dy=t(2, 4, 9), x=given(x.tolist(), "float32"), gamma=t(4), beta=t(4),
                 mean=given(parts.mean(-1).tolist(), "float32"),
                 rstd=given(rstd.tolist(), "float32"), numGroups=2, dataFormatOptional="NCHW",
                 swishScale=s, dgammaIsRequire=True, dbetaIsRequire=True)
            for s in (1.0, 0.5)]  # fmt: skip


spec("aclnnGroupNormSwishGrad", "dxOut:x dgammaOut:x dbetaOut:x", samples=_swish_samples, **_SWISH)(
    gradient(_group_swish, grad="dy", of="x gamma beta"))  # fmt: skip

spec("aclnnConvTbc", "output:self", family="pool", tolerance="gradient",
     dtypes=("float32", "float16"), source="torch 2.13, document of torch.conv_tbc", samples=[
         take(self=t(9, 2, 4), weight=t(3, 4, 5), bias=t(5), pad=1, cubeMathType=0)])(
    words(lambda self, weight, bias, pad: F.conv1d(
        self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)),
)  # fmt: skip


@spec("aclnnRopeWithSinCosCache aclnnRopeWithSinCosCacheV2", "queryOut:queryIn keyOut:keyIn",
      family="rotary", tolerance="gradient", dtypes=("float16", "bfloat16", "float32"),
      source="vLLM, rotary_embedding: NeoX and GPT-J style", samples=[
          take(positions=given([3, 0, 6, 2], "int64"), queryIn=t(4, 2 * 32), keyIn=t(4, 32),
               cosSinCache=t(8, 32, low=-1, high=1), mropeSection=(0,), headSize=32,
               isNeoxStyle=s, cacheMode=0) for s in (True, False)])  # fmt: skip
def rope_with_cache(
    positions: Array,
    queryIn: Array,
    keyIn: Array,
    cosSinCache: Array,
    headSize: int,
    isNeoxStyle: bool,
) -> tuple[Array, Array]:
    cos, sin = (v[:, None] for v in np.split(cosSinCache[positions], 2, -1))

    def turn(x: Array) -> Array:
        h = x.reshape(len(x), -1, headSize)
        a, b = np.split(h, 2, -1) if isNeoxStyle else (h[..., 0::2], h[..., 1::2])
        c, d = a * cos - b * sin, b * cos + a * sin
        turned = np.concatenate([c, d], -1) if isNeoxStyle else np.stack([c, d], -1)
        return turned.reshape(x.shape)

    return turn(queryIn), turn(keyIn)


@spec("aclnnRReluWithNoise", "out:self", family="activation", tolerance="composite",
      dtypes=("float16", "bfloat16", "float32"), source="torch 2.13, document of RReLU in eval",
      samples=[take(self=t(3, 65), noise=t(3, 65), lower=0.1, upper=0.3, training=False, seed=7,
                    offset=0)])  # fmt: skip
def rrelu(self: Array, lower: float, upper: float) -> Array:
    return np.where(self >= 0, self, self * (lower + upper) / 2)


@spec("aclnnAddmmWeightNz", "out:self", family="matmul", tolerance="accumulated",
      dtypes=("float16", "bfloat16"), source="torch 2.13, document of torch.addmm; the second "
      "operand lies in the inner format", formats={"mat2": "FRACTAL_NZ"}, samples=[
          take(self=t(16, 16, dtype="float16"), mat1=t(16, 32, dtype="float16"),
               mat2=t(32, 16, dtype="float16"), beta=b, alpha=a, cubeMathType=0)
          for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addmm_nz(self: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    return beta * self + alpha * (mat1 @ mat2)
