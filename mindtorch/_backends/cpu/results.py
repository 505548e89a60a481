"""Owns what a kernel's result becomes: cast, laid out as the op's rule says, no warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Context
from typing import Any, NoReturn

import numpy as np

from ..._tensor.eight_bits import fitting
from ..._tensor.geometry import Geometry
from ..._tensor.storage import Storage
from ..._tensor.tensor import TOO_MANY_DIMS, host_array
from ..._tensor.types import Array

contexts: list[Context] = []


def new_context() -> Context:
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


# What numpy says of sizes that it cannot count, and of shapes that do not fit.
REFUSED = (MemoryError, ValueError, OverflowError)


def refuse(error: MemoryError | ValueError | OverflowError) -> NoReturn:
    """Raise what torch's kernels raise for what they cannot do: a RuntimeError."""
    if isinstance(error, IndexError):  # numpy's AxisError is a ValueError too
        raise error
    if isinstance(error, MemoryError) or "too big" in str(error) or "dimension exce" in str(error):
        error = MemoryError(f"cpu allocator: can't allocate memory: {error}; ask for less")
    if "maximum supported dimension" in str(error):
        raise RuntimeError(TOO_MANY_DIMS) from error
    raise RuntimeError(str(error)) from error


def refuse_unobtainable(outs: Iterable[Any]) -> None:
    """RuntimeError for results of more memory than there is, before a kernel works for them."""
    for out in outs:
        if out.__class__ is Geometry and out.extent * out.dtype.itemsize > _LARGE:
            try:
                np.empty(out.extent, out.dtype.np)
            except REFUSED as error:
                refuse(error)


_LARGE = 1 << 30  # bytes; below, a kernel meets the refusal soon enough by itself


def quiet(kernel: Callable[..., Any], *args: Any, **names: Any) -> Any:
    """Call `kernel` where numpy's floating-point warnings are off: torch gives none."""
    try:
        context = contexts.pop()
    except IndexError:
        context = new_context()
    try:
        return context.run(kernel, *args, **names)
    finally:
        contexts.append(context)


# The context that kernels enter first, as to look for a free one costs more than many of them.
quietly = new_context().run
_ENTERED = "cannot enter context"


def quiet_again(error: RuntimeError, kernel: Callable[..., Any], *args: Any, **names: Any) -> Any:
    """Call `kernel` in another context where another call was inside `quietly`; raise what is
    the kernel's own error."""
    if not str(error).startswith(_ENTERED):
        raise error
    try:
        return quiet(kernel, *args, **names)
    except REFUSED as refused:
        refuse(refused)


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
    if result.strides == geom.np_strides and _whole(result, geom):
        return result, result.base
    if geom.contiguous and not geom.offset:
        array = np.empty(geom.shape, dtype)
        array[...] = result
        return array, array
    memory = np.empty(geom.extent, dtype)
    storage = Storage(memory)
    array = host_array(geom, storage)
    array[...] = result
    return array, memory


def _whole(view: Array, geom: Geometry) -> bool:
    """Whether an array is all of the memory that it is a view of, in another order of dims."""
    base = view.base
    return (
        base.__class__ is np.ndarray
        and base.flags.owndata
        and base.nbytes == geom.extent * view.itemsize
        and base.nbytes == view.nbytes
    )


def cast(array: Array, dtype: Any) -> Array:
    """`array` in another dtype, as torch casts: a complex number loses its imaginary part."""
    if array.dtype.kind == "c" and dtype.kind not in "cb" and not dtype.names:
        array = array.real
    return quiet(fitting(array, dtype).astype, dtype)
