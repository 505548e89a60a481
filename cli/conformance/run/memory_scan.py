"""Owns the scan of a device's free memory: patterns written over it, read back, within a time.

Every word is written twice, its own index and the complement of that, so that each of its bits is
0 once and 1 once; neighbouring blocks hold the two in turn, so that a write which lands in
another block shows. The device compares blocks with two patterns that the host has read back; one
that differs is read back too, and written again, to tell a bit that is stuck from one that flips.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import mindtorch as torch
from aclnn_bindings.runtime.status import AclOutOfMemoryError
from mindtorch.testing.placement import to_host

from ..cases.case import SOAK, Case
from ..record.result import Result
from .bits import digest, first, words
from .tensors import synchronize

MEMORY: Final = "memory"
# What is scanned at most, MiB: all of a device, or what a host has for several simulated ones.
MOST: Final = {"cann": 1 << 17, "simulator": 256}
_OF_FREE: Final = 0.9
_BLOCKS: Final = 64  # a block is so small a part of it, within these bounds
_LEAST_BLOCK, _MOST_BLOCK = 4 << 20, 512 << 20
# The allocator takes whole pieces of 2 MiB: less these bytes, for what guards a block, one is full.
_PIECE, _GUARDS = 2 << 20, 64 << 10
_WRITE: Final = 0.4  # of the time, for the first writing; what was written may take as long again
_AGAIN: Final = 4  # times that a block which differs is written and read again


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan saw: bytes, and of the first block that differs how often it did, in how many
    words, and its contents when it did first, with those that were expected."""

    bytes: int
    words: int = 0
    tries: int = 2
    wrong: int = 0
    got: Any = None
    expected: Any = None


def memory_case(kind: str) -> str:
    """The case of a scan on an install of this kind."""
    return Case(MEMORY, SOAK, detail=f"int32/{MOST.get(kind, MOST['simulator'])}").id


def scan(case: Case, device: str, until: float) -> Scan:
    """Scan what is free, up to the case's MiB, until about a time of `time.monotonic`."""
    most = int(case.detail.partition("/")[2]) << 20
    if device.startswith("npu"):
        most = min(most, int(_OF_FREE * torch.npu.mem_get_info(device)[0]))
    size = min(max(most // _BLOCKS, _LEAST_BLOCK), _MOST_BLOCK) // _PIECE * _PIECE - _GUARDS
    numbers = np.arange(size // 4, dtype=np.int32)
    right = numbers, ~numbers
    patterns = [torch.from_numpy(pattern).to(device) for pattern in right]
    for pattern, expected in zip(patterns, right, strict=True):  # what blocks are compared with
        if not np.array_equal(to_host(pattern), expected):
            return _again(pattern, expected, size)
    started, blocks = time.monotonic(), list[Any]()
    with contextlib.suppress(AclOutOfMemoryError):  # what is free need not be in one piece
        while (len(blocks) + 1) * size <= most:
            blocks.append(torch.empty_like(patterns[0]).copy_(patterns[len(blocks) % 2]))
            synchronize(device)
            if time.monotonic() > started + _WRITE * (until - started):
                break
    count, bad = _compare(blocks, patterns, 2 * until - started)
    scanned = count * size
    return Scan(scanned) if bad is None else _again(blocks[count], right[bad], scanned)


def _compare(
    blocks: Sequence[Any], patterns: Sequence[Any], until: float
) -> tuple[int, int | None]:  # fmt: skip
    """Compare what was written, then each block with the other pattern: how many blocks held both
    in time; or the number of the first one that differs, and of its pattern."""
    for turn in range(2):
        for number, block in enumerate(blocks):
            expected = (number + turn) % 2
            if time.monotonic() > until:
                return number * turn, None
            if turn:
                block.copy_(patterns[expected])
            if not torch.equal(block, patterns[expected]):
                return number, expected
    return len(blocks), None


def _again(block: Any, right: Any, scanned: int) -> Scan:
    """A block that differs: as it is, then written and read again."""
    reads = [to_host(block)]
    for _ in range(_AGAIN):
        reads.append(to_host(block.copy_(torch.from_numpy(right))))
    wrong = [read for read in reads if not np.array_equal(read, right)]
    if not wrong:
        return Scan(scanned, tries=1 + _AGAIN)
    count = int((wrong[0] != right).sum())
    return Scan(scanned, count, 1 + _AGAIN, len(wrong), wrong[0], right)


def judge(
    scanned: Scan, case: Case, seed: int, note: Callable[[str, Mapping[str, Any]], None]
) -> Result:
    """PASS where all that was read is what was written."""
    bad = scanned.wrong > 0
    name = digest([np.array(scanned.wrong == scanned.tries if bad else 2)])
    differences = [*_differences(scanned)]
    note(SOAK, {
        "case": case.id, "seed": seed, "launches": scanned.tries, "digest": name,
        "wrong": scanned.wrong % scanned.tries, "bytes": scanned.bytes,
        "differences": [d.as_json() for d in differences],
    })  # fmt: skip
    base = Result(case.id, case.op, SOAK, "PASS", dtype="int32", seed=seed, digest=name, tier="T0",
                  required="T0")  # fmt: skip
    if not bad:
        return base
    reason = (f"{scanned.words:,} words of a block do not keep what is written, in {scanned.wrong} "
              f"of {scanned.tries} tries; {differences[0].text}")  # fmt: skip
    return base.with_(verdict="FAIL", reason=reason, tier="")


def _differences(scanned: Scan) -> Iterator[Any]:
    if scanned.wrong:
        difference = first([words(scanned.got)], [words(scanned.expected)])
        if difference is not None:
            yield difference
