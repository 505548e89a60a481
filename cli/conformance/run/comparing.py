"""Owns a comparison of devices on one host: which differences are asked for again, and what the
kept outputs show of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ..cases.case import SOAK
from ..record import votes
from ..record.result import Result
from .bits import difference
from .lane import Note
from .process import Batch

_TIMES: Final = 20
# Cases of one place that are asked for again: the first ones tell what the others repeat.
_ASKED: Final = 8


def bits_folder(path: Path) -> Path:
    """Where a run that compares keeps outputs, beside its journal."""
    return path.with_name(path.name + ".bits")


def repeats(results: Sequence[Result], folder: Path) -> list[Batch]:
    """The cases in which a device differs, again on it and on one of those that it differs from."""
    options = {"bits": str(folder), "repeat": _TIMES}
    asked: dict[str, int] = {}
    batches = []
    for most, others in votes.splits(results):
        sides = [result for camp in others for result in camp if result.form != SOAK]
        sides = [r for r in sides if asked.get(votes.place_of(r), 0) < _ASKED]
        for result in sides:
            asked[votes.place_of(result)] = asked.get(votes.place_of(result), 0) + 1
        for result in [*sides, *(most[:1] if sides else ())]:
            batches.append(Batch((result.case,), result.seed, options, votes.place_of(result)))
    return batches


def verdicts_of(
    results: Sequence[Result], notes: Iterable[Note], folder: Path
) -> list[votes.Deviation]:
    """The deviations of a run; outputs of cases in which all agree are removed."""
    seen = votes.evidence((note.kind, note.data) for note in notes)
    differences: dict[votes.Key, dict[str, Any]] = {}
    words: dict[votes.Key, str] = {}
    wanted = set()
    for most, others in votes.splits(results):
        for result in (r for camp in others for r in camp):
            key = (result.case, result.seed, votes.place_of(result))
            wanted |= {r.digest for r in (result, *most)}
            usual = most[0].digest if most else ""
            digests = [*seen[key].digests] if key in seen else []
            for name in (result.digest, *digests):
                if not name or not usual or name == usual or key in words:
                    continue
                first = difference(folder, result.with_(digest=name), usual)
                if first is not None:
                    differences[key], words[key] = first.as_json(), first.text
    _tidy(folder, wanted)
    return votes.deviations(results, seen, differences, words)


def _tidy(folder: Path, wanted: set[str]) -> None:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.stem.rpartition("-")[2] not in wanted:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
