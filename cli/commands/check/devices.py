"""Owns the part of a report that is about devices: who differs from the others, who is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...conformance.record import votes
from ...conformance.run.pool import Lost
from ...plurals import plural
from ...render import Block, Cell, Heading, Item, Items, Line

_DISPLAY_LIMIT: Final = 5


def document(
    deviations: Sequence[votes.Deviation], lost: Sequence[Lost], compared: int
) -> Iterator[Block]:
    """Suspects first, then what is nobody's fault, then devices that are gone; `compared` devices
    voted."""
    yield from gone(lost)
    if not compared:
        return
    at_fault = votes.suspects(deviations)
    yield Heading("Devices against each other")
    if at_fault:
        yield Items([suspect(place, deviations) for place, deviations in at_fault])
    others = [d for d in deviations if d.kind not in votes.ABOUT_DEVICES]
    if others:
        yield Items([_item(f"{d.kind}: {d.case}", [d]) for d in others[:_DISPLAY_LIMIT]])
    if not deviations:
        yield agreement(compared)


def agreement(compared: int) -> Line:
    """That devices agree, where there are two to agree."""
    if compared < 2:
        return Line(Cell("one device: there is nothing to compare it with", "warn"))
    return Line(Cell(f"all {compared:,} devices gave the same bits", "good"))


def suspect(place: str, deviations: Sequence[votes.Deviation], verb: str = "differs") -> Item:
    """A device, or several alike, that differ: how, in what, how often."""
    kinds = [k for k in votes.CLASSES if any(d.kind == k for d in deviations)]
    ops = ", ".join(dict.fromkeys(d.op for d in deviations))
    cases = plural(len(deviations), "case")
    return _item(f"{place} {verb}: {', '.join(kinds)} in {cases} of {ops}", deviations)


def _item(title: str, deviations: Sequence[votes.Deviation]) -> Item:
    details = []
    for d in deviations[:_DISPLAY_LIMIT]:
        rate = f"{d.wrong} of {d.launches} launches" if d.launches else ""
        parts = [d.case, d.kind, d.first, rate, d.text]
        details.append((f"seed {d.seed}", "; ".join(p for p in parts if p)))
    if len(deviations) > _DISPLAY_LIMIT:
        details.append(("and", f"{len(deviations) - _DISPLAY_LIMIT} more; all are in the journal"))
    against, agreeing = deviations[0].against, deviations[0].agreeing
    if against:
        more = f" and {agreeing - len(against):,} more" if agreeing > len(against) else ""
        details.append(("against", ", ".join(against) + more))
    return Item(Cell(title, "bad"), details)


def gone(lost: Sequence[Lost]) -> Iterator[Block]:
    """Devices and hosts that stopped serving, with the cases that only they could have run."""
    if not lost:
        return
    yield Heading("Lost")
    yield Items([
        Item(Cell(one.place, "bad"), [("why", one.reason)]
             + ([("cases", f"{len(one.cases)} not run")] if one.cases else []))
        for one in lost
    ])  # fmt: skip
