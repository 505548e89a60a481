"""Owns known issues: a TOML file of expected failures, scoped, with reason and expiry.

[[issue]]
op = "index_*"            # glob; also: case, form, dtype, soc (globs), cann (">=8.1,<8.3")
reason = "repeats are dropped by this kernel"
expires = 2027-01-31      # after this day the entry no longer excuses anything
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from ...foreign import parsed, text_of
from .result import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SCOPES: Final = ("op", "case", "form", "dtype", "soc")
_FIELDS: Final = frozenset((*_SCOPES, "cann", "reason", "expires", "link"))
_COMPARE: Final = {
    ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
    ">": lambda a, b: a > b, "<": lambda a, b: a < b,
}  # fmt: skip


class KnownIssuesError(ValueError):
    """The file is wrong; the message names the entry, the field and what is expected."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One entry; empty scopes match everything."""

    reason: str
    expires: datetime.date
    scopes: Mapping[str, str]
    cann: str = ""
    link: str = ""

    def matches(self, result: Result, environment: Mapping[str, Any]) -> bool:
        values = {"op": result.op, "case": result.case, "form": result.form,
                  "dtype": result.dtype, "soc": str(environment.get("soc", ""))}  # fmt: skip
        if not all(fnmatchcase(values[k], v) for k, v in self.scopes.items()):
            return False
        return not self.cann or in_range(str(environment.get("cann", "")), self.cann)


def load(path: Path) -> list[Issue]:
    """The entries of a file; KnownIssuesError for unknown fields, no reason or no expiry."""
    try:
        data = parsed(text_of(path), tomllib.loads)
    except tomllib.TOMLDecodeError as error:
        raise KnownIssuesError(f"{path}: not TOML: {error}") from None
    except (OSError, ValueError) as error:
        raise KnownIssuesError(f"{path}: cannot be read: {error}") from None
    unknown = set(data) - {"issue"}
    if unknown:
        raise KnownIssuesError(f"{path}: unknown table {min(unknown)!r}; entries are [[issue]]")
    entries = data.get("issue", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise KnownIssuesError(f"{path}: 'issue' is no table; entries are [[issue]]")
    return [_issue(entry, f"{path}: issue {i}") for i, entry in enumerate(entries, 1)]


def _issue(entry: Mapping[str, Any], where: str) -> Issue:
    unknown = set(entry) - _FIELDS
    if unknown:
        raise KnownIssuesError(f"{where}: unknown field {min(unknown)!r}; known: {sorted(_FIELDS)}")
    for name in _FIELDS - {"expires"}:
        if not isinstance(entry.get(name, ""), str):
            raise KnownIssuesError(f"{where}: {name} must be a string, got {entry[name]!r}")
    if not entry.get("reason"):
        raise KnownIssuesError(f"{where}: no reason; say why the failure is expected")
    expires = entry.get("expires")
    if not isinstance(expires, datetime.date) or isinstance(expires, datetime.datetime):
        raise KnownIssuesError(f"{where}: expires must be a date such as 2027-01-31")
    scopes = {k: str(entry[k]) for k in _SCOPES if k in entry}
    if not scopes:
        raise KnownIssuesError(f"{where}: no scope; give at least one of {', '.join(_SCOPES)}")
    return Issue(entry["reason"], expires, scopes, entry.get("cann", ""), entry.get("link", ""))


def apply(
    result: Result, issues: Sequence[Issue], environment: Mapping[str, Any],
    today: datetime.date | None = None,
) -> Result:  # fmt: skip
    """XFAIL where an entry excuses a failure, XPASS where it excuses a pass; else as it is."""
    today = today or datetime.date.today()
    for issue in issues:
        if not issue.matches(result, environment):
            continue
        if today > issue.expires:
            return result.with_(issue=f"entry expired on {issue.expires}: {issue.reason}")
        if result.failing:
            return result.with_(verdict="XFAIL", issue=issue.reason)
        if result.verdict == "PASS":
            return result.with_(verdict="XPASS", issue=issue.reason)
    return result


def in_range(version: str, condition: str) -> bool:
    """Whether `version` satisfies all parts of `>=8.1,<8.3`; unknown versions satisfy nothing."""
    have = _numbers(version)
    if not have:
        return False
    for part in condition.split(","):
        sign = next((s for s in _COMPARE if part.strip().startswith(s)), "==")
        bounds = _numbers(part.strip().removeprefix(sign))
        if not bounds:
            raise KnownIssuesError(f"cann = {condition!r}: {part!r} is no version condition")
        if not _COMPARE[sign](have[: len(bounds)], bounds):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    head = text.strip().lower().partition("rc")[0].partition("+")[0]
    parts = [p for p in head.strip(".").split(".") if p]
    return tuple(int(p) for p in parts if p.isdigit())
