"""Runs one op on several simulated devices of this process, which form a communicator."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy_harness import Array, Ops, Out


class Ranks:
    """`count` ranks, one on each device from `first` on; `names[r]` is the group's name as rank r
    tells it."""

    def __init__(self, nops: Ops, count: int, first: int = 0) -> None:
        self.ops, self.cann, self.count = nops, nops.cann, count
        self.cann.runtime.start()
        if self.cann.runtime.device_count() < first + count:
            raise RuntimeError(f"ACLSIM_DEVICES should be {first + count} or more")
        for device in range(first, first + count):
            self.cann.runtime.set_device(device)
        self.hccl = ctypes.CDLL(str(Path(self.cann.install.root) / "lib64" / "libhccl.so"))
        self.comms = (ctypes.c_void_p * count)()
        devices = (ctypes.c_int32 * count)(*range(first, first + count))
        self._must(self.hccl.HcclCommInitAll(count, devices, self.comms))
        self.names = []
        for comm in self.comms:
            name = ctypes.create_string_buffer(128)
            self._must(self.hccl.HcclGetCommName(ctypes.c_void_p(comm), name))
            self.names.append(name.value.decode())

    def _must(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(f"HCCL answered {code}")

    def close(self) -> None:
        for comm in self.comms:
            self._must(self.hccl.HcclCommDestroy(ctypes.c_void_p(comm)))
        self.cann.runtime.set_device(0)

    def __call__(self, op: str, args: Sequence[Sequence[Any]]) -> list[list[Array]]:
        """Launch on every rank, args[r] in the header's order; the outputs of each."""
        outs: list[list[Any]] = []
        kept = []
        for rank in range(self.count):
            self.cann.runtime.set_device(rank)
            held: list[Any] = []
            outs.append(held)
            given = [self._put(arg, held) for arg in args[rank]]
            kept.append(given)
            self.cann.ops[op](*given)
        for rank in range(self.count):
            self.cann.runtime.set_device(rank)
            self.cann.runtime.current_stream().synchronize()
        return [[made.numpy() for made in held] for held in outs]

    def _put(self, arg: Any, held: list[Any]) -> Any:
        if isinstance(arg, Out):
            first = np.zeros(tuple(arg.shape), np.dtype(arg.dtype))
            held.append(self.ops.put(first if arg.given is None else arg.given))
            return held[-1]
        return self.ops.put(arg) if isinstance(arg, np.ndarray) else arg
