"""What to do about a failed call: by CANN's own message, then by operator and code, then by code.

The rows are data: `remedies.json` by code, `messages.json` by text, specific texts first; message
ids have `message_ids`, results of other libraries `results`.
Codes are keyed by name because their numbers belong to the install's headers. Sources: CANN's
documents of return codes and error codes; "reported" and `repository#number` mark public threads,
and what users met on hardware and nobody here measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from . import message_ids
from .advice import Remedy
from .lines import Lines

_FILE: Final = Path(__file__).with_name("remedies.json")
_MESSAGES: Final = Path(__file__).with_name("messages.json")
_GROUP: Final = re.compile(r"\{(\d)\}")


@dataclass(frozen=True, slots=True)
class MessageRemedy:
    """Advice for a text: of CANN, the loader, Python or a framework.

    `rank` 0 names the cause, 1 a kind of failure, 2 what a call or a word alone makes likely, 3 an
    echo of another failure or a mere warning. `{1}` in the advice stands for what the pattern's
    first group matched.
    """

    pattern: re.Pattern[str]
    rank: int
    advice: Remedy

    def of(self, match: re.Match[str]) -> MessageRemedy:
        """This rule with the advice for `match`."""

        def filled(text: str) -> str:
            return _GROUP.sub(lambda group: match[int(group[1])] or "it", text)

        cause, fix = filled(self.advice.cause), filled(self.advice.fix)
        return replace(self, advice=replace(self.advice, cause=cause, fix=fix))


@cache
def _rows() -> dict[str, list[Any]]:
    data: dict[str, list[Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return data


@cache
def codes() -> dict[str, Remedy]:
    """Symbol of a status code → advice."""
    return {name: Remedy(cause, fix) for name, cause, fix in _rows()["codes"]}


@cache
def operators() -> dict[tuple[str, str], Remedy]:
    """(operator, symbol of a code) → advice that is more specific than the code's own."""
    return {(op, name): Remedy(cause, fix) for op, name, cause, fix in _rows()["operators"]}


@cache
def packages() -> dict[str, Remedy]:
    """Symbol of a status code → advice where a custom package's `{library}` answered."""
    return {name: Remedy(cause, fix) for name, cause, fix in _rows()["packages"]}


@cache
def rules() -> tuple[MessageRemedy, ...]:
    """Texts of CANN, the loader, Python and frameworks, specific ones first."""
    rows = json.loads(_MESSAGES.read_text(encoding="utf-8"))
    return tuple(
        MessageRemedy(re.compile(pattern, re.IGNORECASE), rank, Remedy(cause, fix, run, source))
        for pattern, rank, cause, fix, run, source in rows
    )


def of_message(text: str) -> Iterator[tuple[int, MessageRemedy]]:
    """Rules that `text` fits, each with where it does, the most specific one of each line."""
    seen: set[int] = set()
    lines = Lines(text)
    for rule in rules():
        for line, match in lines.matches(rule.pattern):
            if line not in seen:
                seen.add(line)
                yield line, rule.of(match)


def advise(name: str, op: str | None = None, message: str = "") -> Remedy | None:
    """What to do about code `name` from operator `op` (without phase) with CANN's `message`."""
    hit = min(of_message(message), key=lambda at: (at[1].rank, at[0]), default=None)
    if hit is not None and hit[1].rank < 2:
        return hit[1].advice
    for match in message_ids.PATTERN.finditer(message):
        known = message_ids.of_id(match[1])
        if known is not None and known.rank == 0:
            return known.of(message[match.end() :])
    return operators().get((op or "", name)) or codes().get(name)


def remedy_for(
    name: str, op: str | None = None, message: str = "", library: str = ""
) -> str | None:
    """The same as one line of text, or None if nothing is known; `library` is that of a custom
    package whose operator it is."""
    if library and (of_package := packages().get(name)):
        return str(of_package).format(library=library)
    advice = advise(name, op, message)
    return str(advice) if advice else None
