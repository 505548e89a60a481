"""Rows of matrix products with fixed ranks, their fused forms, and what is made of them."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import Refusal, kernel, several_dtypes
from ...complex_parts import multiplied, on_matrix_unit
from ...costs import product
from ...rules import c_name, refuse_growth
from ...spec import Derivative
from ...words import *
from .matmul import adjoint, grad_left, grad_right, multiply, refuse_batches

TYPES = ("float32", "float64", "float16", "bfloat16")


def _same_dtype(a: Geometry, b: Geometry) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_name(a.dtype)} != {c_name(b.dtype)}"
        )


def _mm(self: Geometry, mat2: Geometry) -> Geometry:
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    result = _multiplied(self, mat2)
    _same_dtype(self, mat2)
    return result


def _multiplied(self: Geometry, mat2: Geometry) -> Geometry:
    """The product of two matrices; RuntimeError in torch's words for sizes that do not fit."""
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and"
            f" {mat2.shape[0]}x{mat2.shape[1]})"
        )
    return self.fresh((self.shape[0], mat2.shape[1]))


def check_fused(self: Geometry, mat1: Geometry, mat2: Geometry) -> None:
    """RuntimeError in torch's words for what addmm can't take: no matrices, dtypes."""
    for name, g in (("mat1", mat1), ("mat2", mat2)):
        if g.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {g.ndim}-D tensor")
    for name, g in (("self", self), ("mat1", mat1)):
        if g.dtype is not mat2.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {scalar_name(g.dtype)} and"
                f" {scalar_name(mat2.dtype)}"
            )


def _addmm_product(self: Geometry, mat1: Geometry, mat2: Geometry) -> Geometry:
    check_fused(self, mat1, mat2)
    return _multiplied(mat1, mat2)


def _baddbmm_product(self: Geometry, batch1: Geometry, batch2: Geometry) -> Geometry:
    if batch2.ndim < 3:
        wrap_dim(2, batch2.ndim)
    shape = (batch1.shape[0], batch1.shape[-2], batch2.shape[2])
    refuse_growth(self.shape, shape)
    if self.dtype is not batch1.dtype:
        kinds = (("input", self), ("batch1", batch1), ("batch2", batch2))
        dtypes_text = ", ".join(f"{name}: {c_name(g.dtype)}" for name, g in kinds)
        raise RuntimeError(f"Input dtypes must be the same, got: {dtypes_text.replace(':', '', 1)}")
    loop = "mat1 and mat2 must have the same dtype, but got {} and {}"
    work = prod((*batch1.shape[-2:], batch2.shape[2]))
    refuse_batches(batch1.dtype, batch2.dtype, work, loop, scalar_name)
    return _bmm(batch1, batch2)


op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    summary="Matrix product `[M, K] @ [K, N] → [M, N]`.",
    infer=_mm,
    cpu=multiply,
    aclnn=call("aclnnMm", "self", "mat2", "out", "cube_math_type", when=on_matrix_unit("self")),
    lower=multiplied(lambda a, b: aten.mm(a, b)),
    grad={
        "self": lambda grad, self_geom, mat2: grad_left(grad, self_geom, mat2),
        "mat2": lambda grad, self, mat2_geom: grad_right(grad, self, mat2_geom),
    },
    unsupported={"bool": kernel("addmm_impl_cpu_", unless=several_dtypes)},
    samples=lambda: (
        [Sample((Arg((2, 3), d), Arg((3, 4), d, high=2.5))) for d in TYPES]
        + [Sample((Arg((2, 0)), Arg((0, 3)))), Sample((Arg((2, 3)), Arg((2, 3))), error=True)]
    ),
    tolerance="accumulated",
    out="expected",
    cost=product("self"),
    autocast="lower",
)


def _bmm(self: Geometry, mat2: Geometry) -> Geometry:
    if self.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if mat2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be:"
            f" [{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    refuse_batches(self.dtype, mat2.dtype, prod((*self.shape[1:], mat2.shape[2])))
    return self.fresh((self.shape[0], self.shape[1], mat2.shape[2]))


op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    summary="Batched product `[B, M, K] @ [B, K, N] → [B, M, N]`.",
    infer=_bmm,
    cpu=np.matmul,
    aclnn=call(
        "aclnnBatchMatMul", "self", "mat2", "out", "cube_math_type", when=on_matrix_unit("self")
    ),
    lower=multiplied(lambda a, b: aten.bmm(a, b)),
    grad={
        "self": lambda grad, mat2: aten.bmm(grad, adjoint(mat2)),
        "mat2": lambda grad, self: aten.bmm(adjoint(self), grad),
    },
    unsupported={"bool": "bmm"},
    samples=lambda: (
        [Sample((Arg((2, 2, 3), d), Arg((2, 3, 4), d, high=2.5))) for d in TYPES]
        + [Sample((Arg((2, 2, 3)), Arg((3, 3, 4))), error=True)]
    ),
    tolerance="accumulated",
    out="expected",
    cost=product("self"),
    autocast="lower",
)


def _fused_rule(product: Callable[..., Any]) -> Callable[..., Any]:
    def infer(
        self: Geometry, a: Geometry, b: Geometry, beta: Number = 1, alpha: int = 1
    ) -> Geometry:
        result: Geometry = product(self, a, b)
        refuse_growth(self.shape, result.shape)
        if self.ndim > result.ndim:
            raise RuntimeError(
                f"expand(torch.{self.dtype.legacy}Tensor{{{list(self.shape)}}},"
                f" size={list(result.shape)}): the number of sizes provided ({result.ndim}) must"
                " be greater or equal to the"
                f" number of dimensions in the tensor ({self.ndim})"
            )
        return result

    return infer


def _scaled(value: Array, by: Number) -> Array:
    return value if by == 1 else value * np.asarray(by).astype(value.dtype)


def _fused(self: Array, a: Array, b: Array, beta: Number, alpha: int) -> Array:
    result = _scaled(multiply(a, b), alpha)
    # With beta 0 torch ignores self, NaNs in it too.
    return result if beta == 0 else result + _scaled(self, beta)


def _times(grad: object, by: Any) -> Any:
    return grad if by == 1 else grad * by


def _fused_row(
    name: str,
    first: str,
    second: str,
    plain: str,
    rule: Callable[..., Any],
    aclnn: object,
    refusal: Refusal | str,
) -> None:
    def run(a: Tensor, b: Tensor) -> Tensor:
        return getattr(aten, plain)(a, b)

    def added(self: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
        result: Tensor = _times(run(a, b), alpha)
        return result if beta == 0 else result + _times(self, beta)

    op(
        f"{name}(Tensor self, Tensor {first}, Tensor {second}, *, Scalar beta=1, Scalar alpha=1)"
        " -> Tensor",
        summary=f"`beta * self + alpha * {first} @ {second}`: `[*, M, K] @ [*, K, N] → [*, M, N]`.",
        infer=_fused_rule(rule),
        cpu=_fused,
        aclnn=aclnn,
        lower=added,
        grad={
            "self": lambda grad, beta: _times(grad, aten.conj_of(beta)),
            first: Derivative(
                lambda grad, other, alpha: _times(run(grad, adjoint(other)), aten.conj_of(alpha)),
                ("grad", second, "alpha"),
            ),
            second: Derivative(
                lambda grad, other, alpha: _times(run(adjoint(other), grad), aten.conj_of(alpha)),
                ("grad", first, "alpha"),
            ),
        },
        unsupported={"bool": refusal},
        samples=_fused_samples(3 if plain == "bmm" else 2),
        autocast="lower",
        tolerance="accumulated",
        out="expected",
        cost=product(first),
        inplace=True,
    )


def _fused_samples(rank: int) -> Callable[..., Any]:
    lead = (2,) * (rank - 2)

    def make() -> list[Sample]:
        samples = [
            Sample((Arg((*lead, 2, 4), d), Arg((*lead, 2, 3), d), Arg((*lead, 3, 4), d)))
            for d in TYPES
        ]
        bias = Sample((Arg((4,)), Arg((*lead, 2, 3)), Arg((*lead, 3, 4))))
        scaled = Sample(
            (Arg((*lead, 2, 4)), Arg((*lead, 2, 3)), Arg((*lead, 3, 4))),
            {"beta": 0.5, "alpha": 2},
        )
        return [*samples, bias, scaled]

    return make


_fused_row(
    "addmm", "mat1", "mat2", "mm", _addmm_product,
    call("aclnnAddmm", "self", "mat1", "mat2", "beta", "alpha", "out", "cube_math_type",
         when=on_matrix_unit("mat1")),
    kernel("addmm_impl_cpu_", unless=several_dtypes),
)  # fmt: skip
_fused_row(
    "baddbmm", "batch1", "batch2", "bmm", _baddbmm_product,
    call("aclnnBaddbmm", "self", "batch1", "batch2", "beta", "alpha", "out", "cube_math_type",
         when=on_matrix_unit("batch1")),
    "baddbmm",
)  # fmt: skip


def _mv(self: Tensor, vec: Tensor) -> Tensor:
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}),"
            f" vec ({vec.shape[0]})"
        )
    _vector_dtypes(vec, self, vec)
    return self @ vec


def _vector_dtypes(self: Tensor, mat: Tensor, vec: Tensor) -> None:
    if not self.dtype is mat.dtype is vec.dtype:
        names = [scalar_name(t.dtype) for t in (self, mat, vec)]
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got"
            f" {names[0]}, {names[1]}, and {names[2]}"
        )


def _dot(self: Tensor, tensor: Tensor) -> Tensor:
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype is not tensor.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found"
            f" {scalar_name(self.dtype)} and {scalar_name(tensor.dtype)}"
        )
    if self.shape != tensor.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor"
            f" [{self.shape[0]}] and src [{tensor.shape[0]}] to have the same number of elements,"
            f" but got {self.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    return self @ tensor


composite(
    "mv(Tensor self, Tensor vec) -> Tensor",
    _mv,
    autocast="as given on cpu",
    summary="Product of a matrix and a vector: `[M, K] @ [K] → [M]`.",
    unsupported={"bool": "addmv_impl_cpu"},
    samples=calls((Arg((2, 3)), Arg((3,))), Sample((Arg((2, 3)), Arg((2,))), error=True)),
    tolerance="accumulated",
    out="expected",
    cost=product("self"),
)
composite(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    _dot,
    autocast="as given on cpu",
    summary="Inner product of two vectors: `[N], [N] → []`.",
    unsupported={"bool": "dot"},
    samples=calls((Arg((4,)), Arg((4,), low=-1)), Sample((Arg((4,)), Arg((3,))), error=True)),
    tolerance="accumulated",
    out="result dtype {Got} does not match input dtype {Want}",
    cost=product("self"),
)


def _inner(self: Tensor, other: Tensor) -> Tensor:
    if not (self.ndim and other.ndim):
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes"
            f" {list(self.shape)} and {list(other.shape)}"
        )
    return aten.tensordot(self, other, ((-1,), (-1,)))


composite(
    "inner(Tensor self, Tensor other) -> Tensor",
    _inner,
    summary="Sum of products over the last dimension: `[*, K], [*, K]`.",
    unsupported={"bool": "dot"},
    samples=calls((Arg((2, 3)), Arg((4, 3))), (Arg((3,)), Arg((3,), low=-1)), (Arg((2,)), Arg(()))),
    tolerance="accumulated",
    out="tensordot: Expected the output tensor to have dtype {Want}, but got an output tensor with"
    " dtype {Got}",
    cost=product("self"),
)


def _outer(self: Tensor, vec2: Tensor) -> Tensor:
    if self.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(
            "outer: Expected 1-D argument self, but got "
            f"{self.ndim if self.ndim != 1 else vec2.ndim}-D"
        )
    return aten.reshape(self, (self.shape[0], 1)) * vec2


composite(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    _outer,
    summary="Outer product: `[M], [N] → [M, N]`.",
    samples=calls((Arg((3,)), Arg((2,))), Sample((Arg((2, 3)), Arg((2,))), error=True)),
    tolerance="rounded",
)


def _suited(self: Tensor, factor: Number) -> Number:
    """A factor as tensors of integers take it: cut to one."""
    real = factor.__class__ is float and self.dtype.category < dt.FLOAT
    return int(factor.real) if real else factor


def _addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    beta, alpha = _suited(self, beta), _suited(self, alpha)
    if mat.ndim != 2 or vec.ndim != 1 or self.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}"
        )
    rows, columns = mat.shape
    if vec.shape[0] != columns or (self.numel() not in (1, rows)):
        raise RuntimeError(
            f"size mismatch, got input ({self.numel()}), mat ({rows}x{columns}),"
            f" vec ({vec.shape[0]})"
        )
    _vector_dtypes(self, mat, vec)
    product = _times(aten.mv(mat, vec), alpha)
    return product if beta == 0 else product + _times(self, beta)


composite(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmv,
    summary="`beta * self + alpha * mat @ vec`: `[M, K] @ [K] → [M]`.",
    unsupported={"bool": "addmv_impl_cpu"},
    inplace=True,
    samples=calls(
        (Arg((2,)), Arg((2, 3)), Arg((3,))),
        Sample((Arg((2,)), Arg((2, 3)), Arg((3,))), {"beta": 0.5, "alpha": 2}),
    ),
    tolerance="accumulated",
    cost=product("mat"),
    rule="products",
    out="expected",
)


def _check_batches(self: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    """RuntimeError in torch's words for batches that addbmm does not take."""
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            if name == "batch2":
                wrap_dim(2, batch.ndim)
            raise RuntimeError(f"{name} must be a 3D tensor")
    (n, rows, inner), (m, other, columns) = batch1.shape, batch2.shape
    refuse_growth(self.shape, (rows, columns))
    if n != m:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {n} and {m}")
    if inner != other:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({rows}x{inner} and {other}x{columns})"
        )
    if n:
        check_fused(self._geom, batch1.select(0, 0)._geom, batch2.select(0, 0)._geom)


def _addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    beta, alpha = _suited(self, beta), _suited(self, alpha)
    _check_batches(self, batch1, batch2)
    product = _times(aten.sum(aten.bmm(batch1, batch2), 0, dtype=batch1.dtype), alpha)
    return product if beta == 0 else product + _times(self, beta)


composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addbmm,
    summary="`beta * self` plus the sum over the batch of `alpha * batch1 @ batch2`: `[M, N]`.",
    autocast="lower",
    unsupported={"bool": kernel("addmm_impl_cpu_", unless=several_dtypes)},
    inplace=True,
    samples=calls(
        (Arg((2, 4)), Arg((3, 2, 3)), Arg((3, 3, 4))),
        Sample((Arg((2, 4)), Arg((3, 2, 3)), Arg((3, 3, 4))), {"beta": 0, "alpha": 2}),
    ),
    tolerance="accumulated",
    cost=product("batch1", summed=True),
    rule="products",
)
