"""Owns declared rows among the built-in ones: a row of `mindtorch_npu.spec` that all readers of
`SPECS` see, with its plain and pinned calls as samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from mindtorch.ops.samples import Sample

from ...spec.declaration import Declaration, factor_named
from ...spec.domains import Beside, By, Computed, Dims, Domain, InOut, Out, dtype_named
from ...spec.row import ROWS, Reference, Row, Rule, Structure, read_by
from ...spec.row import spec as declare_row
from ..cases.case import designed
from ..cases.declared import sample_of
from .row import SPECS, Spec, SpecError


def declare(
    names: str, rule: Rule, *structure: Structure, **params: Domain
) -> Callable[[Reference], Reference]:
    """Declare a built-in row; see `mindtorch_npu.spec`. SpecError where an operator has a row."""
    module = sys._getframe(1).f_globals["__name__"]

    def register(reference: Reference) -> Reference:
        for name in names.split():
            if name in SPECS:
                raise SpecError(f"{name}: a spec row covers it already; keep one")
        declare_row(names, rule, *structure, **params)(reference)
        row = ROWS[names.split()[0]]
        for name in row.names:
            SPECS[name] = spec_of(row, name, row.renamed.get(name, {}), module)
        return reference

    return register


def spec_of(row: Row, name: str, renamed: Mapping[str, str], module: str = "") -> Spec:
    """The Spec of an operator of a declared row."""
    rule = row.rule
    outs = {n: dtype_rule(d, n, row) for n, d in row.declaration.outs.items()}
    return Spec(
        name, module or row.reference.__module__, row.reference, outs, cache(lambda: calls(row)),
        rule.tolerance,
        rule.source, rule.numbers, names=row.names, renamed=renamed, fixed_shape=True,
        fixed_layout=not rule.strided, formats=rule.formats, steps=rule.steps, slack=rule.slack,
        sparse=rule.sparse, specials=rule.specials, draws=rule.draws,
        nearest=rule.nearest, ignored=unread(row),
        extra=(*(f"{n}.dtype" for n in row.declaration.drawn_dtypes),
               *(n for n, d in row.declaration.inputs.items() if isinstance(d, Beside))),
    )  # fmt: skip


def inplace(row: Row, name: str, target: str) -> Row:
    """The row of the form that writes into its first input, which the header calls `target`."""
    declaration = row.declaration
    first = next(iter(declaration.params))

    def in_place(params: Mapping[str, Domain]) -> dict[str, Domain]:
        return {n: InOut(d) if n == first else d for n, d in params.items()
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
