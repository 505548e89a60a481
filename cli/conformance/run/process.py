"""Owns one worker process: how it is started, spoken to, and what its end says; deals nothing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

_TAIL: Final = 400
_END_SECONDS: Final = 10.0  # a process that got SIGKILL has ended by then, unless a driver holds it
_STARVED_SECONDS: Final = 120.0  # or others take every processor
# The working folder is not searched for modules; Python has had the option since 3.11.
_SAFE_PATH: Final = ("-P",) if sys.version_info >= (3, 11) else ()


def answers() -> IO[str]:
    """A worker's way to answer: the stdout that it was started with. What libraries print from here
    on goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


class EnvironmentFailedError(RuntimeError):
    """No worker can start; the message is what the last one said."""


class OutOfTimeError(EnvironmentFailedError):
    """The deadline came before a worker had started."""


class DeviceHungError(EnvironmentFailedError):
    """A worker neither answers nor dies: its driver holds it. Nothing else may use the device."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs to know; see worker.py. `soc`: the product that a simulator is to be;
    `guard`: whether memory is watched around each block, which costs time; `peer`: a worker that
    another one asks for the same case; `cases`: a case file, see operators/filed.py; `until`: when
    workers are ended whatever they do, by `time.monotonic` of this host (0: never); `time_every`:
    seconds between rounds of timed launches beside the cases (0: none); `second_oracle`: whether
    torch, whose import takes seconds, is asked about failures; `every`: whether workers tell which
    operators the install exports."""

    device: str = "npu:0"
    home: str | None = None
    simulator: bool = False
    journal: str = ""
    timeout: float = 60.0
    environ: Mapping[str, str] = field(default_factory=dict)
    recording: str = ""
    run: str = ""
    soc: str = ""
    guard: bool = True
    peer: bool = False
    cases: str = ""
    until: float = 0.0
    time_every: float = 0.0
    second_oracle: bool = True
    every: bool = False

    @property
    def left(self) -> float:
        """Seconds until workers are ended."""
        return self.until - time.monotonic() if self.until else math.inf

    def message(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "home": self.home,
            "simulator": self.simulator,
            "journal": self.journal,
            "recording": self.recording,
            "run": self.run,
            "soc": self.soc,
            "guard": self.guard,
            "peer": self.peer,
            "cases": self.cases,
            "second_oracle": self.second_oracle and not self.until,
            "time_every": self.time_every,
            "timeout": self.timeout,
            "every": self.every,
        }


@dataclass(frozen=True, slots=True)
class Batch:
    """Cases for one worker, in order, with what holds for all of them; `device` only, if named;
    `soc`: on a simulator of another product; `required`: dealt though a budget is spent."""

    cases: tuple[str, ...]
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = ""
    soc: str = ""
    required: bool = False

    def plan(self) -> dict[str, Any]:
        """What is to be run, for the journal."""
        named = {k: v for k in ("device", "soc") if (v := getattr(self, k))}
        return {"cases": list(self.cases), "seed": self.seed, **named}

    def message(self, cases: Sequence[str]) -> dict[str, Any]:
        return {"cases": list(cases), "seed": self.seed, **self.options}

    def as_json(self) -> dict[str, Any]:
        """All of it, for another host: `Batch(**data)` is the same again."""
        return {**asdict(self), "cases": list(self.cases)}


class Process:
    """One worker process and its lines; `module` is what it runs."""

    module = f"{__package__}.worker"

    def __init__(self, setup: Setup) -> None:
        started = _take(self.module, _environment(setup)) or _Started(self.module, setup)
        self.errors, self.child = started.errors, started.child
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
        return json.loads(line)

    def cpu_seconds(self) -> float:
        """Processor time that the worker and its ended children used so far; 0 where the system
        does not tell (Linux, proc_pid_stat(5): fields 14 to 17)."""
        try:
            text = Path(f"/proc/{self.child.pid}/stat").read_text()
        except OSError:
            return 0.0
        return sum(map(int, text.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Memory that the worker has; 0 where the system does not tell (proc_pid_statm(5))."""
        try:
            text = Path(f"/proc/{self.child.pid}/statm").read_text()
        except OSError:
            return 0
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kill(self, seconds: float = _END_SECONDS, starved: float = _STARVED_SECONDS) -> bool:
        """End it by force; whether it ended. A process that waits inside a driver does not; one
        that only waits for a processor gets the time that a busy host needs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        ended = self.wait(seconds) is not None
        if not ended and not self._in_kernel():
            ended = self.wait(starved) is not None
        self.close()
        return ended

    def _in_kernel(self) -> bool:
        """Whether it waits uninterruptibly inside the kernel, as a driver makes it (proc(5), D)."""
        try:
            stat = Path(f"/proc/{self.child.pid}/stat").read_text()
        except OSError:
            return True  # nothing to tell by
        return stat.rpartition(")")[2].split()[0] == "D"

    def wait(self, seconds: float = _END_SECONDS) -> int | None:
        """Its exit status; None where it still runs after `seconds`."""
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        self.selector.close()
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def ending(self) -> str:
        """How it ended: `signal 11 (SIGSEGV)` or `exit code 3`, and the last it said."""
        code = self.wait()
        message = self.last_words()
        if code is None:
            return "closing its output without an end" + (
                f"; it said: {message}" if message else ""
            )
        how = f"exit code {code}"
        if code < 0:
            how = f"signal {-code}"
            with contextlib.suppress(ValueError):  # the real-time ones have no names
                how += f" ({signal.Signals(-code).name})"
            if -code == signal.SIGKILL:
                how += ": killed from outside, often because host memory ran out"
        return how + (f"; it said: {message}" if message else "")

    def last_words(self) -> str:
        self.errors.seek(0)
        text = self.errors.read().decode("utf-8", "replace").strip()
        return " ".join(text[-_TAIL:].split())


class _Started:
    """A process that imports, until somebody takes it and sends a setup."""

    def __init__(self, module: str, setup: Setup) -> None:
        self.module, self.environment = module, _environment(setup)
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives with the process
        self.child = subprocess.Popen(
            [sys.executable, *_SAFE_PATH, "-m", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env=self.environment, start_new_session=True,
        )  # fmt: skip

    def discard(self) -> None:
        """End it before it has done anything."""
        self.child.kill()
        self.child.communicate()
        self.errors.close()


_spare: list[_Started] = []


@contextlib.contextmanager
def prepared(setups: Sequence[Setup]) -> Iterator[None]:
    """Start a worker for each setup that the first Process with the same environment takes: it
    imports while this process does. One that nobody took is killed at the end."""
    workers = [_Started(Process.module, setup) for setup in setups]
    _spare.extend(workers)
    try:
        yield
    finally:
        for started in workers:
            if started in _spare:
                _spare.remove(started)
                started.discard()


def _take(module: str, environment: Mapping[str, str]) -> _Started | None:
    for started in _spare:
        if started.module == module and started.environment == environment:
            _spare.remove(started)
            return started
    return None


def _environment(setup: Setup) -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, **_quiet(setup), "PYTHONPATH": path}


def _quiet(setup: Setup) -> dict[str, str]:
    """One thread per worker: several workers share the cores."""
    environment = {"ACLSIM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    product = {"ACLSIM_SOC": setup.soc} if setup.soc else {}
    return {
        **{k: v for k, v in environment.items() if k not in os.environ},
        **product,
        **setup.environ,
    }
