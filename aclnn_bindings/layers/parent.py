"""Runs a program as a shell would have it run: signals reach it, and its end is ours.

While it runs, signals sent to this process go on to it. What the terminal sends (Ctrl-C, Ctrl-Z,
Ctrl-backslash) it sends to all processes of the job: the program has that already.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

# Not forwarded: what nobody can hold back, what tells a process of its own fault or its own child,
# and what the kernel sends for this process's own input and output.
_LOCAL: Final = frozenset(
    (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL,
     signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT, signal.SIGPIPE, signal.SIGTTIN,
     signal.SIGTTOU, signal.SIGXFSZ, signal.SIGURG)
)  # fmt: skip
_FORWARDED: Final = frozenset(signal.valid_signals()) - _LOCAL
_ENDING: Final = frozenset((signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT))
_BLOCKED: Final = _FORWARDED | {signal.SIGCHLD}
# The terminal sends them to the whole job; from the kernel, they are in the program already.
_OF_TERMINAL: Final = frozenset(
    (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
)
_FROM_KERNEL: Final = 0x80  # SI_KERNEL of <asm-generic/siginfo.h>
_JOB_STOPS: Final = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
# What Python ignores, and a program expects as the system has it.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_LOOK_EVERY_S: Final = 1.0
_masks: list[
    set[int]
] = []  # signals that were blocked before these were; the program gets the first


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back from here on, in threads that start in between too: `run` takes them."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no child could be waited for
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    _masks.append(before)
    try:
        yield
    finally:
        _masks.remove(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """The program's return code, negative for a signal; OSError when it cannot be started.

    It has this process's input and output, and what files the caller left open for it.
    """
    with signals_held():
        pid = _start(command, variables)
        while True:
            info = signal.sigtimedwait(_BLOCKED, _LOOK_EVERY_S)
            if info is not None and _is_for_program(info):
                with suppress(ProcessLookupError):
                    os.kill(pid, info.si_signo)
            code = _ended(pid)
            if code is not None:
                return code


def _is_for_program(info: signal.struct_siginfo) -> bool:
    everywhere = info.si_code == _FROM_KERNEL and info.si_signo in _OF_TERMINAL
    return info.si_signo in _FORWARDED and not everywhere


def run_once_of_many(
    command: Sequence[str], variables: Mapping[str, str], output: Path, patience: float | None
) -> int:
    """As `run`, with the program's output in the file `output` and its errors nowhere.

    TimeoutError when it does not end in `patience` seconds. A signal that ends a program ends this
    one and this process: the others are not to follow.
    """
    files = [(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
             (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0o600)]  # fmt: skip
    end = time.monotonic() + patience if patience is not None else float("inf")
    with signals_held():
        pid = _start(command, variables, files)
        while (code := _ended(pid)) is None:
            wait = min(_LOOK_EVERY_S, end - time.monotonic())
            info = signal.sigtimedwait(_BLOCKED, max(wait, 0))
            leaves = info is not None and info.si_signo in _ENDING
            if leaves or time.monotonic() >= end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                if info is not None and leaves:
                    sys.exit(128 + info.si_signo)
                raise TimeoutError(f"{command[0]} does not end")
        return code


def _start(
    command: Sequence[str], variables: Mapping[str, str], files: Sequence[tuple[Any, ...]] = ()
) -> int:
    places = variables.get("PATH", os.defpath)
    program = command[0] if "/" in command[0] else shutil.which(command[0], path=places)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    return os.posix_spawn(program, list(command), dict(variables), file_actions=files,
                          setsigmask=_masks[0], setsigdef=_IGNORED_BY_PYTHON)  # fmt: skip


def _ended(pid: int) -> int | None:
    """The return code once the program has ended; where it stops as a job, so does this process."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if not done:
            return None
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        if os.WSTOPSIG(status) in _JOB_STOPS:
            os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Meanwhile TERM and HUP end this process as an exception does, so that it tidies up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> NoReturn:
        sys.exit(128 + number)

    ends = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in ends:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


def signal_name(code: int) -> str:
    """The signal that ended a program with this return code; "" where it ended by itself."""
    if code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"  # of real time: those have no names


def end_as(code: int) -> int:
    """The exit status that says how a program ended; where INT or QUIT ended it, this process ends
    by the same signal, by which a shell stops what it runs."""
    if code >= 0:
        return code
    if -code in (signal.SIGINT, signal.SIGQUIT):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core to look at is the program's
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return 128 - code
