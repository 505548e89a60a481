"""Owns numpy universal functions that numpy lacks: loops of `kernels/special.cpp` and `lines.cpp`.

They broadcast, cast and write to strides as numpy's own do. They are made through numpy's C API:
entry 31 of its table is `PyUFunc_FromFuncAndDataAndSignature`, which takes no signature too
(numpy C-API documentation, "UFunc API"; `numpy/_core/code_generators/numpy_api.py`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from .native import ffi, lib

_NO_IDENTITY = -1
_alive: list[Any] = []  # what numpy reads as long as the functions are


@cache
def universal(name: str) -> Callable[..., Any] | None:
    """The universal function of a name, None where there is none or nothing was built."""
    if not hasattr(lib, "mtk_function"):  # a tree that was not built, or before there were loops
        return None
    loops = ffi.new("mtk_loops *")
    return _created(name, loops) if lib.mtk_function(name.encode(), loops) else None


@cache
def _create() -> Callable[..., Any]:
    """numpy's function that makes universal functions."""
    core = sys.modules.get("numpy._core._multiarray_umath")
    api = (core or sys.modules["numpy.core._multiarray_umath"])._UFUNC_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(pointer(api, None), ctypes.POINTER(ctypes.c_void_p))
    number, text, array = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
    maker: Callable[..., Any] = ctypes.PYFUNCTYPE(
        ctypes.py_object, array, array, array, number, number, number, number, text, text, number,
        text,
    )(table[31])  # fmt: skip
    return maker


def _created(name: str, loops: Any) -> Callable[..., Any]:
    nothing, title = (ctypes.c_void_p * loops.kinds)(), name.encode()
    signature = None if loops.signature == ffi.NULL else ffi.string(loops.signature)
    _alive.append((loops, nothing, title, signature))
    function: Callable[..., Any] = _create()(
        int(ffi.cast("uintptr_t", loops.loops)), ctypes.addressof(nothing),
        int(ffi.cast("uintptr_t", loops.types)), loops.kinds, loops.operands, loops.results,
        _NO_IDENTITY, title, b"", 0, signature,
    )  # fmt: skip
    return function
