"""Owns merging: many runs as one, in any order, each case counted once, what is missing named."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..conformance.cases.case import PROBE
from ..conformance.cases.shard import Shard
from ..conformance.cases.shard import parse as shard_of
from ..conformance.record import votes
from ..conformance.record.result import VERDICTS, Counts, Result
from .parts import Part

Key = tuple[str, int, str]
_ORDER: Final = tuple(VERDICTS)
# What of an environment a fleet should have in common.
VERSIONS: Final = ("cann", "driver", "firmware", "kernels", "soc", "mindtorch_npu")


@dataclass(slots=True)
class Fleet:
    """Runs as one. `results` by (case, seed, place), where place is "" unless devices were
    compared; `lost` are planned cases without a result and who had them; `twice` are cases that
    several places judged, and differently."""

    parts: list[Part]
    results: dict[Key, Result] = field(default_factory=dict)
    lost: dict[Key, str] = field(default_factory=dict)
    twice: list[tuple[Result, Result]] = field(default_factory=list)
    missing: list[Shard] = field(default_factory=list)
    deviations: list[votes.Deviation] = field(default_factory=list)

    def counts(self) -> Counts:
        counts = Counts()
        for result in self.results.values():
            counts.add(result)
        return counts

    def environments(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(node, environment) of every host on which a worker started."""
        stated: list[tuple[str, Mapping[str, Any]]] = [
            (p.node, p.environment) for p in self.parts if "kind" in p.environment and not p.places
        ]
        stated += [pair for p in self.parts for pair in p.places.items()]
        stated = [(node, own) for node, own in stated if own.get("kind") != "cpu"]
        known = {node for node, _ in stated}
        return stated + [(n, own) for n, own in self._probed() if own and n not in known]

    def _probed(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What probes saw on hosts: a probe runs on the host itself, on no device."""
        for result in self.results.values():
            if result.form == PROBE:
                versions = (result.measure or {}).get("versions", {})
                yield result.node, {**versions, "mindtorch_npu": self._version} if versions else {}

    @property
    def _version(self) -> str:
        return next((str(p.environment["mindtorch_npu"]) for p in self.parts
                     if "mindtorch_npu" in p.environment), "")  # fmt: skip

    @property
    def compares(self) -> bool:
        return any(part.compares and not part.options.get("items") for part in self.parts)

    @property
    def ended(self) -> bool:
        """Whether every run has told its end, and no part of a divided one is still to come."""
        return all(part.end is not None for part in self.parts) and not self.missing

    @property
    def failing(self) -> bool:
        """Whether the fleet needs somebody: failures, deviating devices, cases without a result."""
        return bool(self.counts().failing or self.lost or self.missing or self.deviations)


def merge(parts: Sequence[Part]) -> Fleet:
    """One fleet of runs; the same for every order of `parts`, and for parts that come twice."""
    fleet = Fleet(sorted(parts, key=lambda p: (p.node, p.run)))
    for part in fleet.parts:
        for result in part.results:
            _add(fleet, result, part.compares)
    fleet.results = {key: fleet.results[key] for key in sorted(fleet.results)}
    fleet.twice.sort(key=lambda pair: (pair[0].case, pair[0].seed, votes.place_of(pair[1])))
    fleet.lost = dict(sorted(_lost(fleet).items()))
    fleet.missing = missing_shards(fleet.parts)
    if fleet.compares:
        fleet.deviations = _deviations(fleet)
    return fleet


def _add(fleet: Fleet, result: Result, compared: bool) -> None:
    key = (result.case, result.seed, votes.place_of(result) if compared else "")
    known = fleet.results.get(key)
    if known is None:
        fleet.results[key] = result
        return
    kept, other = sorted((known, result), key=rank)
    fleet.results[key] = kept
    if kept.verdict != other.verdict:
        fleet.twice.append((kept, other))


def rank(result: Result) -> tuple[int, str]:
    """Worst verdict first, then an order that only the result itself decides."""
    return _ORDER.index(result.verdict), json.dumps(result.as_json(), sort_keys=True)


def _lost(fleet: Fleet) -> dict[Key, str]:
    """Planned cases that nobody has a result of, and the host that was to run them."""
    lost: dict[Key, str] = {}
    for part in fleet.parts:
        for case, seed, device in (*part.plan, *part.started):
            named = device if " " in device else f"{part.node} {device}"
            place = named if part.compares else ""
            if (case, seed, place) not in fleet.results:
                how = "under way" if (case, seed, device) in part.started else "not begun"
                lost.setdefault((case, seed, place), f"{how} on {part.node}")
    return lost


def missing_shards(parts: Iterable[Part]) -> list[Shard]:
    """Parts of a divided run that no journal is there of."""
    there: dict[int, set[int]] = {}
    for part in parts:
        if part.options.get("shard"):
            shard = shard_of(str(part.options["shard"]))
            there.setdefault(shard.count, set()).add(shard.number)
    return [
        Shard(number, count)
        for count, numbers in sorted(there.items())
        for number in range(1, count + 1)
        if number not in numbers
    ]


def most(values: Iterable[str]) -> str:
    """The value that most have; the smallest of equally common ones."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return min(counts, key=lambda v: (-counts[v], v), default="")


def odd_versions(
    hosts: Sequence[tuple[str, Mapping[str, Any]]],
) -> dict[str, dict[str, tuple[str, str]]]:
    """node → {what: (its version, that of most)} where they differ."""
    odd: dict[str, dict[str, tuple[str, str]]] = {}
    for name in VERSIONS:
        stated = {node: str(environment.get(name, "")) for node, environment in hosts}
        usual = most(stated.values())
        for node, value in stated.items():
            if value != usual:
                odd.setdefault(node, {})[name] = (value, usual)
    return odd


def _deviations(fleet: Fleet) -> list[votes.Deviation]:
    """Those that the runs themselves saw, and what only shows across hosts."""
    own: dict[Key, dict[str, Any]] = {}
    seen: dict[votes.Key, votes.Evidence] = {}
    for part in fleet.parts:
        for kind, data in part.notes:
            if kind == "deviation":
                place = data["place"] if " " in data["place"] else f"{part.node} {data['place']}"
                own[data["case"], int(data["seed"]), place] = data
        seen |= votes.evidence(part.notes, part.node)
    first = {key: str(data.get("first", "")) for key, data in own.items() if data.get("first")}
    texts = {
        node: ", ".join(f"{what} {mine or 'none'}, most have {usual or 'none'}"
                        for what, (mine, usual) in odd.items())
        for node, odd in odd_versions(fleet.environments()).items()
    }  # fmt: skip
    places = {votes.place_of(r): texts[r.node] for r in fleet.results.values() if r.node in texts}
    stuck = {key for key, data in own.items() if data.get("class") == votes.STUCK}
    voting = [result for key, result in fleet.results.items() if key[2]]
    differing = votes.deviations(votes.splits(voting), seen, None, first, places)
    return [
        votes.renamed(d, votes.STUCK)
        if (d.case, d.seed, d.place) in stuck and d.kind == votes.DETERMINISTIC
        else d
        for d in differing
    ]
