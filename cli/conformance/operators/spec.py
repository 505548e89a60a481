"""Owns how a spec row is declared: `@spec(…)`, and the tensors of its samples."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from mindtorch.ops.samples import Arg, Sample

from . import declaration
from .declaration import near
from .row import SPECS, UNSPECIFIED, Reference, Spec, SpecError, Unspecified

# A sample's value for the name of a communicator: of one rank, made where the case runs.
OWN_GROUP: Final = "<a communicator of one rank>"


def spec(
    names: str, outs: str, *, source: str, samples: Any, tolerance: str = "elementary",
    **fields: Any,
) -> Callable[[Reference], Reference]:  # fmt: skip
    """Declare a row: `names` are operators of one formula, `outs` is `yOut:x rstdOut:float32`.

    Its family is the module or folder of `rows` that declares it. SpecError for what cannot be:
    see declaration.py.
    """
    first, *others = names.split()
    module = sys._getframe(1).f_globals["__name__"]
    for field_name in set(fields) - set(Spec.__dataclass_fields__):
        raise SpecError(f"{first}: no field {field_name!r}{near(field_name, _FIELDS)}")
    for listed in ("uncovered", "constant", "extra"):
        fields[listed] = tuple(fields.get(listed, "").split())

    def declare(reference: Reference) -> Reference:
        cases = samples if callable(samples) else lambda: samples
        row = Spec(first, module, reference, _results(first, outs), cases, tolerance, source,
                   names=tuple(others), **fields)  # fmt: skip
        declaration.fields(row)
        for name in (first, *others):
            if name in SPECS or name in UNSPECIFIED:
                raise SpecError(f"{name}: a spec row covers it already; keep one")
            SPECS[name] = row
        return reference

    return declare


_FIELDS: Final = frozenset(Spec.__dataclass_fields__) - {"name", "module", "reference"}


def _results(name: str, outs: str) -> dict[str, str]:
    """`yOut:x rstdOut:float32` as a mapping."""
    results: dict[str, str] = {}
    for item in outs.split():
        out, colon, dtype = item.partition(":")
        if not (out and colon and dtype) or out in results:
            raise SpecError(f"{name}: result {item!r}: expected one 'name:dtype' each")
        results[out] = dtype
    return results


def unspecified(names: str, known: str, source: str) -> None:
    """Declare operators whose formula nobody publishes."""
    for name in names.split():
        if name in SPECS or name in UNSPECIFIED:
            raise SpecError(f"{name}: a spec row covers it already; keep one")
        UNSPECIFIED[name] = Unspecified(name, known, source)


def take(**arguments: Any) -> Sample:
    """One call: header parameter name -> Arg, list of Args, number, tuple or text."""
    return Sample((), arguments)


def t(*shape: int, dtype: str = "float32", **fields: Any) -> Arg:
    """A drawn tensor of a shape."""
    return Arg(shape, dtype, **fields)


def f16(*shape: int, **fields: Any) -> Arg:
    """A drawn tensor of float16."""
    return t(*shape, dtype="float16", **fields)


def bf16(*shape: int, **fields: Any) -> Arg:
    """A drawn tensor of bfloat16."""
    return t(*shape, dtype="bfloat16", **fields)


def i8(*shape: int, low: int = -8, high: int = 8) -> Arg:
    """A drawn tensor of int8."""
    return t(*shape, dtype="int8", low=low, high=high)


def const(values: Any, dtype: str = "int64") -> Arg:
    """A tensor with these elements: indices, masks, lengths."""
    import numpy as np

    return Arg(np.shape(values), dtype, values=values)
