"""Owns running rows' numpy kernels on cpu tensors: casts in, layout out, allocation."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np

from ..._dtype import BOOL, FLOAT
from ..._geometry import Geometry, contiguous
from ..._storage import Storage
from ..._tensor import Tensor, host_array, wrap
from ...ops.rules import Dynamic, Pointwise, opmath
from ...ops.schema import Kind
from ..registry import MissingKernelError, registry
from .runner import make_into, make_run

_contexts: list[Context] = []


def _new_context() -> Context:
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


def quiet(kernel: Any, *args: Any) -> Any:
    """Call `kernel` where numpy's floating-point warnings are off: torch gives none."""
    try:
        context = _contexts.pop()
    except IndexError:
        context = _new_context()
    try:
        return context.run(kernel, *args)
    finally:
        _contexts.append(context)


def conform(result: Any, geom: Geometry) -> tuple[Any, Any]:
    """`result` with the dtype and strides of `geom`, and the memory that holds it."""
    result = np.asarray(result)
    dtype = geom.dtype.np
    if result.shape != geom.shape:
        raise RuntimeError(
            f"cpu kernel gave shape {result.shape}, the op's rule says {tuple(geom.shape)}"
        )
    if result.dtype != dtype:
        result = _cast(result, dtype)
    if result.strides == geom.np_strides and result.flags.owndata:
        return result, result
    memory = np.empty(geom.extent, dtype)
    storage = Storage(memory)
    array = host_array(geom, storage)
    array[...] = result
    return array, memory


def _cast(array: Any, dtype: Any) -> Any:
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    return quiet(array.astype, dtype)


class CpuBackend:
    """Runs numpy kernels; see `registry.Backend`."""

    def allocate(self, geom: Geometry) -> Tensor:
        return wrap(geom, Storage(np.empty(geom.extent, geom.dtype.np)))

    def functional(self, op: Any, args: Any, outs: Any) -> Callable[..., Any]:
        kernel = self._kernel(op)
        pattern, consts = _pattern(op, args, outs)
        returns = op.schema.returns
        if outs and outs[0].__class__ is Dynamic:
            return make_run(pattern, "dynamic", kernel, consts, outs)
        single = len(returns) == 1 and not returns[0].list
        return make_run(pattern, "one" if single else "many", kernel, consts, outs)

    def has_kernel(self, op: Any) -> bool:
        return op.cpu is not None

    def into(self, op: Any, args: Any, outs: Any, dests: Any, inplace: bool) -> Callable[..., None]:
        if inplace and op.cpu_inplace is not None:
            pattern, consts = _pattern(op, args, outs)
            return make_into(pattern, op.cpu_inplace, consts, "inplace")
        kernel = self._kernel(op)
        pattern, consts = _pattern(op, args, outs)
        return make_into(pattern, kernel, consts, _form(op, kernel, args, outs, dests))

    def _kernel(self, op: Any) -> Any:
        if op.cpu is None:
            raise MissingKernelError(registry.missing(op, "cpu"))
        return op.cpu

    def copy(self, dest: Tensor, source: Tensor) -> None:
        value = source._array
        if value.dtype.kind == "c" and dest._array.dtype.kind not in "cb":
            value = value.real
        quiet(_copyto, dest._array, value)

    def write_back(self, op: Any, dest: Tensor, source: Tensor) -> None:
        self.copy(dest, source)


def _form(op: Any, kernel: Any, args: Any, outs: Any, dests: Any) -> str:
    """How a kernel writes to given tensors: by itself where nothing must be cast or reshaped."""
    rule = op.infer
    if len(dests) != 1 or not isinstance(rule, Pointwise):
        return "into"
    fits = outs[0].shape == dests[0].shape and outs[0].dtype is dests[0].dtype
    if not fits or (op.compute == "opmath" and opmath(outs[0].dtype) is not outs[0].dtype):
        return "into"
    if isinstance(kernel, np.ufunc):
        # numpy 2.4's negative reads strided elements wrongly when input and output are one.
        return "into" if kernel is np.negative else "ufunc"
    code = getattr(kernel, "__code__", None)
    return "direct" if code is not None and "into" in code.co_varnames else "into"


def _copyto(dest: Any, value: Any) -> None:
    np.copyto(dest, value, casting="unsafe")


def _pattern(op: Any, args: Any, outs: Any) -> tuple[str, list[Any]]:
    """How each argument reaches the kernel, one letter each, and the constants they need.

    T array; C array cast to a constant dtype; N number as a 0-d array of that dtype; S number as
    is; K constant; L list of arrays; O list of arrays or None; Z trailing `out` Geometry.
    """
    compute = None
    rule = op.infer
    grouped: tuple[int, ...] = ()
    if isinstance(rule, Pointwise):
        geoms = [a._geom if isinstance(a, Tensor) else a for a in args]
        compute = rule.common(geoms)
        if op.compute == "opmath":
            compute = opmath(compute)
        grouped = rule.positions[rule.skip :]
    pattern, consts = "", []
    for i, (arg, value) in enumerate(zip(op.schema.args, args, strict=True)):
        letter, const = _letter(op, arg.kind, value, compute if i in grouped else None)
        pattern += letter
        consts.append(const)
    code = getattr(op.cpu, "__code__", None)
    if code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        pattern += "Z"
        consts.append(outs[0] if len(outs) == 1 else outs)
    return pattern, consts


def _letter(op: Any, kind: Kind, value: Any, compute: Any) -> tuple[str, Any]:
    if isinstance(value, Tensor):
        d = value._geom.dtype
        wanted = compute or (opmath(d) if op.compute == "opmath" else d)
        return ("T", None) if wanted is d else ("C", wanted.np)
    if kind is Kind.TENSORS:
        half = op.compute == "opmath" and any(opmath(t.dtype) is not t.dtype for t in value)
        return ("H", None) if half else ("L", None)
    if kind is Kind.OPTIONAL_TENSORS:
        return "O", None
    if kind is Kind.UNION and compute is not None and value is not None:
        return "N", compute.np
    if kind in (Kind.SCALAR, Kind.UNION) and value is not None:
        return "S", None
    return "K", value


backend = CpuBackend()


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    """An uninitialised contiguous cpu tensor."""
    return backend.allocate(contiguous(shape, dtype, device))


__all__ = ["BOOL", "FLOAT", "backend", "conform", "empty", "quiet"]
