"""Owns the designed cases of a row: which there are at a level, and the call that each makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from mindtorch.ops import OPS, Op
from mindtorch.ops.samples import Arg, Sample

from ...spec.factors import Factor, covering, lonely, plain, singles
from .case import DTYPES, Case, CaseNameError, designed
from .inputs import main_dtype, samples, tensors_of
from .spaces.space import DesignLevels, DesignScope, Space
from .spaces.table import space_of

# A result of more rows than this has mostly zeros where few indices name them.
_LARGEST = 16


def design(op: Op, dtypes: Sequence[str], level: str) -> Iterator[Case]:
    """The designed cases of a row that takes `dtypes`; none where it has no space."""
    space = space_of(op.name)
    if space is None or not dtypes:
        return
    scope = DesignScope(tuple(dtypes), level != "quick")
    factors = list(space.factors(op, scope))
    base = plain(factors)
    if level != "quick":
        yield from (_case(op, levels, base) for levels in singles(factors))
    yield from (_case(op, levels, base) for levels in lonely(factors))
    yield from (_case(op, {**base, **levels}, base) for levels in space.singled(op, scope))
    for levels in covering(factors, 2 if level == "quick" else 3):
        yield _case(op, levels, base)


def _case(op: Op, levels: Mapping[str, str], base: Mapping[str, str]) -> Case:
    """A case that names what differs from the plain one, and always its dtype."""
    form = levels.get("form", base["form"])
    if form == "inplace" and _widens(op, levels["dtype"]):
        form = "functional"
    named = {k: v for k, v in levels.items()
             if k == "dtype" or (k != "form" and v != base[k])}  # fmt: skip
    if form != "out":
        named.pop("to", None)
        if named.get("alias") == "out":
            del named["alias"]
    return designed(op.name, form, named)


def _widens(op: Op, dtype: str) -> bool:
    """Whether integers become floats here, which do not fit into them again."""
    return (
        getattr(op.infer, "kind", "") == "float"
        and "float" not in dtype
        and (not dtype.startswith("complex"))
    )


@cache
def _plain(name: str) -> tuple[Space, dict[str, str], dict[str, Factor]]:
    op = OPS[name]
    space = space_of(name)
    if space is None:
        raise CaseNameError(f"{name} has no designed cases: its cases are those of its samples")
    factors = list(space.factors(op, DesignScope(DTYPES, True)))
    return space, plain(factors), {f.name: f for f in factors}


def levels_of(case: Case) -> dict[str, str]:
    """Every factor of a designed case with its level; CaseNameError for an unknown factor."""
    _, base, known = _plain(case.op)
    unknown = [k for k, _ in case.factors if k not in known]
    if unknown:
        raise CaseNameError(f"case {case.id!r}: {unknown[0]!r} is none of its row's factors: "
                            f"{', '.join(known)}")  # fmt: skip
    levels = dict(case.factors)
    return {**base, **levels, "form": case.form}


def sample_of(op: Op, case: Case) -> Sample:
    """The call of a designed case; CaseNameError for a level that makes none."""
    space = _plain(op.name)[0]
    try:
        return space.build(op, DesignLevels(levels_of(case)))
    except (ValueError, KeyError, IndexError) as error:
        raise CaseNameError(f"case {case.id!r}: {type(error).__name__}: {error}") from error


def attribute_calls(op: Op) -> list[Sample]:
    """A call for each way in which one factor alone fills the row's attributes, on tensors of the
    plain call's shapes; none without a space. Samples leave attributes at their defaults."""
    if space_of(op.name) is None:
        return []
    space, base, factors = _plain(op.name)
    base = {**base, "dtype": _dtype_of(op)}
    shapes: set[Any] = set()
    calls: dict[str, Sample] = {}
    for one in factors.values():
        for level in (base[one.name], *one.levels):
            with suppress(ValueError, KeyError, IndexError):  # levels that make no call
                sample = space.build(op, DesignLevels({**base, one.name: level}))
                shapes = shapes or {a.shape for a in tensors_of(sample)}
                values = _attributes(op, sample)
                largest = max(filter(_is_size, values.values()), default=0)
                if shapes >= {a.shape for a in tensors_of(sample)} and largest <= _LARGEST:
                    calls.setdefault(repr(values), sample)
    return list(calls.values())


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _dtype_of(op: Op) -> str:
    """The dtype of the row's first call, float32 in place of float64."""
    good = [tensors_of(s) for s in samples(op.testing) if not s.error]
    first = main_dtype(good[0]) if good and good[0] else "float32"
    return "float32" if first == "float64" else first


def _attributes(op: Op, sample: Sample) -> dict[str, Any]:
    """What a call passes besides tensors."""
    named = {a.name: v for a, v in zip(op.schema.args, sample.args, strict=False)}
    values = {**named, **sample.kwargs}
    return {name: v for name, v in sorted(values.items()) if not _has_tensor(v)}


def _has_tensor(value: Any) -> bool:
    return isinstance(value, Arg) or (isinstance(value, list | tuple)
                                      and any(isinstance(v, Arg) for v in value))  # fmt: skip


def plain_levels(name: str) -> Mapping[str, str]:
    """The plain level of every factor of a row."""
    return _plain(name)[1]
