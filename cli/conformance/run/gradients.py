"""Owns derivatives of a case: on the device, in float64, and by finite differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.testing.placement import from_host, to_host

from ...judge.formats import FORMATS
from ...judge.precision import numpy_dtype
from ..cases.layouts import REPEATED
from ..cases.recipe import Slot
from .reference import Golden, ReferenceRefusesError
from .tensors import call, dtype_name, on_device, results, synchronize

if TYPE_CHECKING:
    from ..record.result import Result
    from .trial import Trial

# Arrays or tensors by the result's position; those without a derivative are left out.
ByPlace = dict[int, Any]
_STEP: Final = 1e-6
_AGREEMENT: Final = 1e-4
_ASIDE: Final = 1e-3


def gradient(
    trial: Trial, magnitudes: bool = False
) -> Result | tuple[Golden, list[tuple[str, Any]], str]:
    """(references, the device's gradients, an objection to the formula), or a SKIP; `magnitudes`:
    with the sums of magnitudes that a matrix unit's rounding is measured against."""
    slots = [s for s in trial.recipe.slots if s.arg.dtype in FORMATS and s.arg.grad]
    if not slots or trial.need.tier == "none":
        return trial.result("SKIP", reason="no input is differentiable")
    try:
        outs, leaves = _forward(trial, lambda s: from_host(s.array.astype(np.float64)), slots)
    except Exception as error:
        raise ReferenceRefusesError(error) from error
    if not outs:
        return trial.result("SKIP", reason="no result depends on an input differentiably")
    if any(t.is_complex() for t in outs.values()):
        return trial.result("SKIP", reason="derivatives of complex results are not compared")
    weights = _weights(trial, outs)
    exact = _backward(outs, leaves, [from_host(w) for w in weights.values()])
    objection = _finite_difference(trial, slots, weights, exact)
    try:
        near, near_leaves = _forward(trial, lambda s: _leaf(trial, s), slots)
    except Exception:
        _refuse_as_reference(trial, slots)
        raise
    there = [
        on_device(w.astype(to_host(t).dtype), trial.device, "contiguous").tensor
        for w, t in zip(weights.values(), near.values(), strict=True)
    ]
    got = _backward(near, near_leaves, there)
    synchronize(trial.device)
    if [g is None for g in got] != [g is None for g in exact]:
        objection = "gradients are missing where the float64 reference has them"
    pairs = [(s, e, g) for s, e, g in zip(slots, exact, got, strict=True) if e is not None]
    native = [to_host(e).astype(numpy_dtype(s.arg.dtype)) for s, e, _ in pairs]
    values = [to_host(e) for _, e, _ in pairs]
    scales = _magnitudes(trial, slots, weights) if magnitudes else {}
    reference = Golden(native, values, [scales.get(id(s)) for s, _, _ in pairs])
    grads = [(dtype_name(g), to_host(g)) for _, _, g in pairs if g is not None]
    return reference, grads, objection


def _magnitudes(trial: Trial, slots: list[Slot], weights: ByPlace) -> ByPlace:
    """By slot, the sums of magnitudes that gradients of products are: those at absolute values.

    A matrix unit that rounds factors is off by a share of them. None where they are not finite.
    """
    outs, leaves = _forward(trial, lambda s: from_host(np.abs(s.array.astype(np.float64))), slots)
    ones = [from_host(weights[k]) for k in outs]
    gradients = zip(slots, _backward(outs, leaves, ones), strict=True)
    sums = {id(s): np.abs(to_host(g)) for s, g in gradients if g is not None}
    return {k: v for k, v in sums.items() if np.isfinite(v).all()}


def _refuse_as_reference(trial: Trial, slots: list[Slot]) -> None:
    """ReferenceRefusesError where the CPU takes no inputs of the tested dtype either."""
    try:
        _forward(trial, lambda s: from_host(s.array), slots)
    except Exception as error:
        raise ReferenceRefusesError(error) from error


def _leaf(trial: Trial, slot: Slot) -> Any:
    layout = trial.case.layout
    plain = layout in REPEATED and slot.arg.values is not None  # which do not repeat
    return on_device(slot.array, trial.device, "contiguous" if plain else layout).tensor


def _forward(trial: Trial, make: Any, slots: list[Slot]) -> tuple[ByPlace, list[Any]]:
    """The differentiable results of the op on leaves, and the leaves in the slots' order."""
    leaves: dict[int, Any] = {}

    def tensor(slot: Slot) -> Tensor:
        leaf = make(slot) if slot.arg.dtype in FORMATS else _constant(make, slot)
        if any(slot is s for s in slots):
            leaf = leaves[id(slot)] = leaf.detach().requires_grad_()
        return leaf

    args, kwargs = trial.recipe.fill(tensor)
    outs = results(call(trial.op, args, kwargs))
    return {k: t for k, t in enumerate(outs) if t.requires_grad}, [leaves[id(s)] for s in slots]


def _constant(make: Any, slot: Slot) -> Tensor:
    """Indices and masks keep their dtype."""
    probe = make(Slot(slot.arg, slot.array[:0] if slot.array.ndim else slot.array))
    return from_host(slot.array).to(probe.device)


def _weights(trial: Trial, outs: ByPlace) -> ByPlace:
    rng = np.random.default_rng([trial.seed, 77])
    return {k: np.asarray(rng.uniform(0.5, 1.5, tuple(t.shape))) for k, t in outs.items()}


def _backward(outs: ByPlace, leaves: list[Any], weights: list[Any]) -> list[Any]:
    return list(torch.autograd.grad(list(outs.values()), leaves, weights, allow_unused=True))


def _finite_difference(trial: Trial, slots: list[Slot], weights: ByPlace, exact: Any) -> str:
    """What is wrong with the formula: one random direction, central difference in float64.

    Where elements of an input tie, extremes and orders have no derivative, nor what rounds at whole
    numbers: what disagrees there is tried again a step aside, where they have one.
    """
    if any(not s.array.size for s in slots):
        return ""
    objection = _disagreement(trial, slots, weights, exact, {})
    if not objection or not any(_tied(s.array) for s in slots):
        return objection
    rng = np.random.default_rng([trial.seed, 79])
    aside = {id(s): np.asarray(rng.uniform(-_ASIDE, _ASIDE, s.array.shape)) for s in slots}
    outs, leaves = _forward(trial, lambda s: from_host(_moved(s, aside)), slots)
    near = _backward(outs, leaves, [from_host(w) for w in weights.values()])
    return _disagreement(trial, slots, weights, near, aside)


def _tied(array: Any) -> bool:
    wide = array.astype(np.float64)
    return bool(np.unique(wide).size < wide.size or (wide == np.rint(wide)).any())


def _moved(slot: Slot, by: Mapping[int, Any]) -> Any:
    return slot.array.astype(np.float64) + by.get(id(slot), 0.0)


def _disagreement(
    trial: Trial, slots: list[Slot], weights: ByPlace, exact: Any, aside: Mapping[int, Any]
) -> str:
    """The derivatives `exact` against a central difference at the inputs moved by `aside`."""
    rng = np.random.default_rng([trial.seed, 78])
    ways = [np.asarray(rng.uniform(-1, 1, s.array.shape)) for s in slots]
    want = sum(
        float((to_host(g) * v).sum()) for g, v in zip(exact, ways, strict=True) if g is not None
    )
    ends = []
    for sign in (1.0, -1.0):
        moved = {
            id(s): sign * _STEP * v + aside.get(id(s), 0.0)
            for s, v in zip(slots, ways, strict=True)
        }
        ends.append(_weighted_sum(trial, moved, weights))
    have = (ends[0] - ends[1]) / (2 * _STEP)
    if not np.isfinite(have) or abs(have - want) <= _AGREEMENT * (1 + abs(want) + abs(have)):
        return ""
    return f"the formula gives {want:.6g} along a random direction, finite differences {have:.6g}"


def _weighted_sum(trial: Trial, moved: Mapping[int, Any], weights: ByPlace) -> float:
    def tensor(slot: Slot) -> Tensor:
        if slot.arg.dtype not in FORMATS:
            return from_host(slot.array)
        return from_host(_moved(slot, moved))

    with torch.no_grad():
        args, kwargs = trial.recipe.fill(tensor)
        outs = [to_host(t) for t in results(call(trial.op, args, kwargs))]
    return sum(float((outs[k] * w).sum()) for k, w in weights.items())
