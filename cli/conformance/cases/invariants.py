"""Owns which cases ask whether results depend on what they may not depend on: on a repeated run, on
another process with the work split otherwise, on the other rows of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...judge.formats import FORMATS
from ...spec.declaration import Declaration
from ...spec.sizes import Role, batch, dims_of, leading, rows, shape, tokens
from . import declared
from .case import Case, designed
from .inputs import tensors_of
from .shapes import sizes_of

if TYPE_CHECKING:
    from ..run.subject import Subject

# Roles of sizes along which an operator may treat each row alone; its reference says whether.
_BATCHES: Final = frozenset(r.name for r in (batch, rows, leading, tokens, shape))
# Calls of a design that run beside the plain ones, the last of it, which mix most levels.
_CALLS: Final = {"quick": 4}
_EXTRA_CALLS: Final = 24


def cases_of(op: Subject, claimed: Sequence[str], level: str) -> Iterator[Case]:
    """The cases of a subject that takes the `claimed` dtypes."""
    if op.declaration is not None:
        yield from _declared(op.name, op.declaration, claimed, level)
    else:
        yield from _sampled(op, claimed, level)


def _declared(
    name: str, declaration: Declaration, claimed: Sequence[str], level: str
) -> Iterator[Case]:
    calls = [dict(c.factors) for c in declared.design(name, declaration, claimed, level)]
    plain = [c for c in calls if set(c) <= {"dtype"}]
    plain += [{"dtype": d} for d in declaration.dtypes(claimed) if {"dtype": d} not in plain]
    mixed = calls[-_CALLS.get(level, _EXTRA_CALLS) :]
    for form in ("repeat", "process"):
        yield from _distinct(name, form, [*plain, *mixed])
    sizes = batch_sizes(declaration)
    longer = [{**plain[0], size: n} for size, role in sizes.items()
              for n in role.levels(level != "quick") if _count(n) > 1]  # fmt: skip
    yield from _distinct(name, "batch", [*plain, *longer, *(mixed if sizes else ())])


def _distinct(name: str, form: str, calls: Iterable[Mapping[str, str]]) -> Iterator[Case]:
    yield from dict.fromkeys(designed(name, form, call) for call in calls)


def batch_sizes(declaration: Declaration) -> dict[str, Role]:
    """The sizes of a declaration that may count rows of a batch."""
    return {n: r for n, r in declaration.used_sizes.items()
            if isinstance(r, Role) and r.name in _BATCHES}  # fmt: skip


def _count(level: str) -> int:
    """Rows of a level: its first dim."""
    return (*dims_of(level), 1)[0]


def _sampled(op: Subject, claimed: Sequence[str], level: str) -> Iterator[Case]:
    known = op.samples()
    good = [i for i, s in enumerate(known) if not s.error]
    if not good:
        return
    first = good[0]
    dtypes = ["", *(d for d in claimed if d in FORMATS)]
    for form in ("repeat", "process", "batch"):
        yield from (Case(op.name, form, i) for i in (good[:2] if level == "quick" else good))
        yield from (Case(op.name, form, first, d) for d in dtypes[1:])
        if not op.fixed_layout and not op.fixed_shape and sizes_of(tensors_of(known[first])):
            yield from (Case(op.name, form, first, d, shape="tall") for d in dtypes)
