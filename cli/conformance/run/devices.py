"""Owns what `--device` may say: one device, a list, a range, or all; opens no device itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_LIST: Final = re.compile(r"npu:(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)")


class DeviceListError(ValueError):
    """A text that names no devices; the message shows what may be said."""


def devices(text: str, count: Callable[[], int]) -> tuple[str, ...]:
    """Devices of `npu:0`, `npu:0-7`, `npu:0,2-3` or `all`; `count` is asked for `all` only.

    DeviceListError for a range that runs backwards, a device twice, or no device at all.
    """
    if text in ("all", "npu:all"):
        number = count()
        if not number:
            raise DeviceListError("--device all: the install sees no device")
        return tuple(f"npu:{i}" for i in range(number))
    match = _LIST.fullmatch(text)
    if match is None:
        if text.startswith("npu:"):
            raise DeviceListError(
                f"--device {text}: expected npu:0, a range npu:0-7, a list npu:0,2-3, or all"
            )
        return (text,)
    numbers: list[int] = []
    for part in match[1].split(","):
        first, _, last = part.partition("-")
        span = range(int(first), int(last or first) + 1)
        if not span:
            raise DeviceListError(f"--device {text}: {part} runs backwards")
        numbers += span
    if len(set(numbers)) < len(numbers):
        raise DeviceListError(f"--device {text}: names a device twice")
    return tuple(f"npu:{i}" for i in numbers)
