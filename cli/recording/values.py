"""What a recording says of calls and of what they were given."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from aclnn_bindings.interface.dtypes import DTYPES


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """A tensor's metadata as its create call gave it; sizes and offset count elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: tuple[int, ...]
    dtype: str
    format: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class RecordedScalar:
    """An aclScalar: its dtype's ACL name, and its bytes."""

    dtype: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Array:
    """An aclIntArray, aclBoolArray or aclFloatArray."""

    kind: str
    values: tuple[int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A handle that the program did not make by its own calls."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call; times in ns, `start` on the clock of the recording's header.

    `arguments` are by parameter name; of a phase 2 they are those of the phase 1 that prepared it.
    `device_ns` is what a launch took on the device, None where that was not recorded.
    `finished` is False for a call that its process died in.
    """

    number: int
    name: str
    phase: int
    process: int
    thread: int
    start: int
    duration: int
    status: int
    arguments: dict[str, Any] = field(default_factory=dict)
    stack: str = ""
    device_ns: int | None = None
    injected: bool = False
    finished: bool = True


@dataclass(frozen=True, slots=True)
class Captured:
    """A launch with what its tensors held: by parameter, one entry per tensor (lists have many).

    `before` has what was read, `after` what was written; None where it was not kept.
    """

    call: Call
    before: dict[str, list[Any]]
    after: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class LaunchGroup:
    """Equal launches together: one operator on one set of metadata and attributes.

    `device_ns` is the device's time of the `timed` launches that have one.
    """

    name: str
    arguments: dict[str, Any]
    count: int
    host_ns: int
    failures: int
    first: int
    device_ns: int = 0
    timed: int = 0


class NotAskableError(LookupError):
    """A launch that no formula here can be asked about; the message says what is missing."""


def number(scalar: RecordedScalar) -> complex:
    """A Python number of an aclScalar's bytes."""
    code = DTYPES[scalar.dtype].code if scalar.dtype in DTYPES else ""
    if scalar.dtype == "BFLOAT16":
        return struct.unpack("<f", b"\0\0" + scalar.data)[0]
    if not code or not scalar.data:
        raise NotAskableError(f"a scalar of {scalar.dtype} has no number in Python")
    parts = struct.unpack(f"<{code}", scalar.data)
    return complex(*parts) if len(parts) == 2 else parts[0]
