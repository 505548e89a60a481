"""Owns numpy universal functions of rows that numpy lacks: loops of `kernels/special.cpp`.

A row's reference stays numpy's; these broadcast, cast and write to strides as numpy's own do. They
are made through numpy's C API: the second entry of its table is `PyUFunc_FromFuncAndData`
(numpy C-API documentation, "UFunc API"; `numpy/_core/code_generators/numpy_api.py`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..._tensor.dtype import float32, float64
from ..._tensor.geometry import Geometry
from ...ops.rules import Results
from ...ops.spec import Op
from .native import ffi, lib

_TYPES = bytes([11, 11, 11, 12, 12, 12])  # NPY_FLOAT and NPY_DOUBLE: two operands and a result
_NO_IDENTITY = -1
_alive: list[Any] = []  # what numpy reads as long as the functions are


@cache
def _loops(name: str) -> tuple[int, ...]:
    if not hasattr(lib, "mtk_loop"):  # a tree that was not built, or before there were loops
        return ()
    addresses = [lib.mtk_loop(name.encode(), wide) for wide in (0, 1)]
    return tuple(int(ffi.cast("uintptr_t", a)) for a in addresses if a != ffi.NULL)


@cache
def _created(name: str) -> Callable[..., Any]:
    core = sys.modules.get("numpy._core._multiarray_umath")
    api = (core or sys.modules["numpy.core._multiarray_umath"])._UFUNC_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(pointer(api, None), ctypes.POINTER(ctypes.c_void_p))
    number, text, array = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
    create = ctypes.PYFUNCTYPE(
        ctypes.py_object, array, array, text, number, number, number, number, text, text, number
    )(table[1])
    loops, nothing = (ctypes.c_void_p * 2)(*_loops(name)), (ctypes.c_void_p * 2)()
    title = name.encode()
    _alive.append((loops, nothing, title))
    function: Callable[..., Any] = create(
        ctypes.addressof(loops), ctypes.addressof(nothing), _TYPES, 2, 2, 1, _NO_IDENTITY, title,
        b"", 0,
    )  # fmt: skip
    return function


def kernel(op: Op, outs: Results) -> Callable[..., Any] | None:
    """The row's kernel for results of float32 or float64, None where it has no loops."""
    out = outs[0] if outs else None
    if out.__class__ is not Geometry or out.dtype not in (float32, float64) or not _loops(op.name):
        return None
    function = _created(op.name)
    if op.name != "polygamma":
        return function
    plain, kind = op.kernels.cpu, out.dtype.np
    assert plain is not None

    def polygamma(n: int, x: np.ndarray[Any, Any], *, out: Geometry) -> Any:
        if n == 0 or n > _LARGEST_DERIVATIVE:
            return plain(n, x, out=out)
        return function(float(n), x.astype(kind, copy=False))

    return polygamma


_LARGEST_DERIVATIVE = 1 << 20
