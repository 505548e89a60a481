"""Products of matrices and vectors of floats."""

from __future__ import annotations

from .....spec import *
from .....spec import contents
from .._defaults import TORCH
from .._quantizers import real_scales, words
from .._words import *
from .quantized import ended

_FLOATS: Final = "f32 f16 bf16"
_ALL: Final = f"{_FLOATS} f64"
_PRODUCT: Final = Rule("accumulated", TORCH, cost="2*M*K*N")
# 0 keeps the dtype, 1 lets the product round float32: `modes.py` says by how much.
_FULL_PRECISION: Final = choice(0, 1)
_MATRICES: Final = sizes(M=batch(3, 1, 5, 33, 130), K=row(9, 1, 65, 130, 1030),
                         N=column(5, 1, 33, 130))  # fmt: skip
_WEIGHTS: Final = (1.0, 0.5, -2.0, 0.0)


def _nans(shape: str, dtype: str) -> Content:
    return content(lambda _rng, _, draw: np.full(resolve(shape, draw), np.nan), "nan", dtype,
                   shape=shape)  # fmt: skip


def _addend(beta: str, dtype: str, **shapes: str) -> Domain:
    """What a product is added to: nothing but NaN where `beta` is 0, which leaves it unread."""
    unread = forms(**{n: _nans(s, dtype) for n, s in shapes.items()})
    read = forms(**{n: tensor(s, dtype) for n, s in shapes.items()})
    return by(beta, {w: read if w else unread for w in _WEIGHTS})


def _scaled(beta: float, self: Array, alpha: float, product: Array) -> Array:
    return (0 if beta == 0 else beta * self) + alpha * product


_BROADCAST: Final = {"whole": "M N", "row": "N", "column": "M 1", "one": "1 1"}


@spec("aclnnAddbmm", Rule("accumulated", TORCH, cost="2*B*M*K*N"), _MATRICES,
      sizes(B=batch(2, 1, 3, 9)),
      self=_addend("beta", _ALL, **_BROADCAST), batch1=tensor("B M K", "self"),
      batch2=tensor("B K N", "self"), beta=number(*_WEIGHTS), alpha=number(1.0, -2.0, 0.5, 0.0),
      out=out("self"), cubeMathType=_FULL_PRECISION)  # fmt: skip
def addbmm(self: Array, batch1: Array, batch2: Array, beta: float, alpha: float) -> Array:
    return _scaled(beta, self, alpha, (batch1 @ batch2).sum(0))


@spec("aclnnAddmv", Rule("accumulated", TORCH, cost="2*M*K"),
      sizes(M=batch(3, 1, 5, 33, 130, 1030), K=row(9, 1, 65, 130, 1030)),
      self=_addend("beta", _ALL, whole="M", one="1"), mat=tensor("M K", "self"),
      vec=tensor("K", "self"), alpha=number(1.0, -2.0, 0.5, 0.0), beta=number(*_WEIGHTS),
      out=out("self"), cubeMathType=_FULL_PRECISION)  # fmt: skip
def addmv(self: Array, mat: Array, vec: Array, alpha: float, beta: float) -> Array:
    return _scaled(beta, self, alpha, mat @ vec)


@spec("aclnnAddr", Rule("composite", TORCH),
      sizes(M=batch(3, 1, 5, 33, 130), N=row(9, 1, 65, 130, 1030)),
      self=_addend("betaOptional", _ALL, **_BROADCAST), vec1=tensor("M", "self"),
      vec2=tensor("N", "self"), betaOptional=number(*_WEIGHTS),
      alphaOptional=number(1.0, -2.0, 0.5, 0.0), out=out("self"))  # fmt: skip
def addr(self: Array, vec1: Array, vec2: Array, betaOptional: float, alphaOptional: float) -> Array:
    return _scaled(betaOptional, self, alphaOptional, np.outer(vec1, vec2))


@spec("aclnnMv", Rule("accumulated", TORCH, cost="2*M*K"),
      sizes(M=batch(7, 1, 33, 130, 1030), K=row(9, 1, 65, 130, 1030)),
      self=tensor("M K"), vec=tensor("K", "self"), out=out("self"),
      cubeMathType=_FULL_PRECISION)  # fmt: skip
def mv(self: Array, vec: Array) -> Array:
    return self @ vec


@spec("aclnnDot", Rule("accumulated", TORCH, cost="2*N"),
      sizes(N=row(9, 1, 65, 1030, 4097, 65537)),
      self=tensor("N", _FLOATS), tensor=tensor("N", "self"), out=out("self"))  # fmt: skip
def dot(self: Array, tensor: Array) -> Array:
    return np.asarray(self @ tensor)


@spec("aclnnGer", Rule("rounded", TORCH),
      sizes(M=batch(7, 1, 33, 130), N=row(9, 1, 65, 130, 1030)),
      self=tensor("M"), vec2=tensor("N", "self"), out=out("self"))  # fmt: skip
def ger(self: Array, vec2: Array) -> Array:
    return np.outer(self, vec2)


_INNER: Final = "a matrix product; the second operand lies in the inner format"
_TILED: Final = sizes(M=batch(5, 1, 16, 33, 130), K=row(40, 1, 16, 32, 130, 1030),
                      N=column(33, 1, 16, 130))  # fmt: skip


def matmul_nz(self: Array, mat2: Array) -> Array:
    return self @ mat2


for _name, _batched in (("aclnnMatmulWeightNz", ""), ("aclnnBatchMatMulWeightNz", "B ")):
    spec(_name, Rule("accumulated", _INNER, cost="2*size(self)*N",
                     formats={"mat2": "FRACTAL_NZ"}), _TILED,
         self=tensor(f"{_batched}M K", "f16 bf16"), mat2=tensor(f"{_batched}K N", "self"),
         out=out("self"), cubeMathType=_FULL_PRECISION)(matmul_nz)  # fmt: skip


def transpose_batch_matmul(
    x1: Array, x2: Array, permX1: tuple[int, ...], batchSplitFactor: int,
    scale: Array | None = None,
) -> Array:  # fmt: skip
    """Rows before batches; a scale of [batches columns] makes one row of steps of each, a split
    cuts such rows into parts."""
    y = (x1.transpose(permX1) @ x2).swapaxes(0, 1)
    if scale is not None:
        return y.reshape(len(y), 1, -1) * real_scales(scale)
    if batchSplitFactor == 1:
        return y
    return y.reshape(len(y), batchSplitFactor, -1).swapaxes(0, 1)


for _name, _types in (("aclnnTransposeBatchMatMul", "\nf32 - f32"),
                      ("aclnnTransposeBatchMatMulWeightNz", "")):  # fmt: skip
    spec(_name, Rule("gradient", "op-plugin document and test npu_transpose_batchmatmul",
                     steps=True, cost="2*B*M*K*N",
                     formats={"aclnnTransposeBatchMatMulWeightNz x2": "FRACTAL_NZ"}),
         sizes(M=batch(5, 1, 3, 33), B=batch(2, 1, 3, 8), K=row(128, 256), N=column(128, 256)),
         require("batchSplitFactor == 1 or not given(scale)"),
         dtypes(f"""x1 scale out
                    f16 -       f16
                    f16 u64|i64 i8
                    bf16 - bf16{_types}"""),
         x1=by("permX1", {(1, 0, 2): tensor("M B K"), (0, 1, 2): tensor("B M K")}),
         x2=tensor("B K N", "x1", -60, 60),
         bias=null("reserved: documents ask for null"), scale=words("B*N"),
         permX1=array((1, 0, 2), (0, 1, 2)),
         permX2=only((0, 1, 2), "documents allow one order"),
         permY=only((1, 0, 2), "documents allow one order"), cubeMathType=_FULL_PRECISION,
         batchSplitFactor=number(1, 2, 4, 64), out=out("x1"))(
        transpose_batch_matmul)  # fmt: skip


def _adapters(rng: Generator, pattern: str, draw: Draw) -> Array:
    """The adapter of each row; -1 is none."""
    rows = contents.indices(rng, pattern, (draw["T"],), draw["W"])
    if pattern == "holes":
        rows[1::3] = -1
    return np.full_like(rows, -1) if pattern == "none" else rows


@spec("aclnnAddLora",
      Rule("gradient", "Hu et al.: LoRA, 2021; Chen et al.: Punica, 2023; op-plugin document "
           "npu_batch_gather_matmul", specials=False, cost="2*T*R*(H + N)"),
      sizes(T=batch(5, 1, 3, 33, 130), W=batch(3, 1, 2, 5), L=batch(2, 1, 3),
            R=row(16, 32), H=row(32, 16, 48, 1040), N=column(16, 32, 48), P=row(16, 0, 48),
            Q=row(16, 0, 32)),
      overload("both"), overload("second", x=tensor("T R", "y"), weightAOptional=null(
          "rows come as the first product left them")),
      y=tensor("T P+N+Q", "f16"), x=tensor("T H", "y"), weightB=tensor("W L N R", "y"),
      indices=content(_adapters, "random holes repeated edges sorted none", "i32", shape="T",
                      reads=("W",)),
      weightAOptional=tensor("W L R H", "y"), layerIdx=number(0, "L - 1"),
      scale=number(0.5, 1.0, -2.0), yOffset=equals("P"), ySliceSize=equals("N"),
      out=out("y"))  # fmt: skip
def add_lora(
    y: Array, x: Array, weightB: Array, indices: Array, weightAOptional: Array | None,
    layerIdx: int, scale: float, yOffset: int, ySliceSize: int,
) -> Array:  # fmt: skip
    """A row's adapter is picked by its index; -1 has none."""
    result = y.copy()
    for adapter, up in enumerate(weightB[:, layerIdx]):
        rows = indices == adapter
        low = x[rows]
        if weightAOptional is not None:
            low = low @ weightAOptional[adapter, layerIdx].T
        result[rows, yOffset : yOffset + ySliceSize] += scale * (low @ up.T)
    return result


@spec("aclnnGemm", Rule("accumulated", "ONNX operator Gemm, version 13", cost="2*M*K*N"),
      _MATRICES,
      A=by("transA", {0: tensor("M K", _FLOATS), 1: tensor("K M", _FLOATS)}),
      B=by("transB", {0: tensor("K N", "A"), 1: tensor("N K", "A")}),
      C=_addend("beta", "A", **_BROADCAST), alpha=number(1.0, 0.5, -1.0, 0.0),
      beta=number(*_WEIGHTS), transA=choice(0, 1), transB=choice(0, 1), out=out("A"),
      cubeMathType=_FULL_PRECISION)  # fmt: skip
def gemm(
    A: Array, B: Array, C: Array, alpha: float, beta: float, transA: int, transB: int
) -> Array:
    return _scaled(beta, C, alpha, (A.T if transA else A) @ (B.T if transB else B))


# Equations by the shapes of their operands; some name an axis twice in one operand.
_EQUATIONS: Final = {
    "ij,jk->ik": ("I J", "J K"), "abc,cde->abde": ("G I J", "J K H"),
    "abcd,aecd->acbe": ("G I J K", "G H J K"), "abcd,acbe->aecd": ("G I J K", "G J I H"),
    "abc,abd->dc": ("G I J", "G I K"), "ab,cb->ac": ("I J", "K J"), "abc,acd->abd": (
        "G I J", "G J K"), "a,b->ab": ("I", "J"), "ij,jk,kl->li": ("I J", "J K", "K H"),
    "ii->i": ("I I",), "ii->": ("I I",), "iij,jk->ik": ("I I J", "J K"),
    "jii,kj->k": ("J I I", "K J"), "ij,ij->": ("I J", "I J"), "ijk->kj": ("I J K",),
    "Ab, bC -> CA": ("I J", "J K"),
}  # fmt: skip


@spec("aclnnEinsum", Rule("accumulated", "torch 2.13, document of einsum"),
      sizes(G=batch(2, 1, 3), H=row(4, 1, 3), I=row(3, 1, 5, 33), J=row(5, 1, 3, 17, 65),
            K=row(7, 1, 3, 33)),
      tensors=by("equation", {e: each(*(tensor(s, "f32 f16 bf16 i32 i64") for s in shapes))
                              for e, shapes in _EQUATIONS.items()}),
      equation=choice(*_EQUATIONS), output=out("tensors"))  # fmt: skip
def einsum(tensors: list[Array], equation: str) -> Array:
    return np.asarray(np.einsum(equation, *tensors))


@spec("aclnnFusedMatmul",
      Rule("gradient", "a matrix product and one elementwise operation, as the operator "
           "document names them", specials=False, cost="2*size(x1)*N"),
      sizes({"*B": leading("-", 2, 3)}, M=batch(5, 1, 3, 33), K=row(32, 1, 33, 260),
            N=column(9, 1, 33, 130)),
      pin("fusedOpType=gelu_erf bias=low K=1", "where the two formulas differ most"),
      pin("fusedOpType=gelu_tanh bias=low K=1", "where the two formulas differ most"),
      x1=tensor("*B M K", _FLOATS), x2=tensor("*B K N", "x1"),
      bias=optional(forms(around=tensor("N", "x1"), low=tensor("N", "x1", -2.5, -1.5))),
      x3=optional(tensor("*B M N", "x1"), iff="fusedOpType in ('add', 'mul')"),
      fusedOpType=choice("", "add", "mul", "gelu_erf", "gelu_tanh", "relu"),
      cubeMathType=_FULL_PRECISION, y=out("x1"))  # fmt: skip
def fused(x1: Array, x2: Array, bias: Array | None, x3: Array | None, fusedOpType: str) -> Array:
    return ended(x1 @ x2 + (0 if bias is None else bias), fusedOpType, x3)


@spec("aclnnAddmmWeightNz",
      Rule("accumulated", "torch 2.13, document of torch.addmm; the second operand lies in the "
           "inner format", cost="2*M*K*N", formats={"mat2": "FRACTAL_NZ"}), _TILED,
      self=_addend("beta", "f16 bf16", whole="M N", row="N"), mat1=tensor("M K", "self"),
      mat2=tensor("K N", "self"), beta=number(*_WEIGHTS), alpha=number(1.0, -2.0, 0.5),
      out=out("self"), cubeMathType=_FULL_PRECISION)  # fmt: skip
def addmm_nz(self: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    return _scaled(beta, self, alpha, mat1 @ mat2)
