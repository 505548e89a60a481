"""Says what this machine is to CANN: what it can run, which device nodes it has; opens none."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from .describe import arch
from .elf import Elf
from .file_queries import exists, listed

# Nodes that every process opens beside its device's own (container section of the CANN documents).
MANAGERS: Final = tuple(Path("/dev", name) for name in ("davinci_manager", "devmm_svm", "hisi_hdc"))
_GLIBC: Final = re.compile(r"GLIBC_(\d+)\.(\d+)")


class Misfit(NamedTuple):
    """Why a library does not run here, and the fix."""

    reason: str
    fix: str


def misfit(elf: Elf) -> Misfit | None:
    """What keeps this machine from running `elf`, or None."""
    here = arch()
    if elf.machine and elf.machine != here:
        fix = f"install the {here} package, or use an image for {here}"
        return Misfit(f"is built for {elf.machine}, this machine is {here}", fix)
    newest = max((_number(name) for name in elf.versions), default=(0, 0))
    have = glibc()
    if have and newest > have:
        old, new = (".".join(map(str, pair)) for pair in (have, newest))
        fix = f"use an image with glibc {new} or later, or the CANN package built for this system"
        return Misfit(f"needs glibc {new}, this system has {old}", fix)
    return None


@cache
def glibc() -> tuple[int, int] | None:
    """This process's C library, or None where it is not glibc."""
    name, version = platform.libc_ver()
    return _number(f"GLIBC_{version}") if name == "glibc" else None


def device_nodes() -> list[Path]:
    """The NPUs that the driver shows this system, such as `/dev/davinci0`."""
    return listed(Path("/dev"), "davinci[0-9]*")


def in_container() -> bool:
    """Whether this system is a container, as Docker, Podman and Kubernetes mark theirs."""
    marks = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
    return any(exists(Path(mark)) for mark in marks)


def _number(name: str) -> tuple[int, int]:
    match = _GLIBC.match(name)
    return (int(match[1]), int(match[2])) if match else (0, 0)
