"""Owns what results may not depend on: a repeated launch, another process, the rows beside a row.

Results are compared bit by bit. Which rows an operator treats alone its reference says: rows of a
part of the batch have there the values that they have in the whole one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from aclnn_bindings.install.products import nondeterministic
from mindtorch.ops.samples import Arg

from ...judge.metrics import identical
from ...judge.precision import Array
from ...spec.domains import Content, everywhere
from ...spec.sizes import dims_of, text_of
from ..cases.case import designed
from ..cases.declared import plain_levels
from ..cases.invariants import batch_sizes
from ..cases.recipe import Recipe, Slot, recipe
from ..cases.shapes import NotApplicableError
from ..record.result import Result
from .reference import Golden, ReferenceRefusesError
from .subject import Law
from .trial import Trial

# Launches a trial once: the reference, and what came.
Launched = tuple[Golden, list[Array]]
Launcher = Callable[[Trial], Launched]
_TIMES: Final = 4
# How far apart references of the whole batch and of a part may be: sums in another order.
_CLOSE: Final = 1e-5


def laws(launch: Launcher) -> dict[str, Law]:
    """The laws of a kind of subject, which `launch` runs."""
    return {
        "repeat": lambda trial: repeat(trial, launch),
        "process": lambda trial: once(trial, launch),
        "batch": lambda trial: batch(trial, launch),
    }


def repeat(trial: Trial, launch: Launcher) -> Result:
    """The same launch gives the same bits each time."""
    _, first = _launched(trial, launch)
    for number in range(2, _TIMES + 1):
        words = _difference(first, launch(trial)[1])
        if words:
            return differing(trial, f"launch {number} of the same inputs differs: {words}")
    return _passed(trial)


def once(trial: Trial, launch: Launcher) -> Result:
    """One launch, whose bits those of another process are compared with (see worker.py)."""
    _, trial.outputs = _launched(trial, launch)
    return _passed(trial)


def batch(trial: Trial, launch: Launcher) -> Result:
    """A row has the same bits alone, among fewer rows and among all."""
    whole = _launched(trial, launch)
    applicable = False
    for rows in _batches(trial):
        words = _rows_alone(rows, whole, launch)
        if words is None:
            continue
        applicable = True
        if words:
            return differing(trial, words)
    if not applicable:
        raise NotApplicableError("no axis along which its reference treats each row alone")
    return _passed(trial)


def _launched(trial: Trial, launch: Launcher) -> Launched:
    if trial.need.tier == "none":
        raise NotApplicableError("its results are drawn")
    return launch(trial)


def _passed(trial: Trial) -> Result:
    return trial.result("PASS", tier="T0", required="T0")


def differing(trial: Trial, reason: str) -> Result:
    """The result of bits that differ: no failure where a document says that they may."""
    names = [n for n in trial.subject.calls if nondeterministic(n)]
    if not names:
        return trial.result("FAIL", tier="none", required="T0", reason=reason)
    issue = f"documents: {', '.join(names)} is not deterministic unless ACL_OPT_DETERMINISTIC is 1"
    return trial.result("XFAIL", reason=reason, issue=issue)


def _difference(one: Sequence[Array], other: Sequence[Array]) -> str:
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.shape != b.shape:
            return f"result {k} has another shape"
        with np.errstate(all="ignore"):
            unlike = int((~identical(a, b)).sum())
        if unlike:
            return f"{unlike} of {a.size} elements of result {k}"
    return ""


# --- rows of a batch ------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowBatch:
    """A trial's batch: its number of rows, and the trial of some of them."""

    count: int
    part: Callable[[int, int], Trial]


def _batches(trial: Trial) -> Iterator[RowBatch]:
    """What may be the batch of a trial, the likeliest first."""
    if trial.subject.declaration is not None:
        yield from _declared(trial)
    else:
        yield from _leading(trial)


def _rows_alone(rows: RowBatch, whole: Launched, launch: Launcher) -> str | None:
    """What is wrong with rows by themselves, "" for nothing; None where the reference couples
    rows."""
    last = rows.count - 1
    for start, stop in dict.fromkeys(((0, 1), (last, last + 1), (0, (rows.count + 1) // 2))):
        try:
            golden, got = launch(rows.part(start, stop))
        except (NotApplicableError, ReferenceRefusesError):
            return None
        pairs = _pairs(whole, (golden, got), rows.count, start, stop)
        if pairs is None:
            return None
        for k, (one, other, axis) in enumerate(pairs):
            unlike = np.argwhere(~identical(one, other))
            if len(unlike):
                at = start + int(unlike[0][axis] if unlike.shape[1] else 0)
                return _smallest(rows, launch, at, k)
    return ""


def _smallest(rows: RowBatch, launch: Launcher, at: int, k: int) -> str:
    """The sentence on row `at` of result `k`, with the smallest number of rows that changes it."""
    golden, alone = launch(rows.part(at, at + 1))
    good, bad = at, rows.count
    count = total = 0
    while bad - good > 1 or not total:
        middle = (good + bad) // 2 if total else bad
        pairs = _pairs(launch(rows.part(0, middle)), (golden, alone), middle, at, at + 1)
        one, other, _ = pairs[k] if pairs else (alone[k], alone[k], 0)
        unlike = int((~identical(one, other)).sum())
        if unlike or not total:
            bad, count, total = middle, unlike, one.size
        else:
            good = middle
    return (f"result of row {at} changes with the number of rows: alone and among {bad} rows "
            f"{count} of its {total} elements differ (result {k})")  # fmt: skip


def _pairs(
    whole: Launched, part: Launched, count: int, start: int, stop: int
) -> list[tuple[Array, Array, int]] | None:
    """Rows of the whole batch beside those of a part, with their axis, for each result; None where
    the references of both differ."""
    pairs = []
    for k, (all_, some) in enumerate(zip(whole[1], part[1], strict=True)):
        axis = _axis(all_.shape, some.shape, count, stop - start)
        if axis is None:
            return None
        expected = whole[0].values[k], part[0].values[k]
        if not _close(_rows(expected[0], axis, count, start, stop), expected[1]):
            return None
        pairs.append((_rows(all_, axis, count, start, stop), some, max(axis, 0)))
    return pairs


def _axis(whole: tuple[int, ...], part: tuple[int, ...], count: int, rows: int) -> int | None:
    """The axis of a result that counts rows; -1 for one without, None where it can't be told."""
    if whole == part:
        return -1
    if len(whole) != len(part):
        return None
    differ = [d for d, (a, b) in enumerate(zip(whole, part, strict=True)) if a != b]
    if len(differ) != 1 or whole[differ[0]] * rows != part[differ[0]] * count:
        return None
    return differ[0]


def _rows(array: Array, axis: int, count: int, start: int, stop: int) -> Array:
    if axis < 0:
        return array
    each = array.shape[axis] // count
    return array.take(range(start * each, stop * each), axis)


def _close(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    with np.errstate(all="ignore"):
        return bool(np.isclose(one, other, _CLOSE, _CLOSE, equal_nan=True).all())


def _declared(trial: Trial) -> Iterator[RowBatch]:
    """The sizes of a declaration that count rows."""
    declaration = trial.subject.declaration
    assert declaration is not None
    levels = {**plain_levels(declaration), **dict(trial.case.factors)}
    for size, role in batch_sizes(declaration).items():
        dims = dims_of(levels.get(size, role.plain))
        if dims and dims[0] > 1:
            yield RowBatch(dims[0], partial(_smaller, trial, size, dims))


def _smaller(trial: Trial, size: str, dims: tuple[int, ...], start: int, stop: int) -> Trial:
    """The call with rows from `start` to `stop` of a size, and their elements."""
    level = text_of((stop - start, *dims[1:]))
    case = designed(trial.case.op, trial.case.form, {**dict(trial.case.factors), size: level})
    small = recipe(trial.subject, case, trial.seed)
    if len(small.slots) != len(trial.recipe.slots):
        raise NotApplicableError("the number of tensors follows from the number of rows")
    arrays = [_cut(big.array, new.array.shape, dims[0], start, stop)
              for big, new in zip(trial.recipe.slots, small.slots, strict=True)]  # fmt: skip
    part = copy.copy(trial)
    part.case, part.placed = case, []
    part.recipe = recipe(trial.subject, case, trial.seed, arrays)
    for name, value in part.recipe.kwargs.items():
        whole = trial.recipe.kwargs.get(name)
        if isinstance(value, tuple) and isinstance(whole, tuple) and _is_content(trial, name):
            shapes = (len(whole),), (len(value),)
            places = _cut(np.arange(len(whole)), shapes[1], dims[0], start, stop)
            part.recipe.kwargs[name] = tuple(whole[i] for i in places)
    return part


def _is_content(trial: Trial, name: str) -> bool:
    """Whether the elements of an array parameter are drawn, rather than follow from sizes."""
    declaration = trial.subject.declaration
    assert declaration is not None
    domain = declaration.params.get(name)
    return domain is not None and any(isinstance(d, Content) for d in everywhere(domain))


def _cut(array: Array, shape: tuple[int, ...], count: int, start: int, stop: int) -> Array:
    """The elements of rows, where the axes that differ from `shape` count rows."""
    if array.ndim != len(shape):
        raise NotApplicableError("the rank follows from the number of rows")
    for axis, (big, small) in enumerate(zip(array.shape, shape, strict=True)):
        if big == small:
            continue
        if big % count or small * count != big * (stop - start):
            raise NotApplicableError("sizes are no multiples of the number of rows")
        array = _rows(array, axis, count, start, stop)
    return np.ascontiguousarray(array)


def _leading(trial: Trial) -> Iterator[RowBatch]:
    """The first dim of the first tensor that has one: with the tensors that share its size, with
    those of its rank, alone."""
    slots = trial.recipe.slots
    first = next((s for s in slots if s.array.ndim and s.array.shape[0] > 1), None)
    if first is None:
        return
    count = first.array.shape[0]
    like = [s for s in slots if s.array.ndim and s.array.shape[0] == count]
    ranks = [s for s in like if s.array.ndim == first.array.ndim]
    for several in dict.fromkeys((tuple(map(id, like)), tuple(map(id, ranks)), (id(first),))):
        yield RowBatch(count, partial(_fewer, trial, frozenset(several)))


def _fewer(trial: Trial, several: frozenset[int], start: int, stop: int) -> Trial:
    """The trial with rows from `start` to `stop` of some of its tensors."""
    slots: dict[int, Slot] = {}

    def cut(slot: Slot) -> Slot:
        if id(slot) not in several:
            slots[id(slot)] = slot
        elif id(slot) not in slots:
            array = np.ascontiguousarray(slot.array[start:stop])
            arg: Arg = replace(slot.arg, shape=tuple(array.shape))
            slots[id(slot)] = Slot(arg, array, slot.same)
        return slots[id(slot)]

    part, whole = copy.copy(trial), trial.recipe
    args, kwargs = whole.fill(cut)
    inner = [slots.get(id(s), s) for s in whole.slots]
    part.recipe, part.placed = Recipe(args, kwargs, inner, whole.error, whole.together), []
    return part
