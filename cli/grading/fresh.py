"""Owns the calls of one grading: designs of a declaration with sizes that no task file lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ..conformance.cases.case import Case, designed
from ..conformance.cases.declared import plain_levels
from ..spec.declaration import Declaration
from ..spec.design import design
from ..spec.errors import DeclarationError
from ..spec.sizes import Role, dims_of, text_of

_MOST_ELEMENTS: Final = 1 << 15
_TRIES: Final = 6


def small_cases(
    name: str, declaration: Declaration, dtypes: Sequence[str], count: int,
    rng: np.random.Generator,
) -> Iterator[Case]:  # fmt: skip
    """The plain call, then so many others: levels of the covering design, sizes drawn anew."""
    calls = list(design(declaration, tuple(dtypes)).calls)
    yield _case(name, declaration, calls[0])
    for at in rng.permutation(len(calls) - 1)[: count - 1]:
        levels = calls[1 + at]
        other = next(
            (
                o
                for _ in range(_TRIES)
                if _holds(declaration, o := _resized(declaration, levels, rng), _MOST_ELEMENTS)
            ),
            levels,
        )
        yield _case(name, declaration, other)


def large_case(
    name: str, declaration: Declaration, elements: int, rng: np.random.Generator
) -> Case:
    """A plain call whose largest tensor has about so many elements, or as many as sizes allow."""
    levels: dict[str, str] = dict(plain_levels(declaration))
    grown = True
    while grown:
        grown = False
        for size, role in _roles(declaration).items():
            larger = {**levels, size: _larger(levels.get(size, role.plain), rng)}
            if _allowed(role, larger[size]) and _holds(declaration, larger, elements):
                levels, grown = larger, True
    return _case(name, declaration, levels)


def _roles(declaration: Declaration) -> dict[str, Role]:
    return {n: r for n, r in declaration.used_sizes.items() if isinstance(r, Role)}


def _larger(level: str, rng: np.random.Generator) -> str:
    dims = dims_of(level)
    at = int(rng.integers(len(dims))) if dims else 0
    grown = [int(n * rng.uniform(1.4, 2.2)) + 1 if i == at else n for i, n in enumerate(dims)]
    return text_of(grown or [3])


def _resized(
    declaration: Declaration, levels: Mapping[str, str], rng: np.random.Generator
) -> dict[str, str]:
    """The same call with other sizes; those of one element stay, which are levels of their own."""
    resized = dict(levels)
    for size, role in _roles(declaration).items():
        dims = dims_of(levels.get(size, role.plain))
        text = text_of([n if n < 2 else int(rng.integers(max(2, n // 2), 2 * n + 3)) for n in dims])
        if _allowed(role, text):
            resized[size] = text
    return resized


def _allowed(role: Role, level: str) -> bool:
    return not role.most or max(dims_of(level), default=0) <= role.most


def _holds(declaration: Declaration, levels: Mapping[str, str], most: int) -> bool:
    try:
        call = declaration.draw(levels)
        return call.elements() <= most and call.holds() is None
    except (DeclarationError, ZeroDivisionError, IndexError, ValueError, KeyError):
        return False


def _case(name: str, declaration: Declaration, levels: Mapping[str, str]) -> Case:
    base = plain_levels(declaration)
    differing = {k: v for k, v in levels.items() if k == "dtype" or v != base.get(k)}
    return designed(name, "functional", differing)
