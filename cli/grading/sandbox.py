"""Confines the process that runs an operator which is not trusted: namespaces, limits, calls.

Linux alone. What this system lacks is left out: `enter` and `forbid` name what holds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# unshare(2), mount(2), prctl(2), seccomp(2): numbers of Linux.
_NEW_USER, _NEW_MOUNTS, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x20000, 0x40000000, 0x8000000
_BIND: Final = 4096
_NO_NEW_PRIVILEGES, _DUMPABLE, _DEATH_SIGNAL = 38, 4, 1
_KILL: Final = 9
_SET_FILTER, _ALL_THREADS = 1, 1


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """Numbers of one machine's system calls. `ended` start programs, reach into processes or change
    mounts; `signals` and `limits` (prlimit) are for this process alone; `scheduling` of others is
    refused: (number, position of the process among the arguments)."""

    audit: int
    seccomp: int
    clone: int
    ended: tuple[int, ...]
    signals: tuple[int, ...]
    limits: int
    fcntl: int
    ioctl: int
    scheduling: tuple[tuple[int, int], ...]


# fork and vfork where there are such; ptrace, process_vm_readv and -writev, execve, execveat,
# tkill, mount, umount2, unshare, setns; then what all machines have alike. Of scheduling: setparam,
# setscheduler, setaffinity, setattr, setpriority, ioprio_set.
_COMMON: Final = (*range(428, 434), 434, 438, 440, 442, 448)  # of mounts, descriptors of processes
_MACHINES: Final = {
    "x86_64": SystemCalls(
        0xC000003E, 317, 56,
        (57, 58, 101, 310, 311, 59, 322, 200, 165, 166, 272, 308, *_COMMON),
        (62, 129, 234, 297, 424), 302, 72, 16,
        ((142, 0), (144, 0), (203, 0), (314, 0), (141, 1), (251, 1))),
    "aarch64": SystemCalls(
        0xC00000B7, 277, 220,
        (117, 270, 271, 221, 281, 130, 40, 39, 97, 268, *_COMMON),
        (129, 138, 131, 240, 424), 261, 25, 29,
        ((118, 0), (119, 0), (122, 0), (274, 0), (140, 1), (30, 1))),
}  # fmt: skip
_CLONE3: Final = 435
_THREAD: Final = 0x10000  # CLONE_THREAD
_ALLOW, _END, _REFUSE, _NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026  # EPERM, ENOSYS
# A signal to whom a descriptor names (fcntl(2), F_SETOWN, F_SETSIG, F_SETOWN_EX; FIOSETOWN and
# SIOCSPGRP of ioctl).
_OWNERS: Final = (8, 10, 15)
_OWNERS_BY_IOCTL: Final = (0x8901, 0x8902)
# mount_setattr(2)
_SET_ATTRIBUTES, _HERE, _RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1


def protect_memory() -> None:
    """Let no process of the same user read this one's memory (prctl(2), PR_SET_DUMPABLE)."""
    _libc().prctl(_DUMPABLE, 0, 0, 0, 0)


def die_with_parent() -> None:
    """End when the process that started this one does."""
    _libc().prctl(_DEATH_SIGNAL, _KILL, 0, 0, 0)


def limit(memory: int, seconds: int) -> list[str]:
    """Bound data, processor time, files and core dumps; what holds."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return [f"memory {memory >> 20} MiB", f"processor {seconds} s", "files 64 MiB"]


def enter(hide: Sequence[str], folder: str) -> list[str]:
    """Leave the user's, network's and mounts' namespaces, with empty files in place of `hide`; only
    in `folder` can files be written."""
    libc, user, group = _libc(), os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_NETWORK | _NEW_IPC):
        return []
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    protection = _read_only(folder)
    hidden = [libc.mount(b"none", os.fsencode(p), b"tmpfs", 0, None) if Path(p).is_dir()
              else libc.mount(b"/dev/null", os.fsencode(p), None, _BIND, None)
              for p in hide]  # fmt: skip
    words = ["namespaces of users, mounts, network and IPC", *protection]
    return words + (["the reference's files are hidden"] if hide and not any(hidden) else [])


def _read_only(folder: str) -> list[str]:
    """Let nothing be written outside of a folder, other than to devices."""
    place = os.fsencode(folder)
    if _attributes(b"/", _READ_ONLY, 0, _RECURSIVE):
        return []
    _libc().mount(place, place, None, _BIND, None)
    _attributes(place, 0, _READ_ONLY, 0)
    return ["files are read-only"]


def _attributes(path: bytes, on: int, off: int, flags: int) -> int:
    """mount_setattr(2); 0 where it worked."""
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    return int(_libc().syscall(_SET_ATTRIBUTES, _HERE, path, flags, attributes, len(attributes)))


def forbid() -> list[str]:
    """End this process by SIGSYS where any of its threads starts a program or a process, or reaches
    into another (seccomp(2))."""
    known = _MACHINES.get(platform.machine())
    libc = _libc()
    if known is None or libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return []
    program = b"".join(_filter(known, os.getpid()))
    text = ctypes.create_string_buffer(program)
    head = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(text))
    if libc.syscall(known.seccomp, _SET_FILTER, _ALL_THREADS, ctypes.c_char_p(head)):
        return []
    return ["no other program or process can be started, read or signalled (seccomp)"]


def _filter(machine: SystemCalls, process: int) -> Iterator[bytes]:
    """Classic BPF over struct seccomp_data: number at 0, machine at 4, arguments from 16."""
    load, same, any_bit, give, at_least = 0x20, 0x15, 0x45, 0x06, 0x35

    def line(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    yield line(load, 0, 0, 4)
    yield line(same, 1, 0, machine.audit)
    yield line(give, 0, 0, _END)
    yield line(load, 0, 0, 0)
    yield line(at_least, 0, 1, 0x40000000)  # the x32 interface has numbers of its own
    yield line(give, 0, 0, _END)
    for number in machine.ended:
        yield line(same, 0, 1, number)
        yield line(give, 0, 0, _END)
    yield line(same, 0, 1, _CLONE3)  # glibc falls back to clone, whose flags a filter can read
    yield line(give, 0, 0, _NOT_THERE)
    alone = (0, process)
    for number, position, test, values, otherwise in (
        (machine.clone, 0, any_bit, (_THREAD,), _END),
        *((n, 0, same, (process,), _END) for n in machine.signals),
        (machine.limits, 0, same, alone, _END),
        *((n, p, same, alone, _REFUSE) for n, p in machine.scheduling),
    ):  # fmt: skip
        yield line(same, 0, len(values) + 3, number)
        yield line(load, 0, 0, 16 + 8 * position)
        for left in range(len(values), 0, -1):
            yield line(test, left, 0, values[-left])
        yield line(give, 0, 0, otherwise)
        yield line(load, 0, 0, 0)
    for number, values in ((machine.fcntl, _OWNERS), (machine.ioctl, _OWNERS_BY_IOCTL)):
        yield line(same, 0, 2 * len(values) + 2, number)
        yield line(load, 0, 0, 24)
        for value in values:
            yield line(same, 0, 1, value)
            yield line(give, 0, 0, _END)
        yield line(load, 0, 0, 0)
    yield line(give, 0, 0, _ALLOW)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
