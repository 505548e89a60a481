"""Owns the vote of devices that ran the same cases: who differs from the others, and how.

Pure functions of results and notes, in any order: one host's run and the journals of a fleet are
judged alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..cases.case import ITEMS
from .result import Result

DETERMINISTIC: Final = "deterministic difference"
STUCK: Final = "stuck bit"
FLAKY: Final = "flaky"
OPERATOR: Final = "operator not deterministic"
UNDECIDED: Final = "undecided"
# What each class means; the first three speak about a device.
CLASSES: Final[dict[str, str]] = {
    DETERMINISTIC: "always the same other bits: another driver, firmware, CANN or chip revision",
    STUCK: "always one bit, in one direction",
    FLAKY: "differs in some launches only: silent data corruption",
    OPERATOR: "a device that the others agree with differs from itself too: not a device's fault",
    UNDECIDED: "no side has a majority, and none of them fails alone",
}
ABOUT_DEVICES: Final = frozenset((DETERMINISTIC, STUCK, FLAKY))


# Of thousands of devices that agree, these many are named.
_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Deviation:
    """One case in which one place differs from what most others, `agreeing` ones, computed;
    `against` names the first of them."""

    case: str
    op: str
    seed: int
    place: str
    kind: str
    digest: str = ""
    usual: str = ""
    against: tuple[str, ...] = ()
    agreeing: int = 0
    wrong: int = 0
    launches: int = 0
    first: str = ""
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v
                for k in self.__slots__ if (v := getattr(self, k))}  # fmt: skip


@dataclass(slots=True)
class Evidence:
    """What was seen of a case at a place: how often which digest came, which bits flipped."""

    digests: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    launches: int = 0
    differences: list[Mapping[str, Any]] = field(default_factory=list)


Key = tuple[str, int, str]


def place_of(result: Result) -> str:
    """`host7 npu:3`, or the device alone where no host is named."""
    return f"{result.node} {result.device}".strip()


def evidence(notes: Iterable[tuple[str, Mapping[str, Any]]], node: str = "") -> dict[Key, Evidence]:
    """What notes (`repeat`, `soak`) say, by case, seed and place."""
    seen: dict[Key, Evidence] = {}
    for kind, data in notes:
        if kind not in ("repeat", "soak"):
            continue
        place = f"{data.get('node') or node} {data['device']}".strip()
        one = seen.setdefault((data["case"], int(data["seed"]), place), Evidence())
        one.digests.update(data.get("digests", {}))
        one.wrong += int(data.get("wrong", 0))
        one.launches += int(data.get("launches", 0))
        one.differences += data.get("differences", ())
    return seen


def splits(results: Iterable[Result]) -> list[tuple[list[Result], list[list[Result]]]]:
    """(most, others) of every case in which places do not agree; `most` is [] without majority.

    A place's vote is the digest of its outputs and its verdict.
    """
    ballots: dict[tuple[str, int], list[Result]] = {}
    for result in (r for r in results if r.form not in ITEMS):
        ballots.setdefault((result.case, result.seed), []).append(result)
    divided = []
    for key in sorted(ballots):
        camps: dict[tuple[str, str], list[Result]] = {}
        for result in sorted(ballots[key], key=place_of):
            camps.setdefault((result.digest, result.verdict), []).append(result)
        if len(camps) > 1:
            divided.append(_split(list(camps.values())))
    return divided


def _split(camps: list[list[Result]]) -> tuple[list[Result], list[list[Result]]]:
    ordered = sorted(camps, key=len, reverse=True)
    if len(ordered[0]) > len(ordered[1]):
        return ordered[0], ordered[1:]
    # A draw: one that meets its rule outvotes those that break it.
    passing = [camp for camp in ordered if camp[0].verdict == "PASS"]
    if len(passing) == 1:
        return passing[0], [camp for camp in ordered if camp is not passing[0]]
    return [], ordered


def deviations(
    results: Iterable[Result],
    seen: Mapping[Key, Evidence],
    differences: Mapping[Key, Mapping[str, Any]] | None = None,
    first: Mapping[Key, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> list[Deviation]:
    """Every place that differs, classed; `differences` are those of kept outputs, `first` their
    words, `versions` what of a place's versions is not that of most."""
    told = []
    for most, others in splits(results):
        for camp in others:
            for result in camp:
                told.append(
                    _deviation(result, most, seen, differences or {}, first or {}, versions or {})
                )
    return told


def _deviation(
    result: Result, most: Sequence[Result], seen: Mapping[Key, Evidence],
    differences: Mapping[Key, Mapping[str, Any]], first: Mapping[Key, str],
    versions: Mapping[str, str],
) -> Deviation:  # fmt: skip
    place = place_of(result)
    key = (result.case, result.seed, place)
    own = seen.get(key, Evidence())
    usual = most[0].digest if most else ""
    stated = [*own.differences, *([differences[key]] if key in differences else [])]
    wrong, launches = own.wrong, own.launches
    if own.digests:
        launches += sum(own.digests.values())
        wrong += sum(n for d, n in own.digests.items() if d != usual)
    same = not own.wrong and set(own.digests) <= {result.digest}
    steady = any(
        len(seen[k].digests) > 1 or seen[k].wrong
        for r in most
        if (k := (r.case, r.seed, place_of(r))) in seen
    )
    kind = _class(most, steady, same and result.digest != usual, stated)
    text = result.reason if result.verdict != (most[0].verdict if most else "") else ""
    if kind == DETERMINISTIC and place in versions:
        text = f"{versions[place]}; {text}".rstrip("; ")
    shown = first.get(key, "") or _first_text(stated)
    return Deviation(
        result.case, result.op, result.seed, place, kind, result.digest, usual,
        tuple(place_of(r) for r in most[:_NAMED]), len(most), wrong, launches, shown, text,
    )  # fmt: skip


def _class(
    most: Sequence[Result], unsteady: bool, same: bool, stated: Sequence[Mapping[str, Any]]
) -> str:
    if not most:
        return UNDECIDED
    if unsteady:
        return OPERATOR
    if not same:
        return FLAKY
    return STUCK if one_bit(stated) else DETERMINISTIC


def one_bit(stated: Sequence[Mapping[str, Any]]) -> str:
    """`bit 13, 0 → 1` where all that differs is one bit in one direction, else ""."""
    up = down = 0
    for data in stated:
        up |= int(str(data["up"]), 16)
        down |= int(str(data["down"]), 16)
    mask = up | down
    if not mask or mask & (mask - 1) or (up and down):
        return ""
    return f"bit {mask.bit_length() - 1}, " + ("0 → 1" if up else "1 → 0")


def _first_text(stated: Sequence[Mapping[str, Any]]) -> str:
    if not stated:
        return ""
    data = stated[0]
    bit = one_bit(stated)
    return (f"at {data['index']} got 0x{data['got']}, expected 0x{data['expected']}"
            + (f" ({bit})" if bit else ""))  # fmt: skip


def suspects(told: Iterable[Deviation]) -> list[tuple[str, list[Deviation]]]:
    """(place, its deviations) of places that are at fault, most deviations first."""
    by_place: dict[str, list[Deviation]] = {}
    for deviation in told:
        if deviation.kind in ABOUT_DEVICES:
            by_place.setdefault(deviation.place, []).append(deviation)
    return sorted(by_place.items(), key=lambda x: (-len(x[1]), x[0]))


def renamed(deviation: Deviation, kind: str) -> Deviation:
    """The same deviation in another class."""
    return replace(deviation, kind=kind)
