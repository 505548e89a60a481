"""Owns timing one workload against another build or operator: both take turns in one run.

Each side has a process of its own, because a process has one package of an operator. Two pairs of
processes are timed: what a process's own memory makes of a time does not decide alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from aclnn_bindings.install import vendors

from ...conformance.run.process import EnvironmentFailedError, Process, Setup
from .item import name_of
from .rivals import NoRivalError
from .runner import BenchRequest, WorkloadTiming
from .statistics import summarize
from .verdict import Rounds, paired

_PAIRS: Final = 2
_ROUNDS: Final = 20
_PATIENCE: Final = 300.0
_PREFIX: Final = "vendor:"


@dataclass(frozen=True, slots=True)
class RivalBuild:
    """The other side: the same operator of another package, or another operator."""

    text: str
    package: Path | None = None
    operator: str = ""

    def __str__(self) -> str:
        """As --against named it, with the digest that tells builds apart."""
        if self.package is None:
            return self.text
        return f"{self.text} (sha256 {vendors.at(self.package).digest})"

    def environ(self) -> dict[str, str]:
        """What its process has beside our environment: its package comes first."""
        if self.package is None:
            return {}
        paths = [str(self.package), os.environ.get(vendors.VARIABLE, "")]
        return {vendors.VARIABLE: ":".join(filter(None, paths))}


def rival_build(text: str) -> RivalBuild | None:
    """What `--against vendor:DIR` or `--against aclnnOther` names; None for the other forms.

    NoRivalError where there is no such package.
    """
    if text.startswith(_PREFIX):
        folder = Path(text.removeprefix(_PREFIX)).absolute()
        package = vendors.at(folder)
        if package.problem:
            raise NoRivalError(f"--against {text}: {package.problem}")
        return RivalBuild(text, package=folder)
    if text.startswith("aclnn") and not Path(text).exists():
        return RivalBuild(text, operator=text)
    return None


class TimingProcess(Process):
    """A process that times one workload when it is asked; see timing_worker.py."""

    module = "mindtorch_npu.commands.bench.timing_worker"

    def begin(self, message: Mapping[str, Any]) -> None:
        """Let it prepare the workload; NoRivalError where that fails."""
        self.send(message)
        self._answer()

    def samples(self, kind: str, seconds: float) -> list[float]:
        """Times of one round in µs."""
        self.send({"kind": kind, "seconds": seconds})
        times: list[float] = self._answer()["samples"]
        return times

    def _answer(self) -> dict[str, Any]:
        answer = self.receive(_PATIENCE)
        if not isinstance(answer, dict):
            said = "it does not answer" if answer == "late" else self.ending()
            raise EnvironmentFailedError(f"a timing process failed: {said}")
        if "problem" in answer:
            raise NoRivalError(str(answer["problem"]))
        return answer


class BuildComparison:
    """Times workloads against a build; `comparisons` are all of the run, for its error rate."""

    def __init__(
        self, rival: RivalBuild, setup: Setup, request: BenchRequest, comparisons: int
    ) -> None:
        self.rival, self.setup, self.request = rival, setup, request
        self.comparisons = comparisons

    def against(self, row: WorkloadTiming) -> None:
        """Fill the row's verdicts, or its note where there is nothing to compare with."""
        try:
            pairs = [self._pair(row) for _ in range(_PAIRS)]
        except (NoRivalError, EnvironmentFailedError) as error:
            row.note = str(error)
            return
        for kind in self.request.kinds:
            rounds = [pair[kind] for pair in pairs]
            ours, theirs = ([t for pair in rounds for both in pair for t in both[side]]
                            for side in (0, 1))  # fmt: skip
            row.times[kind], row.rival[kind] = summarize(ours), summarize(theirs)
            row.verdicts[kind] = paired([_quartiles(pair) for pair in rounds], self.comparisons)

    def _pair(self, row: WorkloadTiming) -> dict[str, list[tuple[list[float], list[float]]]]:
        """Rounds by kind, in two fresh processes; who begins a round alternates."""
        message = {"case": name_of(row.work), "seed": self.request.seed, "operator": ""}
        theirs = {**message, "operator": self.rival.operator}
        setup = replace(self.setup, environ=self.rival.environ())
        processes = (TimingProcess(self.setup), TimingProcess(setup))
        try:
            for process, words in zip(processes, (message, theirs), strict=True):
                process.begin(words)
            return {kind: self._rounds(processes, kind) for kind in self.request.kinds}
        finally:
            for process in processes:
                process.kill()

    def _rounds(
        self, processes: tuple[TimingProcess, TimingProcess], kind: str
    ) -> list[tuple[list[float], list[float]]]:
        seconds = self.request.limits.sampling / (_PAIRS * _ROUNDS)
        rounds = []
        for number in range(_ROUNDS):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            times = {side: processes[side].samples(kind, seconds) for side in order}
            rounds.append((times[0], times[1]))
        return rounds


def _quartiles(rounds: Sequence[tuple[list[float], list[float]]]) -> Rounds:
    """The first quartile of each side in each round: other work on the machine, which only makes
    times longer, touches it least."""
    return [(summarize(ours).q1, summarize(theirs).q1) for ours, theirs in rounds]
