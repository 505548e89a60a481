"""Owns the errors of a declaration and of a reference."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DeclarationError(ValueError):
    """A declaration that contradicts itself or a header; the message names what and where."""


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or what there is."""
    names = list(known)
    close = get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"


def undeclared(name: str, declared: Iterable[str]) -> str:
    """What to say of an operator that an install does not declare, with the nearest that it has."""
    near = ", ".join(get_close_matches(name, list(declared), 3))
    words = f"{name}: the install at hand declares no such operator"
    return f"{words}; did you mean {near}?" if near else words
