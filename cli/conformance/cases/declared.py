"""Owns the cases of declared operators: designs of their declarations, and the calls of levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg, Sample

from ...spec.declaration import Declaration
from ...spec.design import design as covering, plainest
from ...spec.factors import plain
from ...spec.gaps import alike
from ...spec.row import ROWS
from ...spec.sizes import Role
from ...spec.values import ScalarValue, TensorValue
from .case import Case, CaseNameError, designed
from .design_cache import key_of, lookup
from .inputs import Input
from .shapes import NotApplicableError

_PACKAGE: Final = f"{__name__.partition('.')[0]}."


def design(
    name: str, declaration: Declaration, dtypes: Sequence[str], level: str
) -> Iterator[Case]:
    """The designed cases of a declared operator whose main tensor may have `dtypes`."""
    base = plain_levels(declaration)
    for levels in _calls(declaration, tuple(dtypes), level != "quick"):
        differing = {k: v for k, v in levels.items() if k == "dtype" or v != base.get(k)}
        yield designed(name, "functional", differing)


@cache
def plain_case(name: str, declaration: Declaration) -> Case:
    """The plain call of a declared operator, as its requirements leave it."""
    base = plain_levels(declaration)
    levels = {k: v for k, v in plainest(declaration).items() if v != base.get(k) and k != "dtype"}
    return designed(name, "functional", levels)


@cache
def _calls(
    declaration: Declaration, dtypes: tuple[str, ...], full: bool
) -> tuple[Mapping[str, str], ...]:
    def search() -> Sequence[Mapping[str, str]]:
        return covering(declaration, dtypes, full).calls

    row = ROWS.get(declaration.name)
    if row is None or not row.module.startswith(_PACKAGE):
        return tuple(search())  # a person's declarations change without our sources
    return tuple(lookup(key_of(declaration, dtypes, full), search))


def constant(declaration: Declaration) -> Mapping[str, str]:
    """What no case at `quick` varies, with the reason: parameters, sides of relations, levels."""
    met = covering(declaration, declaration.dtypes())
    never = {f"{name}={level}": "no call that was tried has it" for name, level in met.unmet_levels}
    sides = {text: f"never {'true' if side else 'false'}" for text, side in met.unmet_relations}
    return {**declaration.unvaried(), **alike(declaration, met.calls), **sides, **never}


@cache
def plain_levels(declaration: Declaration) -> Mapping[str, str]:
    """The plain level of every factor."""
    return plain(declaration.factors((), True))


def size_names(declaration: Declaration) -> Mapping[str, str]:
    """Sizes that a failure is bisected along, with what they count."""
    return {n: f"{r.name} {n.lstrip('*')}" for n, r in declaration.used_sizes.items()
            if isinstance(r, Role)}  # fmt: skip


def sample_of(declaration: Declaration, case: Case, seed: int = 0) -> Sample:
    """The call of a designed case; CaseNameError for a factor or level that there is none of."""
    known = plain_levels(declaration)
    levels = dict(case.factors)
    for factor in levels:
        if factor not in known and factor != "dtype":
            raise CaseNameError(f"case {case.id!r}: {factor!r} is none of its factors: "
                                f"{', '.join(known)}")  # fmt: skip
    try:
        draw = declaration.draw(levels, case.dtype, seed)
        values, broken = draw.values(), draw.holds()
    except (ValueError, KeyError, IndexError, ZeroDivisionError) as error:
        raise CaseNameError(f"case {case.id!r}: {type(error).__name__}: {error}") from error
    if broken is not None:
        raise NotApplicableError(f"the declaration requires {broken.text}")
    fill = levels.get("values", "normal")
    arguments = {n: _argument(v, fill, i, declaration.name) for i, (n, v) in
            enumerate(values.items())}  # fmt: skip
    return Sample((), {**arguments, **draw.result_dtypes(), **draw.result_shapes()})


def _argument(value: Any, fill: str, operand: int, op: str) -> Any:
    if isinstance(value, list):
        return [_argument(v, fill, operand + i, op) for i, v in enumerate(value)]
    if isinstance(value, ScalarValue):
        return value.value
    if not isinstance(value, TensorValue):
        return value
    elements = value.values() if value.values is not None else None
    return Input(
        value.shape, value.dtype, value.low, value.high, layout=value.layout, values=elements,
        fill=fill if value.fill else "normal", operand=operand, op=op,
    )  # fmt: skip


def as_array(value: Any) -> Any:
    """An argument for an array parameter: the elements of a tensor as a tuple of numbers."""
    return tuple(np.asarray(value.values).reshape(-1).tolist()) if isinstance(value, Arg) else value
