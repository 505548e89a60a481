"""Owns which dtypes `out=` may have, and what torch says where an op writes to its own only.

Most pointwise ops cast. A row's `out` says what others do: "decides" takes the dtype of `out` for
its own, as sums do; anything else refuses, in a text below or its own. `{want}` and `{got}` are
names as C++ has them, `{Want}` and `{Got}` torch's.
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
    "expected": "Expected out tensor to have dtype {want}, but got {got} instead",
    "found": "Found dtype {Got} but expected {Want}",
    "truth": "{name} only supports bool tensor for result, got: {Got}",
}


def refuse_out(op: Op, out: Dtype, result: Dtype, source: Dtype | None) -> None:
    """RuntimeError in torch's words where a result may not be written in the dtype of `out`.

    `source` is the first operand's dtype: what has a real result of complex numbers casts.
    """
    if out is result:
        return
    word = op.out or ("expected" if len(op.schema.returns) > 1 else "")
    modulus = word == "found" and source is not None and source.is_complex > result.is_complex
    if word and not modulus and not (word == "truth" and out is uint8):
        text = _TEXTS.get("expected" if word == "decides" else word, word)
        names = {"Want": scalar_name(result), "Got": scalar_name(out)}
        raise RuntimeError(
            text.format(name=op.base_name, want=_cpp(result), got=_cpp(out), **names)
        )
    if not can_cast(result, out):
        raise RuntimeError(
            f"result type {result.legacy} can't be cast to the desired output type {out.legacy}"
        )


def _cpp(dtype: Dtype) -> str:
    return _CPP_NAMES[str(dtype).removeprefix("torch.")]


def decided(op: Op, args: tuple[Any, ...], out: Geometry) -> tuple[Any, ...]:
    """The arguments of a sum, told to compute in the dtype of `out` where no other is asked."""
    if op.out != "decides":
        return args
    return tuple(
        out.dtype if value is None and arg.name == "dtype" else value
        for arg, value in zip(op.schema.args, args, strict=True)
    )
