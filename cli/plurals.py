"""Owns how a count is written with its noun."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """`1 case`, `2,500 cases`, `2 launches`; for nouns whose plural ends in s."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count:,} {noun}{ending}"
