"""Owns which dtypes `out=` may have, and what torch says where an op writes to its own only.

Most pointwise ops cast. A row's `out` says what others do: "decides" takes the dtype of `out` for
its own, as sums do; anything else refuses, in a text below or its own. `{want}` and `{got}` are
names as C++ has them, `{Want}` and `{Got}` torch's.
"""

from __future__ import annotations

from typing import Any

from .._tensor.dtype import dtype as Dtype, int32, uint8
from .._tensor.geometry import Geometry
from ..ops.rules import c_name, scalar_name
from ..ops.spec import Op
from .bind import can_cast

_TEXTS = {
    "expected": "Expected out tensor to have dtype {want}, but got {got} instead",
    "found": "Found dtype {Got} but expected {Want}",
    "spectrum": "{name} expects a {kind} output tensor, but got {Got}",
    "places": "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or"
    " Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype"
    " {Got} and out_int32 flag is {is_int32}",
    "truth": "{name} only supports bool tensor for result, got: {Got}",
}
# What joins tensors: all say so as cat does.
_JOINING = frozenset(("cat", "stack", "hstack", "vstack", "dstack", "column_stack"))


def refuse_out(op: Op, out: Dtype, result: Dtype, source: Dtype | None) -> None:
    """RuntimeError in torch's words where a result may not be written in the dtype of `out`.

    `source` is the first operand's dtype: what has a real result of complex numbers casts.
    """
    if out is result:
        return
    if op.dtypes.out == "spectrum":
        return _refuse_spectrum(op, out, result)
    word = op.dtypes.out or ("expected" if len(op.schema.returns) > 1 else "")
    modulus = word == "found" and source is not None and source.is_complex > result.is_complex
    if word and not modulus and not (word == "truth" and out is uint8):
        text = _TEXTS.get("expected" if word == "decides" else word, word)
        names = {"Want": scalar_name(result), "Got": scalar_name(out)}
        names["is_int32"] = str(result is int32)
        raise RuntimeError(
            text.format(name=op.base_name, want=c_name(result), got=c_name(out), **names)
        )
    if not can_cast(result, out):
        if op.base_name in _JOINING:
            raise TypeError(
                f"torch.cat(): input types can't be cast to the desired output type"
                f" {scalar_name(out)}"
            )
        raise RuntimeError(
            f"result type {result.legacy} can't be cast to the desired output type {out.legacy}"
        )


def _refuse_spectrum(op: Op, out: Dtype, result: Dtype) -> None:
    """A transform casts among complex dtypes, or among real ones; planes are named as boxes are."""
    if out.is_complex if result.is_complex else out.is_floating_point:
        return
    name = op.base_name.removeprefix("fft_").replace("2", "n").replace("ifftn", "fftn")
    kind = "complex" if result.is_complex else "floating point"
    raise RuntimeError(_TEXTS["spectrum"].format(name=name, kind=kind, Got=scalar_name(out)))


def decided(op: Op, args: tuple[Any, ...], out: Geometry) -> tuple[Any, ...]:
    """The arguments of a sum, told to compute in the dtype of `out` where no other is asked."""
    if op.dtypes.out != "decides":
        return args
    return tuple(
        out.dtype if value is None and arg.name == "dtype" else value
        for arg, value in zip(op.schema.args, args, strict=True)
    )
