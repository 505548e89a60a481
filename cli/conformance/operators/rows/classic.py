"""Operators of older models: statistics over devices, scaling layers, signs in bits, point clouds,
padded pooling, windows with a position bias, recurrent cells."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_FLOATS: Final = ("float16", "bfloat16", "float32")
_BN: Final[dict[str, Any]] = {
    "family": "norm", "tolerance": "gradient", "dtypes": ("float32",),
    "source": "torch 2.13, torch.batch_norm_gather_stats_with_counts, batch_norm_backward_reduce, "
    "batch_norm_backward_elemt; SyncBatchNorm's document",
}  # fmt: skip


@spec("aclnnBatchNormGatherStatsWithCounts",
      "meanAll:float32 invstdAll:float32 runningMean:runningMean runningVar:runningVar", **_BN,
      samples=[take(input=t(4, 3, 5), mean=t(2, 3), invstd=t(2, 3, low=0.5, high=1.5),
                    runningMean=t(3), runningVar=t(3, low=0.5, high=2), momentum=0.3, eps=1e-3,
                    counts=given([20.0, 12.0], "float32"))])  # fmt: skip
def gathered_statistics(
    mean: Array, invstd: Array, runningMean: Array, runningVar: Array, momentum: float, eps: float,
    counts: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Moments of parts become those of the whole: variances add to the spread of the means."""
    share, n = (counts / counts.sum())[:, None], counts.sum()
    whole = (share * mean).sum(0)
    second = (share * (1 / invstd**2 - eps + mean**2)).sum(0)
    var = second - whole**2
    return (whole, 1 / np.sqrt(var + eps), (1 - momentum) * runningMean + momentum * whole,
            (1 - momentum) * runningVar + momentum * var * n / (n - 1))  # fmt: skip


@spec("aclnnBatchNormReduceBackward",
      "sumDy:float32 sumDyXmu:float32 gradWeight:float32 gradBias:float32", **_BN, samples=[
          take(gradOut=t(4, 3, 5), input=t(4, 3, 5), mean=t(3), invstd=t(3, low=0.5, high=1.5),
               weight=t(3), inputG=True, weightG=True, biasG=True)])  # fmt: skip
def reduced_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array
) -> tuple[Array, Array, Array, Array]:
    axes = (0, *range(2, input.ndim))
    dy = gradOut.sum(axes)
    centred = input - mean.reshape(1, -1, *(1,) * (input.ndim - 2))
    dyx = (gradOut * centred).sum(axes)
    return dy, dyx, dyx * invstd, dy


@spec("aclnnBatchNormElemtBackward", "gradInput:input", **_BN, samples=[
    take(gradOut=t(4, 3, 5), input=t(4, 3, 5), mean=t(3), invstd=t(3, low=0.5, high=1.5),
         weight=t(3), sumDy=t(3), sumDyXmu=t(3), counter=given([12, 8], "int32"))])  # fmt: skip
def elementwise_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array, weight: Array, sumDy: Array,
    sumDyXmu: Array, counter: Array,
) -> Array:  # fmt: skip
    n = counter.sum()
    mean, inv, w, dy, dyx = (
        v.reshape(1, -1, *(1,) * (input.ndim - 2)) for v in (mean, invstd, weight, sumDy, sumDyXmu)
    )
    return (gradOut - dy / n - (input - mean) * inv**2 * dyx / n) * inv * w


@spec("aclnnScale", "y:x", family="arithmetic", tolerance="composite", dtypes=_FLOATS,
      source="Caffe, Scale layer", samples=[
          take(x=t(2, 3, 5, 7), scale=t(*s), bias=b, axis=1, numAxes=n, scaleFromBlob=True)
          for s, b, n in (((3,), t(3), 1), ((3, 5), None, 2))])  # fmt: skip
def scale_layer(x: Array, scale: Array, bias: Array | None, axis: int, numAxes: int) -> Array:
    """The factors stand at the dimensions from `axis` on and repeat over the others."""
    tail = (1,) * (x.ndim - axis - numAxes)
    y = x * scale.reshape(scale.shape + tail)
    return y if bias is None else y + bias.reshape(bias.shape + tail)


_BITS: Final = "op-plugin documents npu_sign_bits_pack, npu_sign_bits_unpack"


@spec("aclnnSignBitsPack", "out:uint8", family="quantisation", tolerance="exact", specials=False,
      dtypes=("float16", "float32"), source=_BITS, samples=[
          *(take(self=t(n, dtype="float32"), size=s) for n, s in ((64, 2), (61, 1))),
          take(self=given([0.0, -0.0, 1.0, -1.0] * 8, "float32"), size=1)])  # fmt: skip
def pack_signs(self: Array, size: int) -> Array:
    """Bit i of a byte, the lowest first, is set where element i is not negative; what is missing to
    whole bytes counts as negative."""
    return np.packbits(self >= 0, bitorder="little").reshape(size, -1)


@spec("aclnnSignBitsUnpack", "out:dtype", family="quantisation", tolerance="exact", source=_BITS,
      specials=False, samples=[take(self=given([159, 15, 0, 255], "uint8"), size=2, dtype=d)
                               for d in (0, 1)],
      )  # fmt: skip
def unpack_signs(self: Array, size: int) -> Array:
    return np.where(np.unpackbits(self, bitorder="little"), 1.0, -1.0).reshape(size, -1)


@spec("aclnnChamferDistanceBackward", "gradXyz1:xyz1 gradXyz2:xyz2", family="boxes",
      tolerance="gradient", dtypes=("float16", "float32"), source="Fan, Su, Guibas: A Point Set "
      "Generation Network, 2017: derivative of squared distances to the nearest point", samples=[
          take(xyz1=t(2, 5, 2), xyz2=t(2, 5, 2), idx1=given([[3, 0, 1, 1, 4], [2, 2, 0, 3, 1]],
               "int32"), idx2=given([[0, 1, 1, 2, 4], [4, 3, 0, 0, 2]], "int32"),
               gradDist1=t(2, 5), gradDist2=t(2, 5))])  # fmt: skip
def chamfer_backward(
    xyz1: Array, xyz2: Array, idx1: Array, idx2: Array, gradDist1: Array, gradDist2: Array
) -> tuple[Array, Array]:
    one, two = np.zeros_like(xyz1), np.zeros_like(xyz2)
    for b in range(len(xyz1)):
        for i, j in enumerate(idx1[b]):
            flow = 2 * gradDist1[b, i] * (xyz1[b, i] - xyz2[b, j])
            one[b, i], two[b, j] = one[b, i] + flow, two[b, j] - flow
        for i, j in enumerate(idx2[b]):
            flow = 2 * gradDist2[b, i] * (xyz2[b, i] - xyz1[b, j])
            two[b, i], one[b, j] = two[b, i] + flow, one[b, j] - flow
    return one, two


@spec("aclnnSinkhorn", "p:cost", family="moe", tolerance="gradient", dtypes=("float32",),
      source="Megatron-LM, sinkhorn of moe_utils; Clark et al.: Unified Scaling Laws for Routed "
      "Language Models, 2022", samples=[take(cost=t(9, 4, low=-2, high=2), tol=1e-4)])  # fmt: skip
def sinkhorn(cost: Array, tol: float) -> Array:
    """Rows and columns of exp(cost) are scaled in turn until columns hardly move."""
    k = np.exp(cost)
    rows, columns, gap = np.ones(len(k)), np.ones(k.shape[1]), np.inf
    while gap > tol:
        rows = 1 / (len(k) * (k @ columns + 1e-8))
        new = 1 / (k.shape[1] * (rows @ k + 1e-8))
        gap, columns = np.abs(columns - new).mean(), new
    return rows[:, None] * k * columns


@spec("aclnnMaskedSoftmaxWithRelPosBias", "out:x", family="attention", tolerance="gradient",
      dtypes=_FLOATS, source="Liu et al.: Swin Transformer, 2021: softmax(scale x + mask + bias)",
      samples=[
          take(x=t(4, 2, 3, 32, 32), attenMaskOptional=mask, relativePosBias=t(1, 1, 3, 32, 32),
               scaleValue=s, innerPrecisionMode=0)
          for mask, s in ((t(1, 2, 1, 32, 32), 1.0), (None, 0.5))])  # fmt: skip
def window_softmax(
    x: Array, attenMaskOptional: Array | None, relativePosBias: Array, scaleValue: float
) -> Any:
    score = x * scaleValue + relativePosBias
    score = score if attenMaskOptional is None else score + attenMaskOptional
    e = np.exp(score - score.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@spec("aclnnThreeInterpolateBackward", "grad_y:grad_x", family="boxes", tolerance="gradient",
      dtypes=("float16", "float32"), source="Qi et al.: PointNet++, 2017: derivative of weighing "
      "three neighbours", samples=[
          take(grad_x=t(2, 3, 4, 1), idx=given([[[0, 1, 2], [4, 4, 0], [3, 1, 0], [2, 2, 2]],
               [[1, 0, 4], [2, 3, 1], [0, 0, 4], [4, 3, 2]]], "int32"), weight=t(2, 4, 3, low=0),
               m=5)])  # fmt: skip
def three_backward(grad_x: Array, idx: Array, weight: Array, m: int) -> Array:
    out = np.zeros((*grad_x.shape[:2], m, 1))
    for b in range(len(idx)):
        for n, neighbours in enumerate(idx[b]):
            for at, w in zip(neighbours, weight[b, n], strict=True):
                out[b, :, at] += w * grad_x[b, :, n]
    return out


@spec("aclnnMaxUnpool3d", "outRef:self", family="pool", tolerance="exact", sparse=True,
      dtypes=("float32",), source="torch 2.13, document of MaxUnpool3d", samples=[
          take(self=t(1, 2, 1, 2, 2), indices=given([[[[[0, 3], [9, 14]]], [[[1, 2], [8, 15]]]]],
               "int64"), outputSize=(1, 4, 4), stride=(1, 2, 2), padding=(0, 0, 0))])  # fmt: skip
def unpool(self: Array, indices: Array, outputSize: tuple[int, ...]) -> Array:
    flat = np.zeros((*self.shape[:2], int(np.prod(outputSize))))
    np.put_along_axis(flat, indices.reshape(*self.shape[:2], -1),
                      self.reshape(*self.shape[:2], -1), -1)  # fmt: skip
    return flat.reshape(*self.shape[:2], *outputSize)


@spec("aclnnMaxUnpool3dBackward", "out:self", family="pool", tolerance="exact", sparse=True,
      dtypes=("float32",), source="derivative of torch's MaxUnpool3d", samples=[
          take(gradOutput=t(1, 2, 1, 4, 4), self=t(1, 2, 1, 2, 2), indices=given(
              [[[[[0, 3], [9, 14]]], [[[1, 2], [8, 15]]]]], "int64"), outputSize=(1, 4, 4),
               stride=(1, 2, 2), padding=(0, 0, 0))])  # fmt: skip
def unpool_backward(gradOutput: Array, self: Array, indices: Array) -> Array:
    flat = gradOutput.reshape(*self.shape[:2], -1)
    at = indices.reshape(*self.shape[:2], -1)
    return np.take_along_axis(flat, at, -1).reshape(self.shape)


def _half(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


@spec("aclnnBatchMatmulQuant", "out:int8", family="quant_matmul", tolerance="gradient", steps=True,
      dtypes=("float16",), source="a product, then round(y scale) of a packed float32 scale "
      "(op-plugin document npu_trans_quant_param)", samples=[
          take(x1=_half(2, 5, 32), x2=_half(2, 32, 16), quantParam=given(
              [0x41200000 | 1 << 46], "uint64"), transposeX1=False, transposeX2=False)],
      )  # fmt: skip
def product_quantised(x1: Array, x2: Array, quantParam: Array) -> Array:
    bits = (quantParam & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return (x1 @ x2) * bits.view(np.float32).astype(np.float64)
