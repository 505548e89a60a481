"""Owns the inner loops of cpu plans: one closure maker per argument pattern, compiled once.

The patterns are `backend._pattern`'s. Written out per pattern because a generic loop over
arguments costs more than a small numpy operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._tensor.eight_bits import fitting, readable
from ..._tensor.geometry import Geometry
from ..._tensor.slots import fresh
from ..._tensor.tensor import Tensor
from ..._tensor.types import Array, Number
from ...ops.rules import Dynamic, Results
from ...ops.source import compiled
from .results import REFUSED, conform, quiet, quiet_again, quietly, refuse

_makers: dict[tuple[str, str], Any] = {}

_READ = {
    "T": "a{i}._array",
    "C": "a{i}._array.astype(c{i})",
    "X": "fitting(a{i}._array, c{i})",
    "R": "a{i}._array.astype(c{i}[0]).astype(c{i}[1])",
    "N": "asarray(a{i}, c{i})",
    "S": "a{i}",
    "K": "c{i}",
    "Z": "out=c{i}",
    "L": "[t._array for t in a{i}]",
    "H": "[half(t._array) for t in a{i}]",
    "O": "[None if t is None else t._array for t in a{i}]",
}

_CALL = """\
        try:
            r = quietly(kernel, {reads})
        except RuntimeError as error:
            r = quiet_again(error, kernel, {reads})
        except REFUSED as error:
            refuse(error)
"""

_ONE = """\
        if r.__class__ is not ndarray:
            r = plain(r)
        if r.strides != strides or r.dtype is not dtype:
            r, memory = conform(r, geom)
        else:
            memory = r
        return fresh(geom, memory, r)
"""

_SOURCES = {
    "one": """\
def make_run(kernel, outs, {consts}):
    geom = outs[0]
    strides = geom.np_strides
    dtype = geom.dtype.np
    def run({params}):
"""
    + _CALL
    + _ONE
    + "    return run\n",
    "many": """\
def make_run(kernel, outs, {consts}):
    def run({params}):
"""
    + _CALL
    + """\
        return tuple([adopt(v, g) for v, g in zip(r, outs, strict=True)])
    return run
""",
    "dynamic": """\
def make_run(kernel, outs, {consts}):
    def run({params}):
"""
    + _CALL
    + """\
        return dynamic(r, outs)
    return run
""",
    "into": """\
def make_run(kernel, outs, {consts}):
    def run(dests, {params}):
"""
    + _CALL
    + """\
        store(dests, r)
    return run
""",
    "ufunc": """\
def make_run(kernel, outs, {consts}):
    def run(dests, {params}):
"""
    + _CALL.replace("{reads}", "{reads}, out=dests[0]._array")
    + "    return run\n",
    "direct": """\
def make_run(kernel, outs, {consts}):
    def run(dests, {params}):
"""
    + _CALL.replace("{reads}", "{reads}, into=dests[0]._array")
    + "    return run\n",
    "inplace": """\
def make_run(kernel, outs, {consts}):
    def run(dests, {params}):
"""
    + _CALL
    + "    return run\n",
}


def _maker(pattern: str, form: str) -> Callable[..., Any]:
    maker = _makers.get((pattern, form))
    if maker is None:
        source = _SOURCES[form].format(
            consts=", ".join(f"c{i}" for i in range(len(pattern))),
            params=", ".join(f"a{i}" for i, p in enumerate(pattern) if p != "Z"),
            reads=", ".join(_READ[p].format(i=i) for i, p in enumerate(pattern) if p != "P"),
        )
        maker = compiled(source, f"cpu runner {form} {pattern}", _scope())
        _makers[pattern, form] = maker
    return maker


def _scope() -> dict[str, Any]:
    return {
        "REFUSED": REFUSED,
        "refuse": refuse,
        "fresh": fresh,
        "adopt": _adopt,
        "asarray": _number_array,
        "conform": conform,
        "dynamic": _dynamic,
        "fitting": fitting,
        "half": _widen,
        "ndarray": np.ndarray,
        "plain": np.asarray,
        "quiet_again": quiet_again,
        "quietly": quietly,
        "store": _store,
    }


def make_run(
    pattern: str, form: str, kernel: Callable[..., Any], consts: list[Any], outs: Results
) -> Callable[..., Any]:
    """`run(*args)` for a kernel whose results are new tensors."""
    run: Callable[..., Any] = _maker(pattern, form)(kernel, outs, *consts)
    return run


def make_into(
    pattern: str, kernel: Callable[..., Any], consts: list[Any], form: str
) -> Callable[..., None]:
    """`run(dests, *args)` for a kernel whose results are written to tensors.

    "inplace" is for kernels that write to their first array themselves.
    """
    run: Callable[..., None] = _maker(pattern, form)(kernel, None, *consts)
    return run


def _number_array(value: Number, dtype: np.dtype[Any]) -> Array:
    if value.__class__ is float and dtype.kind == "f" and -_SURELY_HELD <= value <= _SURELY_HELD:
        return np.array(value, dtype)
    # asarray(value, dtype) raises for an int out of range, where torch wraps.
    if value.__class__ is int and dtype.kind in "iu":
        return np.asarray(value & ((1 << 64) - 1), np.uint64).astype(dtype)
    array = np.asarray(value)
    if dtype.names:
        return fitting(array, dtype)
    if value.__class__ in (float, complex) and not abs(value) <= _SURELY_HELD:
        return quiet(array.astype, dtype)  # beyond what the dtype holds it is inf, as in torch
    return array.astype(dtype)


_SURELY_HELD = 65504  # by every floating-point dtype: float16's largest


def _widen(array: Array) -> Array:
    kind = array.dtype
    if kind.names:
        return readable(array)
    return array.astype(np.float32) if kind.itemsize == 2 and kind.kind not in "iu" else array


def _adopt(value: Any, geom: Geometry) -> Tensor:
    """A tensor of a kernel's result, as it is where it lies as the rule says."""
    if (
        value.__class__ is np.ndarray
        and value.strides == geom.np_strides
        and value.dtype is geom.dtype.np
        and value.shape == geom.shape
        and value.flags.owndata
    ):
        return fresh(geom, value, value)
    array, memory = conform(value, geom)
    return fresh(geom, memory, array)


def _dynamic(result: Array, outs: tuple[Dynamic, ...]) -> Any:
    """Tensors whose shapes come from what the kernel gave."""
    results = result if isinstance(result, tuple) else (result,)
    tensors = []
    for value, out in zip(results, outs, strict=True):
        geom = out.geometry(np.shape(value))
        tensors.append(_adopt(value, geom))
    return tuple(tensors) if isinstance(result, tuple) else tensors[0]


def _store(dests: tuple[Tensor, ...], result: Array) -> None:
    results = result if isinstance(result, tuple | list) else (result,)
    for dest, value in zip(dests, results, strict=True):
        array = dest._array
        if value.__class__ is not np.ndarray:
            value = np.asarray(value)
        if value.dtype.kind == "c" and array.dtype.kind not in "cb" and not array.dtype.names:
            value = value.real
        quiet(_copyto, array, value)


def _copyto(dest: Array, value: Array) -> None:
    if dest.dtype.names or value.dtype.names:
        value = fitting(value, dest.dtype)
    np.copyto(dest, value, casting="unsafe")
