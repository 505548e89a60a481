"""Owns the floating-point formats as numbers; imports no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: `digits` significant bits, the exponents of its normal numbers."""

    name: str
    digits: int
    lowest: int
    highest: int

    @property
    def unit(self) -> float:
        """Half the distance from 1 to the next number: the error of one rounding."""
        return 2.0**-self.digits

    @property
    def largest(self) -> float:
        return (2.0 - 2.0 ** (1 - self.digits)) * 2.0**self.highest


# IEEE 754-2019 table 3.5; bfloat16 is binary32 with 8 digits.
FORMATS: Final = {
    f.name: f
    for f in (
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
        Format("float32", 24, -126, 127),
        Format("float64", 53, -1022, 1023),
    )
}
