"""Owns `record` and what a launcher reads of failed processes (torch.distributed.elastic).

A launcher names a file in TORCHELASTIC_ERROR_FILE. The first error of what `record` decorates is
written there as JSON: `{"message": {"message", "extraInfo": {"py_callstack", "timestamp"}}}`.
"""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from pathlib import Path
from string import Template
from typing import Any, ParamSpec, TypeVar

from .error_handler import ErrorHandler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

P = ParamSpec("P")
R = TypeVar("R")
_ABSENT = "<N/A>"
_NO_TRACE = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def get_error_handler() -> ErrorHandler:
    """A handler that writes to the launcher's file."""
    return ErrorHandler()


def record(fn: Callable[P, R], error_handler: ErrorHandler | None = None) -> Callable[P, R | None]:
    """`fn`, whose error is written for the launcher before it is raised again."""
    handler = get_error_handler() if error_handler is None else error_handler

    @wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except ChildFailedError as error:
            _rank, failure = error.get_first_failure()
            if failure.error_file != _ABSENT:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper


@dataclass
class ProcessFailure:
    """A process that ended with `exitcode`, the negative number of a signal that ended it."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        path = Path(self.error_file)
        if path.is_file():
            self.error_file_data = json.loads(path.read_text())
            self.message = self.error_file_data["message"]
            words = self.message if isinstance(self.message, dict) else {}
            self.timestamp = int(words.get("extraInfo", {}).get("timestamp", time.time()))
            return
        self.error_file_data, self.error_file = {}, _ABSENT
        self.message, self.timestamp = "", int(time.time())
        if self.exitcode < 0:
            self.message = (
                f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            )
        else:
            self.message = _NO_TRACE

    def signal_name(self) -> str:
        """The signal that ended the process; `<N/A>` for none, `<UNKNOWN>`."""
        if self.exitcode >= 0:
            return _ABSENT
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<UNKNOWN>"

    def timestamp_isoformat(self) -> str:
        """When it failed, `2026-01-31_12:00:00`."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


_FAILURE = Template("""\
[${at}]:
  time      : ${when}
  host      : ${host}
  rank      : ${rank} (local_rank: ${local_rank})
  exitcode  : ${exitcode} (pid: ${pid}) ${ending}
  error_file: ${error_file}
  traceback : ${message}""")
_WIDTH = 60


class ChildFailedError(Exception):
    """Processes of a launcher failed: `failures` by global rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        self.name, self.failures = name, failures
        if not failures:
            raise AssertionError
        super().__init__(self._text())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank and the failure that was first in time."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)

    def _text(self) -> str:
        first, _ = self.get_first_failure()
        others = [self._one(at, rank) for at, rank in enumerate(self.failures) if rank != first]
        root = self._one(list(self.failures).index(first), first)
        double, single = "=" * _WIDTH, "-" * _WIDTH
        lines = [f"\n{double}", f"{self.name} FAILED", single, "Failures:"]
        lines += [*(others or ["  <NO_OTHER_FAILURES>"]), single]
        lines += ["Root Cause (first observed failure):", root, double]
        return "\n".join(lines)

    def _one(self, at: int, rank: int) -> str:
        failure = self.failures[rank]
        message = failure.message
        if isinstance(message, dict):
            trace = message.get("extraInfo", {}).get("py_callstack", message.get("message", ""))
            message = str(trace).replace("\n", "\n  ")
        ending = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        return _FAILURE.substitute(
            at=at, when=failure.timestamp_isoformat(), host=socket.getfqdn(), rank=rank,
            local_rank=failure.local_rank, exitcode=failure.exitcode, pid=failure.pid,
            ending=ending, error_file=failure.error_file, message=message,
        )  # fmt: skip
