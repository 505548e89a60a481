"""The results of libraries under ACL, which have numbers of their own: HCCL, driver, DCMI, GE.

The rows are data, `results.json`: how each family is recognised in a log, and for each number its
symbol, cause and remedy. Refuses numbers that stand without a word of their library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from .advice import Remedy

_FILE: Final = Path(__file__).with_name("results.json")
COLLECTIVES: Final = "HcclResult"


@dataclass(frozen=True, slots=True)
class Family:
    """One library's results: number → symbol and advice.

    `pattern` finds a number in a line, `alone` in a text that is nothing else.
    """

    name: str
    pattern: re.Pattern[str]
    alone: re.Pattern[str]
    rows: Mapping[int, tuple[str, Remedy]]

    def numbers(self, text: str) -> Iterator[int]:
        """The known numbers in `text`, by number or by symbol."""
        alone = self.alone.fullmatch(text.strip())
        if alone and int(alone[1]) in self.rows:
            yield int(alone[1])
        for match in self.pattern.finditer(text):
            if int(match[1]) in self.rows:
                yield int(match[1])
        for number, (symbol, _) in self.rows.items():
            if symbol in text and re.search(rf"\b{symbol}\b", text):
                yield number


@cache
def families() -> Mapping[str, Family]:
    """Every family by name; where a bare number could be of several, the first is meant."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    return {
        name: Family(
            name,
            re.compile(one["pattern"], re.IGNORECASE),
            re.compile(one["alone"], re.IGNORECASE),
            {n: (s, Remedy(cause, fix, "", one["source"])) for n, s, cause, fix in one["rows"]},
        )
        for name, one in data.items()
    }


def read(text: str) -> Iterator[tuple[str, int]]:
    """Family and number of every result that is recognised in `text`."""
    for name, family in families().items():
        for number in family.numbers(text):
            yield name, number


def collectives() -> Mapping[int, tuple[str, Remedy]]:
    """HcclResult → its symbol and advice."""
    return families()[COLLECTIVES].rows
