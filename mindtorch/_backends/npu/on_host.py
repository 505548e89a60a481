"""Owns what the host computes: what no operator of CANN does, or none in float64 or complex128.

Off: such a call is refused, in CANN's own words or in those of the row. With
MINDTORCH_ENABLE_CPU_FALLBACK=1 it runs on the host, as PYTORCH_ENABLE_MPS_FALLBACK=1 has it on
that device, and a warning says so.
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


def applies(op: Op, args: Sequence[object], outs: Sequence[object]) -> bool:
    """Whether a call of float64, or of what no operator computes, may go to the host."""
    if not ALLOWED:
        return False
    if "npu" in op.kernels.absent:
        return True
    geoms = [getattr(a, "_geom", a) for a in (*args, *outs)]
    return any(isinstance(g, Geometry) and g.dtype in _WIDE for g in geoms)


def guarded(
    op: Op, outs: tuple[Geometry, ...], make: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """What `make` gives; after CANN refused it, or the row has no call, the cpu kernel."""
    return _retried(op, make, lambda *values: _on_host(op, outs, values), RuntimeError)


def guarded_into(
    op: Op, outs: tuple[Geometry, ...], make: Callable[[], Callable[..., None]]
) -> Callable[..., None]:
    """As `guarded`, for calls that write to tensors."""

    def instead(dests: tuple[Tensor, ...], *values: Any) -> None:
        results = _on_host(op, outs, values)
        results = results if isinstance(results, tuple) else (results,)
        for dest, value in zip(dests, results, strict=True):
            transfer.copy(dest, value)

    return _retried(op, make, instead, AclParameterError)


def _retried(
    op: Op, make: Callable[[], Callable[..., Any]], instead: Callable[..., Any],
    refusal: type[Exception],
) -> Callable[..., Any]:  # fmt: skip
    """What `make` gives; `instead` from the call on in which making it raised a `refusal`,
    or CANN refused it. Where the row has no cpu kernel, the former alone."""
    if op.kernels.cpu is None:
        return make()
    run: Callable[..., Any] | None = None
    refused = False

    def call(*values: Any) -> Any:
        nonlocal run, refused
        if run is None and not refused:
            try:
                run = make()
            except refusal:
                refused = True
        if run is not None and not refused:
            try:
                return run(*values)
            except AclParameterError:
                refused = True
        return instead(*values)

    return call


def _on_host(op: Op, outs: tuple[Geometry, ...], values: Sequence[Any]) -> Any:
    why = op.kernels.absent.get("npu", "CANN has operators that take no float64")
    remedy = "" if "npu" in op.kernels.absent else " Use float32 for speed."
    warn_once(
        f"{why}: mindtorch computes them on the host, which waits for the device and copies."
        + remedy
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
