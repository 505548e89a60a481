"""Owns Spec, what one operator of a declared row computes, and SPECS, the table of the built-in
ones; runs nothing.

A row's reference is numpy in higher precision: floats come as float64, integers as they are. It is
written from a public document of the formula, never from a kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from mindtorch.ops.samples import Sample

from ...judge.classes import Requirement, class_named, requirement
from ...spec.declaration import Declaration, factor_named
from ...spec.domains import Beside, By, Computed, Dims, Domain, InOut, Out, Whole, dtype_named
from ...spec.errors import DeclarationError
from ...spec.row import ROWS, Reference, Row, Rule, read_by
from ..cases.case import designed
from ..cases.declared import sample_of

# The default of a reference's parameter that has none.
MISSING: Final = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Spec:
    """One operator of a row, as its subject reads it.

    `reference` takes header parameters by name (a trailing underscore avoids Python's words; one
    with a default may be absent from a version) and gives the results in the order of `outs`:
    header name -> dtype, or the name of what has that dtype or is the number of one (`a|b`: b where
    a call gives no a). `names` are other operators of the same formula; `renamed` maps their
    parameter names to this row's. `extra` are arguments of calls that no header has: they say the
    size or the dtype of a result. `ignored` are parameters of the header that the reference does
    not take, with reasons. The rest is what `Rule` says.
    """

    name: str
    family: str
    module: str
    reference: Reference
    outs: Mapping[str, str]
    samples: Callable[[], Sequence[Sample]]
    tolerance: str
    source: str
    rule: Mapping[str, Any] | str = field(default_factory=dict)
    names: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed_layout: bool = False
    formats: Mapping[str, str] = field(default_factory=dict)
    steps: bool = False
    slack: float = 0.01
    sparse: bool = False
    specials: bool = True
    draws: Callable[..., Any] | None = None
    nearest: Callable[[Sequence[Any], Sequence[Any]], list[Any]] | None = None
    extra: tuple[str, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)

    def requirement(self) -> Requirement:
        """The class of the row, with its own numbers or those of a rule of the table."""
        return _requirement(self.tolerance, self.rule)

    @property
    def writes_first(self) -> bool:
        """Whether an in-place form follows: one result, of the first input's kind."""
        return list(self.outs.values()) == [next(iter(self.parameters()))]

    def parameters(self) -> dict[str, Any]:
        """What the reference takes, by header name: the default, or MISSING. What begins with an
        underscore is its own."""
        parameters = inspect.signature(self.reference).parameters.items()
        return {n.removesuffix("_"): p.default for n, p in parameters if n[0] != "_"}


@dataclass(frozen=True, slots=True)
class Unspecified:
    """An operator without a public formula: what is known, and where from."""

    name: str
    known: str
    source: str


SPECS: Final[dict[str, Spec]] = {}
UNSPECIFIED: Final[dict[str, Unspecified]] = {}


def unspecified(names: str, known: str, source: str) -> None:
    """Declare operators whose formula nobody publishes."""
    for name in names.split():
        if name in ROWS or name in UNSPECIFIED:
            raise DeclarationError(f"{name}: a row covers it already; keep one")
        UNSPECIFIED[name] = Unspecified(name, known, source)


def requirement_of(rule: Rule) -> Requirement:
    """The class of a rule, with its own numbers or those of a rule of the table."""
    return _requirement(rule.tolerance, rule.numbers)


def _requirement(tolerance: str, numbers: Mapping[str, Any] | str) -> Requirement:
    if isinstance(numbers, str):
        return requirement(tolerance, numbers)
    return replace(class_named(tolerance), **numbers)


def spec_of(row: Row, name: str) -> Spec:
    """The Spec of an operator of a declared row."""
    rule = row.rule
    outs = {n: dtype_rule(d, n, row) for n, d in row.declaration.outs.items()}
    return Spec(
        name, row.family, row.module, row.reference, outs, cache(lambda: calls(row)),
        rule.tolerance, rule.source, rule.numbers, names=row.names,
        renamed=row.renamed.get(name, {}), fixed_layout=not rule.strided, formats=rule.formats,
        steps=rule.steps, slack=rule.slack, sparse=rule.sparse, specials=rule.specials,
        draws=rule.draws, nearest=rule.nearest, ignored=unread(row),
        extra=(*(f"{n}.dtype" for n in row.declaration.drawn_dtypes),
               *(n for n, d in row.declaration.inputs.items() if isinstance(d, Beside))),
    )  # fmt: skip


def inplace(row: Row, name: str, target: str) -> Row:
    """The row of the form that writes into its first input, which the header calls `target`."""
    declaration = row.declaration
    first = next(iter(declaration.params))

    def in_place(params: Mapping[str, Domain]) -> dict[str, Domain]:
        return {n: InOut(Whole(d)) if n == first else d for n, d in params.items()
                if not isinstance(d, Out)}  # fmt: skip

    overloads = tuple(replace(o, params=in_place(o.params)) for o in declaration.overloads)
    variant = replace(declaration, params=in_place(declaration.params), overloads=overloads)
    return replace(row, names=(name,), declaration=variant, renamed={name: {target: first}})


def unread(row: Row) -> dict[str, str]:
    """Parameters that the reference does not take, with the reason that their domain states."""
    selection = read_by(row.reference)
    return {n: _why(d)
            for n, d in row.declaration.inputs.items() if n not in selection}  # fmt: skip


def _why(domain: Domain) -> str:
    """Why a reference does not take a parameter."""
    if isinstance(domain, Computed | Dims):
        return "follows from the other arguments and from sizes"
    return getattr(domain, "why", "") or "no reason stated"


def calls(row: Row) -> list[Sample]:
    """The plain call, the pinned ones, and each level of a parameter alone beside the plain one."""
    declaration = row.declaration
    levels: list[Mapping[str, str]] = [{}, *(p.levels for p in declaration.pins)]
    names = {"overload", *map(factor_named, declaration.params)}
    for factor in declaration.factors((), False):
        if factor.name in names:
            levels += [{factor.name: level} for level in factor.levels[1:]]
    samples = (_call(declaration, local) for local in levels)
    return [s for s in samples if s is not None]


def _call(declaration: Declaration, levels: Mapping[str, str]) -> Sample | None:
    """The call of levels; None where a requirement does not hold."""
    if declaration.draw(levels).holds() is not None:
        return None
    return sample_of(declaration, designed(declaration.name, "functional", levels))


def dtype_rule(domain: Any, name: str, row: Row) -> str:
    """The dtype of a result: `int8`, the name of what has it, alternatives of those."""
    if isinstance(domain, By):
        return "|".join(dict.fromkeys(dtype_rule(d, name, row) for d in domain.options.values()))
    if not isinstance(domain, Out):
        return name
    if name in row.declaration.drawn_dtypes:
        return f"{name}.dtype"
    return "|".join(d if d in row.declaration.params else dtype_named(d) for d in domain.dtypes())
