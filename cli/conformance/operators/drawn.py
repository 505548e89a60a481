"""Owns what draws of an ACLNN operator are held against: the distribution that its row states."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...judge.distribution import objections
from ...judge.precision import Array
from ..cases.recipe import Recipe, Slot
from ..run.trial import Trial

# What seeds and offsets are raised by for other numbers; Philox gives four numbers a counter.
_CHANGES: Final = (
    {"seed": 1, "seedTensor": 1},
    {"offset": 1 << 22, "offsetTensor": 1 << 22},
    {"seed": 1 << 40, "seedTensor": 1 << 40},
)


def complaints(
    trial: Trial, draws: Callable[..., Any], first: Array, again: Any, run: Callable[[Trial], Any]
) -> list[str]:
    """What speaks against the draws; `draws` gives (kind, parameters, numbers) of results.

    `first` and `again` came of one seed; `run` draws for a trial with another seed or offset.
    """
    arguments = {k: _plain(v) for k, v in trial.recipe.kwargs.items()}

    def told(result: Any) -> tuple[str, Any, Any]:
        kind, params, numbers = draws(np.asarray(result), arguments)
        return kind, params, np.asarray(numbers)

    kind, params, numbers = told(first)
    others = [run(_changed(trial, changes)) for changes in _CHANGES]
    return objections(kind, params, numbers, *(told(r)[2] for r in (again, *others)))


def _plain(value: Any) -> Any:
    return value.array if isinstance(value, Slot) else value


def _changed(trial: Trial, changes: Mapping[str, int]) -> Trial:
    """The trial with another seed or offset."""
    recipe: Recipe = trial.recipe
    kwargs = {k: _raised(v, changes[k]) if k in changes else v for k, v in recipe.kwargs.items()}
    other = copy.copy(trial)
    other.recipe = replace(recipe, kwargs=kwargs)
    return other


def _raised(value: Any, by: int) -> Any:
    if isinstance(value, Slot):
        return replace(value, array=value.array + np.asarray(by, value.array.dtype))
    return value + by


# --- what rows say ------------------------------------------------------------------------------


def normal(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Of mean and std, numbers or tensors: scaled to mean 0 and std 1."""
    if drawn.dtype == np.bool_:
        return "bernoulli", np.asarray(1.0), drawn
    mean, std = (np.asarray(given[k], np.float64) for k in ("mean", "std"))
    return "normal", (0.0, 1.0), (drawn.astype(np.float64) - mean) / std


def uniform(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    return "uniform", (float(given["from"]), float(given["to"])), drawn


def integers(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Of [from, to); without them of all that the type holds exactly and is not negative."""
    if "from" in given:
        low, high = int(given["from"]), int(given["to"])
        if drawn.dtype == np.bool_ and low == 0:
            return "bernoulli", np.asarray(1 - 1 / high), drawn
        return "integers", (low, high), drawn
    kind = drawn.dtype
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}.get(kind.name)
    most = 2 if kind == np.bool_ else 2**digits + 1 if digits else int(np.iinfo(kind).max) + 1
    return "integers", (0, most), drawn


def bernoulli(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """1 with probability `prob`, a number or a tensor."""
    return "bernoulli", np.asarray(given["prob"], np.float64), drawn


def kept(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """A bit per element, 1 with probability 1 - `prob`."""
    count = int(np.prod(given["shape"]))
    bits = np.unpackbits(drawn.reshape(-1), bitorder="little")[:count]
    return "bernoulli", np.asarray(1 - given["prob"]), bits


def categories(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Places in rows of weights."""
    return "categories", (given["self"], bool(given["replacement"])), drawn


def permutation(drawn: Array, given: Mapping[str, Any]) -> tuple[str, Any, Any]:  # noqa: ARG001
    return "permutation", (), drawn
