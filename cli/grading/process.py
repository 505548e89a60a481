"""Owns the process of one operator as the grader sees it: started, asked, bounded, ended."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .launches import Region

_START_SECONDS: Final = 20.0
_LINE_BYTES: Final = 1 << 16
_TAIL: Final = 400
_SAFE_PATH: Final = ("-P",) if sys.version_info >= (3, 11) else ()
# What a process needs of the environment; the rest, and above all the reference's place, is not
# the operator's to know.
_PRIVATE: Final = ("MINDTORCH_", "ACLSIM_PROFILE", "PYTEST_", "LD_PRELOAD")


@dataclass(frozen=True, slots=True)
class Confinement:
    """Where an operator runs and what it may use: `memory` bytes, `seconds` for one launch."""

    operator: str
    home: str | None = None
    simulator: bool = False
    device: int = 0
    isolate: bool = True
    packages: bool = True
    hide: tuple[str, ...] = ()
    memory: int = 2 << 30
    seconds: float = 10.0


class OperatorEndedError(Exception):
    """The process of the operator ended, hung or lied; `kind` is one of diagnosis.KINDS."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(slots=True)
class Reply:
    """An answer and the seconds that it took on the grader's clock."""

    data: Mapping[str, Any]
    seconds: float


@dataclass
class OperatorProcess:
    """One process with one operator. Every request has a nonce, which its answer repeats."""

    place: Confinement
    region: Region
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="mindtorch-grade-")))

    def __post_init__(self) -> None:
        self.errors = (self.folder / "stderr").open("w+b")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(_PRIVATE)}
        environ |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ACLSIM_THREADS": "1",
                    "ACLSIM_PROFILE": str(self.folder / "calls"),
                    "HOME": str(self.folder), "TMPDIR": str(self.folder)}  # fmt: skip
        if not self.place.packages:
            environ.pop("ASCEND_CUSTOM_OPP_PATH", None)
        self.child = subprocess.Popen(
            [sys.executable, *_SAFE_PATH, "-m", f"{__package__}.operator_server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environ,
            pass_fds=(self.region.descriptor,), start_new_session=True,
        )  # fmt: skip
        assert self.child.stdout is not None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.child.stdout, selectors.EVENT_READ)
        self.pending, self.ready = b"", False
        self.greeting = self._setup()
        self._send(self.greeting)

    def _setup(self) -> dict[str, Any]:
        place = self.place
        return {
            "nonce": secrets.token_hex(8), "operator": place.operator, "home": place.home,
            "simulator": place.simulator, "device": place.device, "isolate": place.isolate,
            "hide": list(place.hide), "folder": str(self.folder),
            "memory": place.memory + self.region.size,
            "seconds": int(12 * place.seconds) + 20, "region": self.region.descriptor,
            "bytes": self.region.size,
        }  # fmt: skip

    def hello(self) -> Mapping[str, Any]:
        """What it says once the operator is loaded, or why it is not."""
        reply = self._receive(self.greeting["nonce"], _START_SECONDS + self.place.seconds)
        self.ready = "refused" not in reply
        return reply

    def ask(self, step: str, **fields: Any) -> Reply:
        """One step of a launch; OperatorEndedError where no honest answer comes."""
        nonce = fields.pop("nonce", "") or secrets.token_hex(8)
        message = {"step": step, "nonce": nonce, **fields}
        begun = time.perf_counter()
        self._send(message)
        data = self._receive(nonce, self.place.seconds)
        return Reply(data, time.perf_counter() - begun)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            self.child.stdin.flush()

    def _receive(self, nonce: str, seconds: float) -> Mapping[str, Any]:
        line = self._line(seconds)
        try:
            message = json.loads(line)
            honest = message["nonce"] == nonce
        except (ValueError, KeyError, TypeError, RecursionError):
            honest = False
        if not honest:
            raise OperatorEndedError("channel", "it wrote to the grader's own pipe")
        data: Mapping[str, Any] = message
        return data

    def _line(self, seconds: float) -> bytes:
        assert self.child.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            if left <= 0 or not self.selector.select(left):
                raise OperatorEndedError("hang", f"no answer within {seconds:g} s")
            data = os.read(self.child.stdout.fileno(), _LINE_BYTES)
            if not data:
                raise self._ended()
            self.pending += data
            if len(self.pending) > 16 * _LINE_BYTES:
                raise OperatorEndedError("channel", "it wrote to the grader's own pipe")
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def _ended(self) -> OperatorEndedError:
        code = self.child.wait(5)
        words = self._last_words()
        text = f"; it said: {words}" if words else ""
        if code == -signal.SIGSYS:
            return OperatorEndedError("process", "it started a program or a process, or reached "
                                      "into another one")  # fmt: skip
        if code == -signal.SIGXCPU or code == -signal.SIGKILL:
            return OperatorEndedError("limit", f"it used more processor time than allowed{text}")
        if code < 0:
            name = signal.Signals(-code).name
            most = f" (it may use {self.place.memory >> 20} MiB of memory)"
            return OperatorEndedError("crash", f"it crashed: {name}{most}{text}")
        return OperatorEndedError("exit", f"it ended its process with exit code {code}{text}")

    def _last_words(self) -> str:
        self.errors.flush()
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - _TAIL))
        return " ".join(self.errors.read().decode("utf-8", "replace").split())

    def calls(self) -> list[str]:
        """The functions of ACLNN that were called here, from the simulator's log; "" comes first
        where the log is not whole."""
        files = sorted((self.folder / "calls").glob("*/host/data/aclsim.jsonl"))
        text = files[0].read_text("utf-8", "replace") if len(files) == 1 else ""
        lines = text.splitlines()
        names = [] if lines and lines[0].startswith('{"process":') else [""]
        for line in lines:
            if line.startswith('{"call":"aclnn'):
                with contextlib.suppress(ValueError, KeyError):
                    names.append(json.loads(line)["call"])
        return names

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Let none of its threads run meanwhile: nobody slows down what is timed beside it."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, number)

    def close(self) -> None:
        """End it and everything that it started."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(5)
        self.selector.close()
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
