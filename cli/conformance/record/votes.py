"""Owns the vote of devices that ran the same cases: who differs from the others, and how.

Pure functions of results and notes, in any order: one host's run and the journals of a fleet are
judged alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..cases.case import ITEMS
from .result import FAILING, Result

DETERMINISTIC: Final = "deterministic difference"
STUCK: Final = "stuck bit"
FLAKY: Final = "flaky"
UNREPEATED: Final = "not repeated"
BY_DESIGN: Final = "different by design"
OPERATOR: Final = "operator not deterministic"
UNDECIDED: Final = "undecided"
# What each class means; the first four speak about a device.
CLASSES: Final[dict[str, str]] = {
    DETERMINISTIC: "the same other bits in every launch: other firmware or chip, or broken logic",
    STUCK: "the same single bit in every launch, in one direction",
    FLAKY: "differs in some launches only: silent data corruption",
    UNREPEATED: "differs in the one launch there was; nobody asked for another",
    BY_DESIGN: "other bits that meet the operator's rule, with other versions of the software",
    OPERATOR: "a device that the others agree with differs from itself too: not a device's fault",
    UNDECIDED: "no side has a majority",
}
ABOUT_DEVICES: Final = frozenset((DETERMINISTIC, STUCK, FLAKY, UNREPEATED))


# Of thousands of devices that agree, these many are named.
_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Camp:
    """The places that gave a case the same digest and verdict, and the reasons that they state."""

    digest: str
    verdict: str
    places: Sequence[str]
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Split:
    """A case in which places differ: `most` is None without a majority."""

    case: str
    seed: int
    most: Camp | None
    others: tuple[Camp, ...]

    def deviating(self) -> Iterator[tuple[Camp, str, Key]]:
        """Every place that differs, with its camp and key."""
        return ((c, p, (self.case, self.seed, p)) for c in self.others for p in c.places)


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
                for k in self.__slots__ if (v := getattr(self, k)) or k == "seed"}  # fmt: skip

    def line(self) -> dict[str, Any]:
        """The same for a journal, whose lines have a kind of their own."""
        fields = self.as_json()
        return {"class": fields.pop("kind"), **fields}


@dataclass(slots=True)
class Evidence:
    """What was seen of a case at a place: how often which digest came, which bits flipped."""

    digests: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    launches: int = 0
    differences: list[Mapping[str, Any]] = field(default_factory=list)

    def steady(self, digest: str) -> bool:
        """Whether every launch gave `digest`."""
        return not self.wrong and set(self.digests) <= {digest}

    @property
    def repeated(self) -> bool:
        return self.launches > 1 or self.digests.total() > 1


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


def splits(results: Iterable[Result]) -> list[Split]:
    """Every case in which places do not agree; a place's vote is its outputs' digest and its
    verdict."""
    ballots: dict[tuple[str, int], list[Result]] = {}
    for result in (r for r in results if r.form not in ITEMS):
        ballots.setdefault((result.case, result.seed), []).append(result)
    divided = []
    for (case, seed), votes in sorted(ballots.items()):
        camps: dict[tuple[str, str], list[Result]] = {}
        for result in sorted(votes, key=place_of):
            camps.setdefault((result.digest, result.verdict), []).append(result)
        if len(camps) > 1:
            divided.append(split(case, seed, [
                Camp(digest, verdict, tuple(map(place_of, evidence)),
                     {place_of(r): r.reason for r in evidence})
                for (digest, verdict), evidence in camps.items()
            ]))  # fmt: skip
    return divided


def split(case: str, seed: int, camps: Sequence[Camp]) -> Split:
    """Who outvotes whom. The reference votes too: camps that meet the operator's rule come before
    those that break it, however many those are; among them the largest has the majority."""
    ordered = sorted(camps, key=lambda c: (c.verdict in FAILING, -len(c.places), c.digest))
    first, second = ordered[:2]
    rivals = (first.verdict in FAILING) == (second.verdict in FAILING)
    if rivals and len(first.places) == len(second.places):
        # A draw: one that passes outvotes those in which nothing was judged.
        passing = [c for c in ordered if c.verdict == "PASS"]
        if len(passing) != 1:
            return Split(case, seed, None, tuple(ordered))
        first = passing[0]
    return Split(case, seed, first, tuple(c for c in ordered if c is not first))


def deviations(
    divided: Iterable[Split],
    seen: Mapping[Key, Evidence],
    differences: Mapping[Key, Mapping[str, Any]] | None = None,
    first: Mapping[Key, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> list[Deviation]:
    """Every place that differs, classed; `differences` are those of kept outputs, `first` their
    words, `versions` what of a place's versions is not that of most."""
    differences, versions = differences or {}, versions or {}
    by_case: dict[tuple[str, int], list[tuple[str, Evidence]]] = {}
    for (case, seed, place), evidence in seen.items():
        by_case.setdefault((case, seed), []).append((place, evidence))
    deviating = []
    for one in divided:
        unsteady = _unsteady(one, by_case.get((one.case, one.seed), ()))
        for camp, place, key in one.deviating():
            evidence = seen.get(key, Evidence())
            differences_ = [
                *evidence.differences,
                *([differences[key]] if key in differences else []),
            ]
            alike = bool(place in versions and _explains(versions, versions[place], one, camp))
            kind = _class(one, camp, place, evidence, unsteady, differences_, alike)
            text = versions.get(place, "") if kind in (DETERMINISTIC, BY_DESIGN) else ""
            words = (first or {}).get(key, "") or _first_text(differences_)
            deviating.append(_deviation(one, camp, place, kind, evidence, words, text))
    return deviating


def _explains(versions: Mapping[str, str], version: str, one: Split, camp: Camp) -> bool:
    """Whether no device with these other versions gave a case other bits than `camp` did."""
    rest = (c for c in (one.most, *one.others) if c is not None and c is not camp)
    peers = [place for place, text in versions.items() if text == version]
    return not any(place in c.places for c in rest for place in peers)


def _unsteady(one: Split, seen: Iterable[tuple[str, Evidence]]) -> bool:
    """Whether a device of the majority differs from itself; without one, whether every side has
    such a device."""
    unsteady = {place for place, evidence in seen if len(evidence.digests) > 1 or evidence.wrong}
    camps = one.others if one.most is None else (one.most,)
    return all(unsteady.intersection(camp.places) for camp in camps)


def _deviation(
    one: Split, camp: Camp, place: str, kind: str, evidence: Evidence, first: str, text: str
) -> Deviation:
    most = one.most or Camp("", "", ())
    reason = camp.reasons.get(place, "") if camp.verdict != most.verdict else ""
    wrong, launches = evidence.wrong, evidence.launches
    if evidence.digests:
        launches += evidence.digests.total()
        wrong += sum(n for d, n in evidence.digests.items() if d != most.digest)
    if kind in (DETERMINISTIC, STUCK):
        wrong = launches  # a soak counts those that differ from the others of its own device
    return Deviation(
        one.case, one.case.partition("/")[0], one.seed, place, kind, camp.digest, most.digest,
        tuple(most.places[:_NAMED]), len(most.places), wrong, launches, first,
        "; ".join(filter(None, (text, reason))),
    )  # fmt: skip


def _class(
    one: Split, camp: Camp, place: str, evidence: Evidence, unsteady: bool,
    differences_: Sequence[Mapping[str, Any]], alike: bool,
) -> str:  # fmt: skip
    """Its class; `alike`: other versions explain it, as all devices that have them differ so."""
    if unsteady:
        return OPERATOR
    if one.most is None:
        return UNDECIDED if evidence.steady(camp.digest) else FLAKY
    same_bits = bool(camp.digest) and camp.digest == one.most.digest
    if place in one.most.places or same_bits or not evidence.steady(camp.digest):
        return FLAKY
    if alike and camp.verdict not in FAILING:
        return BY_DESIGN
    if not evidence.repeated and len(camp.places) == 1:
        return UNREPEATED
    return STUCK if one_bit(differences_) else DETERMINISTIC


def one_bit(differences_: Sequence[Mapping[str, Any]]) -> str:
    """`bit 13, 0 → 1` where all that differs is one bit in one direction, else ""."""
    up = down = 0
    for data in differences_:
        up |= int(str(data["up"]), 16)
        down |= int(str(data["down"]), 16)
    mask = up | down
    if not mask or mask & (mask - 1) or (up and down):
        return ""
    return f"bit {mask.bit_length() - 1}, " + ("0 → 1" if up else "1 → 0")


def _first_text(differences_: Sequence[Mapping[str, Any]]) -> str:
    if not differences_:
        return ""
    data = differences_[0]
    bit = one_bit(differences_)
    return (f"at {data['index']} got 0x{data['got']}, expected 0x{data['expected']}"
            + (f" ({bit})" if bit else ""))  # fmt: skip


def suspects(deviations: Iterable[Deviation]) -> list[tuple[str, list[Deviation]]]:
    """(place, its deviations) of places that are at fault, most deviations first."""
    by_place: dict[str, list[Deviation]] = {}
    for deviation in deviations:
        if deviation.kind in ABOUT_DEVICES:
            by_place.setdefault(deviation.place, []).append(deviation)
    return sorted(by_place.items(), key=lambda x: (-len(x[1]), x[0]))


def renamed(deviation: Deviation, kind: str) -> Deviation:
    """The same deviation in another class."""
    return replace(deviation, kind=kind)
