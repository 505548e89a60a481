"""Owns what the rule of a row may say: refuses classes, families and formats that do not exist, and
what contradicts itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from ...judge.classes import ClassTableError
from ...spec.errors import DeclarationError, near
from ...spec.row import CUSTOM, Row, Rule
from .row import requirement_of

# The words that name a family: a module or a folder of `rows`, of kernels and of their tests.
_WORDS: Final = """
activation attention collective convolution creation detection embedding fft foreach image indexing
kv_cache linalg loss matmul moe norm optimizer pointwise pooling quantization random
reduction residual resize rnn rotary sampling shape sorting state"""
FAMILIES: Final = frozenset(_WORDS.split())
_LAYOUTS: Final = ("ND", "NCL", "NCHW", "NHWC", "NCDHW", "FRACTAL_NZ")
# What (answers, results) and (draws, arguments) are given to.
_TWO: Final = ("nearest", "draws")


def check(row: Row) -> None:
    """DeclarationError where the rule of a row says what cannot be."""
    for problem in (*_names(row), *_class(row.rule), *_contradictions(row.rule)):
        raise DeclarationError(f"{row.names[0]}: {problem}")


def _names(row: Row) -> Iterator[str]:
    if row.family not in FAMILIES | {CUSTOM}:
        yield f"no family {row.family!r}{near(row.family, FAMILIES)}; name its module by a family"
    if not row.declaration.outs:
        yield "no result: give a parameter as out(…) or inout(…)"
    for param, layout in row.rule.formats.items():
        if layout not in _LAYOUTS:
            yield f"formats of {param}: no format {layout!r}{near(layout, _LAYOUTS)}"


def _class(rule: Rule) -> Iterator[str]:
    try:
        reason = requirement_of(rule).reason
    except KeyError:
        yield f"no class of tolerance {rule.tolerance!r}; expected one of judge/classes.toml"
    except (ClassTableError, TypeError) as error:
        yield f"rule: {error}"
    else:
        if not reason or not rule.source:
            yield "no reason or no source; a row states both"
    if rule.numbers and not isinstance(rule.numbers, str) and not rule.numbers.get("reason"):
        yield "rule: it replaces numbers of the class without a reason"


def _contradictions(rule: Rule) -> Iterator[str]:
    for field in _TWO:
        function = getattr(rule, field)
        if function is not None and not _takes(function, 2):
            yield f"{field}: expected a function of two arguments"
    if (rule.draws is not None) != (rule.tolerance == "random"):
        yield "draws: a row with draws has the tolerance 'random', and no other row has it"
    if rule.draws is not None and rule.nearest is not None:
        yield "nearest: draws are judged by their distribution; drop one"
    if rule.nearest is not None and rule.steps:
        yield "nearest: results of steps are judged by the nearest step; drop one"
    if rule.slack != Rule.slack and not rule.steps:
        yield "slack: it widens steps; expected steps=True"


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True
