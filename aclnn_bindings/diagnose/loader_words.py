"""Says what the dynamic loader's words mean for CANN and what to do; refuses to load anything.

Sources: messages of glibc's ld.so; driver and container sections of CANN's installation documents.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from ..install.describe import Install
from ..install.machine import in_container

DRIVER: Final = "/usr/local/Ascend/driver"
_MISSING: Final = re.compile(r"^(\S+): cannot open shared object file: No such file")
_UNOPENED: Final = re.compile(r"^(.+?): cannot open shared object file: (?!No such|Perm)(.+)$")
_UNMAPPED: Final = re.compile(r"^(.+?): failed to map segment from shared object(?:: (.+))?$")
_STACK: Final = re.compile(r"^(.+?): cannot enable executable stack")
_TEMPORARY: Final = re.compile(r"No usable temporary directory|No space left|quota exceeded")
_MEMORY: Final = re.compile(r"Cannot allocate memory|Resource temporarily unavailable")
_GLIBC: Final = re.compile(
    r"^(\S+): version `((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found", re.MULTILINE
)
_REFUSED: Final = re.compile(r"^(\S+): .*Permission denied")
_STATIC_TLS: Final = re.compile(r"^(\S+): cannot allocate memory in static TLS block")
# Users of NPUs are members of one group (installation documents: user and file permissions).
_MAY_READ: Final = (
    "join the group that may (`usermod -aG HwHiAiUser $USER`, then log in again), or have the "
    "administrator install for all users (--install-for-all)"
)
# nfs(5), exports(5): a server maps root to nobody unless it is told not to.
_ROOT_MAY_READ: Final = (
    "root is refused where a network file system is mounted (root_squash) or a container drops "
    "capabilities: run as the owner or a member of HwHiAiUser, or copy the install to a local disk"
)
# What glibc says of a file that is an ELF file and no sound library (elf/dl-load.c).
_UNSOUND: Final = re.compile(
    r"^(\S+): ((?:invalid ELF|wrong ELF|nonzero padding|only ET_DYN|object file has no|"
    r"cannot dynamically load|file too short|ELF (?:file|load)|cannot read file data).*)$",
    re.MULTILINE,
)
_SYMBOL: Final = re.compile(r"undefined symbol: (\w+)(?:, version (\S+))?")
_FILES: Final = re.compile(r"Too many open files")
# What musl's loader says (its ldso/dynlink.c): a system without glibc, such as Alpine.
_MUSL: Final = re.compile(r"^Error (?:relocating|loading shared library) ([^\s:]+): ", re.MULTILINE)
_MUSL_LIBRARY: Final = re.compile(r"(?:libc\.musl-|ld-musl-)\S*")


def may_read() -> str:
    """What lets this user read what it may not."""
    return _MAY_READ if os.geteuid() else _ROOT_MAY_READ


def complaint(text: str, install: Install) -> tuple[str, str]:
    """What the loader's words mean, and the fix."""
    if match := _STATIC_TLS.search(text):
        fix = (
            f"load it when the process starts: LD_PRELOAD={match.group(1)}, or import these "
            "bindings before other libraries, or set GLIBC_TUNABLES="
            "glibc.rtld.optional_static_tls=4096"
        )
        return f"no room is left for the thread-local data of {match.group(1)}", fix
    if match := _STACK.search(text):
        fix = f"clear the mark: `patchelf --clear-execstack {match.group(1)}`, or install it again"
        return f"{match.group(1)} asks for an executable stack, which this system refuses", fix
    if match := _UNMAPPED.search(text):
        return _unmapped(*match.groups())
    if match := _UNOPENED.search(text):
        return f"{match.group(1)} cannot be opened: {match.group(2)}", _BY_ERRNO.get(
            match.group(2), "see whether the file system is there: `ls -l` and `dmesg`"
        )
    if match := _REFUSED.search(text):
        return f"this user may not read {match.group(1)}", may_read()
    if match := _MISSING.search(text):
        return _missing(Path(match.group(1)).name, install)
    if match := _GLIBC.search(text):
        return _too_old(*match.groups())
    if match := _SYMBOL.search(text):
        fix = "libraries of two CANN versions are mixed: check LD_LIBRARY_PATH for another install"
        version = f" of version {match.group(2)}" if match.group(2) else ""
        return f"symbol {match.group(1)}{version} is in no loaded library", fix
    if match := _MUSL.search(text):
        fix = "use an image with glibc (Debian, Ubuntu, openEuler): CANN has no build for musl"
        return f"{match.group(1)} cannot be loaded by musl, this system's C library", fix
    if match := _UNSOUND.search(text):
        fix = "copy or install the file again, and compare its size with the source's"
        return f"{match.group(1)} is no sound library: {match.group(2)}", fix
    if _FILES.search(text):
        return "this process may open no more files", _BY_ERRNO["Too many open files"]
    if _MEMORY.search(text):
        return "this system's limits leave no room for a process or a library", _LIMITS
    if _TEMPORARY.search(text):
        fix = "free some space, or let TMPDIR name a folder that can be written"
        return "no temporary file can be written", fix
    return "a library cannot be loaded", "see the loader's words"


_BY_ERRNO: Final = {
    "Too many open files": "raise the limit: `ulimit -n 65536`",
    "Stale file handle": "mount the network file system again",
    "Input/output error": "the disk or the network file system fails: see `dmesg`",
}
_LIMITS: Final = (
    "raise the limits on memory and processes: `ulimit -v`, `ulimit -u`, a container's --memory "
    "and --pids-limit"
)


def _unmapped(name: str, reason: str | None) -> tuple[str, str]:
    """A library that may be read and not be run, or for which there is no room; glibc 2.36 says
    the same of both, without a reason."""
    if reason and _MEMORY.search(reason):
        return f"there is no memory for {name}", _LIMITS
    try:
        noexec = bool(os.statvfs(name).f_flag & os.ST_NOEXEC)
    except OSError:
        noexec = False
    if noexec:
        fix = f"mount it with exec (`findmnt -T {name}` shows how), or install CANN elsewhere"
        return f"{name} may be read but not run: its file system is mounted noexec", fix
    policy = "where a policy forbids it, `ausearch -m avc` tells, and `restorecon -R` may help"
    return f"{name} may not be mapped: by a policy such as SELinux's, or a limit on memory", (
        f"{policy}; else {_LIMITS}"
    )


def _too_old(path: str, version: str) -> tuple[str, str]:
    """The C or C++ library at `path` lacks `version`: the system's, or one beside Python."""
    prefixes = Path(sys.prefix), Path(sys.base_prefix)
    if any(prefix in Path(path).parents for prefix in prefixes if prefix != Path("/usr")):
        fix = (
            "update it (`conda install -c conda-forge libstdcxx-ng libgcc-ng`), or put the "
            "system's first: LD_LIBRARY_PATH=/usr/lib/<arch>-linux-gnu, or LD_PRELOAD"
        )
        return f"{path}, which came with this Python, is older than {version}", fix
    fix = "use an image with a newer system, or the CANN package built for this one"
    return f"this system's C or C++ library is older than {version}", fix


def _missing(name: str, install: Install) -> tuple[str, str]:
    if _MUSL_LIBRARY.fullmatch(name):
        fix = "install the package that was built for glibc; this file comes from an Alpine image"
        return f"{name} not found: a library was built for musl, not for this system's glibc", fix
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
