"""Owns running other programs on the bundled simulator; refuses to change this process."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ..errors import BindingError
from .library import find_install

# Variables that would lead a program to another CANN than the simulator.
CLEARED = ("ASCEND_AICPU_PATH",)


# Which code computes operators of custom packages: TYPE=FILE:NAME, joined by semicolons.
KERNELS: Final = "ACLSIM_KERNELS"
_KERNEL: Final = re.compile(
    r"(?P<type>[A-Za-z_]\w*)=(?P<file>[^:;]+\.(?:py|so))(?::(?P<name>\w+))?"
)


class KernelBindingError(BindingError, ValueError):
    """A kernel cannot be bound to an operator's type as it was asked for."""


def kernels() -> tuple[str, ...]:
    """The kernels that this process's environment binds, as `bind_kernels` takes them."""
    return tuple(filter(None, os.environ.get(KERNELS, "").split(";")))


def kernel_file(binding: str) -> Path:
    """The file of a binding `TYPE=FILE:NAME`."""
    match = _KERNEL.fullmatch(binding)
    return Path(match["file"] if match else binding)


def bind_kernels(bindings: Sequence[str]) -> None:
    """Let operators of custom packages be computed on the simulator, by this process and its
    children: `AddCustom=my_ops.py:add`, or a library that exports the function.

    KernelBindingError where one is not of that form or its file is not there.
    """
    if not bindings:
        return
    places = dict(one.split("=", 1) for one in kernels())
    for binding in bindings:
        match = _KERNEL.fullmatch(binding)
        if match is None:
            raise KernelBindingError(
                f"{binding!r}: expected TYPE=FILE:NAME, such as AddCustom=my_ops.py:add; FILE is a "
                ".py or .so file whose path has no colon or semicolon"
            )
        path = Path(match["file"]).resolve()
        if not path.is_file():
            raise KernelBindingError(f"{binding!r}: {path} does not exist")
        places[match["type"]] = f"{path}:{match['name'] or match['type']}"
    os.environ[KERNELS] = ";".join(f"{name}={place}" for name, place in places.items())
    os.environ.setdefault("ACLSIM_PYTHON", sys.executable)


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
