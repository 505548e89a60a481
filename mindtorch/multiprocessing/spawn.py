"""torch.multiprocessing.spawn: a function in several new processes, and their ends."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing import connection, get_context
from typing import Any


class ProcessException(Exception):
    """A process ended with an error; subclasses say how."""

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, error_pid


class ProcessRaisedException(ProcessException):
    """A process raised."""


class ProcessExitedException(ProcessException):
    """A process was ended, or left with a code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ):  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


class ProcessContext:
    """Processes that run one function, to be joined."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str] = ()):
        self.processes = list(processes)
        self.error_files = list(error_files)
        self.sentinels = {process.sentinel: i for i, process in enumerate(self.processes)}

    def pids(self) -> list[int]:
        """Their ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one ends; whether all have. The first error ends the others and is raised."""
        if not self.sentinels:
            return True
        for sentinel in connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode:
                self._end(grace_period)
                raise ProcessExitedException(
                    f"process {index} ended with exit code {process.exitcode}; its output says why",
                    index, process.pid, process.exitcode,
                )  # fmt: skip
        return not self.sentinels

    def _end(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(grace_period)


SpawnContext = ProcessContext


def start_processes(
    fn: Any,
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> Any:
    """Run `fn(rank, *args)` in `nprocs` processes; their context where they are not joined."""
    context: Any = get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    running = ProcessContext(processes)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Run `fn(rank, *args)` in `nprocs` new processes; ProcessExitedException when one fails."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
