"""Judges what a run computed: names the first operator that was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aclnn_bindings
from aclnn_bindings.install.describe import Install
from mindtorch.npu.install import use

from ... import render
from ...conformance.record import bundle
from ...conformance.record.result import Result
from ...plurals import plural
from ...recording import Captured, Recording, excerpt
from ...recording.cases import MARK
from ...recording.judging import judged
from .summary import described

_DISPLAY_LIMIT: Final = 10
_SAVED_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Verified:
    """Launches that were judged, in order of their call numbers."""

    judged_pairs: tuple[tuple[Captured, Result], ...]
    saved: tuple[Path, ...] = ()

    @property
    def wrong(self) -> tuple[tuple[Captured, Result], ...]:
        return tuple(pair for pair in self.judged_pairs if pair[1].failing)

    def counts(self) -> Counter[str]:
        return Counter(result.verdict for _, result in self.judged_pairs)


def verify(recording: Recording, install: Install, save: Path | None = None) -> Verified:
    """Judge every launch whose data were recorded; the install only says what is declared.

    Wrong ones are saved to the folder `save`, as cases that `check replay` runs on any install.
    """
    cann = aclnn_bindings.open(install.root)
    use(cann)
    pairs: list[tuple[Captured, Result]] = []
    saved: list[Path] = []
    for launch, result, trial in judged(recording, cann.declarations):
        pairs.append((launch, result))
        if save is not None and result.failing and trial is not None and len(saved) < _SAVED_MOST:
            saved.append(_saved(recording, launch, result, trial, save))
    pairs.sort(key=lambda pair: pair[0].call.number)
    return Verified(tuple(pairs), tuple(saved))


def _saved(
    recording: Recording, launch: Captured, result: Result, trial: Any, folder: Path
) -> Path:
    """The case: a recording of this launch alone, its inputs and what came of them."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{launch.call.name}-call{launch.call.number}"
    excerpt.write(recording, launch.call, folder / f"{name}.rec")
    case = f"{launch.call.name}{MARK}0/functional/s0"
    where = {k: recording.header[k] for k in ("install", "host", "machine", "command", "started")}
    where |= {"call": launch.call.number, "stack": launch.call.stack}
    path = bundle.save(folder, result.with_(case=case), trial, where, recording=f"{name}.rec")
    saved_path = path.with_name(f"{name}.json")
    path.rename(saved_path)
    return saved_path


def document(verified: Verified) -> list[render.Block]:
    """The first wrong launch in full, then the others, then what was not judged and why."""
    counts = verified.counts()
    passed, wrong, skipped = counts["PASS"], verified.wrong, counts["SKIP"]
    style: render.Style = "bad" if wrong else "good" if passed else "warn"
    head = f"verify: {plural(passed, 'launch')} right, {len(wrong)} wrong, {skipped} not judged"
    blocks: list[render.Block] = [render.Line(render.Cell(head, style))]
    if wrong:
        launch, result = wrong[0]
        title = f"first wrong: {launch.call.name} (call {launch.call.number})"
        blocks.append(render.Items([render.Item(title, _details(launch, result))]))
    if len(wrong) > 1:
        rows = [[str(w.call.number), w.call.name, described(w.call.arguments), r.reason]
                for w, r in wrong[1:_DISPLAY_LIMIT]]  # fmt: skip
        blocks.append(render.Grid(["call", "also wrong", "given", "why"], rows, frozenset((0,))))
    return blocks + _not_judged(verified.judged_pairs)


def _details(launch: Captured, result: Result) -> list[tuple[str, str]]:
    details = [("given", described(launch.call.arguments)), ("error", result.reason)]
    return details + ([("at", launch.call.stack)] if launch.call.stack else [])


def _not_judged(pairs: Sequence[tuple[Captured, Result]]) -> list[render.Block]:
    reasons: dict[str, Any] = {}
    for launch, result in pairs:
        if result.verdict == "SKIP":
            reasons.setdefault(launch.call.name, result.reason)
    if not reasons:
        return []
    rows = [[name, why] for name, why in list(reasons.items())[:_DISPLAY_LIMIT]]
    return [render.Grid(["not judged", "why"], rows)]
