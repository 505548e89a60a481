"""Owns running rows' numpy kernels on cpu tensors: casts in, layout out, allocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor.device import device as Device
from ..._tensor.dtype import BOOL, FLOAT, INTEGER, complex32 as COMPLEX32, dtype as Dtype
from ..._tensor.geometry import Geometry, contiguous
from ..._tensor.storage import Storage
from ..._tensor.tensor import MOST_DIMS, Tensor, adopt, wrap
from ..._tensor.types import Array
from ...ops.rules import Dynamic, Pointwise, Results, opmath
from ...ops.schema import ArgKind
from ...ops.spec import Op
from ..registry import MissingKernelError, registry
from . import native, universal_kernels
from .results import REFUSED, cast, conform, quiet, refuse, refuse_unobtainable
from .runner import make_into, make_run


class CpuBackend:
    """Runs numpy kernels; see `registry.DeviceBackend`."""

    def allocate(self, geom: Geometry) -> Tensor:
        try:
            if geom.contiguous and not geom.offset and geom.ndim <= MOST_DIMS:
                return adopt(geom, np.empty(geom.shape, geom.dtype.np))
            return wrap(geom, Storage(np.empty(geom.extent, geom.dtype.np)))
        except REFUSED as error:
            refuse(error)

    def functional(self, op: Op, args: Sequence[Any], outs: Results) -> Callable[..., Any]:
        kernel = self._kernel(op, args, outs)
        refuse_unobtainable(outs)
        pattern, consts = _pattern(op, args, outs, kernel)
        returns = op.schema.returns
        if outs and outs[0].__class__ is Dynamic:
            return make_run(pattern, "dynamic", kernel, consts, outs)
        single = len(returns) == 1 and not returns[0].list
        out = outs[0] if single else None
        if isinstance(out, Geometry) and out.numel <= _LARGEST_CONSTANT and _is_constant(pattern):
            return _repeated(make_run(pattern, "one", kernel, consts, outs), out)
        run = make_run(pattern, "one" if single else "many", kernel, consts, outs)
        return native.instead(op, args, outs, run)

    def has_kernel(self, op: Op, args: Sequence[Any], outs: Results) -> bool:
        has = op.kernels.cpu is not None
        return has or universal_kernels.kernel(op, args, outs) is not None

    def into(
        self,
        op: Op,
        args: Sequence[Any],
        outs: tuple[Geometry, ...],
        dests: tuple[Geometry, ...],
        inplace: bool,
    ) -> Callable[..., None]:
        if inplace and op.kernels.cpu_inplace is not None:
            pattern, consts = _pattern(op, args, outs, op.kernels.cpu)
            return make_into(pattern, op.kernels.cpu_inplace, consts, "inplace")
        kernel = self._kernel(op, args, outs)
        pattern, consts = _pattern(op, args, outs, kernel)
        if any(_narrower(out, dest) for out, dest in zip(outs, dests, strict=True)):
            return make_into(pattern, _ruled(kernel, outs), consts, "into")
        run = make_into(pattern, kernel, consts, _form(op, kernel, args, outs, dests))
        return native.instead_into(op, args, outs, dests, run)

    def _kernel(self, op: Op, args: Sequence[Any], outs: Results) -> Callable[..., Any]:
        if (special := universal_kernels.kernel(op, args, outs)) is not None:
            return special
        if op.kernels.cpu is None:
            raise MissingKernelError(registry.missing(op, "cpu"))
        if op.kernels.cpu_plain is None:
            return op.kernels.cpu
        pairs = zip(op.schema.args, args, strict=True)
        plain = all(a.is_left(v) for a, v in pairs if a.counts_default)
        return op.kernels.cpu_plain if plain else op.kernels.cpu

    def copy(self, dest: Tensor, source: Tensor) -> None:
        if native.copy(dest, source):
            return
        value = source._array
        quiet(_copyto, dest._array, cast(value, dest._array.dtype))

    def write_back(self, op: Op, dest: Tensor, source: Tensor) -> None:
        self.copy(dest, source)


_LARGEST_CONSTANT = 1 << 9  # elements


def _is_constant(pattern: str) -> bool:
    return set(pattern) <= {"K", "Z"}


def _repeated(run: Callable[..., Any], geom: Geometry) -> Callable[..., Tensor]:
    """`run(*args)` of a row whose arguments are all in the plan's key: copies of one result."""
    array: Array | None = None

    def repeat(*args: Any) -> Tensor:
        nonlocal array
        if array is None:
            array = run(*args)._array
        return adopt(geom, array.copy())

    return repeat


def _form(
    op: Op,
    kernel: Callable[..., Any],
    args: Sequence[Any],
    outs: tuple[Geometry, ...],
    dests: tuple[Geometry, ...],
) -> str:
    """How a kernel writes to given tensors: by itself where nothing must be cast or reshaped."""
    rule = op.infer
    if len(dests) != 1 or not isinstance(rule, Pointwise):
        return "into"
    fits = outs[0].shape == dests[0].shape and outs[0].dtype is dests[0].dtype
    if not fits or _computed(op, outs[0].dtype) is not outs[0].dtype:
        return "into"
    if isinstance(kernel, np.ufunc):
        # numpy 2.4's negative reads strided elements wrongly when input and output are one.
        return "into" if kernel is np.negative else "ufunc"
    code = getattr(kernel, "__code__", None)
    return "direct" if code is not None and "into" in code.co_varnames else "into"


def _narrower(out: Any, dest: Geometry) -> bool:
    """Whether a result's own dtype rounds or wraps what the target's would keep."""
    return out.__class__ is Geometry and out.dtype is not dest.dtype


def _ruled(kernel: Callable[..., Any], outs: Sequence[Geometry]) -> Callable[..., Any]:
    """A kernel whose results have the dtypes of the op's rule: `out=` changes no value."""

    def run(*args: Any, **kwargs: Any) -> tuple[Array, ...]:
        results = kernel(*args, **kwargs)
        results = results if isinstance(results, tuple | list) else (results,)
        return tuple(cast(np.asarray(r), g.dtype.np) for r, g in zip(results, outs, strict=True))

    return run


def _copyto(dest: Array, value: Array) -> None:
    np.copyto(dest, value, casting="unsafe")


def _pattern(
    op: Op, args: Sequence[Any], outs: Results, kernel: Callable[..., Any] | None
) -> tuple[str, list[Any]]:
    """How each argument reaches the kernel, one letter each, and the constants they need.

    T array; C array cast to a constant dtype; R array cast to half, then to what halves are
    computed in; N number as a 0-d array of that dtype; S number as is; K constant; P not at all;
    L list of arrays; O list of arrays or None; Z trailing `out` Geometry.
    A kernel with a parameter `number` takes numbers as they are.
    """
    compute = common = None
    exact = "number" in getattr(getattr(kernel, "__code__", None), "co_varnames", ())
    rule = op.infer
    grouped: tuple[int, ...] = ()
    if isinstance(rule, Pointwise):
        geoms = [a._geom if isinstance(a, Tensor) else a for a in args]
        common = rule.common(geoms)
        compute = _computed(op, common)
        grouped = rule.positions[rule.skip :]
    pattern, consts = "", []
    for i, (arg, value) in enumerate(zip(op.schema.args, args, strict=True)):
        letter, const = _letter(op, arg.kind, value, compute if i in grouped else None)
        if kernel is op.kernels.cpu_plain and arg.counts_default:
            letter = "P"
        halved = compute is not common is not COMPLEX32
        halved = halved and i in grouped and isinstance(value, Tensor)
        if halved and _is_rounded(op, i, value):
            assert common is not None
            assert compute is not None
            letter, const = "R", (common.np, compute.np)
        if letter == "N" and exact:
            letter, const = "S", None
        pattern += letter
        consts.append(const)
    code = getattr(op.kernels.cpu, "__code__", None)
    if code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        pattern += "Z"
        consts.append(outs[0] if len(outs) == 1 else outs)
    return pattern, consts


def _is_rounded(op: Op, at: int, value: Tensor) -> bool:
    """Whether an operand beside halves becomes one before anything is computed, as in torch."""
    geom = value._geom
    if geom.dtype.category == FLOAT:
        return geom.dtype.itemsize > 2 and not (op.dtypes.exact_scalar and at == 1)
    return geom.dtype.category == INTEGER and geom.ndim > 0


# Rows that copy no elements, but ask what they are.
_ASK_VALUES = ("all", "any", "nonzero", "count_nonzero", "tril", "triu")


def _computed(op: Op, dtype: Dtype) -> Dtype:
    """What a row computes a dtype in: halves and pairs of them in another where it rounds."""
    if op.kernels.compute == "opmath":
        return opmath(dtype)
    if dtype is not COMPLEX32:
        return dtype
    numbers = any(a.kind in (ArgKind.SCALAR, ArgKind.UNION) for a in op.schema.args)
    asks = numbers or isinstance(op.kernels.cpu, np.ufunc) or op.base_name in _ASK_VALUES
    return opmath(dtype) if asks else dtype


def _letter(op: Op, kind: ArgKind, value: Any, compute: Dtype | None) -> tuple[str, Any]:
    if isinstance(value, Tensor):
        d = value._geom.dtype
        dtype = compute or _computed(op, d)
        if dtype is d:
            return "T", None
        return "X" if COMPLEX32 in (d, dtype) else "C", dtype.np
    if kind is ArgKind.TENSORS:
        half = any(_computed(op, t.dtype) is not t.dtype for t in value)
        return ("H", None) if half else ("L", None)
    if kind is ArgKind.OPTIONAL_TENSORS:
        return "O", None
    if kind is ArgKind.UNION and compute is not None and value is not None:
        return "N", compute.np
    if kind in (ArgKind.SCALAR, ArgKind.UNION) and value is not None:
        return "S", None
    return "K", value


backend = CpuBackend()


def empty(shape: tuple[int, ...], dtype: Dtype, device: Device) -> Tensor:
    """An uninitialised contiguous cpu tensor."""
    return backend.allocate(contiguous(shape, dtype, device))


__all__ = ["BOOL", "FLOAT", "backend", "conform", "empty", "quiet"]
