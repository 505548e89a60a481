"""Owns the defects written by hand: what real kernels get wrong, as changes to kernel sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomllib

from .sites import Change, Site

BOOKS: Final = ("bugs.toml", "bugs_of_families.toml", "bugs_of_corners.toml", "bugs_of_steps.toml",
                      "bugs_of_rarer.toml", "bugs_of_everyday.toml")  # fmt: skip


class BugError(ValueError):
    """An entry that fits no source any more; the message names it and what to mend."""


@dataclass(frozen=True, slots=True)
class Bug:
    """`find` is the text of a whole expression or statement in `file`; `put` stands in for it."""

    name: str
    file: str
    find: str
    put: str
    form: str = "expression"
    ops: tuple[str, ...] = ()
    after: str = ""


def load(names: Sequence[str] = BOOKS) -> list[Bug]:
    """Every entry of the books."""
    texts = (Path(__file__).with_name(name).read_text("utf-8") for name in names)
    entries = [e for text in texts for e in tomllib.loads(text).get("bug", [])]
    return [Bug(**{**e, "ops": tuple(e.get("ops", ()))}) for e in entries]


def _place(source: bytes, bug: Bug) -> int:
    at = source.find(bug.after.encode()) if bug.after else 0
    return source.find(bug.find.encode(), at) if at >= 0 else -1


def fits(source: bytes, bug: Bug) -> bool:
    """Whether the source still has what the entry changes."""
    return _place(source, bug) >= 0


def planted(source: bytes, found: list[Site], bugs: list[Bug]) -> list[Site]:
    """The sites with those of `bugs`; generic ones that would straddle a bug are left out."""
    for bug in bugs:
        start = _place(source, bug)
        if start < 0:
            raise BugError(f"bugs.toml: {bug.name}: {bug.file} has no {bug.after or bug.find!r}")
        end = start + len(bug.find.encode())
        found = [s for s in found if not _straddles(s, start, end)]
        found.append(Site(start, end, bug.form, f"bug {bug.name}",
                          [Change("bug", bug.put, bug.name)]))  # fmt: skip
    return found


def _straddles(site: Site, start: int, end: int) -> bool:
    apart = site.end <= start or site.start >= end
    nests = (site.start <= start and end <= site.end) or (start <= site.start and site.end <= end)
    return not apart and not nests
