"""Rows of products whose weights are int8: of integers, and of floats by scaled integers."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import REFERENCES
from ...words import *

_CPP_NAMES = {"float32": "float", "float64": "double", "uint8": "unsigned char", "int64": "long"}


def _refuse(name: str, checks: Sequence[tuple[bool, str]]) -> None:
    """RuntimeError in torch's words for the first check that does not hold."""
    for holds, text in checks:
        if not holds:
            raise RuntimeError(f"{name}{text}")


def _cpp(dtype: Dtype) -> str:
    return _CPP_NAMES.get(dtype._name, dtype._name)


@composite(
    "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    samples=calls((Arg((2, 4), "int8", -9, 9), Arg((4, 3), "int8", -9, 9))),
    surface="function",
    tolerance="exact",
)
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product `[m, n]` of int8 or uint8 `[m, k]` by int8 `[k, n]`, summed in int32."""
    name = "int_mm_out_cpu: "
    _refuse(name, [(self.ndim == 2, f"Expected self to be of dimension 2 but got {self.ndim}")])
    inner, (rows, _) = self.size(1), (mat2.size(0), mat2.size(1))
    _refuse(
        name,
        [
            (
                inner == rows,
                f"self.size(1) needs to match mat2.size(0) but got {inner} and {rows}",
            ),
            (
                self.dtype in (dt.int8, dt.uint8),
                f"Expected self dtype to be int8 or uint8 but got {_cpp(self.dtype)}",
            ),
            (
                mat2.dtype is dt.int8,
                f"Expected mat2 dtype to be of type int8 but got {_cpp(mat2.dtype)}",
            ),
        ],
    )
    return aten.matmul(aten.to(self, dt.int32), aten.to(mat2, dt.int32))


@composite(
    "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
    samples=calls((Arg((2, 4), grad=False), Arg((3, 4), "int8", -9, 9), Arg((3,), grad=False))),
    surface="function",
)
def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """`[m, k]` by the transposed int8 `[n, k]`, each column times its scale `[n]`."""
    floats = (dt.float32, dt.float16, dt.bfloat16, *[dt.float64] * REFERENCES.active)
    _refuse(
        "_weight_int8pack_mm_cpu : expect ",
        [
            (self.dtype in floats, "A to be either 32-bit or 16-bit float tensor."),
            (self.ndim == 2, "A to be 2D tensor."),
            (mat2.dtype is dt.int8, "B to be int8 tensor."),
        ],
    )
    _refuse(
        "_weight_int8pack_mm_cpu : expect ",
        [
            (mat2.size(1) == self.size(1), f"B.size(1) == {self.size(1)}"),
            (
                scales.ndim == 1 and scales.size(0) == mat2.size(0),
                f"scales to be 1d tensor with size {mat2.size(0)}",
            ),
        ],
    )
    wide = dt.float64 if self.dtype is dt.float64 else dt.float32
    product = aten.matmul(aten.to(self, wide), aten.to(mat2, wide).t())
    return aten.to(product * aten.to(scales, wide), self.dtype)
