"""Owns a comparison of devices on one host: which differences are asked for again, and what the
kept outputs show of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ..cases.case import SOAK, parse
from ..record import votes
from ..record.result import Result
from .bits import difference
from .lane import Note
from .process import Batch

# Launches of a case that differs: of the first ones of a place so many, to tell how often it is
# wrong; of the next ones as many as tell a fault that comes and goes from one that stays.
_TIMES: Final = 20
_FULL: Final = 32
_BRIEF: Final = 5
# Beyond these many cases of one place nothing new is learned; the report says "not repeated".
_MOST: Final = 1000
# Verdicts of a case in which a worker ended, which gave no outputs.
ENDINGS: Final = frozenset(("CRASH", "HANG"))


def bits_folder(path: Path) -> Path:
    """Where a run that compares keeps outputs, beside its journal."""
    return path.with_name(path.name + ".bits")


def repeats(results: Sequence[Result], folder: Path) -> list[Batch]:
    """The cases in which a device differs, again on it and on one of those that it differs from."""
    counts: Counter[str] = Counter()
    batches = []
    for split in votes.splits(results):
        if parse(split.case).form == SOAK:
            continue  # it was repeated from the start
        sides = [place for _, place, _ in split.deviating() if counts[place] < _MOST]
        if not sides:
            continue
        counts.update(sides)
        full = min(counts[place] for place in sides) <= _FULL
        options = {"bits": str(folder), "repeat": _TIMES if full else _BRIEF, "brief": not full}
        for place in [*sides, *(split.most.places[:1] if split.most else ())]:
            batches.append(Batch((split.case,), split.seed, options, place))
    return batches


def ended_again(again: Result, results: Sequence[Result]) -> Note:
    """What a repetition in which the worker ended says: no outputs, after those of the first."""
    key = (again.case, again.seed, votes.place_of(again))
    digests = Counter(r.digest for r in results if (r.case, r.seed, votes.place_of(r)) == key)
    place = {k: v for k in ("device", "node", "soc") if (v := getattr(again, k))}
    data = {"case": again.case, "seed": again.seed, "digests": {**digests, "": digests[""] + 1}}
    return Note("repeat", {**data, **place})


def verdicts_of(
    results: Sequence[Result], notes: Iterable[Note], folder: Path
) -> list[votes.Deviation]:
    """The deviations of a run; outputs of cases in which all agree are removed."""
    seen = votes.evidence((note.kind, note.data) for note in notes)
    divided = votes.splits(results)
    differences: dict[votes.Key, dict[str, Any]] = {}
    words: dict[votes.Key, str] = {}
    names = set()
    for split in divided:
        usual = split.most.digest if split.most else ""
        names |= {usual} | {camp.digest for camp in split.others}
        for camp, _, key in split.deviating():
            digests = [*seen[key].digests] if key in seen else []
            for name in (camp.digest, *digests):
                if not name or not usual or name == usual or key in words:
                    continue
                first = difference(folder, split.case, split.seed, name, usual)
                if first is not None:
                    differences[key], words[key] = first.as_json(), first.text
    _tidy(folder, names)
    return votes.deviations(divided, seen, differences, words)


def _tidy(folder: Path, names: set[str]) -> None:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.stem.rpartition("-")[2] not in names:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
