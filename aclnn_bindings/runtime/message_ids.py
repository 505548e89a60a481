"""The catalogue of CANN's message ids (EZ1001, EI0006, ERR00100): what each means, what to do.

The rows are data, `message_ids.json`; titles are CANN's, the advice is ours. A row has one or more
ids, and names a kind of failure or has advice of its own. `{name|an input}` in advice is an
argument of the message or, if the message lacks it, the words after `|`; `{reason?: %}` is left out
then. Refuses to judge codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from .advice import Remedy

_FILE: Final = Path(__file__).with_name("message_ids.json")
PATTERN: Final = re.compile(r"(?<![0-9A-Za-z])([EW][0-9A-Z]\d{4}|ERR\d{5})(?![0-9A-Za-z])")
_ARGUMENT: Final = re.compile(r"\{(\w+)(?:\?([^}]*)|\|([^}]*))?\}")
_BRACKETS: Final = re.compile(r"^\[([^\[\]]*)\]$")
_REACH: Final = 600  # characters after an id that are its message
# Modules whose errors name a cause: the graph engine, operators and compilers, collectives, driver.
_CAUSES: Final = ("EI", "EJ", "EL", "E1", "E2", "E3", "E4", "E5", "E6", "E7", "EZ0")
_PASSED_ON: Final = 3


@dataclass(frozen=True, slots=True)
class MessageId:
    """An id with its title and advice, whose `{...}` are not yet filled; `rank` as of a rule."""

    key: str
    title: str
    rank: int
    advice: Remedy

    def of(self, message: str) -> Remedy:
        """The advice with the arguments of `message`, the text after the id."""
        arguments = _arguments(message)
        cause, fix = _fill(self.advice.cause, arguments), _fill(self.advice.fix, arguments)
        return Remedy(cause, fix, "", self.advice.source)


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return data


@cache
def listed() -> Mapping[str, MessageId]:
    """Every id that is listed by itself."""
    kinds = _data()["kinds"]
    rows = [[key, *row] for keys, *row in _data()["ids"] for key in keys.split()]
    return {
        key: _message(key, title, *(kinds[words[0]] if len(words) == 1 else words))
        for key, title, *words in (*sorted(rows), *_torch_npu())
    }


def of_id(key: str) -> MessageId | None:
    """What is known of an id, by its module where the id itself is not listed."""
    modules = dict(_data()["modules"])
    if key in listed() or not PATTERN.fullmatch(key) or key[1] not in modules:
        return listed().get(key)
    inner = key[2] == "9"
    cause = f"{modules[key[1]]} {'failed inside' if inner else 'refused something'}"
    fix = "read the text after the id and the plog"
    return _message(key, "Inner_Error" if inner else "", cause, fix)


def message_of(key: str, text: str) -> str:
    """The text that follows the first `key` in `text`, up to the next id."""
    _, _, after = text.partition(key)
    following = PATTERN.search(after, 0, _REACH)
    return after[: following.start() if following else _REACH]


def _torch_npu() -> list[list[str]]:
    data = _data()
    combined = [
        [f"ERR{number}{code:03}", f"{module}: {title}", cause, fix]
        for number, module in data["torch_npu modules"]
        for code, title, cause, fix in data["torch_npu"]
    ]
    return [*combined, *data["torch_npu ids"]]


def _message(key: str, title: str, cause: str, fix: str) -> MessageId:
    source = next(text for ids, text in _data()["sources"] if re.match(ids, key))
    return MessageId(key, title, _rank(key), Remedy(cause, fix, "", source))


def _rank(key: str) -> int:
    """Inner errors and torch_npu's pass on another failure; so does the driver's EL0003."""
    if key.startswith("ERR") or key[2] == "9" or key == "EL0003":
        return _PASSED_ON
    return 0 if key.startswith(_CAUSES) else 1


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in _data()["arguments"])


def _arguments(message: str) -> dict[str, str]:
    """The arguments of a message by kind, those of the first pattern that fits."""
    arguments: dict[str, str] = {}
    for name, pattern in _patterns():
        if name not in arguments and (match := pattern.search(message)):
            arguments[name] = _BRACKETS.sub(r"\1", match[1].strip())
    return arguments


def _fill(text: str, arguments: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        value = arguments.get(match[1])
        if match[2] is not None:
            return match[2].replace("%", value) if value else ""
        return value or match[3] or "it"

    return _ARGUMENT.sub(word, text)
