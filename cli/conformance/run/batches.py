"""Owns how the cases of a run are dealt: in which order, in which batches, with which options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from ..cases.case import SOAK, Case
from ..record import journal
from .process import Batch
from .products import Products
from .request import RunRequest

_BATCH: Final = 40
_BUDGETED: Final = 8
# Forms by what their cases tell: values first, then derivatives, ways to call, geometry.
_VALUE: Final = ("functional", "random", "grad", "inplace", "out", "method", "error")


def batches_of(
    request: RunRequest,
    selected: Sequence[Case],
    places: Sequence[str],
    bits: Path,
    products: Products,
) -> Iterator[Batch]:
    """Batches of neighbours, one operator's cases together; fresh seeds repeat the cases, a
    comparison gives them to every device. Those of other products come last: workers start anew."""
    options: dict[str, Any] = dict(request.items)
    if request.save:
        options["save"] = request.save
    if request.compare and not request.items:
        # Devices explain each other: no case is rechecked or shrunk on one.
        options |= {"bits": str(bits), "once": True}
    if request.minutes:
        options["seconds"] = 60.0 * request.minutes / len(selected)
    socs = {case.op: products.soc(case.op) for case in selected}
    ordered = by_value(selected) if request.budget and not request.extra else selected
    names = [case.id for case in sorted(ordered, key=lambda case: socs[case.op])]
    for seed in range(request.seed, request.seed + 1 + request.fresh_seeds):
        named = names if seed == request.seed else [c for c in names if "/meta/" not in c]
        for device in places if request.compare else ("",):
            left = [c for c in named if journal.key_of(c, seed, device) not in request.done]
            for cases, soc in _slices(request, left, len(names), socs):
                yield _batch(request, cases, seed, options, device, soc)


def _slices(
    request: RunRequest, names: Sequence[str], total: int, socs: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Cases alike, with their product; a soak that shares the time until an end stays whole."""
    # Small enough that the last batches end together, and soon after a budget is spent.
    most = _BUDGETED if request.budget else _BATCH
    size = max(1, min(most, total // (4 * request.jobs) or 1))
    extra = frozenset(request.extra)

    def kind(name: str) -> tuple[str, bool, bool]:
        return socs[name.partition("/")[0]], name in extra, _lasts(request, name)

    for (soc, _, lasts), alike in groupby(names, kind):
        of_one = tuple(alike)
        step = len(of_one) if lasts else size
        for i in range(0, len(of_one), step):
            yield of_one[i : i + step], soc


def _batch(
    request: RunRequest, cases: tuple[str, ...], seed: int, options: Mapping[str, Any],
    device: str, soc: str,
) -> Batch:  # fmt: skip
    until = {"until": request.soak_until} if _lasts(request, cases[0]) else {}
    required = bool(request.extra) and cases[0] not in request.extra
    return Batch(cases, seed, {**options, **until}, device, soc, required)


def _lasts(request: RunRequest, name: str) -> bool:
    return bool(request.soak_until) and f"/{SOAK}/" in name


def by_value(selected: Sequence[Case]) -> list[Case]:
    """Cases in the order in which they tell most: a case of every operator, then a second one of
    each; of one operator its forms by `_VALUE`, in the order of its design, whose beginning is a
    design too."""
    queues: dict[str, list[Case]] = {}
    for case in selected:
        queues.setdefault(case.op, []).append(case)
    ranks = {form: rank for rank, form in enumerate(_VALUE)}
    turns = []
    for at, queue in enumerate(queues.values()):
        queue.sort(key=lambda case: ranks.get(case.form, len(ranks)))
        turns += [(turn, at, case) for turn, case in enumerate(queue)]
    turns.sort(key=lambda turn: turn[:2])
    return [case for _, _, case in turns]
