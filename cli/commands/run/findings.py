"""What the strict layer found, less what a file of known findings allows; shown as a list.

A file of known findings is TOML: `[[allow]]` tables of globs `finding`, `call`, `object`, `created`
(each optional) and a `reason`, which is not optional.
"""

from __future__ import annotations

import fnmatch
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from aclnn_bindings.install.search import bundled_simulator
from aclnn_bindings.install.simulated import StrictFinding

from ... import render
from ...foreign import parsed, text_of
from ...plurals import plural

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FIELDS: Final = ("finding", "call", "object", "created")


@dataclass(frozen=True, slots=True)
class Allowed:
    """One known finding; a glob that is missing matches everything."""

    finding: str
    call: str
    object: str
    created: str
    reason: str

    def covers(self, finding: StrictFinding) -> bool:
        pairs = ((finding.what, self.finding), (finding.call, self.call),
                 (finding.object, self.object), (finding.created, self.created))  # fmt: skip
        return all(fnmatch.fnmatchcase(text, glob) for text, glob in pairs)


def file_of(name: str) -> Path:
    """The file that `--allow` means: a path, or the name of one that comes along (`torch_npu`)."""
    if "/" in name or Path(name).exists():
        return Path(name)
    root = bundled_simulator()
    path = root / "share" / "aclsim" / f"{name}.toml" if root else Path(name)
    if not path.exists():
        raise click.UsageError(f"--allow {name}: no such file, and none of that name comes along")
    return path


def settings(
    mode: str, report: Path, known: Sequence[Allowed], races_only: bool
) -> list[tuple[str, str]]:
    """Lines that have the layer check: what is known neither fails a call nor aborts."""
    lines = [("strict", str(report)), ("strict_mode", mode)]
    lines += [("allow", "\x1f".join((k.finding, k.call, k.object, k.created))) for k in known]
    return lines + [("races_only", "1")] * races_only


def allowed(path: Path) -> list[Allowed]:
    """The entries of a file; click.UsageError for one without a reason or with other keys."""
    try:
        data = parsed(text_of(path), tomllib.loads)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from None
    entries = []
    tables = data.get("allow", [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise click.UsageError(f"{path}: allow is of another kind: write [[allow]] tables")
    for number, entry in enumerate(tables, 1):
        if problem := _problem(entry):
            raise click.UsageError(
                f"{path}: [[allow]] {number}: {problem}; expected a reason and any of "
                f"{', '.join(_FIELDS)}"
            )
        globs = [entry.get(field, "*") for field in _FIELDS]
        entries.append(Allowed(globs[0], globs[1], globs[2], globs[3], entry["reason"]))
    return entries


def _problem(entry: dict[str, Any]) -> str:
    """What is wrong with an entry; "" where nothing is."""
    if strange := set(entry) - {*_FIELDS, "reason"}:
        return f"unknown key {min(strange)!r}"
    if other := [key for key, value in entry.items() if not isinstance(value, str)]:
        return f"{other[0]} is no text"
    return "" if entry.get("reason", "").strip() else "no reason"


def unexpected(findings: Sequence[StrictFinding], known: Sequence[Allowed]) -> list[StrictFinding]:
    """What no entry covers."""
    return [f for f in findings if not any(entry.covers(f) for entry in known)]


def document(
    findings: Sequence[StrictFinding], allowed_count: int, killed: str = ""
) -> list[render.Block]:
    """Findings that differ only in the handle's address are one item; `killed` is by which signal
    the program ended: what it did last was not judged."""
    note = f" ({allowed_count} allowed)" if allowed_count else ""
    if not findings and killed:
        text = f"strict: nothing found before {killed} killed the program{note}"
        return [render.Line(render.Cell(text, "warn"))]
    if not findings:
        return [render.Line(render.Cell(f"strict: no misuse found{note}", "good"))]
    alike = Counter((f.what, f.call, f.created, f.at, f.remedy) for f in findings)
    items = []
    for key, times in alike.items():
        first = next(f for f in findings if (f.what, f.call, f.created, f.at, f.remedy) == key)
        more = f" (and {times - 1} alike)" if times > 1 else ""
        details = [("created" if first.what != "race" else "before", first.created),
                   ("at", first.at), ("remedy", first.remedy)]  # fmt: skip
        title = f"{first.what} in {first.call}: {first.object}{more}"
        items.append(render.Item(title, [(label, text) for label, text in details if text]))
    heading = render.Cell(f"strict: {plural(len(findings), 'finding')}{note}", "bad")
    return [render.Line(heading), render.Items(items)]
