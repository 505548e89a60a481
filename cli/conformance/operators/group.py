"""Owns the communicator of collectives under test: one rank, on the device at hand."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from aclnn_bindings.runtime.words import call

# A call's value for the name of a communicator: of one rank, made where the case runs.
OWN_GROUP: Final = "<a communicator of one rank>"
_NAME_BYTES = 128  # COMM_NAME_MAX_LENGTH, hccl_types.h
_names: dict[tuple[int, int], str] = {}


def own_group(cann: Any) -> str:
    """The name of a communicator that has the current device only; made once for each.

    HCCL's failures raise RuntimeError with its code.
    """
    device = cann.runtime.current_device
    key = (id(cann), device)
    if key not in _names:
        comm, rank = np.zeros(1, np.uint64), np.array([device], np.int32)
        name = np.zeros(_NAME_BYTES, np.uint8)
        cann.runtime.set_device(device)
        _must(cann, "HcclCommInitAll", 1, rank.ctypes.data, comm.ctypes.data)
        _must(cann, "HcclGetCommName", int(comm[0]), name.ctypes.data)
        _names[key] = name.tobytes().split(b"\0")[0].decode()
    return _names[key]


def _must(cann: Any, name: str, *words: int) -> None:
    code = call(cann.symbols.require(name), [(False, word) for word in words])
    if code & 0xFFFFFFFF:
        raise RuntimeError(f"{name} answered {code}: collectives need a communicator of one rank")
