"""Owns which output of which process a launcher takes, and the signal that ends a launcher."""

from __future__ import annotations

import re
import signal
from enum import IntFlag

__all__ = ["SignalException", "Std", "to_map"]
_VALUE, _MAPPING = r"^[0123]$", r"^(\d:[0123],)*(\d:[0123])$"


class SignalException(Exception):
    """A launcher got a signal that ends it."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Streams of a process."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Streams of all processes ("3"), or by their numbers ("0:3,1:0"); ValueError else."""
        if re.match(_VALUE, vm):
            return Std(int(vm))
        if not re.match(_MAPPING, vm):
            raise ValueError(f"{vm} does not match: <{_VALUE}> or <{_MAPPING}>")
        pairs = (pair.split(":") for pair in vm.split(","))
        return {int(number): Std(int(value)) for number, value in pairs}


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Streams of each process: the same, or by their numbers and none for others."""
    numbers = range(local_world_size)
    if isinstance(val_or_map, Std):
        return dict.fromkeys(numbers, val_or_map)
    return {number: val_or_map.get(number, Std.NONE) for number in numbers}
