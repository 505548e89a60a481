"""Owns which dtypes `out=` may have, and what torch says where an op writes to its own only.

Most pointwise ops cast; sums take the dtype of `out` for their own. The others are listed here
beside their texts: `{want}` and `{got}` are names as C++ has them, `{Want}` and `{Got}` torch's.
"""

from __future__ import annotations

from typing import Any

from .._tensor.dtype import dtype as Dtype
from .._tensor.dtype import uint8
from .._tensor.geometry import Geometry
from ..ops.rules import scalar_name
from ..ops.spec import Op
from .bind import can_cast

# What TypeMeta calls dtypes (c10/util/typeid.h).
_CPP_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip

_TEXTS = {
    "Expected out tensor to have dtype {want}, but got {got} instead": """
        addmm addmv alias_copy argmax argmin as_strided_copy baddbmm bmm cross diag diagonal_copy
        expand_copy gather index_add index_copy index_reduce inverse isin linalg_cholesky
        linalg_cross linalg_det linalg_eigvalsh linalg_inv linalg_ldl_solve linalg_lu_solve
        linalg_matmul linalg_matrix_power linalg_solve linalg_svdvals linalg_vector_norm
        log_softmax lu_solve matmul mm msort mv norm permute_copy renorm scatter scatter_add
        scatter_reduce select_copy slice_copy slice_scatter softmax sort squeeze_copy t_copy
        take_along_dim transpose_copy tril triu unfold_copy unsqueeze_copy view_as_complex_copy
        view_as_real_copy view_copy""",
    "Found dtype {Got} but expected {Want}": """
        abs bitwise_not ceil clamp clamp_max clamp_min conj_physical floor frac hardshrink neg
        round sgn sign trunc""",
    "{name} does not support non-boolean outputs.": "isneginf isposinf signbit",
    "{name} only supports bool tensor for result, got: {Got}": "all any",
    "Expected the dtype for input and out to match, but got {Want} for input's dtype and {Got} for"
    " out's dtype.": "amax amin",
    "Expected object of scalar type {Want} but got scalar type {Got} for argument 'out'": """
        complex polar""",
    "result dtype {Got} does not match input dtype {Want}": "dot vdot",
    "{name}(): self and result must have the same scalar type": "index_select masked_select",
    "{name}: Expected out tensor to have scalar type {Want} but got scalar type{Got}": """
        nonzero nonzero_static""",
    "tensordot: Expected the output tensor to have dtype {Want}, but got an output tensor with"
    " dtype {Got}": "inner tensordot",
    "{name}() out tensor must be same dtype as the input tensor": "quantile nanquantile",
    "{name}(): self and out expected to have the same dtype, but got self.dtype = {Want} and"
    " out.dtype = {Got}": "take",
    "Expected out type to be {Want} but got {Got}": "where",
    "{name}: dtype of out: {Got} should be same as input: {Want}": "nan_to_num",
    "expected scalar_type {Want} but found {Got}": "logcumsumexp cummax cummin",
    "expected scalar type '{Want}' but got '{Got}' for values output": "mode",
    "output values must be of same type as input": "kthvalue",
    "torch.frexp() expects mantissa to have dtype {want} but got {got}": "frexp",
}
_EXACT = {name: text for text, names in _TEXTS.items() for name in names.split()}
_USUAL = next(iter(_TEXTS))
# Sums that are computed in the dtype of `out`, as if it were the argument `dtype`.
_DECIDED = frozenset(("sum", "prod", "nansum", "cumsum", "cumprod"))


def refuse_out(op: Op, out: Dtype, result: Dtype, source: Dtype | None) -> None:
    """RuntimeError in torch's words where a result may not be written in the dtype of `out`.

    `source` is the first operand's dtype: what has a real result of complex numbers casts.
    """
    if out is result:
        return
    name = op.base_name
    several = len(op.schema.returns) > 1 or name in _DECIDED
    text = _EXACT.get(name, _USUAL if several else "")
    casts = (name in ("all", "any") and out is uint8) or (
        name == "abs" and source is not None and source.is_complex
    )
    if text and not casts:
        names = {"Want": scalar_name(result), "Got": scalar_name(out)}
        raise RuntimeError(text.format(name=name, want=_cpp(result), got=_cpp(out), **names))
    if not can_cast(result, out):
        raise RuntimeError(
            f"result type {result.legacy} can't be cast to the desired output type {out.legacy}"
        )


def _cpp(dtype: Dtype) -> str:
    return _CPP_NAMES[str(dtype).removeprefix("torch.")]


def decided(op: Op, args: tuple[Any, ...], out: Geometry) -> tuple[Any, ...]:
    """The arguments of a sum, told to compute in the dtype of `out` where no other is asked."""
    if op.base_name not in _DECIDED:
        return args
    return tuple(
        out.dtype if value is None and arg.name == "dtype" else value
        for arg, value in zip(op.schema.args, args, strict=True)
    )
