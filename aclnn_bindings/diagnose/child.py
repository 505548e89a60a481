"""Runs one of this package's programs in a child process and reports its steps; trusts none.

A program writes one JSON object a line: `{"start": step}` before each step and `{"done": step, …}`
after it. A crash or hang is therefore the state of the step that had started and not ended. The
lines go to a file of their own, so that nothing a library prints comes between them, and the
program ends without running exit handlers and destructors, which are not what it is asked about.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final, Literal

from .signals import signal_name

State = Literal["ok", "failed", "crashed", "timed out", "not run"]
EARLY: Final = "the process ended early"
NO_CHILD: Final = "a child process could not be started"
_TAIL = 600
# The variable by which a child knows the file that its lines go to.
_LINES = "MINDTORCH_CHILD_LINES"
# Until its first line a child only starts Python, which a busy machine makes slow, in seconds.
_START = 30.0
_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step ended: its time in seconds, what it said, and facts it found."""

    name: str
    state: State
    seconds: float = 0.0
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def run(
    program: str, request: Mapping[str, Any], timeout: float, environ: Mapping[str, str]
) -> tuple[StepResult, ...]:
    """The steps of `python -m aclnn_bindings.<program>`, given `request` as JSON on its input.

    A step may last `timeout` seconds. Where this system gives no process or no temporary file, the
    one step says so.
    """
    try:
        return _run(program, request, timeout, environ)
    except OSError as error:
        return (StepResult("process", "failed", 0.0, f"{NO_CHILD}: {error}"),)


def _run(
    program: str, request: Mapping[str, Any], timeout: float, environ: Mapping[str, str]
) -> tuple[StepResult, ...]:
    path = os.pathsep.join(filter(None, (place or _here() for place in sys.path)))
    env = {**environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    command = [sys.executable, "-X", "faulthandler", "-m", f"{__package__}.{program}"]
    if sys.version_info >= (3, 11):
        command.insert(1, "-P")
    files = tempfile.TemporaryFile
    with files() as files_, files() as lines, files() as out, files() as err:
        files_.write(json.dumps(request).encode())
        files_.seek(0)
        env[_LINES] = str(lines.fileno())
        process = subprocess.Popen(
            command, stdin=files_, stdout=out, stderr=err, env=env, start_new_session=True,
            pass_fds=(lines.fileno(),),
        )  # fmt: skip
        late = _wait(process, lines, timeout)
        steps = list(_read(lines))
        ending = _ending(process.returncode, late, timeout, err)
    return tuple(_results(steps, *ending))


def _wait(process: subprocess.Popen[bytes], lines: IO[bytes], timeout: float) -> bool:
    """Wait for the child, at most `timeout` seconds without a line; True if it was killed."""
    size, end = 0, time.monotonic() + timeout + _START
    while time.monotonic() < end:
        try:
            process.wait(_PAUSE)
            return False
        except subprocess.TimeoutExpired:
            now = os.fstat(lines.fileno()).st_size
            if now != size:
                size, end = now, time.monotonic() + timeout
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _read(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    """The child's lines; one that a crash cut short is dropped."""
    lines.seek(0)
    for line in lines.read().decode("utf-8", "replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _here() -> str:
    """The current folder; "" where somebody removed it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _ending(code: int, late: bool, timeout: float, err: IO[bytes]) -> tuple[State, str]:
    err.seek(0)
    message = err.read().decode("utf-8", "replace").strip()[-_TAIL:]
    if late:
        return "timed out", f"no answer within {timeout:g} s, stopped"
    if code < 0:
        return "crashed", f"the process died of {signal_name(-code)}"
    if code:
        last = message.splitlines()[-1] if message else f"exit status {code}"
        return "failed", f"{EARLY}: {last}"
    return "ok", ""


def _results(steps: list[dict[str, Any]], state: State, detail: str) -> Iterator[StepResult]:
    open_step: str | None = None
    for step in steps:
        if "start" in step:
            open_step = step["start"]
            continue
        open_step = None
        ended: State = "ok" if step["ok"] else "failed"
        facts = step.get("facts", {})
        yield StepResult(step["done"], ended, step["seconds"], step.get("detail", ""), facts)
    if open_step is not None:
        yield StepResult(open_step, state if state != "ok" else "crashed", 0.0, detail)
    elif state != "ok":
        yield StepResult("process", state, 0.0, detail)


class Steps:
    """The child's side: times each step and writes its lines where the parent reads them."""

    def __init__(self) -> None:
        self._out = os.fdopen(int(os.environ.pop(_LINES)), "w", buffering=1, encoding="utf-8")

    @contextmanager
    def step(self, name: str, facts: dict[str, Any] | None = None) -> Iterator[None]:
        """One step; an exception inside it is its detail and goes on to the caller."""
        self._say({"start": name})
        began = time.perf_counter()
        done: dict[str, Any] = {"done": name, "ok": True}
        try:
            yield
        except Exception as error:
            done |= {"ok": False, "detail": str(error)}
            raise
        finally:
            done |= {"seconds": time.perf_counter() - began, "facts": facts or {}}
            self._say(done)

    def _say(self, line: dict[str, Any]) -> None:
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def request() -> Any:
    """The child's input."""
    return json.load(sys.stdin)


def main(body: Callable[[Steps, Any], None]) -> None:
    """Run a child program and end the process; a failed step ends it with status 0, because the
    step says so."""
    steps = Steps()
    try:
        body(steps, request())
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(0)
