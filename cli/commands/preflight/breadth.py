"""Owns the order in which a preflight tries a case of every operator: families take turns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from itertools import chain, zip_longest


def one_of_each(besides: Set[str], declared: Collection[str] = ()) -> Iterator[str]:
    """The first sample of every operator of torch, by name, none of `besides`; then the plain case
    of every operator of ACLNN that is `declared` and has a reference of its own."""
    yield from (case for case in _of_torch() if case not in besides)
    if declared:
        from ...conformance.operators.families import by_family

        yield from (f"{name}/functional/plain" for name in _in_turn(by_family())
                    if name in declared)  # fmt: skip


def _of_torch() -> Iterator[str]:
    from mindtorch.ops import OPS

    from ...conformance.cases.inputs import samples

    families: dict[str, list[str]] = {}
    for name, row in OPS.items():
        known = samples(row.testing) if row.testing.samples is not None else ()
        usable = (i for i, sample in enumerate(known) if not sample.error)
        families.setdefault(row.family, []).extend(f"{name}/functional/s{i}" for i in [*usable][:1])
    return _in_turn(families.values())


def _in_turn(families: Iterable[Iterable[str]]) -> Iterator[str]:
    turns = chain.from_iterable(zip_longest(*families))
    return (name for name in turns if name is not None)
