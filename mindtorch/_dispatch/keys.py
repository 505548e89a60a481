"""Owns dispatch keys and key sets, and the guards that include or exclude them on this thread."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.scope import StepScope


class DispatchKey(IntFlag):
    """Layers and backends, highest value first in line."""

    CPU = 1
    Meta = 2
    NPU = 4
    Autograd = 8
    Functionalize = 16


BACKENDS = {"cpu": DispatchKey.CPU, "meta": DispatchKey.Meta, "npu": DispatchKey.NPU}


def keyset(*tensors: Any) -> DispatchKey:
    """The union of the tensors' keys, with this thread's included and excluded ones."""
    keys = DispatchKey(0)
    for tensor in tensors:
        keys |= BACKENDS[tensor.device.type] | DispatchKey.Autograd
    if LOCAL.functionalize:
        keys |= DispatchKey.Functionalize
    return DispatchKey((keys | LOCAL.include) & ~LOCAL.exclude)


class _Guard(StepScope):
    field: str

    def __init__(self, keys: DispatchKey):
        self.keys = int(keys)

    def steps(self) -> Iterator[None]:
        include, exclude = LOCAL.include, LOCAL.exclude
        try:
            MODES.active += 1
            setattr(LOCAL, self.field, getattr(LOCAL, self.field) | self.keys)
            yield
        finally:
            LOCAL.include, LOCAL.exclude = include, exclude
            MODES.active -= 1


class IncludeDispatchKeyGuard(_Guard):
    """Adds keys to every call on this thread."""

    field = "include"


class ExcludeDispatchKeyGuard(_Guard):
    """Takes keys out of every call on this thread: layers with them are passed by."""

    field = "exclude"
