"""Owns shards: which part of a selection one of several jobs runs, told by a case's name alone.

Two hosts need not select the same cases (another CANN claims other dtypes); a case's shard does not
depend on what else is selected, so that the shards of a fleet always cover what any host selects.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass


class ShardError(ValueError):
    """A text that names no shard; the message shows what may be said."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of `count`."""

    number: int = 1
    count: int = 1

    def has(self, case: str) -> bool:
        """Whether a case belongs here."""
        return self.count == 1 or zlib.crc32(case.encode()) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse(text: str) -> Shard:
    """The shard of `3/8`; ShardError for anything else."""
    number, sign, count = text.partition("/")
    if not (sign and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ShardError(f"{text!r}: expected I/N with 1 ≤ I ≤ N, such as 3/8")
    return Shard(int(number), int(count))
