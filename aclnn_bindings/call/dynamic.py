"""Owns calls of operators that decide the shape of an output: both phases with kept descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..runtime.native import ffi, lib
from ..runtime.runtime import Runtime
from ..runtime.stream import Stream
from ..runtime.words import call
from .handles import Tensor
from .marshal import Argument
from .operator import BoundOp
from .specs import RawHandle, TensorSpec


def launch_dynamic(
    runtime: Runtime,
    op: BoundOp,
    arguments: Sequence[Any],
    addresses: Sequence[int],
    stream: Stream,
) -> list[tuple[int, ...]]:
    """Run `op`, wait for `stream`, and tell the shape of each tensor argument, in order.

    `arguments` are as for `BoundOp.plan`, `addresses` the storages of their tensors. AclError as
    for a launch.
    """
    buffers = iter(addresses)
    tensors: list[Tensor] = []
    raw: list[Argument] = []
    try:
        for value in arguments:
            if isinstance(value, TensorSpec):
                tensors.append(Tensor(runtime, value, next(buffers)))
                raw.append(RawHandle(tensors[-1].descriptor))
            else:
                raw.append(value)
        op.plan(*raw).launch(stream, ())
        stream.synchronize()
        return [_shape(runtime, tensor) for tensor in tensors]
    finally:
        for tensor in tensors:
            tensor.close()


def _shape(runtime: Runtime, tensor: Tensor) -> tuple[int, ...]:
    """aclGetViewShape's answer; the array that it makes is the caller's to free."""
    dims, count = ffi.new("int64_t **"), ffi.new("uint64_t *")
    words = [tensor.descriptor, *(int(ffi.cast("uintptr_t", p)) for p in (dims, count))]
    status = call(runtime.symbols.require("aclGetViewShape"), [(False, w) for w in words])
    if status:
        raise runtime.codes.error("aclGetViewShape", int(status))
    shape = tuple(int(dims[0][i]) for i in range(int(count[0])))
    lib.mt_delete_array(dims[0])
    return shape
