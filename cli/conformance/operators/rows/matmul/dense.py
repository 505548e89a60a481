"""Products of matrices and vectors of floats."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import ACCUMULATED, FINITE_GRADIENT, FLOATS, FLOATS_64, TORCH_ROW
from .._ignored import reserved
from .quantized import ended

_PRODUCT: Final[dict[str, Any]] = {**ACCUMULATED, "dtypes": FLOATS_64}


def _scaled(beta: float, self: Array, alpha: float, product: Array) -> Array:
    return (0 if beta == 0 else beta * self) + alpha * product


@spec("aclnnAddbmm", "out:self",
      constant="cubeMathType",
      **_PRODUCT, samples=[
    take(self=t(3, 5), batch1=t(4, 3, 65), batch2=t(4, 65, 5), beta=b, alpha=a, cubeMathType=0)
    for b, a in ((1.0, 1.0), (0.5, -2.0))] + [
    take(self=t(1, 1), batch1=t(4, 1, 9), batch2=t(4, 9, 1), beta=0.5, alpha=-2.0,
         cubeMathType=0)])  # fmt: skip
def addbmm(
    self: Array, batch1: Array, batch2: Array, beta: float, alpha: float, cubeMathType: int
) -> Array:  # fmt: skip
    return _scaled(beta, self, alpha, (batch1 @ batch2).sum(0))


@spec("aclnnAddmv", "out:self",
      constant="cubeMathType",
      **_PRODUCT, samples=[
    take(self=t(3), mat=t(3, 65), vec=t(65), beta=b, alpha=a, cubeMathType=0)
    for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addmv(
    self: Array, mat: Array, vec: Array, alpha: float, beta: float, cubeMathType: int
) -> Array:
    return _scaled(beta, self, alpha, mat @ vec)


@spec("aclnnAddr", "out:self", **{**TORCH_ROW, "tolerance": "composite"},
      dtypes=FLOATS_64, samples=[
          take(self=t(3, 65), vec1=t(3), vec2=t(65), betaOptional=b, alphaOptional=a)
          for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addr(self: Array, vec1: Array, vec2: Array, betaOptional: float, alphaOptional: float) -> Array:
    return _scaled(betaOptional, self, alphaOptional, np.outer(vec1, vec2))


@spec("aclnnMv", "out:self",
      constant="cubeMathType",
      **_PRODUCT,
      samples=[take(self=t(7, n), vec=t(n), cubeMathType=0) for n in (5, 65, 1025)])  # fmt: skip
def mv(self: Array, vec: Array, cubeMathType: int) -> Array:
    return self @ vec


@spec("aclnnDot", "out:self", **_PRODUCT,
      samples=[take(self=t(n), tensor=t(n)) for n in (1, 65, 4097)])  # fmt: skip
def dot(self: Array, tensor: Array) -> Array:
    return np.asarray(self @ tensor)


@spec("aclnnGer", "out:self", **TORCH_ROW, tolerance="rounded",
      samples=[take(self=t(7), vec2=t(65)), take(self=t(1), vec2=t(3))])  # fmt: skip
def ger(self: Array, vec2: Array) -> Array:
    return np.outer(self, vec2)


@spec("aclnnMatmulWeightNz aclnnBatchMatMulWeightNz", "out:self",
      tolerance="accumulated", dtypes=("float16", "bfloat16"),
      source="a matrix product; the second operand lies in the inner format", samples=[
          take(self=f16(16, 32), mat2=f16(32, 16), cubeMathType=0),
          take(self=f16(5, 40), mat2=f16(40, 33), cubeMathType=0)],
      formats={"mat2": "FRACTAL_NZ"})  # fmt: skip
def matmul_nz(self: Array, mat2: Array) -> Array:
    return self @ mat2


@spec("aclnnTransposeBatchMatMul aclnnTransposeBatchMatMulWeightNz", "out:x1",
      ignored=reserved("bias"),
      uncovered="scale batchSplitFactor",
      constant="permX1 permX2 permY",
      tolerance="gradient",
      dtypes=("float16", "bfloat16", "float32"),
      formats={"aclnnTransposeBatchMatMulWeightNz x2": "FRACTAL_NZ"},
      source="op-plugin document npu_transpose_batchmatmul", samples=[
          take(x1=f16(5, 3, 64), x2=f16(3, 64, 32), permX1=(1, 0, 2), permX2=(0, 1, 2),
               permY=(1, 0, 2), cubeMathType=0, batchSplitFactor=1)])  # fmt: skip
def transpose_batch_matmul(
    x1: Array, x2: Array, permX1: tuple[int, ...], permX2: tuple[int, ...], permY: tuple[int, ...]
) -> Array:
    return (x1.transpose(permX1) @ x2.transpose(permX2)).transpose(permY)


@spec("aclnnAddLora", "out:y",
      constant="ySliceSize",
      dtypes=("float16",), **FINITE_GRADIENT,
      source="Hu et al.: LoRA, 2021; Chen et al.: Punica, 2023; op-plugin document "
      "npu_batch_gather_matmul", samples=[
          take(y=f16(4, 48), x=f16(4, 32), weightB=f16(3, 2, 16, 16), indices=const(at, "int32"),
               weightAOptional=f16(3, 2, 16, 32), layerIdx=1, scale=0.5, yOffset=16, ySliceSize=16)
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


@spec("aclnnGemm", "out:A", source="ONNX operator Gemm, version 13",
      tolerance="accumulated", dtypes=FLOATS, samples=[
          take(A=t(65, 3) if ta else t(3, 65), B=t(9, 65) if tb else t(65, 9), C=t(3, 9), alpha=a,
               beta=b, transA=ta, transB=tb, cubeMathType=0)
          for ta, tb, a, b in ((0, 0, 1.0, 1.0), (1, 0, 0.5, 2.0), (0, 1, -1.0, 0.5))])  # fmt: skip
def gemm(A: Array, B: Array, C: int, alpha: float, beta: float, transA: int, transB: int) -> Array:
    return alpha * ((A.T if transA else A) @ (B.T if transB else B)) + beta * C


@spec("aclnnEinsum", "output:tensors", source="torch 2.13, document of einsum",
      tolerance="accumulated", dtypes=FLOATS, samples=[
          take(tensors=[t(3, 65), t(65, 9)], equation="ij,jk->ik"),
          take(tensors=[t(2, 3, 17), t(2, 17, 5)], equation="abc,acd->abd"),
          take(tensors=[t(3, 9), t(9, 5), t(5, 4)], equation="ij,jk,kl->il")])  # fmt: skip
def einsum(tensors: list[Array], equation: str) -> Array:
    return np.einsum(equation, *tensors)


_ENDS: Final = ("", "add", "mul", "gelu_erf", "gelu_tanh", "relu")


@spec("aclnnFusedMatmul", "y:x1", **FINITE_GRADIENT, dtypes=("float16", "bfloat16"),
      source="a matrix product and one elementwise operation, as the operator document names them",
      samples=[take(x1=f16(5, 32), x2=f16(32, 9), bias=None, fusedOpType=k, cubeMathType=0,
                    x3=f16(5, 9) if k in ("add", "mul") else None) for k in _ENDS] + [
          take(x1=f16(5, 32), x2=f16(32, 9), bias=f16(9), fusedOpType=k, cubeMathType=0,
               x3=f16(5, 9) if k == "mul" else None) for k in ("mul", "relu")])  # fmt: skip
def fused(x1: Array, x2: Array, bias: Array | None, x3: Array | None, fusedOpType: str) -> Array:
    return ended(x1 @ x2 + (0 if bias is None else bias), fusedOpType, x3)


@spec("aclnnAddmmWeightNz", "out:self", tolerance="accumulated",
      dtypes=("float16", "bfloat16"), source="torch 2.13, document of torch.addmm; the second "
      "operand lies in the inner format", formats={"mat2": "FRACTAL_NZ"}, samples=[
          take(self=t(16, 16, dtype="float16"), mat1=t(16, 32, dtype="float16"),
               mat2=t(32, 16, dtype="float16"), beta=b, alpha=a, cubeMathType=0)
          for b, a in ((1.0, 1.0), (0.5, -2.0))])  # fmt: skip
def addmm_nz(self: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    return beta * self + alpha * (mat1 @ mat2)
