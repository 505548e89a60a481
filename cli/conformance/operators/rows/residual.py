"""What is added to a stream of activations: adapters, hyper-connections, experts and their
gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .norms import layer_norm

_ADDED: Final[dict[str, Any]] = {"tolerance": "gradient", "specials": False}


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


@spec("aclnnAddLora", "out:y", family="products", dtypes=("float16",), **_ADDED,
      source="Hu et al.: LoRA, 2021; Chen et al.: Punica, 2023; op-plugin document "
      "npu_batch_gather_matmul", samples=[
          take(y=_h(4, 48), x=_h(4, 32), weightB=_h(3, 2, 16, 16), indices=given(at, "int32"),
               weightAOptional=_h(3, 2, 16, 32), layerIdx=1, scale=0.5, yOffset=16, ySliceSize=16)
          for at in ([2, 0, 1, 1], [2, -1, -1, 0])])  # fmt: skip
def add_lora(
    y: Array, x: Array, weightB: Array, indices: Array, weightAOptional: Array, layerIdx: int,
    scale: float, yOffset: int, ySliceSize: int,
) -> Array:  # fmt: skip
    """A row's adapter is picked by its index; -1 has none."""
    merged = np.einsum("wor,wrh->who", weightB[:, layerIdx], weightAOptional[:, layerIdx])
    out = y.copy()
    for adapter, matrix in enumerate(merged):
        rows = indices == adapter
        out[rows, yOffset : yOffset + ySliceSize] += scale * (x[rows] @ matrix)
    return out


@spec("aclnnMhcPost", "out:x", family="products", dtypes=("float16", "bfloat16"), **_ADDED,
      source="Xie et al.: mHC: Manifold-Constrained Hyper-Connections, 2025; op-plugin test "
      "npu_mhc_post", samples=[
          take(x=_h(*lead, 4, 32), hRes=t(*lead, 4, 4), hOut=_h(*lead, 32), hPost=t(*lead, 4))
          for lead in ((5,), (2, 3))])  # fmt: skip
def mhc_post(x: Array, hRes: Array, hOut: Array, hPost: Array) -> Array:
    """Streams are mixed by a matrix, and take a share each of what the layer gives."""
    return np.swapaxes(hRes, -1, -2) @ x + hPost[..., None] * hOut[..., None, :]


@spec("aclnnMhcPostBackward",
      "gradX:x gradHRes:float32 gradHOut:hOut gradHPost:float32", family="products",
      dtypes=("float16", "bfloat16"), **_ADDED, source="op-plugin test npu_mhc_post_backward",
      samples=[take(gradOutput=_h(*lead, 4, 32), x=_h(*lead, 4, 32), hRes=t(*lead, 4, 4),
                    hOut=_h(*lead, 32), hPost=t(*lead, 4)) for lead in ((5,), (2, 3))],
      )  # fmt: skip
def mhc_post_backward(
    gradOutput: Array, x: Array, hRes: Array, hOut: Array, hPost: Array
) -> tuple[Array, Array, Array, Array]:
    return (
        hRes @ gradOutput,
        x @ np.swapaxes(gradOutput, -1, -2),
        (hPost[..., None] * gradOutput).sum(-2),
        (gradOutput * hOut[..., None, :]).sum(-1),
    )


@spec("aclnnMoeFinalizeRoutingV2Grad", "gradExpandedXOut:gradY gradScalesOut:scalesOptional",
      family="moe", dtypes=("float16", "bfloat16", "float32"), **_ADDED,
      source="op-plugin document npu_moe_finalize_routing, differentiated", samples=[
          take(gradY=t(5, 64), expandedRowIdx=given([3, 0, 4, 1, 2], "int32"),
               expandedXOptional=t(5, 64), scalesOptional=t(5, 1),
               expertIdxOptional=given([[2], [1], [0], [2], [1]], "int32"),
               biasOptional=bias, dropPadMode=0, activeNum=0, expertNum=3, expertCapacity=0)
          for bias in (None, t(3, 64))] + [
          take(gradY=t(5, 64), expandedRowIdx=given([4, 0, -1, 5, 2], "int32"),
               expandedXOptional=t(2, 3, 64), scalesOptional=t(5, 1),
               expertIdxOptional=given([[1], [0], [0], [1], [0]], "int32"),
               biasOptional=None, dropPadMode=1, activeNum=0, expertNum=2, expertCapacity=3),
          take(gradY=t(5, 64), expandedRowIdx=given([3, 0, 4, 1, 2], "int32"),
               expandedXOptional=t(3, 64), scalesOptional=t(5, 1),
               expertIdxOptional=given([[2], [1], [0], [2], [1]], "int32"),
               biasOptional=None, dropPadMode=0, activeNum=3, expertNum=3,
               expertCapacity=0)])  # fmt: skip
def finalize_gradients(
    gradY: Array, expandedRowIdx: Array, expandedXOptional: Array, scalesOptional: Array,
    expertIdxOptional: Array, biasOptional: Array | None, dropPadMode: int, activeNum: int,
    expertNum: int, expertCapacity: int,
) -> tuple[Array, Array]:  # fmt: skip
    """One expert a token: in which order the slots of several lie is not published. Only the first
    activeNum rows (0: all), or those of every expert's capacity (dropPadMode 1), are there."""
    padded = (expertNum, expertCapacity) if dropPadMode else (activeNum or len(gradY),)
    rows = np.zeros((int(np.prod(padded)), gradY.shape[1]))
    slots = np.where(expandedRowIdx < len(rows), expandedRowIdx, -1)
    there = slots >= 0
    rows[slots[there]] = (scalesOptional * gradY)[there]
    outs = np.where(there[:, None], expandedXOptional.reshape(rows.shape)[slots], 0)
    if biasOptional is not None:
        outs = outs + biasOptional[expertIdxOptional[:, 0]]
    return rows.reshape(*padded, -1), np.einsum("th,th->t", gradY, outs)[:, None]


def _normed() -> dict[str, Arg]:
    x = np.random.default_rng(3).standard_normal((2, 5, 64)).astype(np.float32)
    _, mean, rstd = layer_norm(x.astype(np.float64), (-1,), None, None, 1e-5)
    return {"input": given(x, "float32"), "rstd": given(rstd, "float32"),
            "mean": given(mean, "float32")}  # fmt: skip


@spec("aclnnAdaLayerNormBackward",
      "gradInputOut:gradOut gradScaleOut:scale gradShiftOut:shift gradWeightOut:weightOptional "
      "gradBiasOut:biasOptional", family="norm", dtypes=("float32",), **_ADDED,
      source="Peebles, Xie: Scalable Diffusion Models with Transformers, 2023, differentiated",
      samples=lambda: [
          take(gradOut=t(2, 5, 64), normalizedShape=(64,), **_normed(), scale=t(2, 64),
               shift=t(2, 64), weightOptional=t(64), biasOptional=t(64))])  # fmt: skip
def ada_layer_norm_backward(
    gradOut: Array, input: Array, rstd: Array, mean: Array, scale: Array, weightOptional: Array,
    biasOptional: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The norm's Jacobian takes away what lies along the ones and along the normed row."""
    y = (input - mean) * rstd
    outer = gradOut * (1 + scale[:, None])
    inner = outer * weightOptional
    n = y.shape[-1]
    project = (np.eye(n) - 1 / n) - np.einsum("...i,...j->...ij", y, y) / n
    grad = np.einsum("...ij,...j->...i", project, inner) * rstd
    return (grad, (gradOut * (y * weightOptional + biasOptional)).sum(1), gradOut.sum(1),
            (outer * y).sum((0, 1)), outer.sum((0, 1)))  # fmt: skip


@spec("aclnnScatterList", "varRef:varRef", family="indexing", tolerance="exact", specials=False,
      dtypes=("float16", "float32", "int8", "int32"), source="op-plugin document scatter_list",
      samples=[take(varRef=[t(2, 6, 4), t(2, 6, 4)], indice=given([2, 0], "int32"),
                    updates=t(2, 2, 3, 4), maskOptional=given(mask, "uint8"),
                    reduceOptional="update", axis=-2) for mask in ([1, 0], [1, 1])] + [
          take(varRef=[t(2, 3, 6), t(2, 3, 6)], indice=given([2, 0], "int32"),
               updates=t(2, 2, 3, 4), maskOptional=given([1, 1], "uint8"),
               reduceOptional="update", axis=-1)])  # fmt: skip
def scatter_list(
    varRef: list[Array], indice: Array, updates: Array, maskOptional: Array, axis: int
) -> list[Array]:
    out = [v.copy() for v in varRef]
    for v, begin, update, wanted in zip(out, indice, updates, maskOptional, strict=True):
        if wanted:
            np.moveaxis(v, axis, 0)[begin : begin + update.shape[axis]] = np.moveaxis(
                update, axis, 0
            )
    return out


@spec("aclnnQuantMatmul", "out:float16", family="quant_matmul", dtypes=("float32",), **_ADDED,
      source="operator document of aclnnQuantMatmul, CANN 8.1: (x1 x2 + bias) deqScale", samples=[
          take(x1=t(*lead, 5, 32, dtype="int8", low=-8, high=8),
               x2=t(*lead, 32, 16, dtype="int8", low=-8, high=8),
               bias=t(16, dtype="int32", low=-90, high=90), deqScale=0.01)
          for lead in ((), (2,))])  # fmt: skip
def quant_matmul(x1: Array, x2: Array, bias: Array, deqScale: float) -> Array:
    return (np.einsum("...ik,...kj->...ij", x1.astype(np.int64), x2) + bias) * deqScale
