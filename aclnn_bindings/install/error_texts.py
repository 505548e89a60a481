"""Reads what an install itself says of CANN's message ids: `conf/error_manager/error_code.json`.

The file is a list `error_info_list` of rows with ErrCode, errTitle, ErrMessage (`%s` for each
argument), Arglist and a suggestion of Possible Cause and Solution. Sources: GraphEngine and metadef
(Apache-2.0), error_manager.cc, which reads it beside its library at `../conf/error_manager`; the
package list of CANN's runtime repository, which installs it at `runtime/conf/error_manager`.
Refuses files that are no such list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FILE: Final = "conf/error_manager/error_code.json"
_PLACES: Final = ("", "runtime", "compiler", "fwkacllib", "atc", "*-linux", "*-linux/*", "share/*")
_LARGEST: Final = 8 * 1024 * 1024  # bytes of one file that are read
_NOTHING: Final = frozenset(("", "n/a", "na", "none"))


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One id as the install at `file` explains it; empty where it says nothing."""

    key: str
    title: str
    message: str
    cause: str
    solution: str
    file: Path

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """What the message looks like with its arguments; None where its own words are few."""
        words = [re.escape(part) for part in re.split(r"%[a-z]", self.message)]
        if len("".join(words)) < 24:
            return None
        return re.compile(r"[^\n]{1,200}?".join(words))


def read(home: Path) -> Mapping[str, ErrorText]:
    """The ids of the install at `home`, each as the first file that has it says."""
    texts: dict[str, ErrorText] = {}
    for file in files(home):
        for row in _rows(file):
            texts.setdefault(row.key, row)
    return texts


def files(home: Path) -> list[Path]:
    """The files of this kind in the install at `home`."""
    candidates = (
        file for place in _PLACES for file in sorted(home.glob(f"{place}/{_FILE}".lstrip("/")))
    )
    return list(dict.fromkeys(file for file in candidates if file.is_file()))


def _rows(file: Path) -> Iterator[ErrorText]:
    try:
        with file.open(encoding="utf-8", errors="replace") as text:
            data = json.loads(text.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return
    rows = data.get("error_info_list") if isinstance(data, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and _word(row, "ErrCode"):
            yield _text(row, file)


def _text(row: Mapping[str, object], file: Path) -> ErrorText:
    advice = row.get("suggestion")
    advice = advice if isinstance(advice, dict) else {}
    return ErrorText(
        _word(row, "ErrCode"), _word(row, "errTitle"), _word(row, "ErrMessage"),
        _word(advice, "Possible Cause"), _word(advice, "Solution"), file,
    )  # fmt: skip


def _word(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if words.lower() in _NOTHING else words
