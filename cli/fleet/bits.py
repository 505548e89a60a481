"""Owns a matrix of bits that grows on both axes: rows are devices, columns are cases."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class BitMatrix:
    """A bit for each row and column; those that nobody set are 0."""

    def __init__(self) -> None:
        self._bytes = np.zeros((1, 64), np.uint8)

    def _fit(self, row: int, column: int) -> None:
        rows, columns = self._bytes.shape
        if row < rows and column >> 3 < columns:
            return
        while rows <= row:
            rows *= 2
        while columns <= column >> 3:
            columns *= 2
        grown = np.zeros((rows, columns), np.uint8)
        grown[: len(self._bytes), : self._bytes.shape[1]] = self._bytes
        self._bytes = grown

    def set(self, row: int, columns: Numbers) -> None:
        if len(columns):
            self._fit(row, int(columns.max()))
            bits = (1 << (columns & 7)).astype(np.uint8)
            np.bitwise_or.at(self._bytes[row], columns >> 3, bits)

    def test(self, row: int, columns: Numbers) -> Mask:
        """Which of the columns are set in a row."""
        if not len(columns):
            return np.zeros(0, np.bool_)
        self._fit(row, int(columns.max()))
        set_: Mask = (self._bytes[row][columns >> 3] >> (columns & 7) & 1).astype(np.bool_)
        return set_

    def add(self, row: int, column: int) -> None:
        self._fit(row, column)
        self._bytes[row, column >> 3] |= 1 << (column & 7)

    def has(self, row: int, column: int) -> bool:
        rows, columns = self._bytes.shape
        inside = row < rows and column >> 3 < columns
        return inside and bool(self._bytes[row, column >> 3] >> (column & 7) & 1)

    def rows_of(self, column: int) -> int:
        """The rows in which a column is set, as bits of a number."""
        if column >> 3 >= self._bytes.shape[1]:
            return 0
        set_ = self._bytes[:, column >> 3] >> (column & 7) & 1
        return int.from_bytes(np.packbits(set_, bitorder="little").tobytes(), "little")

    def rows(self) -> int:
        """The rows in which any column is set, as bits of a number."""
        packed = np.packbits(self._bytes.any(axis=1), bitorder="little")
        return int.from_bytes(packed.tobytes(), "little")

    def absent_in(self, row: int, other: BitMatrix) -> list[int]:
        """Columns that are set in a row here and not there."""
        if row >= len(self._bytes):
            return []
        other._fit(row, 8 * self._bytes.shape[1] - 1)
        bits = self._bytes[row] & ~other._bytes[row, : self._bytes.shape[1]]
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()

    def __len__(self) -> int:
        return len(self._bytes)
