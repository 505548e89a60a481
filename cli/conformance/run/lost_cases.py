"""Owns causes of cases that ended their worker: shrunk and saved on workers of their own.

What a worker does for a wrong result it cannot do for a crash or a hang.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..cases.case import Case, parse
from ..cases.case_file import MARK
from ..operators.find import subject
from ..record.result import NEUTRAL, Result
from .comparing import ENDINGS
from .lane import Lane
from .process import Batch, EnvironmentFailedError, Setup
from .shrink import ground, shrink

# Seconds for the cases that are tried for one cause, for all causes, and of silence that are taken
# for a hang.
_SECONDS: Final = 20.0
_TOTAL: Final = 60.0
_SILENCE: Final = 5.0
_DTYPES: Final = 3
_VERBS: Final = {"CRASH": "crashes", "HANG": "hangs"}


class LostCases:
    """Explains the first lost case of each operator, while there is time; `declare` gives what the
    install declares."""

    def __init__(self, setup: Setup, declare: Callable[[], Any], soc: str, save: str) -> None:
        self.declare, self.soc, self.save = declare, soc, save
        silence = min(setup.timeout, _SILENCE)
        self.lane = Lane(replace(setup, journal="", timeout=silence))
        self.explained: set[str] = set()
        self.left = _TOTAL

    def explain(self, lost: Result) -> Result:
        """The result with its cause, saved if asked; as it is for others than designed cases, and
        for later ones of an operator."""
        case = parse(lost.case)
        if lost.verdict not in ENDINGS or lost.blame or MARK in lost.op:
            return lost
        if not case.designed or lost.op in self.explained or self.left <= 0:
            return lost
        self.explained.add(lost.op)
        started = time.monotonic()
        self.lane.setup = replace(self.lane.setup, device=lost.device or self.lane.setup.device)
        try:
            lost = lost.with_(cause=self._cause(case, lost))
            if self.save:
                self._run(lost, {"save": self.save, "lost": lost.as_json()})
        except EnvironmentFailedError:
            pass  # the run itself meets it, and tells it
        finally:
            self.lane.close()
            self.left -= time.monotonic() - started
        return lost

    def _cause(self, case: Case, lost: Result) -> Mapping[str, Any]:
        declared = self.declare()
        what = subject(case.op, declared)
        claimed = what.claims(declared, lost.soc or self.soc).dtypes
        levels, dtypes, sizes = ground(what, claimed, case)
        most = _DTYPES if lost.verdict == "CRASH" else 1
        tried = tuple(dict.fromkeys((case.dtype or dtypes[0], *dtypes)))[:most]
        cause = shrink(case, levels, tried, lambda c: self._fails(lost, c), sizes,
                       min(_SECONDS, self.left))  # fmt: skip
        cause.verb = _VERBS[lost.verdict]
        if cause.case.id != case.id:
            smallest = self._run(lost.with_(case=cause.case.id))
            cause.result = smallest.as_json() if smallest and smallest.failing else None
        return cause.as_json()

    def _fails(self, lost: Result, case: Case) -> bool | None:
        result = self._run(lost.with_(case=case.id))
        if result is None or result.verdict in NEUTRAL or result.blame:
            return None
        return result.verdict in ENDINGS

    def _run(self, of: Result, options: Mapping[str, Any] | None = None) -> Result | None:
        """The result of a case, on a worker that nothing else uses."""
        batch = Batch((of.case,), of.seed, options or {"once": True}, soc=of.soc)
        results = [event for event in self.lane.run(batch) if isinstance(event, Result)]
        return results[0] if results else None
