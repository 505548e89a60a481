"""Owns the public declaration of an operator: `@spec(names, Rule(…), *structure, **parameters)`.

A row's reference is numpy in higher precision: floats come as float64, integers as they are. It is
written from a public document of the formula, never from a kernel.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from .declaration import Declaration, Overload, Pin, Relation, Table
from .domains import Domain
from .errors import DeclarationError, near
from .words import Sizes

Reference = Callable[..., Any]
# The family of rows outside of `rows`.
CUSTOM: Final = "custom"
# Values that data tensors are filled with beside plain ones, by what a class of results promises.
_EVERY: Final = ("normal", "special", "wide", "integer", "tiny", "large")
_SUMS: Final = ("normal", "integer", "opposed", "positive", "graded")


@dataclass(frozen=True)
class Rule:
    """How results are judged, and from where the formula is.

    `tolerance` is a class of judge/classes.toml; `source` the public document of the formula.
    `numbers` replace those of the class (with a `reason`), or name a rule of the table. `cost` is
    an expression of sizes: floating-point operations. `steps`: integer and 8-bit results are real
    values rounded to the nearest step, `slack` how far from half a step they may lie. `sparse`:
    most results are 0 or alike. `specials` false: NaN, infinities and signs of zero have no stated
    result. `values`: what data tensors are filled with, where not by the class. `draws`: how a
    random result is distributed. `nearest`: picks one of several right answers. `strided` false:
    the operator takes contiguous tensors alone. `formats`: the aclFormat of parameters.
    """

    tolerance: str
    source: str
    numbers: Mapping[str, Any] | str = field(default_factory=dict)
    cost: str = ""
    steps: bool = False
    slack: float = 0.01
    sparse: bool = False
    specials: bool = True
    values: str = ""
    draws: Callable[..., Any] | None = None
    nearest: Callable[..., Any] | None = None
    strided: bool = True
    formats: Mapping[str, str] = field(default_factory=dict)

    def fills(self) -> tuple[str, ...]:
        """What data tensors are filled with, the plain one first."""
        if self.values:
            return ("normal", *(v for v in self.values.split() if v != "normal"))
        halves = ("halves",) if self.steps else ()
        if self.tolerance in ("exact", "rounded", "elementary") and self.specials:
            return (*_EVERY, *halves)
        if self.tolerance == "random":
            return ("normal",)
        return (*_SUMS, *(("nan",) if self.specials and not self.steps else ()), *halves)


@dataclass(frozen=True)
class Row:
    """Operators of one formula: names, rule, domains, reference; `renamed` maps parameter names of
    other operators to this row's; `module` declares it; `inferred`: the domains are
    guesses."""

    names: tuple[str, ...]
    rule: Rule
    declaration: Declaration
    reference: Reference
    module: str
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inferred: bool = False

    @property
    def family(self) -> str:
        """The file or folder below `rows` that declares it; "custom" elsewhere."""
        _, inside, rest = self.module.partition(".rows.")
        return rest.partition(".")[0] if inside else CUSTOM


@dataclass(frozen=True)
class Also:
    """Other operators of the formula, whose headers spell some parameters otherwise."""

    names: str
    old: Mapping[str, str]


def also(names: str, **old: str) -> Also:
    """Other operators: `also("aclnnFooV2", x="self")`: their `self` is this row's `x`."""
    return Also(names, old)


Structure = Sizes | Table | Overload | Pin | Also | tuple[Relation, ...]


def declared(
    names: str, rule: Rule, structure: Iterable[Structure], params: Mapping[str, Domain]
) -> Declaration:
    """The Declaration of the arguments of `spec`."""
    fields: dict[str, Any] = {"relations": (), "pins": (), "overloads": (), "sizes": {}}
    for part in structure:
        if isinstance(part, Sizes):
            fields["sizes"] |= part.roles
        elif isinstance(part, Table):
            fields["table"] = part
        elif isinstance(part, Overload):
            fields["overloads"] += (part,)
        elif isinstance(part, Pin):
            fields["pins"] += (part,)
        elif isinstance(part, tuple):
            fields["relations"] += part
        elif not isinstance(part, Also):
            raise DeclarationError(f"{names}: {part!r} is no part of a declaration")
    for name, domain in params.items():
        if not isinstance(domain, Domain):
            raise DeclarationError(f"{names}: {name}={domain!r} is no domain; a single value is "
                                   "only(value, reason)")  # fmt: skip
    return Declaration(names.split()[0], params, fills=rule.fills(), strided=rule.strided,
                       **fields)  # fmt: skip


def row_of(
    names: str, rule: Rule, structure: Iterable[Structure], params: Mapping[str, Domain],
    reference: Reference, module: str,
) -> Row:  # fmt: skip
    """The Row of a declaration and its reference; DeclarationError where they do not fit."""
    parts = tuple(structure)
    declaration = declared(names, rule, parts, params)
    for name, parameter in read_by(reference).items():
        if name in declaration.inputs:
            continue
        # One with a default may be a later version's, unless it looks like a name that is here.
        optional = parameter.default is not inspect.Parameter.empty
        if not optional or get_close_matches(name, list(declaration.inputs), 1, 0.85):
            raise DeclarationError(
                f"{names}: the reference takes {name!r}, which the declaration does not give"
                f"{near(name, declaration.inputs)}")  # fmt: skip
    others = [p for p in parts if isinstance(p, Also)]
    every = (*names.split(), *(n for a in others for n in a.names.split()))
    renamed = {n: {old: new for new, old in a.old.items()} for a in others for n in a.names.split()}
    return Row(every, rule, declaration, reference, module, renamed)


def read_by(reference: Reference) -> dict[str, inspect.Parameter]:
    """What a reference takes, by header name; what begins with an underscore is its own."""
    parameters = inspect.signature(reference).parameters.items()
    return {n.removesuffix("_"): p for n, p in parameters if n[0] != "_"}


ROWS: Final[dict[str, Row]] = {}


def spec(
    names: str, rule: Rule, *structure: Structure, **params: Domain
) -> Callable[[Reference], Reference]:
    """Declare what operators compute and take: keywords are exactly the header's parameters, in
    its order, results included. The function stays as it is.

    DeclarationError where the declaration contradicts itself or an operator has a row already.
    """

    module = sys._getframe(1).f_globals["__name__"]

    def declare(reference: Reference) -> Reference:
        row = row_of(names, rule, structure, params, reference, module)
        for name in row.names:
            if name in ROWS:
                raise DeclarationError(f"{name}: a row covers it already; keep one")
            ROWS[name] = row
        return reference

    return declare
