"""Why layers saw nothing of a program: what its file says; runs nothing."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from aclnn_bindings.install import elf


def with_reason(program: str) -> str:
    """`program` with the reason why none of its processes loaded the layers."""
    path = shutil.which(program)
    return f"{program}: {_reason(Path(path)) if path else _UNKNOWN}"


_UNKNOWN = (
    "it loaded no library of CANN, or loaded it without LD_LIBRARY_PATH (RPATH: remove it with "
    "`patchelf --remove-rpath`; absolute path; environment variable of its own)"
)


def _reason(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        with path.open("rb") as file:
            is_elf = file.read(4) == b"\x7fELF"
    except OSError:
        return _UNKNOWN
    if mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != path.stat().st_uid:
        return (
            "it changes its user (setuid or setgid), and the loader then ignores LD_LIBRARY_PATH; "
            "run it as that user"
        )
    if is_elf and not elf.read(path).needed:
        return (
            "it is statically linked, so that no loader can put anything between it and CANN; "
            "link it with the shared libascendcl.so"
        )
    return _UNKNOWN
