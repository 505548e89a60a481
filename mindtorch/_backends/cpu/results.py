"""Owns what a kernel's result becomes: cast, laid out as the op's rule says, no warnings."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, NoReturn

import numpy as np

from ..._tensor.geometry import Geometry
from ..._tensor.storage import Storage
from ..._tensor.tensor import host_array
from ..._tensor.types import Array

contexts: list[Context] = []


def new_context() -> Context:
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


def refuse(error: MemoryError) -> NoReturn:
    """Raise what torch raises where memory is not to be had: a RuntimeError."""
    raise RuntimeError(f"cpu allocator: can't allocate memory: {error}; ask for less") from error


def quiet(kernel: Callable[..., Any], *args: Any) -> Any:
    """Call `kernel` where numpy's floating-point warnings are off: torch gives none."""
    try:
        context = contexts.pop()
    except IndexError:
        context = new_context()
    try:
        return context.run(kernel, *args)
    finally:
        contexts.append(context)


def conform(result: Array, geom: Geometry) -> tuple[Any, Any]:
    """`result` with the dtype and strides of `geom`, and the memory that holds it."""
    result = np.asarray(result)
    dtype = geom.dtype.np
    if result.shape != geom.shape:
        raise RuntimeError(
            f"cpu kernel gave shape {result.shape}, the op's rule says {tuple(geom.shape)}"
        )
    if result.dtype != dtype:
        result = cast(result, dtype)
    if result.strides == geom.np_strides and result.flags.owndata:
        return result, result
    memory = np.empty(geom.extent, dtype)
    storage = Storage(memory)
    array = host_array(geom, storage)
    array[...] = result
    return array, memory


def cast(array: Array, dtype: Any) -> Array:
    """`array` in another dtype, as torch casts: a complex number loses its imaginary part."""
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    return quiet(array.astype, dtype)
