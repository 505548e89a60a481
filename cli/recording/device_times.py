"""What launches took on the device, by call number: two numbers for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


class DeviceTimes:
    """Times in ns; `add` while reading, then `of`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._sorted: tuple[Column, Column] | None = None

    def add(self, data: bytes) -> None:
        """A row's two words: call number, ns."""
        self._parts.append(data)
        self._sorted = None
        if len(self._parts) > 65536:  # one piece instead of many small ones
            self._parts = [b"".join(self._parts)]

    def of(self, numbers: Column) -> Column:
        """For each call number its time, -1 where there is none."""
        if self._sorted is None:
            pairs = np.frombuffer(b"".join(self._parts), "<u8").reshape(-1, 2)
            order = np.argsort(pairs[:, 0], kind="stable")
            self._sorted = pairs[order, 0], pairs[order, 1].astype(np.int64)
        known, times = self._sorted
        if not len(known):
            return np.full(len(numbers), -1, np.int64)
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[at] == numbers, times[at], -1)
