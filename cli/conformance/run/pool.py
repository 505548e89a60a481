"""Owns worker processes: deals batches, notices deaths and hangs, replaces workers; judges nothing.

A crash, hang or poisoned device costs the one case that had started. The rest of its batch goes
to a fresh worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

from ..cases.case import parse
from ..record.result import Result

_STARTUP_SECONDS: Final = 120.0
_TAIL: Final = 400
# The working folder is not searched for modules; Python has had the option since 3.11.
_SAFE_PATH: Final = ("-P",) if sys.version_info >= (3, 11) else ()
# Fresh processes in a row that die before finishing one case: then the environment is at fault.
_MAX_STILLBORN: Final = 3


class EnvironmentFailedError(RuntimeError):
    """No worker can start; the message is what the last one said."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs to know; see worker.py."""

    device: str = "npu:0"
    home: str | None = None
    simulator: bool = False
    journal: str = ""
    timeout: float = 60.0
    environ: Mapping[str, str] = field(default_factory=dict)
    recording: str = ""

    def message(self) -> dict[str, Any]:
        return {"device": self.device, "home": self.home, "simulator": self.simulator,
                "journal": self.journal, "recording": self.recording}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Batch:
    """Cases for one worker, in order, with what holds for all of them."""

    cases: tuple[str, ...]
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)

    def message(self, cases: Sequence[str]) -> dict[str, Any]:
        return {"cases": list(cases), "seed": self.seed, **self.options}


class Process:
    """One worker process and its lines."""

    def __init__(self, setup: Setup) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives with the process
        env = {**os.environ, **_quiet(setup), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.child = subprocess.Popen(
            [sys.executable, *_SAFE_PATH, "-m", f"{__package__}.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=env,
            start_new_session=True,
        )  # fmt: skip
        assert self.child.stdout is not None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.child.stdout, selectors.EVENT_READ)
        self.pending = b""
        self.send(setup.message())

    def send(self, message: Mapping[str, Any]) -> None:
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            self.child.stdin.flush()

    def receive(self, seconds: float) -> dict[str, Any] | str | None:
        """The next message, None when the process has ended, "late" when nothing came in time."""
        assert self.child.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self.selector.select(left):
                return "late"
            data = os.read(self.child.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.close()

    def close(self) -> None:
        self.selector.close()
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def ending(self) -> str:
        """How it ended: `signal 11 (SIGSEGV)` or `exit code 3`, and the last it said."""
        code = self.child.wait()
        said = self.last_words()
        how = f"exit code {code}"
        if code < 0:
            how = f"signal {-code} ({signal.Signals(-code).name})"
            if -code == signal.SIGKILL:
                how += ": killed from outside, often because host memory ran out"
        return how + (f"; it said: {said}" if said else "")

    def last_words(self) -> str:
        self.errors.seek(0)
        text = self.errors.read().decode("utf-8", "replace").strip()
        return " ".join(text[-_TAIL:].split())


def _quiet(setup: Setup) -> dict[str, str]:
    """One thread per worker: several workers share the cores."""
    wanted = {"ACLSIM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**{k: v for k, v in wanted.items() if k not in os.environ}, **setup.environ}


class Pool:
    """Runs batches on `jobs` workers; `results()` yields in order of completion."""

    def __init__(self, setup: Setup, jobs: int) -> None:
        self.setup, self.jobs = setup, jobs
        self.replaced = 0
        self._work: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
        self._live: set[Process] = set()
        self._lock = threading.Lock()
        self._stopping = False
        self._first: Process | None = None

    def open(self) -> dict[str, Any]:
        """Start the first worker; its environment. EnvironmentFailedError if it cannot start."""
        process, hello = self._start()
        self._first = process
        return hello

    def results(self, batches: Sequence[Batch]) -> Iterator[Result]:
        """Run all; a lost case's result says how it was lost."""
        for batch in batches:
            self._work.put(batch)
        threads = [
            threading.Thread(target=self._serve, daemon=True)
            for _ in range(min(self.jobs, len(batches)))
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            result = self._found.get()
            if result is None:
                left -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result

    def stop(self) -> None:
        """Kill every worker; what they had started stays in the journal."""
        self._stopping = True
        with self._lock:
            live = list(self._live)
        for process in live:
            process.kill()
            self._gone(process)

    def _start(self) -> tuple[Process, dict[str, Any]]:
        process = Process(self.setup)
        with self._lock:
            self._live.add(process)
        message = process.receive(_STARTUP_SECONDS)
        if isinstance(message, dict) and "hello" in message:
            return process, message["hello"]
        reason = message["fatal"] if isinstance(message, dict) else None
        if message == "late":
            process.kill()
            reason = f"a worker did not start within {_STARTUP_SECONDS:g} s"
        reason = reason or f"a worker died while starting: {process.ending()}"
        self._gone(process)
        raise EnvironmentFailedError(reason)

    def _gone(self, process: Process) -> None:
        with self._lock:
            self._live.discard(process)

    def _serve(self) -> None:
        process: Process | None = None
        try:
            with self._lock:
                process, self._first = self._first, None
            while not self._stopping:
                try:
                    batch = self._work.get_nowait()
                except queue.Empty:
                    break
                process = self._run(batch, process)
        except BaseException as error:
            if not self._stopping:
                self._found.put(error)
        finally:
            if process is not None:
                process.close()
                self._gone(process)
            self._found.put(None)

    def _run(self, batch: Batch, process: Process | None) -> Process | None:
        """Run a batch to its end, on as many workers as that takes; the last one, if it lives."""
        left = list(batch.cases)
        stillborn = 0
        while left and not self._stopping:
            if process is None:
                process, _ = self._start()
            done, alive = self._drive(process, batch, left)
            stillborn = 0 if done else stillborn + 1
            if stillborn >= _MAX_STILLBORN:
                raise EnvironmentFailedError(f"workers die at once: {process.last_words()}")
            left = left[done:]
            if not alive:
                self._gone(process)
                process.close()
                process = None
                self.replaced += bool(left) or 1
        return process

    def _drive(self, process: Process, batch: Batch, cases: Sequence[str]) -> tuple[int, bool]:
        """(cases that have a result now, whether the worker still serves)."""
        process.send(batch.message(cases))
        done, current, since = 0, "", time.monotonic()
        while True:
            message = process.receive(self.setup.timeout)
            if isinstance(message, dict):
                if "start" in message:
                    current, since = message["start"], time.monotonic()
                elif "result" in message:
                    current, done = "", done + 1
                    self._found.put(_result(message["result"]))
                elif "done" in message:
                    return done, True
                continue
            if self._stopping:
                return done, False
            if message == "late":
                process.kill()
            if current:
                self._found.put(self._lost(process, batch, current, message, since))
                done += 1
            elif message is None:
                process.child.wait()
            return done, False

    def _lost(
        self, process: Process, batch: Batch, case: str, message: object, since: float
    ) -> Result:
        parsed = parse(case)
        verdict, reason = "CRASH", ""
        if message == "late":
            verdict, reason = "HANG", f"no answer within {self.setup.timeout:g} s; killed"
        else:
            reason = f"the worker process ended by {process.ending()}"
        return Result(
            case, parsed.op, parsed.form, verdict, dtype=parsed.dtype, reason=reason,
            seed=batch.seed, seconds=time.monotonic() - since,
        )  # fmt: skip


def _result(data: Mapping[str, Any]) -> Result:
    from ..record.result import from_json

    return from_json(data)
