"""What `--fault` means, as lines that the interceptor reads."""

from __future__ import annotations

import re
from typing import Final

import click

_SPEC: Final = re.compile(
    r"(?P<name>[\w*?\[\]]+)(@(?P<nth>[1-9]\d{0,17}))?"
    r"(=(?P<code>-?[1-9]\d{0,8})|:delay=(?P<time>[1-9]\d{0,9})(?P<unit>us|ms|s))?",
    re.ASCII,
)
_MEMORY: Final = re.compile(r"memory=([1-9]\d{0,17})([KMGT]?)", re.ASCII | re.IGNORECASE)
_MICROSECONDS: Final = {"us": 1, "ms": 1000, "s": 1_000_000}
_MOST_BYTES: Final = 1 << 60
_MOST_MICROSECONDS: Final = 3_600_000_000
# What such a call answers when it cannot do its work: ACL_ERROR_RT_MEMORY_ALLOCATION,
# ACLNN_ERR_INNER, ACL_ERROR_INTERNAL_ERROR.
_OUT_OF_MEMORY, _INNER, _INTERNAL = 207001, 561000, 500000


def rule(spec: str) -> str:
    """The interceptor's line for one SPEC; click.UsageError says what a SPEC may be."""
    if memory := _MEMORY.fullmatch(spec):
        unit = " KMGT".index(memory[2].upper() or " ")
        return f"memory {_bounded(spec, int(memory[1]) << 10 * unit, _MOST_BYTES)}"
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise click.UsageError(
            f"--fault {spec!r}: expected NAME[@N][=CODE], NAME[@N]:delay=20ms, memory=512M or "
            "sweep[:NAME][@N]"
        )
    nth = match["nth"] or "0"
    if match["time"]:
        time = int(match["time"]) * _MICROSECONDS[match["unit"]]
        return f"{match['name']} {nth} delay {_bounded(spec, time, _MOST_MICROSECONDS)}"
    code = match["code"] or str(default_code(match["name"]))
    return f"{match['name']} {nth} fail {code}"


def _bounded(spec: str, value: int, most: int) -> int:
    if value > most:
        raise click.UsageError(f"--fault {spec!r}: more than an hour or 2^60 bytes")
    return value


def default_code(name: str) -> int:
    """The status with which a call of `name` usually fails on hardware."""
    if name.startswith("aclrtMalloc"):
        return _OUT_OF_MEMORY
    return _INNER if name.startswith("aclnn") else _INTERNAL
