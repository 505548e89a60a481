"""Owns what a preflight may say against a device: only what load cannot cause, seen more than once.

Outputs that break their rule, or differ from those of other devices, were computed, whatever the
load. They count against a device once the case gave them again, or a second case fails there too.
A missing answer, missing memory and a worker that the host killed leave a case without a verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...conformance.record import votes
from ...conformance.record.result import Result
from ...conformance.run.pool import Lost

# What a loaded host can give a healthy device: no answer in time, no memory.
_OF_LOAD: Final = frozenset(("HANG", "OOM"))
# What Linux does to a worker when the host's memory runs out.
_KILLED: Final = "SIGKILL"
_ENOUGH: Final = 2  # cases that fail on a device and not elsewhere
# Of two devices that differ one is wrong, whichever.
_AGAINST: Final = votes.ABOUT_DEVICES | {votes.UNDECIDED}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The devices that are wrong, each with its evidence; what has no verdict; and cases that fail
    alike on every device, which is the fault of the operator or of the install."""

    wrong: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unjudged: Sequence[str] = ()
    alike: Sequence[str] = ()


def judge(
    results: Iterable[Result], deviations: Iterable[votes.Deviation], lost: Iterable[Lost],
    required: Collection[str] = (),
) -> Verdict:  # fmt: skip
    """Who is wrong; a `required` case that fails on every device speaks against each."""
    by_case: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_case[result.case].append(result)
    unsure = {(r.case, votes.place_of(r)) for rs in by_case.values() for r in rs if may_be_load(r)}
    again = {
        (d.case, d.place): f"{d.kind}: {d.case}" for d in deviations
        if d.kind in _AGAINST and d.launches > 1 and (d.case, d.place) not in unsure
    }  # fmt: skip
    ledger = _Ledger()
    for case, of_case in by_case.items():
        ledger.take(of_case, case in required, again)
    for (_, place), text in again.items():
        ledger.wrong[place].append(text)
    for one in lost:
        ledger.lose(one)
    return ledger.verdict()


def may_be_load(result: Result) -> bool:
    """Whether a failing result is one that a loaded host can give a healthy device."""
    killed = result.verdict == "CRASH" and _KILLED in result.reason
    return result.verdict in _OF_LOAD or killed


class _Ledger:
    """What is known against each device so far; `once`: failing cases that ran only once."""

    def __init__(self) -> None:
        self.wrong: dict[str, list[str]] = defaultdict(list)
        self.once: dict[str, list[str]] = defaultdict(list)
        self.unjudged: list[str] = []
        self.alike: list[str] = []

    def take(
        self, of_case: Sequence[Result], required: bool, again: Mapping[tuple[str, str], str]
    ) -> None:
        """The results of one case on all devices."""
        failing = [r for r in of_case if r.failing and not may_be_load(r)]
        everywhere = len(failing) == len(of_case)
        if everywhere and len(failing) > 1 and not required:
            self.alike.append(_text(failing[0]))
            return
        for result in failing:
            place = votes.place_of(result)
            sure = everywhere or (result.case, place) in again
            (self.wrong if sure else self.once)[place].append(_text(result))
        self.unjudged += [f"{votes.place_of(r)}: {_text(r)}" for r in of_case if may_be_load(r)]

    def lose(self, one: Lost) -> None:
        """A device on which no worker starts, or whose driver holds one."""
        if one.what == "device lost" and _KILLED not in one.reason:
            self.wrong[one.place].append(one.reason)
        else:
            self.unjudged.append(f"{one.place}: {one.reason}")

    def verdict(self) -> Verdict:
        for place, texts in self.once.items():
            if place in self.wrong or len(texts) >= _ENOUGH:
                self.wrong[place] += texts
            else:
                self.unjudged += [f"{place}: {text}; seen once: run it again" for text in texts]
        return Verdict(dict(self.wrong), tuple(self.unjudged), tuple(self.alike))


def _text(result: Result) -> str:
    return f"{result.verdict} {result.case}: {result.reason}".rstrip(": ")
