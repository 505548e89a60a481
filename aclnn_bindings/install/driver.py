"""Owns where driver and firmware are and whether their version files fit together and the toolkit.

Refuses to guess: releases are compared only where a file says what it goes with. The driver's
`version.info` states `compatible_version_fw=[first,last]` and `ascendhal_version`; older packages
of the toolkit state `required_driver_ascendhal_version` (files of the drivers 24.1.rc2.2,
25.0.rc1.1 and 25.5.2 and of acllib 1.78, as shown in public reports and install scripts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

from .file_queries import matching, text

_INSTALL_RECORD: Final = Path("/etc/ascend_install.info")
_USUAL: Final = Path("/usr/local/Ascend")
_RANGE: Final = re.compile(r"\[\s*([\d.]+)\s*,\s*([\d.]+)\s*\]")
_PACKAGES: Final = ("*/version.info", "share/info/*/version.info")


def driver_place() -> Path:
    """Above `driver/` and `firmware/`: what the driver's install record says, else the default."""
    recorded = value_of(_INSTALL_RECORD, "Driver_Install_Path_Param")
    return Path(recorded) if recorded else _USUAL


def value_of(path: Path, key: str) -> str | None:
    """What a version file says of `key`, or None."""
    match = re.search(rf"^{key}=(.*)$", text(path), re.MULTILINE)
    return match.group(1).strip().strip('"') or None if match else None


def misfits(root: Path, place: Path) -> Iterator[str]:
    """What of the driver and firmware at `place` does not fit the other, or the toolkit."""
    info = place / "driver/version.info"
    driver = value_of(info, "Version") or "of an unknown release"
    firmware = value_of(place / "firmware/version.info", "Version") or ""
    between = _RANGE.search(value_of(info, "compatible_version_fw") or "")
    if between and _number(firmware) and not _within(firmware, *between.groups()):
        first, last = between.groups()
        yield f"the driver {driver} goes with firmware {first} to {last}, this one is {firmware}"
    release = value_of(info, "ascendhal_version") or ""
    for path in (p for pattern in _PACKAGES for p in matching(root, pattern)):
        requirement = value_of(path, "required_driver_ascendhal_version") or ""
        if _number(release) and _number(requirement) and _less(release, requirement):
            yield (
                f"{path.parent.name} needs ascendhal {requirement},"
                f" the driver {driver} has {release}"
            )


def _within(version: str, first: str, last: str) -> bool:
    """Parts beyond those that the bounds have say nothing."""
    digits = _number(version)[: max(len(_number(first)), len(_number(last)))]
    return _number(first) <= digits <= _number(last)


def _less(one: str, other: str) -> bool:
    pairs = zip_longest(_number(one), _number(other), fillvalue=0)
    return next((a < b for a, b in pairs if a != b), False)


def _number(version: str) -> list[int]:
    """The leading numbers of `7.7.0.1.231` or `25.0.rc1`."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return [int(part) for part in match[0].split(".")] if match else []
