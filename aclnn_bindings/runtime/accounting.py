"""Owns the readable account of device memory: gauges, holders, the text of an OOM error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .native import ffi, lib, throw
from .status import StatusCodes

_GAUGES: Final = ("allocation", "allocated_bytes", "requested_bytes", "segment", "reserved_bytes")
_POOLS: Final = ("all", "small_pool", "large_pool")
_FIELDS: Final = ("current", "peak", "allocated", "freed")
_PURPOSES: Final = ("tensors", "workspaces", "buffers")
_OF_TRESPASS: Final = ("requested", "before", "behind", "first")
_ROOM: Final = 256


@dataclass(frozen=True, slots=True)
class Holding:
    """What the pool of one stream holds, in bytes."""

    stream: int
    tensors: int
    workspaces: int
    buffers: int
    cached: int


@dataclass(frozen=True, slots=True)
class Trespass:
    """A block of `nbytes` whose guards were written over: bytes changed before it and behind it.

    The first byte that changed behind it is `first` bytes from its end. `purpose` is tensor,
    workspace or buffer.
    """

    purpose: str
    nbytes: int
    before: int
    behind: int
    first: int

    def __str__(self) -> str:
        places = [f"{self.before} before its start" if self.before else ""]
        places += [f"{self.behind} from {self.first} after its end" if self.behind else ""]
        return (f"a {self.purpose} of {self.nbytes} bytes was overrun; bytes that changed: "
                f"{', '.join(filter(None, places))}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes and counts of one device's caching allocator."""

    stats: Mapping[str, int]
    holdings: tuple[Holding, ...]

    @property
    def allocated(self) -> int:
        """Bytes in use, padding included."""
        return self.stats["allocated_bytes.all.current"]

    @property
    def reserved(self) -> int:
        """Bytes taken from the device: in use, waiting for other streams, or cached."""
        return self.stats["reserved_bytes.all.current"]

    def text(self) -> str:
        """Who holds how much, in one line."""
        in_use = ", ".join(f"{name} {size(self.stats[f'{name}_bytes'])}" for name in _PURPOSES)
        streams = "; ".join(
            f"stream {row.stream:#x}: {size(row.tensors + row.workspaces + row.buffers)} in use, "
            f"{size(row.cached)} cached"
            for row in self.holdings
        )
        pending = size(self.stats["pending_bytes"])
        limit = self.stats["limit_bytes"]
        return (
            f"this process holds {size(self.reserved)}: {in_use}, "
            f"{size(self.stats['free_bytes'])} cached (largest block "
            f"{size(self.stats['largest_free_bytes'])}), {pending} waiting for other streams"
            + (f", limit {size(limit)}" if limit else "")
            + f" ({streams})"
        )


def size(nbytes: int) -> str:
    """Bytes in the largest binary unit that keeps the number above 1."""
    value, unit = float(nbytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{nbytes} B" if unit == "B" else f"{value:.2f} {unit}"


def _stats(memory: Any) -> dict[str, int]:
    """Keys as torch.cuda.memory_stats spells them, where the meaning is the same."""
    stats = {
        f"{gauge}.{pool}.{field}": int(getattr(getattr(memory, gauge)[at], field))
        for gauge in _GAUGES
        for at, pool in enumerate(_POOLS)
        for field in _FIELDS
    }
    for at, name in enumerate(_PURPOSES):
        stats[f"{name}_bytes"] = int(memory.purpose_bytes[at])
    stats |= {
        "num_alloc_retries": int(memory.retries),
        "num_ooms": int(memory.ooms),
        "pending_blocks": int(memory.pending_blocks),
        "pending_bytes": int(memory.pending_bytes),
        "free_blocks": int(memory.free_blocks),
        "free_bytes": int(memory.free_bytes),
        "largest_free_bytes": int(memory.largest_free),
        "limit_bytes": int(memory.limit),
    }
    return stats


def report(device: int, codes: StatusCodes) -> MemoryReport:
    """Read the allocator of the device at `device`."""
    memory = ffi.new("mt_memory *")
    if lib.mt_memory_read(device, memory):
        throw(codes)
    rows = ffi.new("mt_holding[]", _ROOM)
    count = int(lib.mt_memory_holdings(device, rows, _ROOM))
    names = ("stream", "tensors", "workspaces", "buffers", "cached")
    holdings = tuple(
        Holding(*(int(getattr(rows[k], name)) for name in names)) for k in range(count)
    )
    return MemoryReport(_stats(memory), holdings)


def trespasses(device: int) -> list[Trespass]:
    """What was written over the guards of blocks since the last call, of the first so many."""
    rows = ffi.new("mt_trespass[]", _ROOM)
    count = min(int(lib.mt_memory_trespasses(device, rows, _ROOM)), _ROOM)
    return [
        Trespass(_PURPOSES[row.purpose][:-1], *(int(getattr(row, n)) for n in _OF_TRESPASS))
        for row in (rows[k] for k in range(count))
    ]


def account(device: int, codes: StatusCodes, nbytes: int) -> str:
    """What goes into an out-of-memory error: the request, the holders, the device's own view."""
    free, total = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    text = f"asked for {size(nbytes)}; {report(device, codes).text()}"
    if lib.mt_device_memory(device, free, total):
        return text
    return f"{text}; the device has {size(int(free[0]))} free of {size(int(total[0]))}"
