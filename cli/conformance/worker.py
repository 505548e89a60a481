"""Runs cases in a process of its own: `python -m mindtorch_npu.conformance.worker`.

It reads one JSON object a line: a setup, then batches of cases; it writes {"hello"}, {"start"},
{"result"} and {"done"} lines to the descriptor that was its stdout, which libraries cannot reach.
What kills it costs the case that had started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from . import journal
from .case import CONTRACTS, Case, parse
from .complaints import is_poisonous, one_line
from .result import Result

_RECHECKS = 3


class Worker:
    """The state of a worker process: the opened install, the device, where to report."""

    def __init__(self, setup: Mapping[str, Any], out: IO[str]) -> None:
        self.setup, self.out = setup, out
        self.device: str = setup["device"]
        self.journal = journal.Journal(Path(setup["journal"])) if setup.get("journal") else None
        self.cann = _open(setup) if self.device.startswith("npu") else None
        self._claims: dict[str, Any] = {}
        self.environment: dict[str, Any] = {}

    def hello(self) -> None:
        from .environment import snapshot

        self.environment = snapshot(self.cann, self.device)
        self.health()
        self.say({"hello": self.environment})

    def say(self, message: Mapping[str, Any]) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def health(self) -> None:
        """Copy three numbers there and back and wait; raises when the device cannot do it.

        No operator is called: the operators are what is in question.
        """
        import mindtorch as torch

        from .subject import synchronize

        there = torch.tensor([1.0, 2.0, 3.0]).to(self.device)
        synchronize(self.device)
        if there.cpu().numpy().tolist() != [1.0, 2.0, 3.0]:
            raise RuntimeError(f"health check: a copy to {self.device} and back changed values")

    def batch(self, request: Mapping[str, Any]) -> bool:
        """Run a batch; False when the device is lost and this process must be replaced."""
        where = journal.place_words(self.setup)
        for name in request["cases"]:
            seed = int(request["seed"])
            line = {"case": name, "seed": seed, "repro": journal.repro(name, seed, where)}
            if self.journal is not None:
                self.journal.write("start", line)
            self.say({"start": name})
            result = self.case(parse(name), seed, request)
            self.say({"result": result.as_json()})
            if result.verdict == "POISONED":
                return False
        self.say({"done": len(request["cases"])})
        return True

    def case(self, case: Case, seed: int, request: Mapping[str, Any]) -> Result:
        """One case, rechecked if it fails, saved if asked."""
        found, trial = self.run(case, seed)
        if found.verdict in ("FAIL", "MISTRUSTED", "ERROR") and not request.get("once"):
            if self.lost(found):
                return found.with_(verdict="POISONED")
            found = self.recheck(case, seed, found)
        if found.failing and request.get("save") and trial is not None:
            from .bundle import save

            save(Path(request["save"]), found, trial, self.environment)
        return found

    def run(self, case: Case, seed: int, arrays: Any = None) -> tuple[Result, Any]:
        try:
            if case.form in CONTRACTS:
                from .contract import run as run_contract

                return run_contract(case, self.cann).with_(seed=seed), None
            from .laws import run as run_law

            return run_law(case, self.device, seed, self.claims(case.op), arrays)
        except Exception as error:
            reason = f"defect of the check itself: {one_line(error)}"
            return Result(case.id, case.op, case.form, "ERROR", reason=reason, seed=seed), None

    def claims(self, name: str) -> Any:
        """The Claims of an op, made once."""
        if name not in self._claims:
            from .claims import claims
            from .subject import row

            declared = self.cann.declarations if self.cann is not None else None
            self._claims[name] = claims(row(name), declared, self.environment.get("soc", ""))
        return self._claims[name]

    def lost(self, found: Result) -> bool:
        """Whether the device stopped working: not even copies do."""
        if not is_poisonous(found.reason):
            return False
        try:
            self.health()
        except Exception:
            return True
        return False

    def recheck(self, case: Case, seed: int, first: Result) -> Result:
        """Run again with the same and with fresh seeds; FLAKY when none of them fails."""
        seen = []
        for other in (seed, *(seed + 1000 + i for i in range(_RECHECKS))):
            again, _ = self.run(case, other)
            seen.append((other, again.verdict))
        told = tuple(f"seed {s}: {v}" for s, v in seen)
        if all(v == "PASS" for _, v in seen):
            return first.with_(verdict="FLAKY", rechecks=told)
        return first.with_(rechecks=told)


def _open(setup: Mapping[str, Any]) -> Any:
    import aclnn_bindings
    from mindtorch._backends.npu import runtime

    cann = aclnn_bindings.open(setup.get("home"), simulator=bool(setup.get("simulator")))
    runtime.use(cann)
    return cann


def _die_with_parent() -> None:
    """Ask Linux to kill this process when the one that started it is gone, however it went.

    A kernel that hangs would otherwise hold the device for ever (prctl(2), PR_SET_PDEATHSIG).
    """
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))


def main() -> int:
    """Serve until stdin ends."""
    _die_with_parent()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setup = json.loads(sys.stdin.readline())
    try:
        worker = Worker(setup, out)
        worker.hello()
    except Exception as error:
        out.write(json.dumps({"fatal": one_line(error)}) + "\n")
        out.flush()
        return 3
    for line in sys.stdin:
        if not worker.batch(json.loads(line)):
            return 1
    return 0


if __name__ == "__main__":
    code = main()
    # Leave at once: a device that hangs must not hold up the end.
    os._exit(code)
