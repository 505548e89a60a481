"""Owns running other programs on the bundled simulator; refuses to change this process."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .library import find_install

# Variables that would lead a program to another CANN than the simulator.
CLEARED = ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_AICPU_PATH")


@dataclass(frozen=True, slots=True)
class StrictFinding:
    """One finding of strict mode, as its JSON line says it; `count` handles share `created`."""

    what: str
    call: str
    object: str
    created: str
    at: str
    remedy: str
    count: int


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables, by name, that make a program use the simulator.

    InstallNotFoundError when the simulator was not built.
    """
    environ = os.environ if environ is None else environ
    root = find_install(simulator=True, environ=environ).root

    def first(variable: str, folder: Path) -> str:
        return os.pathsep.join(filter(None, [str(folder), environ.get(variable, "")]))

    return {
        "ASCEND_HOME_PATH": str(root),
        "ASCEND_TOOLKIT_HOME": str(root),
        "ASCEND_OPP_PATH": str(root / "opp"),
        "LD_LIBRARY_PATH": first("LD_LIBRARY_PATH", root / "lib64"),
        "PATH": first("PATH", root / "tools" / "profiler" / "bin"),
    }


@cache
def products() -> tuple[str, ...]:
    """Product names that ACLSIM_SOC accepts; the first is the default."""
    root = find_install(simulator=True).root
    library = ctypes.CDLL(str(root / "lib64" / "libascendcl.so"))
    library.aclsimProduct.restype = ctypes.c_char_p
    names: list[str] = []
    while (name := library.aclsimProduct(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


def findings(report: Path) -> list[StrictFinding]:
    """What strict mode wrote to a report (JSON lines, see docs/simulator.md), oldest first."""
    lines = []
    for line in report.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        lines.append(
            StrictFinding(
                what=row["finding"],
                call=row["call"],
                object=row["object"],
                created=row["created"],
                at=row["at"],
                remedy=row["remedy"],
                count=row["count"],
            )
        )
    return lines
