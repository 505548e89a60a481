"""Says what the dynamic loader's words mean for CANN and what to do; refuses to load anything.

Sources: messages of glibc's ld.so; driver and container sections of CANN's installation documents.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from ..install.describe import Install
from ..install.machine import in_container

DRIVER: Final = "/usr/local/Ascend/driver"
_MISSING: Final = re.compile(r"^(\S+): cannot open shared object file")
_GLIBC: Final = re.compile(r"version `((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found")
_REFUSED: Final = re.compile(r"^(\S+): .*Permission denied")
_STATIC_TLS: Final = re.compile(r"^(\S+): cannot allocate memory in static TLS block")
# Users of NPUs are members of one group (installation documents: user and file permissions).
MAY_READ: Final = (
    "join the group that may (`usermod -aG HwHiAiUser $USER`, then log in again), or have the "
    "administrator install for all users (--install-for-all)"
)
_SYMBOL: Final = re.compile(r"undefined symbol: (\w+)")


def complaint(text: str, install: Install) -> tuple[str, str]:
    """What the loader's words mean, and the fix."""
    if match := _STATIC_TLS.search(text):
        fix = (
            f"load it when the process starts: LD_PRELOAD={match.group(1)}, or import these "
            "bindings before other libraries, or set GLIBC_TUNABLES="
            "glibc.rtld.optional_static_tls=4096"
        )
        return f"no room is left for the thread-local data of {match.group(1)}", fix
    if match := _REFUSED.search(text):
        return f"this user may not read {match.group(1)}", MAY_READ
    if match := _MISSING.search(text):
        return _missing(Path(match.group(1)).name, install)
    if match := _GLIBC.search(text):
        fix = "use an image with a newer system, or the CANN package built for this one"
        return f"this system's C or C++ library is older than {match.group(1)}", fix
    if match := _SYMBOL.search(text):
        fix = "libraries of two CANN versions are mixed: check LD_LIBRARY_PATH for another install"
        return f"symbol {match.group(1)} is in no loaded library", fix
    return "a library cannot be loaded", "see the loader's words"


def _missing(name: str, install: Install) -> tuple[str, str]:
    if name.startswith(("libascend_hal", "libdrv", "libmmpa", "libdcmi", "libc_sec")):
        if os.path.isdir(f"{DRIVER}/lib64"):
            fix = f"add {DRIVER}/lib64/driver and {DRIVER}/lib64/common to LD_LIBRARY_PATH"
            return f"{name} not found: the driver is installed but not on the loader's path", fix
        if not in_container():
            fix = "install the driver and firmware of this NPU, then check `npu-smi info`"
            return f"{name} not found: the driver is not installed", fix
        fix = (
            f"start the container with `-v {DRIVER}:{DRIVER} --device /dev/davinci0 --device "
            "/dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc`, and add "
            f"{DRIVER}/lib64/driver to LD_LIBRARY_PATH"
        )
        return f"{name} not found: the driver is not mounted into this container", fix
    fix = f"install the package that has it, or add its folder to LD_LIBRARY_PATH ({install.root})"
    return f"{name} not found", fix
