"""Owns what draws of an ACLNN operator are compared with: the distribution that its row states."""

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

    def numbers_of(result: Any) -> tuple[str, Any, Any]:
        kind, params, numbers = draws(np.asarray(result), arguments)
        return kind, params, np.asarray(numbers)

    kind, params, numbers = numbers_of(first)
    others = [run(_changed(trial, changes)) for changes in _CHANGES]
    return objections(kind, params, numbers, *(numbers_of(r)[2] for r in (again, *others)))


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


def normal(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Of mean and std, numbers or tensors: scaled to mean 0 and std 1."""
    if values.dtype == np.bool_:
        return "bernoulli", np.asarray(1.0), values
    mean, std = (np.asarray(arguments[k], np.float64) for k in ("mean", "std"))
    return "normal", (0.0, 1.0), (values.astype(np.float64) - mean) / std


def uniform(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    return "uniform", (float(arguments["from"]), float(arguments["to"])), values


def integers(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Of [from, to); without them of all that the type holds exactly and is not negative."""
    if "from" in arguments:
        low, high = int(arguments["from"]), int(arguments["to"])
        if values.dtype == np.bool_ and low == 0:
            return "bernoulli", np.asarray(1 - 1 / high), values
        return "integers", (low, high), values
    kind = values.dtype
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}.get(kind.name)
    most = 2 if kind == np.bool_ else 2**digits + 1 if digits else int(np.iinfo(kind).max) + 1
    return "integers", (0, most), values


def bernoulli(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """1 with probability `prob`, a number or a tensor."""
    return "bernoulli", np.asarray(arguments["prob"], np.float64), values


def keep_bits(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """A bit per element, 1 with probability 1 - `prob`."""
    count = int(np.prod(arguments["shape"]))
    bits = np.unpackbits(values.reshape(-1), bitorder="little")[:count]
    return "bernoulli", np.asarray(1 - arguments["prob"]), bits


def categories(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Places in rows of weights."""
    return "categories", (arguments["self"], bool(arguments["replacement"])), values


def permutation(values: Array, arguments: Mapping[str, Any]) -> tuple[str, Any, Any]:  # noqa: ARG001
    return "permutation", (), values
