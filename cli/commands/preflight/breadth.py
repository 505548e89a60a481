"""Owns the order in which a preflight tries a case of every operator: families take turns, and what
reaches another operator of ACLNN comes first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from itertools import chain, zip_longest
from typing import TypeVar

T = TypeVar("T")


def one_of_each(besides: Set[str], declared: Collection[str] = ()) -> Iterator[str]:
    """The plain case of every operator of ACLNN that is `declared` and has a reference of its own,
    which costs least; then the first sample of torch's rows, those that launch other operators
    first; none of `besides`."""
    from ...conformance.operators.families import by_family

    own = [name for name in _in_turn(by_family()) if name in declared]
    yield from (f"{name}/functional/plain" for name in own)
    cases = _of_torch()
    reached = set(own)
    fresh = {case for case, launched in cases.items() if _reach(launched, reached)}
    for case in (*(c for c in cases if c in fresh), *(c for c in cases if c not in fresh)):
        if case not in besides:
            yield case


def _reach(launched: Set[str], reached: set[str]) -> bool:
    """Whether a case launches what none before it does, which then is reached."""
    if launched <= reached:
        return False
    reached |= launched
    return True


def _of_torch() -> dict[str, Set[str]]:
    """The first sample of each of torch's rows, and the operators that the row launches itself."""
    from mindtorch.ops import OPS

    from ...conformance.cases.inputs import samples

    families: dict[str, list[tuple[str, Set[str]]]] = {}
    for name, row in OPS.items():
        known = samples(row.testing) if row.testing.samples is not None else ()
        usable = next((i for i, sample in enumerate(known) if not sample.error), None)
        if usable is not None:
            launched = frozenset(call.name for call in row.kernels.aclnn)
            families.setdefault(row.family, []).append((f"{name}/functional/s{usable}", launched))
    return dict(_in_turn(families.values()))


def _in_turn(families: Iterable[Iterable[T]]) -> Iterator[T]:
    turns = chain.from_iterable(zip_longest(*families))
    return (item for item in turns if item is not None)
