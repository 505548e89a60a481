"""Finds what a regular expression needs of a text: words of which one must be there, one line.

Reads the syntax that the rules of messages use. Where it cannot tell, it says so, and the caller
searches everything: the answers stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SHORTEST: Final = 3
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_QUANTIFIER: Final = re.compile(r"([?*+]|\{[\d,]+\})[?+]?")
_GROUP: Final = re.compile(r"\((\?(?::|=|!|<=|<!|P<\w+>))?")
# A class that excludes the end of a line, and what can match or mean one elsewhere.
_WITHIN: Final = re.compile(r"\[\^(?:\\.|[^\]\\])*?\\n(?:\\.|[^\]\\])*\]")
_CROSSING: Final = re.compile(r"\\[sWDnAZ]|\[\^|[$^]|\(\?[a-z]+")


def crosses_lines(pattern: str) -> bool:
    """Whether a match of `pattern` may reach over the end of a line, or depend on it."""
    return bool(_CROSSING.search(_WITHIN.sub("", pattern).replace("\\S", "")))


def required(pattern: str) -> frozenset[str]:
    """Words in lower case of which every match has one; empty if that cannot be told."""
    words, end = _alternatives(pattern, 0)
    return words if end == len(pattern) else frozenset()


def _alternatives(pattern: str, at: int) -> tuple[frozenset[str], int]:
    """The words of `a|b|c` from `at` on, and where it ends: each branch gives its best ones."""
    branches = []
    while True:
        words, at = _branch(pattern, at)
        branches.append(words)
        if pattern[at : at + 1] != "|":
            return (frozenset().union(*branches) if all(branches) else frozenset()), at
        at += 1


def _branch(pattern: str, at: int) -> tuple[frozenset[str], int]:
    candidates: list[Iterable[str]] = []
    run = ""
    while at < len(pattern) and pattern[at] not in "|)":
        letter, words, at = _atom(pattern, at)
        quantifier = _QUANTIFIER.match(pattern, at)
        at = quantifier.end() if quantifier else at
        needed = quantifier is None or quantifier[1] == "+"
        run += letter if needed else ""
        if quantifier or not letter:
            candidates.append({run})
            run = ""
        if needed:
            candidates.append(words)
    candidates.append({run})
    best = max(candidates, key=_shortest)
    return frozenset(best if _shortest(best) else ()), at


def _shortest(words: Iterable[str]) -> int:
    """How much a set of words tells: the length of its shortest, 0 if it is too short."""
    length = min((len(word.encode()) for word in words), default=0)
    return length if length >= _SHORTEST else 0


def _atom(pattern: str, at: int) -> tuple[str, frozenset[str], int]:
    """One letter, or the words of one group; and where it ends."""
    letter = pattern[at]
    if letter == "[":
        letters = _CLASS.match(pattern, at)
        return "", frozenset(), letters.end() if letters else len(pattern) + 1
    if letter == "(":
        opening = _GROUP.match(pattern, at)
        words, end = _alternatives(pattern, opening.end() if opening else at)
        return "", words if _consumes(opening) else frozenset(), end + 1
    if letter == "\\":
        following = pattern[at + 1]
        return "" if following.isalnum() else following.lower(), frozenset(), at + 2
    return "" if letter in ".^$" else letter.lower(), frozenset(), at + 1


def _consumes(opening: re.Match[str] | None) -> bool:
    return opening is not None and opening[1] not in ("?=", "?!", "?<=", "?<!")
