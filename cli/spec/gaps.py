"""Owns what the calls of a design leave alike: elements along an axis, members of an array, numbers
of two parameters. A kernel that reads the first for all is right in every such call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from .declaration import Declaration
from .domains import Computed, Content, Domain, Ignored, Only, everywhere
from .values import ScalarValue, TensorValue

# Calls that might differ; fewer say nothing.
_ENOUGH: Final = 3
_SIDES: Final = ("last", "second to last", "third to last")


def alike(declaration: Declaration, calls: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What never differs over `calls`, by parameter, and what it is; not where the declaration
    gives a reason."""
    values: dict[str, list[Any]] = defaultdict(list)
    for levels in calls:
        for name, value in declaration.draw(levels).values().items():
            values[name].append(value)
    told = {n for n, d in declaration.params.items() if _reason(d)}
    found = {n: text for n, some in values.items() if n not in told
             for text in (_axes(some), _members(some)) if text}  # fmt: skip
    return found | {n: text for n, text in _equal(values) if n not in told}


def _reason(domain: Domain) -> str:
    """Why a parameter, or what it is made of, need not differ."""
    reasons = (d.why for d in everywhere(domain) if isinstance(d, Only | Ignored))
    contents = (d.alike for d in everywhere(domain) if isinstance(d, Content))
    fixed = "what others fix" if isinstance(domain, Computed) else ""
    return next((r for r in (fixed, *reasons, *contents) if r), "")


def _axes(values: Sequence[Any]) -> str:
    """Axes, from the last one, along which a tensor's elements are the same in every call."""
    met: dict[int, list[bool]] = defaultdict(list)
    for value in values:
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, TensorValue) and not all(any(met[axis]) for axis in _long(one)):
                for axis, differs in _differing(one):
                    met[axis].append(differs)
    same = sorted(a for a, seen in met.items() if len(seen) >= _ENOUGH and not any(seen))
    names = (_SIDES[a] if a < len(_SIDES) else f"{a + 1}th from the last" for a in same)
    return f"elements are alike along its {', '.join(names)} axis" if same else ""


def _differing(value: TensorValue) -> Iterator[tuple[int, bool]]:
    """Each axis of several elements, counted from the last, and whether they differ along it."""
    elements = np.asarray(value.values()) if value.values is not None else None
    for axis in _long(value):
        first = None if elements is None else np.take(elements, [0], -1 - axis)
        yield axis, elements is None or bool((elements != first).any())


def _long(value: TensorValue) -> list[int]:
    """The axes of several elements, counted from the last."""
    return [len(value.shape) - 1 - i for i, n in enumerate(value.shape) if n > 1]


def _members(values: Sequence[Any]) -> str:
    """Whether the members of an array are the same number in every call."""
    arrays = [v for v in values if isinstance(v, tuple) and len(v) > 1]
    same = len(arrays) >= _ENOUGH and all(len(set(v)) == 1 for v in arrays)
    return "its members are alike" if same else ""


def _equal(values: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, str]]:
    """Pairs of parameters that hold the same number in every call, and not always one number."""
    numbers = {n: some for n, some in ((n, _numbers(v)) for n, v in values.items())
               if len(set(some)) > 1}  # fmt: skip
    for first, second in combinations(numbers, 2):
        if numbers[first] == numbers[second]:
            yield second, f"always the number of {first}"


def _numbers(values: Sequence[Any]) -> list[float]:
    plain = [v.value if isinstance(v, ScalarValue) else v for v in values]
    fits = all(isinstance(v, int | float) and not isinstance(v, bool) for v in plain)
    return plain if fits else []
