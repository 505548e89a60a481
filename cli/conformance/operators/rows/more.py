"""Fused operators of models: softmax variants, gated quantisation, caches, lookups, statistics."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import given, spec, t, take
from .activations import geglu
from .norms import layer_norm, rms_norm
from .quantisation import dynamic

_TORCH: Final = "torch 2.13, document of the function of this name"
_FLOATS: Final = ("float16", "bfloat16", "float32")
_ANY: Final[dict[str, Any]] = {"family": "arithmetic", "source": _TORCH, "tolerance": "composite",
                               "dtypes": _FLOATS}  # fmt: skip
_EXACT: Final[dict[str, Any]] = {"family": "move", "source": _TORCH, "tolerance": "exact",
                                 "specials": False}  # fmt: skip
_GRAD: Final[dict[str, Any]] = {**_ANY, "tolerance": "gradient", "sparse": True}


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _i(values: object, dtype: str = "int64") -> Arg:
    return given(values, dtype)


# NaN and infinities in each of three tensors.
_NAN, _INF = float("nan"), float("inf")
_APART: Final = ([_NAN, 1.0, 2.0, -_INF, 0.5], [3.0, _NAN, 1.0, _INF, 7.0],
                 [1.0, 2.0, _NAN, 4.0, -_INF])  # fmt: skip
for _name, _pick in (("Max", np.maximum), ("Min", np.minimum)):
    spec(f"aclnn{_name}N", "out:tensors", **{**_EXACT, "family": "arithmetic"},
         samples=[take(tensors=[t(3, 65), t(3, 65), t(3, 65)]), take(tensors=[t(7), t(7)]),
                  take(tensors=[given(v, "float32") for v in _APART])])(
        lambda tensors, _pick=_pick: _pick.reduce(tensors))  # fmt: skip
spec("aclnnMaxV2", "out:self", **{**_EXACT, "family": "arithmetic"}, samples=[
    take(self=t(3, 5, 65), dims=d, keepDims=k, noopWithEmptyDims=n)
    for d, k, n in (((1,), False, False), ((0, 2), True, False), ((-1,), True, True),
                    ((), False, False), ((), False, True))])(
    lambda self, dims, keepDims, noopWithEmptyDims: self if not dims and noopWithEmptyDims
    else self.max(tuple(dims) or None, keepdims=keepDims))  # fmt: skip
spec("aclnnXlog1py", "z:x", **_ANY, samples=[
    take(x=t(3, 65), y=t(3, 65, low=-0.9, high=9)),
    take(x=_i([0.0, 1.0], "float32"), y=_i([-0.5, 2.0], "float32"))])(
    lambda x, y: np.where(x == 0, 0.0, x * np.log1p(y)))  # fmt: skip
spec("aclnnReduceLogSum", "reduce:data", **{**_ANY, "source": "ONNX operator ReduceLogSum"},
     samples=[take(data=t(3, 65, low=0.1, high=2), axes=a, keepDims=k, noopWithEmptyAxes=False)
              for a, k in (((1,), False), ((0,), True), ((-2,), False), ((), True))])(
    lambda data, axes, keepDims: np.log(
        data.sum(tuple(axes) or None, keepdims=keepDims)))  # fmt: skip
spec("aclnnAngleV2", "out:float32", **{**_ANY, "dtypes": ("float32",)}, samples=[
    take(x=t(3, 65)), take(x=t(3, 5, dtype="complex64"))], sparse=True)(
    lambda x: np.angle(x) if x.dtype.kind == "c"
    else np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0.0)))  # fmt: skip
spec("aclnnBitwiseAndTensorOut", "out:self", **_EXACT, samples=[
    take(self=t(3, 65, dtype="int32", low=-90, high=90),
         other=t(3, 65, dtype="int32", low=-90, high=90))])(
    lambda self, other: self & other)  # fmt: skip


@spec("aclnnGemm", "out:A", family="matmul", source="ONNX operator Gemm, version 13",
      tolerance="accumulated", dtypes=_FLOATS, samples=[
          take(A=t(65, 3) if ta else t(3, 65), B=t(9, 65) if tb else t(65, 9), C=t(3, 9), alpha=a,
               beta=b, transA=ta, transB=tb, cubeMathType=0)
          for ta, tb, a, b in ((0, 0, 1.0, 1.0), (1, 0, 0.5, 2.0), (0, 1, -1.0, 0.5))])  # fmt: skip
def gemm(A: Array, B: Array, C: int, alpha: float, beta: float, transA: int, transB: int) -> Array:
    return alpha * ((A.T if transA else A) @ (B.T if transB else B)) + beta * C


@spec("aclnnEinsum", "output:tensors", family="matmul", source="torch 2.13, document of einsum",
      tolerance="accumulated", dtypes=_FLOATS, samples=[
          take(tensors=[t(3, 65), t(65, 9)], equation="ij,jk->ik"),
          take(tensors=[t(2, 3, 17), t(2, 17, 5)], equation="abc,acd->abd"),
          take(tensors=[t(3, 9), t(9, 5), t(5, 4)], equation="ij,jk,kl->il")])  # fmt: skip
def einsum(tensors: list[Array], equation: str) -> Array:
    return np.einsum(equation, *tensors)


@spec("aclnnIndexAddV2", "out:self", **{**_GRAD, "family": "index"}, samples=[
    take(self=t(5, 7), dim=d, index=_i(i), source=t(*s), alpha=a, mode=0)
    for d, i, s, a in ((0, [4, 0, 4], (3, 7), 1.0), (1, [6, 1], (5, 2), -0.5))])  # fmt: skip
def index_add(self: Array, dim: int, index: Array, source: Array, alpha: float) -> Array:
    result = np.moveaxis(self.copy(), dim, 0)
    np.add.at(result, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(result, 0, dim)


def modulate(self: Array, scaleOptional: Array | None, shiftOptional: Array | None) -> Array:
    """Peebles, Xie 2023: x (1 + scale) + shift, each one row of a batch."""
    scale = 0 if scaleOptional is None else scaleOptional[:, None]
    return self * (1 + scale) + (0 if shiftOptional is None else shiftOptional[:, None])


_DIT: Final = "Peebles, Xie: Scalable Diffusion Models with Transformers, 2023"
spec("aclnnModulate", "out:self", **{**_ANY, "source": _DIT}, samples=[
    take(self=t(2, 5, 64), scaleOptional=s, shiftOptional=b)
    for s, b in ((t(2, 64), t(2, 64)), (None, t(2, 64)), (t(2, 64), None))])(modulate)  # fmt: skip
spec("aclnnModulateBackward", "grad_input:input grad_scale:scale grad_shift:shift",
     **{**_GRAD, "source": _DIT}, samples=[
         take(grad_output=t(2, 5, 64), input=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64))])(
    gradient(lambda input, scale, shift: modulate(input, scale, shift), grad="grad_output",
             of="input scale shift"))  # fmt: skip


def pdist(self: Array, p: float) -> Array:
    a, b = np.triu_indices(len(self), 1)
    gap = np.abs(self[a] - self[b])
    return gap.max(-1) if np.isinf(p) else (gap**p).sum(-1) ** (1 / p)


spec("aclnnPdist", "out:self", samples=[take(self=t(5, 9), p=p) for p in (2.0, 1.0, 3.0)], **_ANY)(
    pdist)  # fmt: skip
spec("aclnnPdistForward", "out:self", renamed={"pScalar": "p"}, **_ANY,
     samples=[take(self=t(5, 9), p=p) for p in (2.0, 1.0)])(pdist)  # fmt: skip


@spec(
    "aclnnCdistBackward", "out:x1", **{**_GRAD, "dtypes": ("float32",)}, samples=[
        take(grad=t(2, 3), x1=given([[1.0, 2.0], [0.0, -1.0]], "float32"),
             x2=given([[4.0, 6.0], [3.0, 3.0], [-1.0, 0.0]], "float32"),
             cdist=given([[5.0, 5.0**0.5, 8.0**0.5], [65.0**0.5, 5.0, 2.0**0.5]], "float32"),
             p=2.0),
        take(grad=t(1, 2), x1=given([[1.0, 2.0]], "float32"), p=1.0,
             x2=given([[1.0, 5.0], [4.0, 2.0]], "float32"),
             cdist=given([[3.0, 3.0]], "float32")),
        take(grad=t(1, 2), x1=given([[1.0, 2.0]], "float32"), p=2.0,
             x2=given([[1.0, 2.0], [4.0, 6.0]], "float32"),
             cdist=given([[0.0, 5.0]], "float32")),
        *(take(grad=t(1, 2), x1=given([[1.0, 2.0]], "float32"), p=p,
               x2=given([[1.0, 3.0], [0.0, 2.0]], "float32"),
               cdist=given([[1.0, 1.0]], "float32")) for p in (1.0, 2.0))])  # fmt: skip
def cdist_backward(grad: Array, x1: Array, x2: Array, cdist: Array, p: float) -> Array:
    gap = x1[:, None] - x2[None]
    size = np.abs(gap) ** (p - 1) * np.sign(gap)
    # Of equal rows the derivative is 0 (torch 2.13, cdist).
    whole = np.where(cdist == 0, 1, cdist)[..., None] ** (p - 1)
    return (grad[..., None] * size / whole).sum(1)


def _gelu(x: Tensor) -> Tensor:
    erf = words(lambda v: torch.erf(v))
    return 0.5 * x * (1 + erf(v=x / np.sqrt(2)))


_GATES: Final[dict[str, Any]] = {**_ANY, "family": "activation", "source":
                                 "Shazeer: GLU Variants Improve Transformer, 2020"}  # fmt: skip
spec("aclnnGeluMul", "out:input", **_GATES, samples=[
    take(input=t(3, 130), approximateOptional=how) for how in ("none", "tanh")])(
    words(lambda input, approximateOptional:
          torch.nn.functional.gelu(input[..., :65], approximate=approximateOptional)
          * input[..., 65:]))  # fmt: skip
spec("aclnnFatreluMul", "out:input", **{**_GATES, "source": "Kurtz et al.: FATReLU, 2020"},
     samples=[take(input=t(3, 130), threshold=given([0.25], "float32"))], sparse=True)(
    lambda input, threshold: np.where(input[..., :65] > threshold[0], input[..., :65], 0.0)
    * input[..., 65:])  # fmt: skip


def _geglu_grad(x: Tensor, dim: int, approximate: int, activateLeft: bool = False) -> Tensor:
    return geglu(x, dim, approximate, activateLeft)[0]


def _flow(name: str, left: bool) -> None:
    samples = []
    for approximate in (0, 1):
        more: dict[str, Any] = {"activateLeft": True} if left else {}
        source = t(3, 64)
        gate = source.array()[:, :32] if left else source.array()[:, 32:]
        active = words(lambda v, a=approximate: geglu(v, 1, a, True)[1])
        result = active(v=np.concatenate([gate, gate], 1).astype(np.float64))
        samples.append(take(gradOutput=t(3, 32), self=given(source.array().tolist(), "float32"),
                            gelu=given(result.tolist(), "float32"), dim=1, approximate=approximate,
                            **more))  # fmt: skip

    def reference(
        gradOutput: Array, self: Array, dim: int, approximate: int, activateLeft: bool = False
    ) -> Array:
        backward = gradient(
            lambda x: _geglu_grad(x, dim, approximate, activateLeft), grad="g", of="x"
        )
        return backward(g=gradOutput, x=self)

    spec(name, "gradInput:self", samples=samples, **{**_GATES, "tolerance": "gradient",
         "dtypes": ("float32",)})(reference)  # fmt: skip


_flow("aclnnGeGluBackward", False)
_flow("aclnnGeGluV3Backward", True)

_MASKED: Final[dict[str, Any]] = {**_ANY, "family": "attention", "tolerance": "gradient", "source":
                                  "Megatron-LM, scaled masked softmax"}  # fmt: skip


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _mask(*shape: int) -> Arg:
    return _i((np.arange(np.prod(shape)).reshape(shape) % 5 == 3).tolist(), "bool")


spec("aclnnScaledMaskedSoftmax", "y:x", **_MASKED, samples=[
    take(x=t(2, 3, *size), mask=_mask(2, 1, *size), scale=0.5, fixedTriuMask=f)
    for f, size in ((False, (32, 64)), (True, (64, 32)))])(
    lambda x, mask, scale, fixedTriuMask: _softmax(np.where(
        np.triu(np.ones(x.shape[-2:], bool), 1) if fixedTriuMask else mask, -10000.0,
        x * scale)))  # fmt: skip


@spec("aclnnScaledMaskedSoftmaxBackward", "out:gradOutput", **_MASKED, samples=[
    take(gradOutput=t(2, 3, 32, 64), y=t(2, 3, 32, 64, low=0, high=0.05), mask=_mask(2, 1, 32, 64),
         scale=0.5, fixTriuMask=False)])  # fmt: skip
def masked_softmax_backward(gradOutput: Array, y: Array, mask: Array, scale: float) -> Array:
    flow = y * (gradOutput - (gradOutput * y).sum(-1, keepdims=True))
    return np.where(mask, 0.0, flow * scale)


# --- looking up and writing by index ----------------------------------------------------------

_INDEX: Final[dict[str, Any]] = {**_EXACT, "family": "index", "source":
                                 "TensorFlow documents: gather_nd, scatter_nd_update"}  # fmt: skip


@spec("aclnnGatherNd", "out:self", **_INDEX, samples=[
    take(self=t(4, 5, 6), indices=_i(at), negativeIndexSupport=n)
    for at, n in (([[0, 1], [3, 4], [2, 0]], False), ([[-1, 1], [3, -5], [2, 0]], True))],
    )  # fmt: skip
def gather_nd(self: Array, indices: Array, negativeIndexSupport: bool) -> Array:
    """Where indices may be negative, they count from the end."""
    assert negativeIndexSupport or (indices >= 0).all()
    return self[tuple(np.moveaxis(indices, -1, 0))]


@spec(
    "aclnnGatherV3",
    "out:self",
    **_INDEX,
    samples=[
        take(self=t(5, 7), dim=0, index=_i([[0, 4], [1, 3]]), batchDims=0, mode=0),
        take(
            self=t(3, 5, 7), dim=2, index=_i([[0, 4, 6], [1, 3, 3], [2, 6, 0]]), batchDims=1, mode=0
        ),
        take(self=t(3, 5, 7), dim=-2, index=_i([[0, 4], [1, 3], [2, 2]]), batchDims=1, mode=0),
        take(self=t(3, 5, 7), dim=1, index=_i([[0, 4], [1, 3], [2, 2]]), batchDims=-1, mode=0),
    ],
)
def gather_v3(self: Array, dim: int, index: Array, batchDims: int) -> Array:
    if batchDims < 0:  # counted from the end of the index
        return gather_v3(self, dim, index, batchDims + index.ndim)
    if batchDims:
        return np.stack([gather_v3(s, dim - (dim > 0), i, batchDims - 1)
                         for s, i in zip(self, index, strict=True)])  # fmt: skip
    return np.take(self, index, dim)


@spec("aclnnScatterNd", "out:data", **_INDEX, samples=[
    take(data=t(4, 5, 6), indices=_i([[0, 1], [3, 4], [2, 0]]), updates=t(3, 6))])  # fmt: skip
def scatter_nd(data: Array, indices: Array, updates: Array) -> Array:
    result = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


@spec("aclnnScatterNdUpdate", "varRef:varRef", **_INDEX, samples=[
    take(varRef=t(4, 5, 6), indices=_i([[0, 1], [3, 4], [2, 0]]), updates=t(3, 6))])  # fmt: skip
def scatter_nd_update(varRef: Array, indices: Array, updates: Array) -> Array:
    return scatter_nd(varRef, indices, updates)


_AT: Final[dict[str, Any]] = {"Max": np.maximum, "Min": np.minimum, "Mul": np.multiply,
                              "Div": np.divide}  # fmt: skip


def _scatter_at(varRef: Array, indices: Array, updates: Array, word: np.ufunc) -> Array:
    result = varRef.copy()
    word.at(result, indices.reshape(-1), updates.reshape(-1, *varRef.shape[1:]))
    return result


for _name, _word in _AT.items():
    spec(f"aclnnScatter{_name}", "varRef:varRef", **{**_ANY, "family": "index", "source":
         "TensorFlow documents: scatter_max, scatter_min, scatter_mul, scatter_div"}, samples=[
        take(varRef=t(5, 7), indices=_i([4, 0, 2], "int32"), updates=t(3, 7, low=0.5, high=2),
             useLocking=False)])(
        lambda varRef, indices, updates, _word=_word: _scatter_at(varRef, indices, updates, _word),
    )  # fmt: skip
spec("aclnnTfScatterAdd", "varRef:varRef", **{**_ANY, "family": "index", "source":
     "TensorFlow document: scatter_add"}, samples=[
    take(varRef=t(5, 7), indices=_i([4, 0, 2], "int32"), updates=t(3, 7))])(
    lambda varRef, indices, updates: _scatter_at(varRef, indices, updates, np.add))  # fmt: skip


def scatter(self: Array, dim: int, index: Array, src: Any, reduce: int) -> Array:
    """reduce: 0 replaces, 1 adds, 2 multiplies (aclnnScatter document)."""
    result = self.copy()
    word = (lambda _, new: new, np.add, np.multiply)[reduce]
    for place in np.ndindex(index.shape):
        at = (*place[:dim], int(index[place]), *place[dim + 1 :])
        result[at] = word(result[at], src[place] if isinstance(src, np.ndarray) else src)
    return result


_SCATTER: Final[dict[str, Any]] = {"family": "index", "tolerance": "rounded", "specials": False,
                                   "source": "CANN document of aclnnScatter"}  # fmt: skip
_ONE_EACH: Final = _i([[0, 3, 1], [2, 1, 0]])
spec("aclnnScatter", "out:self", **_SCATTER, samples=[
    take(self=t(*shape, dtype=d, low=low), dim=dim, index=_ONE_EACH, src=t(2, 3, dtype=d, low=low),
         reduce=r)
    for d, low in (("float32", -2), ("int32", -9)) for r in (0, 1, 2)
    for shape, dim in (((2, 4), 1), ((4, 3), 0), ((4, 3), -2))])(
    lambda self, dim, index, src, reduce:
    scatter(self, dim % self.ndim, index, src, reduce))  # fmt: skip
spec("aclnnScatterValue", "out:self", **_SCATTER, samples=[
    take(self=t(2, 4, dtype=d, low=-9, high=9), dim=dim, index=_ONE_EACH, value=v, reduce=r)
    for d in ("float32", "int32") for r, dim, v in ((0, 1, 3), (1, -1, -2), (2, 1, 3))])(
    lambda self, dim, index, value, reduce:
    scatter(self, dim % self.ndim, index, np.array(value).astype(self.dtype)[()],
            reduce))  # fmt: skip


def scatter_reduce(
    self: Array, dim: int, index: Array, src: Array, reduce: int, includeSelf: bool
) -> Array:  # fmt: skip
    """reduce: 1 add, 2 multiply, 3 maximum, 4 minimum, 5 mean (aclnnScatter's numbers, and on)."""
    result = self.copy()
    counts = np.full_like(result, 1.0 if includeSelf else 0.0)
    word = (np.add, np.multiply, np.maximum, np.minimum, np.add)[reduce - 1]
    for place in np.ndindex(index.shape):
        at = (*place[:dim], int(index[place]), *place[dim + 1 :])
        result[at] = word(result[at], src[place]) if counts[at] else src[place]
        counts[at] += 1
    return result / np.maximum(counts, 1) if reduce == 5 else result


_PICKED: Final[dict[str, Any]] = {"dim": 0, "index": _i([[0, 2, 1, 0], [2, 2, 0, 1]]),
                                  "src": t(2, 4)}  # fmt: skip
spec("aclnnScatterReduce", "out:self", **{**_GRAD, "family": "index"},
     samples=[take(self=t(3, 4), **_PICKED, reduce=r, includeSelf=s)
              for r in (1, 2, 3, 4, 5) for s in (True, False)])(
    scatter_reduce)  # fmt: skip


@spec("aclnnInplaceScatterUpdate", "data:data", **_INDEX, samples=[
    take(data=t(2, 3, 9, 4), indices=_i([5, 0], "int64"), updates=t(2, 3, 2, 4), axis=-2)],
    )  # fmt: skip
def scatter_update(data: Array, indices: Array, updates: Array, axis: int) -> Array:
    """A decoder's cache: batch b takes its rows from indices[b] on."""
    result = data.copy()
    for b, at in enumerate(indices):
        result[b, :, at : at + updates.shape[axis]] = updates[b]
    return result


@spec("aclnnChunkCat", "out:tensors", **{**_EXACT, "source": "torch 2.13, torch._chunk_cat"},
      samples=[take(tensors=[t(4, 6), t(8, 2)], dim=0, numChunks=2)])  # fmt: skip
def chunk_cat(tensors: tuple[Array, ...], dim: int, numChunks: int) -> Array:
    parts = [x.reshape(numChunks, -1) for x in tensors]
    return np.concatenate(parts, 1)


@spec("aclnnStridedSlice", "out:self", **{**_EXACT, "source": "TensorFlow document: strided_slice"},
      samples=[take(self=t(5, 9), begin=(1, 8), end=(5, 0), strides=(2, -2), beginMask=0, endMask=m,
                    ellipsisMask=0, newAxisMask=0, shrinkAxisMask=0) for m in (0, 2)]
      + [take(self=t(5, 9), begin=(2, 1), end=(3, 9), strides=(1, 3), beginMask=0, endMask=0,
              ellipsisMask=0, newAxisMask=0, shrinkAxisMask=1)]
      # An entry for all dims between, one for a new dim, one at each end that masks leave open.
      + [take(self=t(3, 5, 4, 9), begin=(7, 2, 7, -1), end=(2, 0, 7, 2), strides=(1, 1, 1, -3),
              beginMask=m, endMask=m, ellipsisMask=2, newAxisMask=4, shrinkAxisMask=0)
         for m in (1, 9)]
      + [take(self=t(3, 5, 9), begin=(-1, 0, -4), end=(0, 0, -1), strides=(1, 1, 1), beginMask=0,
              endMask=0, ellipsisMask=2, newAxisMask=0, shrinkAxisMask=1)]
      + [take(self=t(5, 9), begin=(0, 1), end=(1, 9), strides=(1, 3), beginMask=0, endMask=0,
              ellipsisMask=0, newAxisMask=0, shrinkAxisMask=1)])  # fmt: skip
def strided_slice(
    self: Array,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    beginMask: int,
    endMask: int,
    ellipsisMask: int,
    newAxisMask: int,
    shrinkAxisMask: int,
) -> Array:
    place: list[Any] = []
    for n, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        ends = slice(None if beginMask >> n & 1 else b, None if endMask >> n & 1 else e, s)
        place.append(... if ellipsisMask >> n & 1 else None if newAxisMask >> n & 1
                     else b if shrinkAxisMask >> n & 1 else ends)  # fmt: skip
    return self[tuple(place)]


@spec("aclnnEmbeddingRenorm", "selfRef:selfRef", **{**_GRAD, "family": "index"}, samples=[
    take(selfRef=t(5, 9), indices=_i([3, 0, 3]), maxNorm=m, normType=p)
    for m, p in ((1.0, 2.0), (2.0, 1.0))])  # fmt: skip
def embedding_renorm(selfRef: Array, indices: Array, maxNorm: float, normType: float) -> Array:
    result = selfRef.copy()
    for row in np.unique(indices):
        size = (np.abs(result[row]) ** normType).sum() ** (1 / normType)
        if size > maxNorm:
            result[row] *= maxNorm / (size + 1e-7)
    return result


@spec("aclnnInplaceCumprod", "input:input", **_ANY, samples=[
    take(input=t(3, 17, low=0.8, high=1.2), dim=1), take(input=t(5, 3), dim=0)])  # fmt: skip
def inplace_cumprod(input: Array, dim: int) -> Array:
    return np.cumprod(input, int(dim))


# --- dropout ------------------------------------------------------------------------------------


def _bits(mask: Array, count: int) -> Array:
    return np.unpackbits(mask.astype(np.uint8), bitorder="little")[:count]


for _name, _scaled in (("aclnnDropoutBackward", "scale"), ("aclnnDropoutDoMask", "prob")):
    _x = "gradOutput" if _scaled == "scale" else "self"
    _number = 2.0 if _scaled == "scale" else 0.5

    def _masked(x: Array, mask: Array, scale: float = 0.0, prob: float = 0.0) -> Array:
        factor = scale or 1 / (1 - prob)
        return x * _bits(mask, x.size).reshape(x.shape) * factor

    spec(_name, "out:x", renamed={_x: "x"}, **{**_ANY, "source":
         "Srivastava et al.: Dropout, 2014; the mask is one bit an element"}, sparse=True, samples=[
        take(x=t(4, 64), mask=t(32, dtype="uint8", low=0, high=255), **{_scaled: _number})])(
        _masked)  # fmt: skip

# --- norms with quantised results ---------------------------------------------------------------

_NORM: Final[dict[str, Any]] = {
    "family": "norm", "tolerance": "gradient", "steps": True, "dtypes": ("float16", "bfloat16"),
    "source": "Zhang, Sennrich 2019 and Ba et al. 2016, with op-plugin's npu_dynamic_quant",
}  # fmt: skip


@spec("aclnnAddRmsNormDynamicQuant", "y1Out:int8 y2Out:int8 xOut:x1 scale1Out:float32 "
      "scale2Out:float32", **_NORM, samples=[
          take(x1=_h(3, 64), x2=_h(3, 64), gamma=_h(64), smoothScale1Optional=_h(64, low=0.5),
               smoothScale2Optional=_h(64, low=0.5), epsilon=1e-6)])  # fmt: skip
def add_rms_dynamic(
    x1: Array,
    x2: Array,
    gamma: Array,
    smoothScale1Optional: Array | None,
    smoothScale2Optional: Array | None,
    epsilon: float,
) -> tuple[Array, Array, Array, Array, Array]:
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    (a, s), (b, r) = dynamic(y, smoothScale1Optional), dynamic(y, smoothScale2Optional)
    return a, b, x1 + x2, s, r


@spec("aclnnAdaLayerNorm", "out:x", family="norm", tolerance="gradient", dtypes=_FLOATS,
      source=_DIT, samples=[
          take(x=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64), weightOptional=w, biasOptional=b,
               epsilon=1e-5) for w, b in ((None, None), (t(64), t(64)))])  # fmt: skip
def ada_layer_norm(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> Array:
    y = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)[0]
    return y * (1 + scale[:, None]) + shift[:, None]


@spec("aclnnAdaLayerNormV2", "out:x meanOutOptional:float32 rstdOutOptional:float32", family="norm",
      tolerance="gradient", dtypes=("float32",), source=_DIT, samples=[
          take(x=t(2, 5, 64), scale=t(2, 64), shift=t(2, 64), weightOptional=t(64),
               biasOptional=t(64), epsilon=1e-5)])  # fmt: skip
def ada_layer_norm_v2(
    x: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    epsilon: float,
) -> tuple[Array, Array, Array]:
    y, mean, rstd = layer_norm(x, (-1,), weightOptional, biasOptional, epsilon)
    return y * (1 + scale[:, None]) + shift[:, None], mean, rstd


def _layer_flow(
    x: Array, rstd: Array, mean: Array, gamma: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """(dx, dgamma, dbeta) of layer norm over the last dimension."""
    hat = (x - mean) * rstd
    flow = dy * gamma
    dx = rstd * (flow - flow.mean(-1, keepdims=True) - hat * (flow * hat).mean(-1, keepdims=True))
    lead = tuple(range(x.ndim - 1))
    return dx, (dy * hat).sum(lead), dy.sum(lead)


@spec("aclnnAddLayerNormGrad", "dxOut:x1 dgammaOut:float32 dbetaOut:float32", family="norm",
      tolerance="gradient", dtypes=_FLOATS, source="derivative of Ba et al.: Layer Normalization",
      samples=[take(dy=_h(3, 64), x1=_h(3, 64), x2=_h(3, 64), rstd=t(3, 1, low=0.5, high=1.5),
                    mean=t(3, 1, low=-0.5, high=0.5), gamma=_h(64), dsumOptional=d)
               for d in (None, _h(3, 64))])  # fmt: skip
def add_layer_norm_grad(
    dy: Array,
    x1: Array,
    x2: Array,
    rstd: Array,
    mean: Array,
    gamma: Array,
    dsumOptional: Array | None,
) -> tuple[Array, Array, Array]:
    dx, dgamma, dbeta = _layer_flow(x1 + x2, rstd, mean, gamma, dy)
    return dx + (0 if dsumOptional is None else dsumOptional), dgamma, dbeta


@spec("aclnnDeepNormGrad", "dxOut:x dgxOut:x dbetaOut:float32 dgammaOut:float32", family="norm",
      tolerance="gradient", dtypes=_FLOATS, source="derivative of Wang et al.: DeepNet, 2022",
      samples=[take(dy=_h(3, 64), x=_h(3, 64), gx=_h(3, 64), gamma=_h(64),
                    mean=t(3, 1, low=-0.5, high=0.5), rstd=t(3, 1, low=0.5, high=1.5),
                    alpha=0.5)])  # fmt: skip
def deep_norm_grad(
    dy: Array, x: Array, gx: Array, gamma: Array, mean: Array, rstd: Array, alpha: float
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx, dgamma, dbeta = _layer_flow(alpha * x + gx, rstd, mean, gamma, dy)
    return alpha * dx, dx, dbeta, dgamma


_BN: Final[dict[str, Any]] = {
    "family": "norm", "tolerance": "gradient", "dtypes": ("float32",),
    "source": "torch 2.13, torch.batch_norm_stats and its kin",
}  # fmt: skip


@spec("aclnnBatchNormStats", "mean:float32 invstd:float32", **_BN,
      samples=[take(input=t(4, 3, 5, 2), eps=1e-3)])  # fmt: skip
def batch_norm_stats(input: Array, eps: float) -> tuple[Array, Array]:
    axes = (0, *range(2, input.ndim))
    return input.mean(axes), 1 / np.sqrt(input.var(axes) + eps)


@spec("aclnnBatchNormElemt", "output:input", **_BN, samples=[
    take(input=t(4, 3, 5, 2), weight=t(3), bias=t(3), mean=t(3), invstd=t(3, low=0.5), eps=1e-3)],
    )  # fmt: skip
def batch_norm_elemt(input: Array, weight: Array, bias: Array, mean: Array, invstd: Array) -> Array:
    shape = (1, -1) + (1,) * (input.ndim - 2)
    hat = (input - mean.reshape(shape)) * invstd.reshape(shape)
    return hat * weight.reshape(shape) + bias.reshape(shape)


@spec("aclnnBatchNormReduce", "sum:float32 squareSum:float32", **_BN,
      samples=[take(x=t(4, 3, 5, 2))])  # fmt: skip
def batch_norm_reduce(x: Array) -> tuple[Array, Array]:
    axes = (0, *range(2, x.ndim))
    return x.sum(axes), (x * x).sum(axes)


# --- attention's helpers ------------------------------------------------------------------------

spec("aclnnInterleaveRope", "out:x", family="rotary", tolerance="composite",
     dtypes=("float16", "bfloat16"), source="Su et al.: RoFormer, 2021; DeepSeek-V2: pairs apart "
     "are brought together first", samples=[
         take(x=_h(2, 3, 1, 64), cos=_h(2, 1, 1, 64, low=-1, high=1),
              sin=_h(2, 1, 1, 64, low=-1, high=1))])(
    lambda x, cos, sin: (lambda q: q * cos + np.concatenate([-q[..., 32:], q[..., :32]], -1) * sin)(
        np.concatenate([x[..., 0::2], x[..., 1::2]], -1)))  # fmt: skip


@spec("aclnnRingAttentionUpdate",
      "attnOutOut:prevAttnOut softmaxMaxOut:float32 softmaxSumOut:float32", family="attention",
      tolerance="gradient", dtypes=_FLOATS, source="Liu et al.: Ring Attention, 2023", samples=[
          take(prevAttnOut=_h(5, 2, 32), curAttnOut=_h(5, 2, 32), inputLayoutOptional="SBH",
               **{f"{w}Softmax{k}": given(np.repeat(np.random.default_rng(n).uniform(
                   0.5, 3, (2, 2, 5, 1)), 8, -1).tolist(), "float32")
                  for n, (w, k) in enumerate((w, k) for w in ("prev", "cur")
                                             for k in ("Max", "Sum"))})])  # fmt: skip
def ring_update(
    prevAttnOut: Array, prevSoftmaxMax: Array, prevSoftmaxSum: Array, curAttnOut: Array | None,
    curSoftmaxMax: Array, curSoftmaxSum: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """SBH [S, B, H] with statistics [B, N, S, 8]."""
    top = np.maximum(prevSoftmaxMax, curSoftmaxMax)
    a = prevSoftmaxSum * np.exp(prevSoftmaxMax - top)
    b = curSoftmaxSum * np.exp(curSoftmaxMax - top)
    total = a + b

    def spread(x: Array) -> Array:
        s, _, h = prevAttnOut.shape
        n = x.shape[1]
        return np.repeat((x / total)[..., 0].transpose(2, 0, 1), h // n, -1).reshape(s, -1, h)

    return prevAttnOut * spread(a) + curAttnOut * spread(b), top, total


_SLOTS: Final = {"slotMapping": _i([7, -1, 11, 4, 5], "int32")}


def _paged(cache: Array, rows: Array, slots: Array, mode: str) -> Array:
    """Rows go to slots, none to one below 0. PA_NZ keeps a block as tiles [row / 16, size, 16]."""
    pages = cache.swapaxes(1, 2) if mode == "PA_NZ" else cache
    blocks, size = pages.shape[:2]
    flat = pages.reshape(blocks * size, -1).copy()
    flat[slots[slots >= 0]] = rows.reshape(len(rows), -1)[slots >= 0]
    placed = flat.reshape(pages.shape)
    return placed.swapaxes(1, 2) if mode == "PA_NZ" else placed


@spec("aclnnScatterPaKvCache", "keyCacheRef:keyCacheRef valueCacheRef:valueCacheRef",
      family="cache", tolerance="exact", specials=False,
      source="Kwon et al.: PagedAttention, 2023; vLLM, reshape_and_cache; op-plugin test "
      "npu_scatter_pa_kv_cache", samples=[
          take(key=_h(5, 2, 16), value=_h(5, 2, 16), keyCacheRef=_h(*cache),
               valueCacheRef=_h(*cache), **_SLOTS, cacheModeOptional=mode,
               scatterModeOptional="None")
          for mode, cache in (("Norm", (3, 4, 2, 16)), ("PA_NZ", (3, 2, 4, 16)))])  # fmt: skip
def scatter_pa_kv(
    key: Array, value: Array, keyCacheRef: Array, valueCacheRef: Array, slotMapping: Array,
    cacheModeOptional: str,
) -> tuple[Array, ...]:  # fmt: skip
    return (_paged(keyCacheRef, key, slotMapping, cacheModeOptional),
            _paged(valueCacheRef, value, slotMapping, cacheModeOptional))  # fmt: skip


@spec("aclnnScatterPaCache", "keyCacheRef:keyCacheRef", family="cache", tolerance="exact",
      specials=False, source="Kwon et al.: PagedAttention, 2023; vLLM, reshape_and_cache", samples=[
          take(key=_h(5, 2, 16), keyCacheRef=_h(*cache), cacheMode=mode, **_SLOTS)
          for mode, cache in (("Norm", (3, 4, 2, 16)), ("PA_NZ", (3, 2, 4, 16)))])  # fmt: skip
def scatter_pa(key: Array, keyCacheRef: Array, slotMapping: Array, cacheMode: str) -> Array:
    return _paged(keyCacheRef, key, slotMapping, cacheMode)
