"""Owns collectives between NPUs: one HCCL communicator for a group, calls in stream order.

Signatures and codes: hccl/hccl.h, hccl_comm.h and hccl_types.h, as the shipped catalogs have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from aclnn_bindings.runtime import remedies, results
from aclnn_bindings.runtime.native import lib, text_of
from aclnn_bindings.runtime.words import call

from ..._tensor.storage import address
from ..._tensor.tensor import Tensor
from . import runtime

# Room for HcclRootInfo, of which HCCL says how much it needs by its header (HCCL_ROOT_INFO_BYTES).
_ROOT_INFO_BYTES: Final = 4108
_DTYPES: Final = {
    "int8": ("INT8", 0), "int16": ("INT16", 1), "int32": ("INT32", 2), "float16": ("FP16", 3),
    "float32": ("FP32", 4), "int64": ("INT64", 5), "uint8": ("UINT8", 7), "bool": ("UINT8", 7),
    "float64": ("FP64", 10), "bfloat16": ("BFP16", 11),
}  # fmt: skip
_OPS: Final = {"SUM": ("SUM", 0), "PRODUCT": ("PROD", 1), "MAX": ("MAX", 2), "MIN": ("MIN", 3)}
# HcclSendRecvItemDef (hccl_types.h): HCCL_SEND is 0, HCCL_RECV 1.
_ITEM: Final = np.dtype([("kind", "i4"), ("buf", "u8"), ("count", "u8"), ("dtype", "i4"),
                         ("peer", "u4")], align=True)  # fmt: skip


class HcclError(RuntimeError):
    """HCCL refused a call; the message names it and its code."""


class Communicator:
    """Rank `rank` of `size` on device `index`; `share` gives rank 0's bytes to every rank."""

    def __init__(self, rank: int, size: int, index: int, share: Callable[[bytes], bytes]) -> None:
        self.index = index
        opened = runtime.cann().runtime
        opened.set_device(index)
        room = max(_ROOT_INFO_BYTES, opened.constant("HCCL_ROOT_INFO_BYTES", _ROOT_INFO_BYTES))
        root = np.zeros(room, np.uint8)
        if rank == 0:
            _must("HcclGetRootInfo", root.ctypes.data)
        root = np.frombuffer(share(root.tobytes()), np.uint8).copy()
        comm = np.zeros(1, np.uint64)
        _must("HcclCommInitRootInfo", size, root.ctypes.data, rank, comm.ctypes.data)
        self._comm = int(comm[0])

    def close(self) -> None:
        """Give the communicator back."""
        if self._comm:
            _must("HcclCommDestroy", self._comm)
            self._comm = 0

    def _tail(self) -> tuple[int, int]:
        return self._comm, runtime.current_stream(self.index).handle

    def all_reduce(self, source: Tensor, to: Tensor, op: str) -> None:
        """`to` = the reduction of every rank's `source`, elementwise."""
        words = (address_of(source), address_of(to), _count(source), *_kinds(source, op))
        _must("HcclAllReduce", *words, *self._tail())

    def reduce_scatter(self, source: Tensor, to: Tensor, op: str) -> None:
        """`to` = this rank's part of the reduction of every rank's `source`."""
        words = (address_of(source), address_of(to), _count(to), *_kinds(source, op))
        _must("HcclReduceScatter", *words, *self._tail())

    def all_gather(self, source: Tensor, to: Tensor) -> None:
        """`to` = every rank's `source`, one after the other."""
        words = (address_of(source), address_of(to), _count(source), _kind(source))
        _must("HcclAllGather", *words, *self._tail())

    def all_to_all(
        self, source: Tensor, to: Tensor, there: Sequence[int], here: Sequence[int], even: bool
    ) -> None:
        """Part i of `source`, of `there[i]` elements, goes to rank i; `here` are what comes; `even`
        says that all parts of all ranks are of one size: every rank must say the same."""
        kind, parts_of_one = _kind(source), 1 + source.is_complex()
        there, here = ([n * parts_of_one for n in counts] for counts in (there, here))
        if even:
            words = (address_of(source), there[0], kind, address_of(to), here[0], kind)
            _must("HcclAlltoAll", *words, *self._tail())
            return
        tables = [
            np.array(t, np.uint64) for n in (there, here) for t in (n, (0, *accumulate(n))[:-1])
        ]
        sent, at, received, to_at = (t.ctypes.data for t in tables)
        parts = (address_of(source), sent, at, kind, address_of(to), received, to_at, kind)
        _must("HcclAlltoAllV", *parts, *self._tail())

    def broadcast(self, tensor: Tensor, root: int) -> None:
        """Every rank's `tensor` becomes that of `root`."""
        words = (address_of(tensor), _count(tensor), _kind(tensor), root)
        _must("HcclBroadcast", *words, *self._tail())

    def send(self, tensor: Tensor, peer: int) -> None:
        """To one rank, which receives it."""
        words = (address_of(tensor), _count(tensor), _kind(tensor), peer)
        _must("HcclSend", *words, *self._tail())

    def receive(self, tensor: Tensor, peer: int) -> None:
        """From one rank, which sends it."""
        words = (address_of(tensor), _count(tensor), _kind(tensor), peer)
        _must("HcclRecv", *words, *self._tail())

    def exchange(self, items: Sequence[tuple[bool, Tensor, int]]) -> None:
        """Sends (True) to peers and receipts from them, all at once: none waits for another."""
        rows = [(not sends, address_of(tensor), _count(tensor), _kind(tensor), peer)
                for sends, tensor, peer in items]  # fmt: skip
        table = np.array(rows, _ITEM)
        _must("HcclBatchSendRecv", table.ctypes.data, len(rows), *self._tail())


def address_of(tensor: Tensor) -> int:
    return address(tensor._storage) + tensor._geom.offset * tensor._geom.dtype.itemsize


def _count(tensor: Tensor) -> int:
    """Numbers that HCCL moves: two for a complex one."""
    return tensor.numel() * (1 + tensor.is_complex())


def _kind(tensor: Tensor) -> int:
    name = repr(tensor.dtype).rpartition(".")[2]
    name = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if name not in _DTYPES:
        raise TypeError(f"HCCL has no {tensor.dtype}; it has {', '.join(_DTYPES)}")
    word, default = _DTYPES[name]
    return runtime.cann().runtime.constant(f"HCCL_DATA_TYPE_{word}", default)


def _kinds(tensor: Tensor, op: str) -> tuple[int, int]:
    if op not in _OPS:
        raise ValueError(f"HCCL has no {op}; it has {', '.join(_OPS)}")
    word, default = _OPS[op]
    return _kind(tensor), runtime.cann().runtime.constant(f"HCCL_REDUCE_{word}", default)


def _must(name: str, *words: int) -> None:
    code = call(runtime.cann().symbols.require(name), [(False, word) for word in words])
    if result := code & 0xFFFFFFFF:
        raise HcclError(_failure(name, result))


def _failure(call_name: str, result: int) -> str:
    """The failed call, the result's symbol, CANN's own text and what to do about it."""
    message = text_of(lib.mt_recent_message()).strip()
    symbol, advice = results.collectives().get(result, ("unknown result", None))
    hits = (rule for _, rule in remedies.of_message(message) if rule.rank < 2)
    known = min(hits, key=lambda rule: rule.rank, default=None)
    best = known.advice if known is not None else advice
    lines = [f"{call_name} failed with {result} ({symbol})"]
    lines += [f"CANN says: {message}"] if message else []
    lines += [f"remedy: {best}"] if best is not None else []
    return "\n  ".join(lines)
