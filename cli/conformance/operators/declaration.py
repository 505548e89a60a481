"""Owns what a declared row may say: refuses names, dtypes, families and fields that do not exist.

`fields` checks a row by itself, when it is declared; `bind` checks it against headers, when an
operator of it is first used. Both raise SpecError with the row, what it says, the nearest name that
exists and what is expected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from mindtorch.ops.samples import Sample

from ...judge.classes import ClassTableError
from ...judge.formats import FORMATS
from ..cases.case import DTYPES
from .row import CUSTOM, MISSING, SLACK, SPECS, Spec, SpecError

# The words that name a family: a module or a folder of `rows`, of kernels and of their tests.
_WORDS: Final = """
activation attention collective convolution creation detection embedding fft foreach image indexing
kv_cache linalg loss matmul moe norm optimizer pointwise pooling quantization random
reduction residual resize rnn rotary sampling shape sorting state"""
FAMILIES: Final = frozenset(_WORDS.split())
_STORED: Final = ("uint16", "uint32", "uint64", "int4", "float8_e8m0fnu", "float4_e2m1fn")
_DTYPES: Final = frozenset((*DTYPES, *FORMATS, *_STORED))
_LAYOUTS: Final = ("ND", "NCL", "NCHW", "NHWC", "NCDHW", "FRACTAL_NZ")
# What (answers, results) and (draws, arguments) are given to.
_TWO: Final = ("nearest", "draws")


def near(name: str, names: Iterable[str]) -> str:
    """`; near: x`, or nothing."""
    matches = get_close_matches(name, sorted(names), 1, 0.5)
    return f"; near: {matches[0]}" if matches else ""


def fields(row: Spec) -> None:
    """Check a row by itself."""
    for problem in (*_names(row), *_rule(row), *_contradictions(row)):
        raise SpecError(f"{row.name}: {problem}")


def _names(row: Spec) -> Iterator[str]:
    if row.family not in FAMILIES | {CUSTOM}:
        yield f"no family {row.family!r}{near(row.family, FAMILIES)}; name its module by a family"
    if not row.outs:
        yield "no results; expected 'yOut:x rstdOut:float32'"
    for dtype in row.dtypes:
        if dtype not in DTYPES:
            yield f"dtypes: no dtype {dtype!r}{near(dtype, DTYPES)}"
    for param, casts in row.casts.items():
        for dtype in (*casts, *casts.values()):
            if dtype not in _DTYPES:
                yield f"casts of {param}: no dtype {dtype!r}{near(dtype, _DTYPES)}"
    for param, layout in row.formats.items():
        if layout not in _LAYOUTS:
            yield f"formats of {param}: no format {layout!r}{near(layout, _LAYOUTS)}"


def _rule(row: Spec) -> Iterator[str]:
    try:
        reason = row.requirement().reason
    except KeyError:
        yield f"no class of tolerance {row.tolerance!r}; expected one of judge/classes.toml"
    except (ClassTableError, TypeError) as error:
        yield f"rule: {error}"
    else:
        if not reason or not row.source:
            yield "no reason or no source; a row states both"
    if row.rule and not isinstance(row.rule, str) and not row.rule.get("reason"):
        yield "rule: it replaces numbers of the class without a reason"


def _contradictions(row: Spec) -> Iterator[str]:
    for field in _TWO:
        function = getattr(row, field)
        if function is not None and not _takes(function, 2):
            yield f"{field}: expected a function of two arguments"
    if (row.draws is not None) != (row.tolerance == "random"):
        yield "draws: a row with draws has the tolerance 'random', and no other row has it"
    if row.draws is not None and row.nearest is not None:
        yield "nearest: draws are judged by their distribution; drop one"
    if row.nearest is not None and row.steps:
        yield "nearest: results of steps are judged by the nearest step; drop one"
    if row.slack != SLACK and not row.steps:
        yield "slack: it widens steps; expected steps=True"
    parameters = set(row.parameters())
    for field in ("ignored", "uncovered"):
        for param in parameters & set(getattr(row, field)):
            yield f"{field}: the reference takes {param}"
    for param in set(row.ignored) & set(row.uncovered):
        yield f"{param} is both ignored and uncovered"
    for param in set(row.constant) - parameters:
        yield f"constant: the reference takes no {param}{near(param, parameters)}"
    for param, why in row.ignored.items():
        if not why:
            yield f"ignored: {param} has no reason"


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


# --- against headers ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowHeaders:
    """Parameters by the names of a row: of each of its operators in all versions, and of all
    operators that its module declares, which may share references and samples."""

    own: Mapping[str, frozenset[str]]
    shelf: frozenset[str]

    @property
    def row(self) -> frozenset[str]:
        """Of any operator of the row."""
        return frozenset().union(*self.own.values())


def bind(row: Spec, params: Iterable[str], samples: Sequence[Sample]) -> None:
    """Check a row whose operator has these parameters in the install at hand.

    The catalogs are read only where the install does not explain the row: it may be older.
    """
    present = {row.renamed.get(p, p) for p in params}
    needed = {n for n, d in row.parameters().items() if d is MISSING} | set(row.outs)
    if needed | {k for s in samples for k in s.kwargs} <= present:
        return
    for problem in problems(row, samples):
        raise SpecError(f"{row.name}: {problem}")


def problems(row: Spec, samples: Sequence[Sample]) -> Iterator[str]:
    """What a row says that the headers of the catalogs contradict."""
    headers = _headers(row)
    for name, params in headers.own.items():
        if not params:
            yield f"no CANN of the catalogs declares {name}{near(name, _catalog())}"
            return
        for out in row.outs:
            if out not in params:
                yield f"result {out}: {name} has no such parameter{near(out, params)}"
    yield from _reference_problems(row, headers)
    known = headers.shelf | set(row.extra)
    for key in {k for s in samples for k in s.kwargs} - known:
        yield f"a sample gives {key}: the header has no such parameter{near(key, headers.row)}"
    yield from _field_problems(row, headers)


def _reference_problems(row: Spec, headers: RowHeaders) -> Iterator[str]:
    known = headers.shelf | set(row.extra)
    for param, default in row.parameters().items():
        if default is not MISSING:
            if param not in known:
                yield _takes_unknown(param, headers)
            continue
        for params in headers.own.values():
            if param not in params and param not in row.extra:
                yield _takes_unknown(param, headers)


def _takes_unknown(param: str, headers: RowHeaders) -> str:
    return (f"the reference takes {param}: the header has no such parameter"
            f"{near(param, headers.row)}; begin its name with _ if it is the reference's own"
            )  # fmt: skip


def _field_problems(row: Spec, headers: RowHeaders) -> Iterator[str]:
    for out, rule in row.outs.items():
        for word in rule.split("|"):
            if word not in _DTYPES | headers.row | set(row.extra):
                names = _DTYPES | headers.row
                yield f"result {out}: {word} is no dtype and no parameter{near(word, names)}"
    named = {"formats": [k.split()[-1] for k in row.formats], "casts": row.casts}
    for field, params in named.items():
        for param in params:
            if param not in headers.shelf:
                yield f"{field}: the header has no parameter {param}{near(param, headers.row)}"
    for field in ("ignored", "uncovered", "constant"):
        for param in getattr(row, field):
            if param not in headers.row | set(row.extra):
                yield f"{field}: the header has no parameter {param}{near(param, headers.row)}"


def _headers(row: Spec) -> RowHeaders:
    # Each operator of a row spells parameters in its own way.
    renamed_params = {name: _renamed(row if name == row.name else SPECS.get(name, row), name)
                      for name in (row.name, *row.names)}  # fmt: skip
    shelf = set().union(*renamed_params.values())
    if row.family != CUSTOM:
        for name, other in SPECS.items():
            if other.module == row.module:
                shelf |= _renamed(other, name) | _catalog().get(name, frozenset())
    return RowHeaders(renamed_params, frozenset(shelf))


def _renamed(row: Spec, name: str) -> frozenset[str]:
    return frozenset(row.renamed.get(p, p) for p in _catalog().get(name, ()))


@cache
def _catalog() -> Mapping[str, frozenset[str]]:
    """Parameters of every operator, in all versions together."""
    from aclnn_bindings.interface import catalog

    params: dict[str, set[str]] = {}
    for version in catalog.versions():
        for name, signature in catalog.load(version).ops.items():
            params.setdefault(name, set()).update(p.name for p in signature.params)
    return {name: frozenset(names) for name, names in params.items()}
