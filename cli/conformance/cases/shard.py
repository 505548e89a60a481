"""Owns shards: which part of a selection one of several jobs runs, told by a case's name alone.

Two hosts need not select the same cases (another CANN claims other dtypes); a case's shard does not
depend on what else is selected, so that the shards of a fleet always cover what any host selects.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final


class ShardError(ValueError):
    """A text that names no shard; the message shows what may be said."""


@dataclass(frozen=True, slots=True)
class CaseShard:
    """Part `number` (from 1) of `count`."""

    number: int = 1
    count: int = 1

    def has(self, case: str) -> bool:
        """Whether a case belongs here."""
        return self.count == 1 or zlib.crc32(case.encode()) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


_INDEX: Final = "index:"  # before a number that counts from 0, as Kubernetes' Jobs do


def parse(text: str) -> CaseShard:
    """The shard of `3/8`, or of `index:2/8`; ShardError for anything else."""
    number, sign, count = text.removeprefix(_INDEX).partition("/")
    first = 0 if text.startswith(_INDEX) else 1
    if sign and number.isdecimal() and count.isdecimal():
        shard = CaseShard(int(number) - first + 1, int(count))
        if 1 <= shard.number <= shard.count:
            return shard
    raise ShardError(
        f"{text!r}: expected I/N with 1 ≤ I ≤ N, such as 3/8; for an index from 0, as "
        "JOB_COMPLETION_INDEX of Kubernetes, index:I/N, such as index:2/8"
    )
