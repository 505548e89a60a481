"""Says what of a shell's environment leads CANN astray; refuses to look into an install's files.

Sources: set_env.sh of CANN 8.1.RC1; the dynamic loader's search order, ld.so(8).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..install.camodel import camodel
from ..install.describe import Install
from ..install.environment import misplaced_opp
from ..install.file_queries import exists, listed, loader_path, misspelt
from ..install.search import ENVIRONMENT
from . import variables
from .probe import Report

Severity = Literal["error", "warning", "note"]

# Which devices a process sees: ACL's own variable, and that of Ascend's container runtime.
VISIBLE: Final = ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")
# Variables that hold paths and that CANN, the loader or these bindings read.
_PATHS: Final = (*ENVIRONMENT, "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_AICPU_PATH",
                 "LD_LIBRARY_PATH")  # fmt: skip
_NO_STUBS: Final = "put lib64 before devlib: stubs answer every call with 100039"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong or worth knowing: what was seen, and what to do about it."""

    severity: Severity
    what: str
    fix: str = ""
    evidence: str = ""


def surroundings(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    """Every cause that lies in variables rather than in files."""
    home, toolkit = environ.get("ASCEND_HOME_PATH"), environ.get("ASCEND_TOOLKIT_HOME")
    if home and toolkit and os.path.realpath(home) != os.path.realpath(toolkit):
        yield Cause(
            "warning",
            "ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME name two installs",
            "source one set_env.sh in a fresh shell",
            f"{home} and {toolkit}",
        )
    yield from _loader(environ)
    yield from _camodel(environ)
    for row, what in variables.misset(environ):
        yield Cause(row.severity, what, row.fix, row.source)
    if report.install is None:
        return
    via, root = report.install.found_via, report.install.root
    if via.endswith("set_env.sh") or via == "default root":
        near = (root / "set_env.sh", root.parent / "set_env.sh")
        script = via if via.endswith(".sh") else next((p for p in near if exists(p)), near[0])
        yield Cause("note", "CANN is installed but not set up in this shell", f"source {script}")
    yield from _another_first(report.install, environ)
    if wrong := misplaced_opp(report.install, environ):
        fix = f"source the set_env.sh of {root}, or unset ASCEND_OPP_PATH"
        yield Cause("error", wrong, fix, "operators take kernels and tilings from there")


def spelling(environ: Mapping[str, str]) -> Iterator[Cause]:
    """Values that were damaged on their way from a file into the environment."""
    for name in _PATHS:
        if reason := misspelt(environ.get(name, "")):
            what, _, fix = reason.partition(": ")
            yield Cause("error", f"{name} {what}", fix, f"{name}={environ[name]!r}")


def _loader(environ: Mapping[str, str]) -> Iterator[Cause]:
    """What the loader does with LD_LIBRARY_PATH and LD_PRELOAD that nobody wants."""
    for folder in loader_path(environ):
        if folder.parts[:1] and folder.parts[0].startswith("~"):
            fix = f"write the home folder out: {os.path.expanduser(folder)}"
            yield Cause("warning", f"LD_LIBRARY_PATH holds {folder}: the loader knows no ~", fix)
        elif not folder.is_absolute():
            yield Cause(
                "note",
                f"LD_LIBRARY_PATH holds {folder}, which is not absolute",
                "the loader looks for it below the folder in which a program starts",
            )
    for path in map(Path, re.split("[: ]+", environ.get("LD_PRELOAD", "").strip())):
        if "devlib" in path.parts:
            yield Cause("warning", "LD_PRELOAD loads a stub library", _NO_STUBS, str(path))
        elif path.is_absolute() and not exists(path):
            fix = "unset LD_PRELOAD, or correct it; the loader goes on without it"
            yield Cause("warning", f"LD_PRELOAD names {path}, which does not exist", fix)
    folders = loader_path(environ)
    stubs = next((i for i, f in enumerate(folders) if "devlib" in f.parts), None)
    real = next((i for i, f in enumerate(folders) if f.name == "lib64"), None)
    if stubs is not None and (real is None or stubs < real):
        what = "LD_LIBRARY_PATH reaches the stub libraries first"
        yield Cause("warning", what, _NO_STUBS, str(folders[stubs]))


def _camodel(environ: Mapping[str, str]) -> Iterator[Cause]:
    """CANN's own simulator in the place of a chip."""
    if folder := camodel(environ):
        yield Cause(
            "note",
            "CANN's simulator (cannsim, npusim) is the device",
            "device 0 is the only one, collectives are not simulated, and a kernel takes seconds "
            "to minutes",
            str(folder),
        )


def _another_first(install: Install, environ: Mapping[str, str]) -> Iterator[Cause]:
    """Libraries of another toolkit that the loader reaches before those of this one."""
    if install.kind != "cann":
        return
    folders = {os.path.realpath(folder) for folder in install.dependency_dirs()}
    names = {library.name for library in install.libraries if install.is_searched(library)}
    names.add("libruntime.so")
    for folder in loader_path(environ):
        if os.path.realpath(folder) in folders:
            return
        if folder == camodel(environ):
            continue
        strangers = [path for path in listed(folder, "lib*.so") if path.name in names]
        real = [path for path in strangers if os.path.realpath(path.parent) not in folders]
        if real and "devlib" not in folder.parts:
            yield Cause(
                "error",
                "LD_LIBRARY_PATH reaches another CANN first",
                f"source one set_env.sh in a fresh shell, or put {install.root}/lib64 before "
                f"{folder}",
                str(real[0]),
            )
            return
