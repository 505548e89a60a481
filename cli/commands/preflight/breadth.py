"""Owns the order in which a preflight tries a case of every operator: families take turns."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain, zip_longest


def one_of_each(besides: Set[str]) -> Iterator[str]:
    """The first sample of every operator, by name; none of `besides`."""
    from mindtorch.ops import OPS

    from ...conformance.cases.inputs import samples

    families: dict[str, list[str]] = {}
    for name, row in OPS.items():
        known = samples(row.testing) if row.testing.samples is not None else ()
        usable = (i for i, sample in enumerate(known) if not sample.error)
        families.setdefault(row.family, []).extend(f"{name}/functional/s{i}" for i in [*usable][:1])
    turns = chain.from_iterable(zip_longest(*families.values()))
    return (case for case in turns if case is not None and case not in besides)
