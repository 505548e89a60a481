"""Runs cases in a process of its own: `python -m mindtorch_npu.conformance.run.worker`.

It reads one JSON object a line: a setup, then batches of cases; it writes {"hello"}, {"start"},
{"result"} and {"done"} lines to the descriptor that was its stdout, which libraries cannot reach.
What kills it costs the case that had started.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...spec.errors import DeclarationError
from ..cases.case import BENCH, CONTRACTS, ITEMS, PROBE, SOAK, Case, parse
from ..cases.case_file import MARK, CaseFileError
from ..operators.golden_files import named
from ..record import journal
from ..record.result import NEUTRAL, REFERENCE, Result, from_json
from .cann_words import is_poisonous, one_line
from .custom_reference import Watch
from .peer import Peer
from .process import answers
from .shrink import MinimalFailure, ground, shrink
from .subject import UnknownSubjectError

if TYPE_CHECKING:
    from .launch_times import LaunchTimer

_RECHECKS = 3
_TIDY = 100
# Objects that are made until cycles among them are looked for.
_CYCLES = 100_000
# Of the time of a case, what one call of a reference may take: it is called twice.
_PART = 0.4
# Causes of one operator that are looked for: the first ones tell what the others repeat.
_EXPLAINED = 3


class Worker:
    """The state of a worker process: the opened install, the device, where to report."""

    def __init__(self, setup: Mapping[str, Any], out: IO[str]) -> None:
        self.setup, self.out = setup, out
        self.device: str = setup["device"]
        book, run = setup.get("journal"), str(setup.get("run", ""))
        self.journal = journal.Journal(Path(book), run) if book else None
        self.cann = _open(setup) if self.device.startswith("npu") else None
        self._claims: dict[str, Any] = {}
        self._subjects: dict[str, Any] = {}
        self.environment: dict[str, Any] = {}
        self.ran = 0
        self.causes: dict[str, list[MinimalFailure]] = {}
        self.rechecked: Counter[str] = Counter()
        self._peer: Peer | None = None
        self._timer: LaunchTimer | None = None
        if not setup.get("second_oracle", True):
            from .second_oracle import silence

            silence()

    def hello(self) -> None:
        from .environment import snapshot
        from .locality import near

        if self.cann is not None:
            self.environment["cpus_near"] = near(self.cann, self.device)
        self.environment |= snapshot(self.cann, self.device)
        self.health()
        self._load_references()
        exported = {"exported": self.exported()} if self.setup.get("every") else {}
        self.say({"hello": {**self.environment, **exported}})

    def _load_references(self) -> None:
        """Import persons' references now: a case's time is for the case. What is wrong with them,
        the cases say that need them."""
        from ..operators.golden_files import loaded

        with contextlib.suppress(DeclarationError):
            loaded()

    def exported(self) -> list[str]:
        """The operators that the install declares and exports."""
        if self.cann is None:
            return []
        return [name for name in self.cann.declarations.ops if self.cann.has_op(name)]

    def say(self, message: Mapping[str, Any], at_once: bool = True) -> None:
        self.out.write(json.dumps(message) + "\n")
        if at_once:
            self.out.flush()

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Say something beside results, for the journal."""
        self.say({"note": kind, "data": dict(data)})

    def health(self) -> None:
        """Copy three numbers there and back and wait; raises when the device cannot do it.

        No operator is called: the operators are what is in question.
        """
        import mindtorch as torch

        from .tensors import synchronize

        there = torch.tensor([1.0, 2.0, 3.0]).to(self.device)
        synchronize(self.device)
        if there.cpu().numpy().tolist() != [1.0, 2.0, 3.0]:
            raise RuntimeError(f"health check: a copy to {self.device} and back changed values")

    def batch(self, request: Mapping[str, Any]) -> bool:
        """Run a batch; False when the device is lost and this process must be replaced."""
        for name in request["cases"]:
            seed = int(request["seed"])
            if self.journal is not None:
                # A full disk stops the run where results are written, not the case.
                with contextlib.suppress(journal.JournalFullError):
                    self.journal.write("start", {"case": name, "seed": seed,
                                                 "device": self.device})  # fmt: skip
            self.say({"start": name})
            result = self.case(parse(name), seed, request)
            lost = result.verdict == "POISONED"
            # What follows at once, the next start or the end, takes it along.
            self.say({"result": result.as_json()}, at_once=lost)
            self.tidy()
            self.time_launches()
            if lost:
                return False
        self.say({"done": len(request["cases"])})
        return True

    def tidy(self) -> None:
        """Give cached blocks back now and then: every case has sizes of its own."""
        self.ran += 1
        if self.ran % _TIDY == 0 and self.cann is not None:
            import mindtorch as torch

            torch.npu.empty_cache()

    def time_launches(self, within: bool = False) -> None:
        """A round of timed launches, where one is due; `within` a case, which a crash then costs.
        What fails in a round fails in cases too, and they tell it: no other round follows."""
        if not self.setup.get("time_every") or self.cann is None:
            return
        from .launch_times import NOTE, LaunchTimer

        if self._timer is None:
            every = float(self.setup["time_every"])
            self._timer = LaunchTimer(self.device, self.cann.install.kind, every)
        if not self._timer.due:
            return
        name = self._timer.case
        if not within:
            self.say({"start": name})
        try:
            self.note(NOTE, {"case": name, "milliseconds": self._timer.round()})
        except Exception as error:
            self.setup = {**self.setup, "time_every": 0}
            self.note(NOTE, {"case": name, "error": one_line(error)})

    def case(self, case: Case, seed: int, request: Mapping[str, Any]) -> Result:
        """One case, rechecked if it fails, saved if asked."""
        if case.form in ITEMS:
            return self.item(case, seed, request)
        if case.form == SOAK:
            from .soak import soak

            return soak(case, seed, self.device, request, self.note,
                        lambda: self.time_launches(within=True))  # fmt: skip
        if request.get("lost"):
            return self.keep(case, seed, request)
        result, trial = self.run(case, seed)
        if request.get("bits"):
            from .bits import keep

            folder = Path(request["bits"])
            result = result.with_(digest=keep(folder, result, trial))
            if request.get("repeat"):
                self.repeat(case, seed, request, result.digest)
                return result
        judged = result.verdict in ("FAIL", "MISTRUSTED", "ERROR") and not result.blame
        if judged and not request.get("once"):
            if self.lost(result):
                return result.with_(verdict="POISONED")
            if case.designed and trial is not None and MARK not in case.op:
                result = self.explain(case, seed, result)
            else:
                result = self.recheck(case, seed, result)
        if result.failing and request.get("save") and trial is not None:
            from ..record.bundle import save

            save(Path(request["save"]), result, trial, self.environment,
                 cases=str(self.setup.get("cases", "")))  # fmt: skip
        return result

    def keep(self, case: Case, seed: int, request: Mapping[str, Any]) -> Result:
        """Save the inputs of a case that ended a worker; it does not run."""
        from ..record.bundle import save
        from .trial import Trial

        lost = from_json(request["lost"])
        save(Path(request["save"]), lost, Trial(self.subject(case.op), case, self.device, seed),
             self.environment)  # fmt: skip
        return lost

    def item(self, case: Case, seed: int, request: Mapping[str, Any]) -> Result:
        """Work beside checking: it runs once, and tells what went wrong in its result."""
        try:
            if case.form == PROBE:
                from ...commands.probe.item import probe

                return probe(case, seed, self.setup)
            assert case.form == BENCH
            from ...commands.bench.item import bench

            return bench(case, seed, self.device, request, self.setup, self._declared())
        except Exception as error:
            return Result(case.id, case.op, case.form, "ERROR", reason=one_line(error), seed=seed)

    def run(self, case: Case, seed: int, arrays: Any = None) -> tuple[Result, Any]:
        try:
            if case.form in CONTRACTS:
                from ..cases.contract import run as run_contract

                return run_contract(case, self.cann).with_(seed=seed), None
            from .laws import run as run_law

            what = self.subject(case.op)
            result, trial = run_law(what, case, self.device, seed, self.claims(case.op), arrays)
            if case.form == "process" and result.verdict == "PASS" and not self.setup.get("peer"):
                self._peer = self._peer or Peer(self.setup)
                result = self._peer.compare(result, trial)
            return result, trial
        except Exception as error:
            verdict, reason = _outside_error(error)
            blame = REFERENCE if isinstance(error, DeclarationError) and named() else ""
            return Result(case.id, case.op, case.form, verdict, reason=reason, seed=seed,
                          blame=blame), None  # fmt: skip

    def repeat(self, case: Case, seed: int, request: Mapping[str, Any], first: str) -> None:
        """Run a case again and again; a note says how often each digest came. A brief one ends
        where the second digest came."""
        from .bits import keep, packed

        folder, counts = Path(request["bits"]), Counter({first: 1})
        for _ in range(int(request["repeat"]) - 1):
            if request.get("brief") and len(counts) > 1:
                break
            again, trial = self.run(case, seed)
            counts[keep(folder, again, trial)] += 1
        data = {"case": case.id, "seed": seed, "digests": dict(counts)}
        if request.get("ship"):
            data["outputs"] = packed(folder, case.id, seed, counts)
        self.note("repeat", data)

    def subject(self, name: str) -> Any:
        """The Subject of a name, made once."""
        if name not in self._subjects:
            self._subjects[name] = self._find(name)
        return self._subjects[name]

    def _find(self, name: str) -> Any:
        """A row, an operator, or a launch of the recording that the setup names."""
        if self.setup.get("recording"):
            from ...recording import cases as recorded

            if recorded.MARK in name:
                return recorded.subject(Path(self.setup["recording"]), name, self._declared())
        if self.setup.get("cases"):
            from ..operators import filed

            if MARK in name:
                return filed.subject(self.setup["cases"], name, self._declared())
        from ..operators.find import subject

        return subject(name, self._declared())

    def _declared(self) -> Any:
        return self.cann.declarations if self.cann is not None else None

    def claims(self, name: str) -> Any:
        """The Claims of a subject, made once."""
        if name not in self._claims:
            soc = self.environment.get("soc", "")
            self._claims[name] = self.subject(name).claims(self._declared(), soc)
        return self._claims[name]

    def lost(self, result: Result) -> bool:
        """Whether the device stopped working: not even copies do."""
        if not is_poisonous(result.reason):
            return False
        try:
            self.health()
        except Exception:
            return True
        return False

    def explain(self, case: Case, seed: int, first: Result) -> Result:
        """A failing designed case with its cause: one that is known, else it is run again and
        shrunk; the first causes of an operator, not each."""
        known = self.causes.setdefault(case.op, [])
        for cause in known:
            if cause.covers(case):
                return first.with_(cause=cause.as_json())
        if len(known) >= _EXPLAINED:
            return first
        again = self.recheck(case, seed, first)
        if again.verdict == "FLAKY":
            return again
        levels, dtypes, sizes = ground(self.subject(case.op), self.claims(case.op).dtypes, case)
        cause = shrink(case, levels, dtypes, lambda c: self._fails(c, seed), sizes)
        if cause.case.id != case.id:
            smallest, _ = self.run(cause.case, seed)
            cause.result = smallest.as_json() if smallest.failing else None
        known.append(cause)
        return again.with_(cause=cause.as_json())

    def _fails(self, case: Case, seed: int) -> bool | None:
        """Whether a case fails; None where nothing is judged."""
        result = self.run(case, seed)[0]
        if result.verdict in NEUTRAL or result.blame:
            return None
        return result.verdict in ("FAIL", "MISTRUSTED", "ERROR")

    def recheck(self, case: Case, seed: int, first: Result) -> Result:
        """Run again with the same and with fresh seeds; FLAKY when none of them fails. Of an
        operator that fails often, and of designed cases, one more failure is enough."""
        self.rechecked[case.op] += 1
        brief = case.designed or self.rechecked[case.op] > _EXPLAINED
        seen = []
        for other in (seed, *(seed + 1000 + i for i in range(_RECHECKS))):
            again, _ = self.run(case, other)
            seen.append((other, again.verdict))
            if brief and again.verdict != "PASS":
                break
        rechecks = tuple(f"seed {s}: {v}" for s, v in seen)
        if all(v == "PASS" for _, v in seen):
            return first.with_(verdict="FLAKY", rechecks=rechecks)
        return first.with_(rechecks=rechecks)


def _outside_error(error: Exception) -> tuple[str, str]:
    """(verdict, reason) of an error outside of a trial: a call of CANN that failed, or ours."""
    from aclnn_bindings import BindingError
    from aclnn_bindings.runtime.status import AclOutOfMemoryError

    if isinstance(error, AclOutOfMemoryError | MemoryError):
        return "OOM", one_line(error)
    if isinstance(error, UnknownSubjectError):
        return "SKIP", str(error)
    own = isinstance(error, BindingError | CaseFileError | DeclarationError)
    whose = "" if own else "defect of the check itself: "
    return "ERROR", whose + one_line(error)


def _open(setup: Mapping[str, Any]) -> Any:
    import aclnn_bindings
    import mindtorch as torch
    from mindtorch.npu import install

    cann = aclnn_bindings.open(setup.get("home"), simulator=bool(setup.get("simulator")))
    install.use(cann)
    if setup.get("guard"):
        # A device may write a little behind a block (aclrtMalloc's document), no simulator does.
        mode = "exact" if cann.install.kind == "simulator" else "room"
        os.environ.setdefault("MINDTORCH_MEMORY_GUARD", mode)
    torch.npu.set_device(setup["device"])
    cann.runtime.set_device(torch.npu.current_device())
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
    out = answers()
    import mindtorch.npu  # noqa: F401 - what the first case needs

    from ..operators import find  # noqa: F401
    from . import laws  # noqa: F401

    line = sys.stdin.readline()
    if not line:
        return 0  # nobody needed this worker
    setup = json.loads(line)
    try:
        worker = Worker(setup, out)
        Watch.seconds = min(Watch.seconds, _PART * float(setup.get("timeout") or math.inf))
        Watch.tell = lambda inside: worker.say({"reference": inside})
        worker.hello()
    except Exception as error:
        out.write(json.dumps({"fatal": one_line(error)}) + "\n")
        out.flush()
        return 3
    # What stands now stays: cases leave few cycles, looking for them took a tenth of the time.
    gc.freeze()
    gc.set_threshold(_CYCLES)
    for line in sys.stdin:
        if not worker.batch(json.loads(line)):
            return 1
    return 0


if __name__ == "__main__":
    code = main()
    # Leave at once: a device that hangs must not hold up the end.
    os._exit(code)
