"""Says what the signal that ended a child process tells of a machine; refuses to tell of others.

Sources: signal(7), mmap(2) (SIGBUS), getrlimit(2) (SIGXCPU), seccomp(2) (SIGSYS).
"""

from __future__ import annotations

import re
import signal
from typing import Final, NamedTuple


class Ending(NamedTuple):
    """What happened, said after what was going on, and the fix."""

    what: str
    fix: str


_SIGNAL: Final = re.compile(r"died of (SIG\w+)")
_ENDINGS: Final = {
    "SIGKILL": Ending(
        "was killed from outside, as where memory runs out",
        "see `dmesg` for the kernel's reason, and give more memory: a container's --memory",
    ),
    "SIGILL": Ending(
        "met an instruction that this processor lacks",
        "install CANN's package for this processor; a virtual machine may hide instructions",
    ),
    "SIGBUS": Ending(
        "read memory that nothing stands behind",
        "a file was cut short, so install it again, or /dev/shm is full: a container's --shm-size",
    ),
    "SIGSYS": Ending(
        "made a system call that is forbidden here",
        "allow it in the container's profile: --security-opt seccomp=<file>",
    ),
    "SIGXCPU": Ending("used up its processor time", "raise the limit: `ulimit -t`"),
}


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; signals without a name of their own, the real-time ones, by number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ending(detail: str) -> Ending | None:
    """What a step's detail `the process died of SIGKILL` means, or None."""
    match = _SIGNAL.search(detail)
    return _ENDINGS.get(match[1]) if match else None
