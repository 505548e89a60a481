"""Grades one operator: fresh calls on its own process, judged, timed beside another operator.

Each launch is both judged and timed, so that none can be told from the others. The grader's clock
counts: from the request of a phase until its answer, less what the same takes without an operator.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np

from ..conformance.cases.case import Case
from ..conformance.run.subject import UnknownSubjectError
from ..plurals import plural
from . import diagnosis, fresh
from .diagnosis import Accusation, Seen
from .launches import HostTensor, LaunchMessage, NotGradableError, Region
from .operator_server import WITNESS
from .process import Confinement, OperatorEndedError, OperatorProcess
from .sandbox import protect_memory

SCHEMA: Final = "mindtorch-npu/grade/1"
_REGION_BYTES: Final = 64 << 20
_EARLIER: Final = 8
_WITNESSES: Final = 2  # launches of the server's own that the log of calls must show
_RESOLUTION: Final = 0.1  # of what a launch takes without an operator
_SHRINK_SECONDS: Final = 0.8
# Seconds after which unfinished results are looked at again, and in how many launches; failing
# launches after which the rest would tell nothing new.
_LATE_SECONDS, _WAITS, _FAILING = 0.06, 2, 6


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What is graded, beside what, and how much: `cases` small calls, `rounds` large ones."""

    operator: str
    against: str = ""
    allowed: tuple[str, ...] = ()
    cases: int = 14
    rounds: int = 11
    elements: int = 1 << 18
    cold: bool = False
    seed: int | None = None
    place: Confinement = field(default_factory=lambda: Confinement(""))


@dataclass(slots=True)
class Grade:
    """What a grading gave. `speed` is the other operator's time over this one's, `speed_error` what
    share of it the noise of the times is."""

    operator: str
    found: bool = False
    loads: bool = False
    correct: bool = False
    cause: str = ""
    accusations: list[Accusation] = field(default_factory=list)
    launches: int = 0
    passed: int = 0
    speed: float | None = None
    speed_error: float = 0.0
    times: dict[str, float] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    library: str = ""
    seed: int = 0
    seconds: float = 0.0

    @property
    def score(self) -> float:
        """0 if it is wrong or accused; else its speed, or 1 where that was not asked."""
        if not self.correct or self.accusations:
            return 0.0
        return 1.0 if self.speed is None else self.speed

    def as_json(self) -> dict[str, Any]:
        """Plain data; docs/own_operators.md describes the fields."""
        return {
            "schema": SCHEMA, "operator": self.operator, "found": self.found, "loads": self.loads,
            "correct": self.correct, "cause": self.cause,
            "accusations": diagnosis.as_json(self.accusations), "launches": self.launches,
            "passed": self.passed, "speed": self.speed,
            "speed_error": self.speed_error, "microseconds": self.times,
            "score": round(self.score, 4), "isolation": list(self.isolation),
            "library": self.library, "seed": self.seed, "seconds": round(self.seconds, 3),
        }  # fmt: skip


def grade(request: GradeRequest) -> Grade:
    """Grade an operator. NotGradableError where no declared reference says what it computes, or
    nothing can be called; what is wrong with the operator is in the result."""
    begun = time.monotonic()
    protect_memory()
    seed = secrets.randbits(48) if request.seed is None else request.seed
    with ExitStack() as stack:
        grading = _Grading(request, seed, stack)
        grading.run()
    grading.grade.seconds = time.monotonic() - begun
    return grading.grade


@cache
def _declared(install: Any) -> Any:
    """What an install and its packages declare: a caller may grade many of their operators."""
    from aclnn_bindings.install.library import declarations

    return declarations(install)


class _Grading:
    def __init__(self, request: GradeRequest, seed: int, stack: ExitStack) -> None:
        self.request, self.seed, self.stack = request, seed, stack
        self.grade = Grade(request.operator, seed=seed)
        self.rng = np.random.default_rng(seed)
        self.region = Region(_REGION_BYTES)
        stack.callback(self.region.close)
        # Processes start while this one loads what it needs.
        self.process = self._start(replace(request.place, operator=request.operator))
        self.other: OperatorProcess | None = None
        if request.against:
            beside = replace(request.place, operator=request.against, isolate=False,
                             packages=False)  # fmt: skip
            self.other = self._start(beside)
        self.earlier: list[Seen] = []
        self.times: dict[str, list[float]] = {"operator": [], "against": [], "empty": []}
        self.failing: list[tuple[Case, Any]] = []
        self.unjudged: list[str] = []
        self.raised: list[Accusation] = []
        self.waits = _WAITS

    def _start(self, place: Confinement) -> OperatorProcess:
        process = OperatorProcess(place, self.region)
        self.stack.callback(process.close)
        return process

    def run(self) -> None:
        """All of it."""
        from aclnn_bindings.install.library import find_install

        place = self.request.place
        self.install = find_install(place.home, place.simulator)
        self.declared = _declared(self.install)
        self.signature = self.declared.ops.get(self.request.operator)
        self.grade.found = self.signature is not None
        if self.signature is None:
            self.grade.cause = "no header of the install or of a custom package declares it"
            return
        self.subject = self._subject()
        if not self._greet():
            return
        try:
            self._launches()
        except OperatorEndedError as error:
            self._accuse(error.kind, str(error))
        self._calls()
        self.grade.accusations = diagnosis.merged(self.raised)
        self._conclude()

    def _subject(self) -> Any:
        from ..conformance.operators.find import subject

        try:
            what: Any = subject(self.request.operator, self.declared)
        except UnknownSubjectError as error:
            raise NotGradableError(f"{error}; give a reference with --golden") from error
        if what.declaration is None:
            raise NotGradableError(f"{what.name}: no reference declares what it may be given; give "
                                   "one with --golden")  # fmt: skip
        self.claims = what.claims(self.declared, "")
        return what

    def _greet(self) -> bool:
        try:
            hello = self.process.hello()
        except OperatorEndedError as error:
            self._accuse(error.kind, f"when it was loaded: {error}")
            self.grade.accusations, self.grade.cause = self.raised, str(error)
            return False
        self.grade.loads = "refused" not in hello
        if not self.grade.loads:
            self.grade.cause = str(hello["refused"])
            return False
        self.grade.isolation = tuple(hello["isolation"]) or ("a process of its own, no more",)
        self.grade.library = str(hello["library"])
        if self.other is not None:
            answer = self.other.hello()
            if "refused" in answer:
                raise NotGradableError(f"--against {self.request.against}: {answer['refused']}")
        return True

    # --- launches -------------------------------------------------------------------------------

    def _launches(self) -> None:
        declaration, claimed = self.subject.declaration, self.claims.dtypes
        name, request = self.request.operator, self.request
        small = [(c, False) for c in fresh.small_cases(
            name, declaration, claimed, request.cases, self.rng)]  # fmt: skip
        shapes = [fresh.large_case(name, declaration, request.elements, self.rng) for _ in range(2)]
        order = [*small, *((shapes[i % 2], True) for i in range(request.rounds))]
        self.rng.shuffle(order)
        for number, (case, timed) in enumerate(order):
            self.grade.launches += 1
            result = self._launch(case, self.seed + number, timed)
            if result is None or result.verdict == "PASS":
                self.grade.passed += 1
            elif result.verdict in ("SKIP", "UNSUPPORTED"):
                self.unjudged.append(f"{case.id}: {result.verdict}: {result.reason}")
            else:
                self.failing.append((case, result))
                if len(self.failing) >= _FAILING:
                    break
        if self.failing:
            self.grade.cause = self._cause(*self.failing[0])
        elif self.unjudged:
            self.grade.cause = (f"{len(self.unjudged)} of {self.grade.launches} launches have no "
                                f"verdict, such as {self.unjudged[0]}")  # fmt: skip

    def _cause(self, case: Case, result: Any) -> str:
        """The smallest case that fails, and what it gave."""
        from ..conformance.cases import declared
        from ..conformance.run.shrink import shrink

        raised, verdicts = list(self.raised), {case.id: result}

        def fails(other: Case) -> bool | None:
            verdicts[other.id] = outcome = self._launch(other, self.seed)
            return None if outcome.verdict in ("SKIP", "UNSUPPORTED") else outcome.verdict != "PASS"

        declaration = self.subject.declaration
        cause = shrink(case, declared.plain_levels(declaration), self.claims.dtypes, fails,
                       declared.size_names(declaration), _SHRINK_SECONDS)  # fmt: skip
        self.raised = raised
        smallest = verdicts.get(cause.case.id, result)
        where = f" ({smallest.pattern['text']})" if smallest.pattern else ""
        return f"{cause.text()}: {smallest.reason}{where}"

    def _launch(self, case: Case, seed: int, timed: bool = False) -> Any:
        """The verdict of one launch; its time too where it is one of the large ones."""
        trial, golden, message = self._message(case, seed)
        seconds, refused = self._call(self.process, message)
        if refused:
            self._accuse("refuses", f"{case.id}: {refused}")
            return trial.result("FAIL", reason=refused)
        got, accusations = self._results(message)
        result = self._judge(trial, golden, message, got)
        seen = self._seen(message, golden, got)
        if result.verdict != "PASS":
            accusations += self._explained(case, seed, message, seen)
        self.earlier = [*self.earlier[-_EARLIER:], seen]
        self.raised += accusations
        if timed:
            self.times["operator"].append(seconds)
            self._time_other(message)
        return result

    def _seen(self, message: LaunchMessage, golden: Any, got: Sequence[Any]) -> Seen:
        outputs = _outputs(message)
        inputs = {t.name: t.elements(t.storage) for t in message.tensors if not t.written}
        return Seen(got, [golden.native[t.index] for t in outputs],
                    [t.elements(t.storage) for t in outputs], inputs)  # fmt: skip

    def _explained(
        self, case: Case, seed: int, message: LaunchMessage, seen: Seen
    ) -> list[Accusation]:
        """What wrong results are instead; whether they are completed afterwards."""
        accusations = diagnosis.explain(seen, self.earlier)
        if any(a.kind in ("unwritten", "size") for a in accusations) and self.waits:
            self.waits -= 1
            time.sleep(_LATE_SECONDS)
            _, later = self._results(message)
            late = [a for a in later if a.kind == "late"]
            return late or accusations
        if not accusations and self._of_decoys(case, seed, seen.got):
            return [Accusation("phase 1", "its result is that of the values which the inputs had "
                               "in phase 1")]  # fmt: skip
        return accusations

    def _message(self, case: Case, seed: int) -> tuple[Any, Any, LaunchMessage]:
        from ..conformance.run.trial import Trial

        trial = Trial(self.subject, case, "npu:0", seed)
        golden = self.subject.golden(trial.recipe, trial.need)
        values = self.subject.values(trial.recipe, golden)
        other = Trial(self.subject, case, "npu:0", self._decoy_seed(seed)).recipe.slots
        pairs = zip(trial.recipe.slots, other, strict=True)
        decoys = {id(a): b.array for a, b in pairs
                  if a.array.shape == b.array.shape and a.array.dtype == b.array.dtype}  # fmt: skip
        layout = dict(case.factors).get("to", "contiguous")
        message = LaunchMessage(self.signature, self.declared.enums, values,
                                golden.native, decoys, self.subject, layout,
                                (0xFF, 0x3C)[seed % 2])  # fmt: skip
        return trial, golden, message

    def _decoy_seed(self, seed: int) -> int:
        return seed ^ 0x5A5A5A

    def _call(self, process: OperatorProcess, message: LaunchMessage) -> tuple[float, str]:
        """(seconds of both phases, "" or what the operator answered)."""
        request = message.place(self.region, secrets.token_hex(8))
        self._checked(process.ask(**request))
        first = process.ask("first")
        if first.data.get("code"):
            return 0.0, _refusal(1, first.data)
        between = self._checked(process.ask("between", cold=self.request.cold))
        if between.data.get("early") and process is self.process:
            names = [message.tensors[i].name for i in between.data["early"]]
            self._accuse("phase 1", f"{', '.join(names)} was written before phase 2")
        message.reveal(self.region)
        second = process.ask("second")
        if second.data.get("code"):
            return 0.0, _refusal(2, second.data)
        return first.seconds + second.seconds, ""

    def _checked(self, reply: Any) -> Any:
        if reply.data.get("code"):
            raise OperatorEndedError("limit", str(reply.data["text"]))
        return reply

    def _results(self, message: LaunchMessage) -> tuple[list[Any], list[Accusation]]:
        """Results as they were when the stream had been waited for, and what changed otherwise."""
        outputs = _outputs(message)
        at_once = {id(t): self.region.get(t.places["after"], t.storage) for t in outputs}
        self.process.ask("inspect")
        accusations = []
        for tensor in message.tensors:
            now = self.region.get(tensor.places["after"], tensor.storage)
            if tensor.written and not np.array_equal(
                now.view(np.uint8), at_once[id(tensor)].view(np.uint8)
            ):
                accusations.append(Accusation("late", f"{tensor.name} changed afterwards"))
            if count := tensor.strayed(now):
                where = "beside its view" if tensor.written else "an input"
                accusations.append(
                    Accusation("writes", f"{plural(count, 'element')} of {tensor.name}, {where}")
                )
        return [t.elements(at_once[id(t)]) for t in outputs], accusations

    def _judge(self, trial: Any, golden: Any, message: LaunchMessage, got: Sequence[Any]) -> Any:
        from ..conformance.run.comparison import compare

        indices = [t.index for t in _outputs(message)]
        local = self.subject.settle(golden.only(indices), got)
        return compare(trial, local, [(a.dtype.name, a) for a in got], [])

    def _of_decoys(self, case: Case, seed: int, got: Sequence[Any]) -> bool:
        """Whether wrong results are right for what the inputs held in phase 1."""
        trial, golden, message = self._message(case, self._decoy_seed(seed))
        return bool(self._judge(trial, golden, message, got).verdict == "PASS")

    # --- times ----------------------------------------------------------------------------------

    def _time_other(self, message: LaunchMessage) -> None:
        if self.other is None:
            return
        with self.process.stopped():
            seconds, refused = self._call(self.other, message)
            if refused:
                raise NotGradableError(f"--against {self.request.against}: {refused}")
            self.times["against"].append(seconds)
            self.times["empty"].append(self._empty(message))

    def _empty(self, message: LaunchMessage) -> float:
        """What a launch takes in which no operator is called."""
        assert self.other is not None
        self.other.ask(**message.place(self.region, secrets.token_hex(8)))
        first = self.other.ask("first", empty=True)
        self.other.ask("between", empty=True, cold=self.request.cold)
        message.reveal(self.region)
        return first.seconds + self.other.ask("second", empty=True).seconds

    # --- verdict --------------------------------------------------------------------------------

    def _accuse(self, kind: str, text: str) -> None:
        self.raised.append(Accusation(kind, text))

    def _calls(self) -> None:
        """Operators of CANN that this one launched."""
        try:
            self.process.ask("end")
        except OperatorEndedError:
            return  # it is accused already
        if self.install.kind != "simulator":
            self.grade.isolation += ("operators that it launches are not seen on this install",)
            return
        calls = self.process.calls()
        allowed = {*self.request.allowed, WITNESS, ""}
        others = [c for c in dict.fromkeys(calls) if not c.endswith("GetWorkspaceSize")
                  and c not in allowed]  # fmt: skip
        if calls.count(WITNESS) > _WITNESSES and WITNESS not in self.request.allowed:
            others.append(WITNESS)
        if others:
            self._accuse("other operators", ", ".join(others))
        elif "" in calls or calls.count(WITNESS) < _WITNESSES:
            self._accuse("log", "launches of the grader's own are not in it")

    def _conclude(self) -> None:
        grade = self.grade
        grade.correct = not self.failing and grade.passed == grade.launches > 0
        if self.failing:
            case, result = self.failing[0]
            grade.cause = grade.cause or f"{case.id}: {result.reason}"
        elif grade.accusations:
            grade.cause = diagnosis.described(grade.accusations[0])
        if len(self.times["against"]) > 1:
            self._speed()

    def _speed(self) -> None:
        """The ratio of the least times, and by how much the next ones would change it."""
        least, next_ones = ({k: sorted(v)[at] for k, v in self.times.items()} for at in (0, 1))
        unit = _RESOLUTION * least["empty"]
        net = {k: max(least[k] - least["empty"], unit) for k in ("operator", "against")}
        error = sum((next_ones[k] - least[k]) / net[k] for k in net)
        self.grade.speed = round(net["against"] / net["operator"], 4)
        self.grade.speed_error = round(error, 4)
        self.grade.times = {k: round(v * 1e6, 2) for k, v in least.items()}


def _outputs(message: LaunchMessage) -> list[HostTensor]:
    """The tensors that are written, in the order of the reference's results."""
    return sorted((t for t in message.tensors if t.written), key=lambda t: t.index)


def _refusal(phase: int, data: Mapping[str, Any]) -> str:
    text = f": {data['text']}" if data.get("text") else ""
    return f"phase {phase} answered {data['code']}{text}"
