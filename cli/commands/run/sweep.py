"""Runs a program once per call, that call failing; tells which failures it does not survive.

A failure is survived when the program ends by itself, and if it says that all went well, with the
output that it has without the failure. A crash, no end, or a good end with another output is not.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from aclnn_bindings.layers import parent, scratch, session
from aclnn_bindings.layers.interposed import Interposed

from ... import exits, progress, recording, render
from ...plurals import plural
from .faults import default_code

# How much longer than undisturbed a run may take before it counts as hanging.
_PATIENCE, _LEAST_S = 5, 20
# Not the program's to check: what they return is no status of the work.
_EXEMPT: Final = ("aclDestroy*", "aclrtDestroy*", "aclrtFree*", "aclFinalize*", "aclrtReset*",
                  "aclrtGetRecent*", "aclrtPeek*", "aclrtGetLast*")  # fmt: skip
_DISPLAY_LIMIT: Final = 30


@dataclass(frozen=True, slots=True)
class FaultTrial:
    """One run: the call that failed, the code that it gave, and how the program took it."""

    name: str
    nth: int
    code: int
    verdict: str
    detail: str


class _Program:
    """The program, run with its output in a file of `folder`."""

    def __init__(
        self, interposed: Interposed, command: Sequence[str], environ: Mapping[str, str],
        folder: Path,
    ) -> None:  # fmt: skip
        self._interposed, self._command, self._environ = interposed, command, environ
        self._output = folder / "output"
        self.output = b""
        self.patience: float | None = None
        self.hung = False

    def _launch(self, command: Sequence[str], variables: Mapping[str, str]) -> int:
        self.hung = False
        try:
            code = parent.run_once_of_many(command, variables, self._output, self.patience)
        except TimeoutError:
            self.hung = True
            return -9
        self.output = self._output.read_bytes()
        return code

    def run(self, path: Path | None, rules: Sequence[str]) -> int:
        run_options = session.LayerRequest(path, [("fault", line) for line in rules])
        return session.run(
            self._interposed, self._command, run_options, self._environ, launch=self._launch
        ).code


def run(
    interposed: Interposed, command: Sequence[str], environ: Mapping[str, str], spec: str
) -> int:
    """The exit code: 1 when some failure was not survived, 5 when none could be tried. `spec`:
    sweep[:GLOB][@N]."""
    glob, only = _parts(spec)
    with scratch.folder("mindtorch-sweep-") as folder:
        program = _Program(interposed, command, environ, folder)
        path = folder / "calls.rec"
        start = time.monotonic()
        code = program.run(path, ())
        program.patience = max(_LEAST_S, _PATIENCE * (time.monotonic() - start))
        if code != 0:
            raise click.UsageError(
                f"the program fails by itself, with {code}; a sweep needs a good run"
            )
        counts = Counter(call.name for call in recording.open(path).calls())
        names = [n for n in counts if fnmatch.fnmatch(n, glob) and not _exempt(n)]
        trials = _trials(program, {name: counts[name] for name in names}, only)
    render.show(_document(trials))
    if not trials:
        click.echo(f"not judged: --fault {spec} matched no call", err=True)
        return exits.NOT_JUDGED
    return exits.PROBLEMS if any(t.verdict != "survived" for t in trials) else exits.OK


def _trials(program: _Program, counts: Mapping[str, int], only: int | None) -> list[FaultTrial]:
    """One run per call, or per call number `only` of each name."""
    usual = program.output
    trials = []
    calls = [(name, nth) for name, count in counts.items()
             for nth in range(1, count + 1) if only in (None, nth)]  # fmt: skip
    with progress.steps("failing", len(calls)) as begin:
        for name, nth in calls:
            begin(f"{name} {nth}")
            trials.append(_try(program, name, nth, usual))
    return trials


def _parts(spec: str) -> tuple[str, int | None]:
    """Which functions, and which call of each; None is every one."""
    match = re.fullmatch(r"sweep(?::([\w*?\[\]]+))?(?:@([1-9]\d*))?", spec)
    if match is None:
        raise click.UsageError(f"--fault {spec!r}: expected sweep, sweep:aclnn* or sweep:aclnn*@2")
    return match[1] or "*", int(match[2]) if match[2] else None


def _exempt(name: str) -> bool:
    return any(fnmatch.fnmatch(name, glob) for glob in _EXEMPT)


def _try(program: _Program, name: str, nth: int, usual: bytes) -> FaultTrial:
    code = default_code(name)
    ended = program.run(None, [f"{name} {nth} fail {code}"])
    if program.hung:
        return FaultTrial(name, nth, code, "hang", f"no end in {program.patience:.0f} s")
    if ended < 0:
        return FaultTrial(name, nth, code, "crash", f"signal {-ended}")
    if ended == 0 and program.output != usual:
        return FaultTrial(name, nth, code, "silent", "ended well with another output")
    return FaultTrial(name, nth, code, "survived", f"exit code {ended}")


def _document(trials: Sequence[FaultTrial]) -> list[render.Block]:
    bad = [t for t in trials if t.verdict != "survived"]
    good = Counter(t.detail for t in trials if t.verdict == "survived")
    text = ", ".join(f"{count} with {detail}" for detail, count in good.items())
    head = f"{plural(len(trials), 'failure')}, {len(trials) - len(bad)} survived"
    head += f" ({text})" if text else ""
    blocks: list[render.Block] = [render.Line(render.Cell(head, "bad" if bad else "good"))]
    if bad:
        rows: list[list[render.Content]] = [
            [t.name, str(t.nth), str(t.code), render.Cell(t.verdict, "bad"), t.detail]
            for t in bad[:_DISPLAY_LIMIT]
        ]
        columns = ["call", "which", "code", "verdict", "what"]
        blocks.append(render.Grid(columns, rows, frozenset((1, 2))))
    if len(bad) > _DISPLAY_LIMIT:
        blocks.append(render.Line(f"and {len(bad) - _DISPLAY_LIMIT} more"))
    return blocks
