"""torch.multiprocessing.spawn: a function in several new processes, and their ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection, get_context
from typing import Any

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip
_PATIENCE = 30.0  # seconds that a process is given to end by SIGTERM


class ProcessException(Exception):
    """A process ended with an error; subclasses say how."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or left with a code."""

    __slots__ = ["exit_code"]

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ):  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name
        return type(self), state


class ProcessContext:
    """Processes that run one function, to be joined."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str]):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one ends; whether all have. The first error ends the others and is raised.

        These have `grace_period` seconds to end by themselves, and as long after SIGTERM.
        """
        for sentinel in connection.wait(list(self.sentinels), timeout) if self.sentinels else ():
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode:
                self._end(grace_period)
                raise self._failure(index, process)
        return not self.sentinels

    def _end(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._wait(_PATIENCE if grace_period is None else grace_period)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _failure(self, index: int, process: Any) -> ProcessException:
        code, start = process.exitcode, f"process {index} terminated with"
        if os.path.exists(self.error_files[index]):
            with open(self.error_files[index], "rb") as file:
                trace = pickle.load(file)
            text = f"\n\n-- Process {index} terminated with the following error:\n{trace}"
            return ProcessRaisedException(text, index, process.pid)
        if code > 0:
            return ProcessExitedException(f"{start} exit code {code}", index, process.pid, code)
        known = {each.value: each.name for each in signal.Signals}
        name = known.get(-code, f"<Unknown signal {-code}>")
        return ProcessExitedException(f"{start} signal {name}", index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """Processes that `spawn` started."""


def _call(fn: Callable[..., Any], index: int, args: Any, error_file: str) -> None:
    """Run the function in its process; what it raises is written as text."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent has it too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


def start_processes(
    fn: Callable[..., Any], args: Any = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run `fn(rank, *args)` in `nprocs` processes; their context where they are not joined."""
    context: Any = get_context(start_method)
    folder = tempfile.mkdtemp(prefix="torch-errors-")
    files = [os.path.join(folder, f"{i}.pickle") for i in range(nprocs)]
    processes = [
        context.Process(target=_call, args=(fn, i, args, files[i]), daemon=daemon)
        for i in range(nprocs)
    ]
    for process in processes:
        process.start()
    running = ProcessContext(processes, files)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Run `fn(rank, *args)` in `nprocs` new processes.

    ProcessRaisedException where one raises, ProcessExitedException where one ends otherwise.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
