"""Owns what the host computes because CANN's operator takes no float64 or complex128.

Off: such a call is refused with CANN's own error. With MINDTORCH_ENABLE_CPU_FALLBACK=1 it runs on
the host, as PYTORCH_ENABLE_MPS_FALLBACK=1 has it on that device, and a warning says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from aclnn_bindings import AclParameterError

from ..._compat.warn_once import warn_once
from ..._tensor.device import CPU
from ..._tensor.dtype import complex128, float64
from ..._tensor.geometry import Geometry, contiguous
from ..._tensor.tensor import Tensor
from ...ops.spec import Op
from ..registry import registry
from . import memory, transfer

ALLOWED = os.environ.get("MINDTORCH_ENABLE_CPU_FALLBACK") == "1"
_WIDE = (float64, complex128)


def applies(args: Sequence[object], outs: Sequence[object]) -> bool:
    """Whether a call of float64 may go to the host."""
    if not ALLOWED:
        return False
    geoms = [getattr(a, "_geom", a) for a in (*args, *outs)]
    return any(isinstance(g, Geometry) and g.dtype in _WIDE for g in geoms)


def guarded(
    op: Op, args: Sequence[Any], outs: tuple[Geometry, ...], make: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """What `make` gives; after CANN refused it, the row's cpu kernel and copies."""
    refused = False
    run: Callable[..., Any] | None = None

    def call(*values: object) -> object:
        nonlocal refused, run
        if not refused:
            try:
                run = run or make()
            except RuntimeError:  # the row has no call for these
                refused = True
        if not refused and run is not None:
            try:
                return run(*values)
            except AclParameterError:
                refused = True
        return _on_host(op, outs, values)

    return call if op.kernels.cpu is not None else make()


def guarded_into(
    op: Op, outs: tuple[Geometry, ...], make: Callable[[], Callable[..., None]]
) -> Callable[..., None]:
    """As `guarded`, for calls that write to tensors."""
    refused = False
    run: Callable[..., None] | None = None

    def call(dests: tuple[Tensor, ...], *values: object) -> None:
        nonlocal refused, run
        if not refused:
            try:
                run = run or make()
                run(dests, *values)
                return
            except AclParameterError:
                refused = True
        results = _on_host(op, outs, values)
        results = results if isinstance(results, tuple) else (results,)
        for dest, value in zip(dests, results, strict=True):
            transfer.copy(dest, value)

    return call if op.kernels.cpu is not None else make()


def _on_host(op: Op, outs: tuple[Geometry, ...], values: Sequence[Any]) -> Any:
    warn_once(
        "CANN has operators that take no float64: mindtorch computes them on the host, which waits"
        " for the device and copies. Use float32 for speed.",
    )
    args = [_moved(v) for v in values]
    here = tuple(contiguous(g.shape, g.dtype, CPU) for g in outs)
    results = registry.backend(CPU).functional(op, args, here)(*args)
    if isinstance(results, tuple | list):
        return tuple(_back(r, g) for r, g in zip(results, outs, strict=True))
    return _back(results, outs[0])


def _moved(value: Any) -> Any:
    if isinstance(value, Tensor):
        return transfer.on_host(value)
    if isinstance(value, list | tuple):
        return type(value)(_moved(v) for v in value)
    return value


def _back(result: Tensor, geom: Geometry) -> Tensor:
    dest = memory.allocate(geom)
    transfer.copy(dest, result)
    return dest
