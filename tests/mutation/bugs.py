"""Owns books of bugs: defects written by hand, as changes to kernel sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import tomllib

from .forms import WIDTHS, Form, form_of
from .sites import Change, Site

BOOKS: Final = ("bugs.toml",)


class BugError(ValueError):
    """An entry that fits no source any more; the message names it and what to mend."""


@dataclass(frozen=True, slots=True)
class Bug:
    """`find` is a text of `file`, the first after `after`; `put` stands in for it. MET(condition)
    in `put` is the condition, and notes that it was met; without it a bug is met where it is
    reached. `dead` says why no input can tell the bug from the original."""

    name: str
    file: str
    find: str
    put: str
    after: str = ""
    dead: str = ""

    @property
    def marked(self) -> bool:
        """Whether the bug itself says when it was met."""
        return "MET(" in self.put

    def place(self, source: bytes) -> int:
        """Where `find` begins in its file, -1 where the file does not have it."""
        at = source.find(self.after.encode()) if self.after else 0
        return source.find(self.find.encode(), at) if at >= 0 else -1


def load(paths: Sequence[Path | str] = BOOKS) -> list[Bug]:
    """Every entry of the books, which are files or names of those beside this module."""
    bugs = []
    for path in paths:
        text = (Path(__file__).parent / path).read_text("utf-8")
        bugs += [
            _bug({"name": name, "file": file, **entry}, path)
            for file, entries in tomllib.loads(text).items()
            for name, entry in entries.items()
        ]
    names = [bug.name for bug in bugs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BugError(f"two bugs of one name: {', '.join(sorted(twice))}")
    return bugs


def _bug(entry: Mapping[str, str], path: Path | str) -> Bug:
    known = {field.name for field in fields(Bug)}
    missing, other = {"find", "put"} - entry.keys(), entry.keys() - known
    if missing or other:
        words = [f"lacks {', '.join(sorted(missing))}"] if missing else []
        words += [f"has {', '.join(sorted(other))}, which no bug has"] if other else []
        raise BugError(f"{path}: {entry['name']} {' and '.join(words)}")
    return Bug(**entry)


def fits(source: bytes, bug: Bug) -> bool:
    """Whether the source still has what the entry changes."""
    return bug.place(source) >= 0


def planted(
    source: bytes, found: list[Site], bugs: list[Bug], widths: Mapping[str, str] | None = None
) -> list[Site]:
    """The sites with those of `bugs`; what would straddle a bug is left out. `widths`: how far
    bugs are widened, by name."""
    for bug in bugs:
        form = _form(source, bug, (widths or {}).get(bug.name, WIDTHS[0]))
        found = [s for s in found if not _straddles(s, form.start, form.end)]
        found.append(Site(form.start, form.end, form.form, form.function,
                          [Change("bug", form.put, bug.name)], marked=bug.marked))  # fmt: skip
    return found


def _form(source: bytes, bug: Bug, width: str) -> Form:
    start = bug.place(source)
    if start < 0:
        raise BugError(f"{bug.name}: {bug.file} has no {bug.after or bug.find!r}")
    end = start + len(bug.find.encode())
    found = form_of(source, start, end, bug.put, width)
    return found or Form("expression", start, end, bug.put)


def _straddles(site: Site, start: int, end: int) -> bool:
    apart = site.end <= start or site.start >= end
    nests = (site.start <= start and end <= site.end) or (start <= site.start and site.end <= end)
    return not apart and not nests
