"""Owns the verdict of results against references: measure, tiers, guards, reason in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import guards
from .classes import TIERS, Requirement
from .golden import Golden
from .metrics import errors, measure, same, text
from .precision import FORMATS, rounded
from .result import Result
from .subject import dtype_name, host
from .tiers import judge
from .trial import Trial


def compare(
    trial: Trial, reference: Golden, got: list[tuple[str, Any]], objections: list[str],
    need: Requirement | None = None,
) -> Result:  # fmt: skip
    """Judge every result; the worst one is the case's."""
    trial.outputs, trial.expected = [a for _, a in got], reference.values
    if len(got) != len(reference.native):
        reason = f"{len(got)} results where the reference has {len(reference.native)}"
        return trial.result("FAIL", reason=reason)
    if not got:
        return trial.result("PASS", tier="T0", required="T0", guards=tuple(objections))
    found = [
        _compare_one(trial, need or trial.need, reference, i, *item) for i, item in enumerate(got)
    ]
    worst = min(found, key=lambda r: (r.verdict == "PASS", -len(r.tier and "x"), r.verdict))
    if worst.verdict == "PASS":
        worst = max(found, key=lambda r: _rank(r.tier))
    objections = [*objections, *(g for r in found for g in r.guards)]
    if objections and worst.verdict == "PASS":
        return worst.with_(verdict="MISTRUSTED", guards=tuple(objections), reason=objections[0])
    return worst.with_(guards=tuple(objections))


def _rank(tier: str) -> int:
    return (*TIERS, "none", "").index(tier)


def _compare_one(
    trial: Trial, need: Requirement, reference: Golden, i: int, dtype: str, got: Any
) -> Result:
    native, expected = reference.native[i], reference.values[i]
    if tuple(got.shape) != tuple(native.shape) or dtype != dtype_name(native):
        reason = (f"result {i}: {dtype}{list(got.shape)} where the reference has "
                  f"{dtype_name(native)}{list(native.shape)}")  # fmt: skip
        return trial.result("FAIL", reason=reason)
    if need.tier == "none":
        return _plausible(trial, got)
    if trial.case.fill in ("special", "sweep"):
        expected = agreed(got, expected, host(native), dtype)
    measured = measure(got, expected, dtype, reference.scale[i], need.accumulator)
    material = errors(got, expected, dtype)
    verdict = judge(need, dtype, measured, material, host(native), expected)
    worst = measured.as_json()
    if measured.worst is not None:
        worst["worst"]["inputs"] = _inputs_at(trial, measured.worst.index, tuple(got.shape))
    objections = _objections(trial, need, got, expected, dtype, material)
    return trial.result(
        "PASS" if verdict.passed else "FAIL",
        tier=verdict.headline, required=verdict.required, measure=worst,
        reason="" if verdict.passed else _why(verdict.failing(), measured),
        outcomes=tuple((t, o.rule, o.passed, o.numbers) for t, o in verdict.outcomes),
        guards=tuple(objections),
    )  # fmt: skip


def agreed(got: Any, expected: Any, native: Any, dtype: str) -> Any:
    """`expected`, with the CPU's value in the same precision where that is what came and either
    is not finite: intermediate overflow is no error (commercial standard, rule for inf and nan).
    """
    if expected.dtype.kind not in "fc" or native.dtype == expected.dtype:
        return expected
    with np.errstate(all="ignore"):
        odd = ~np.isfinite(native) | ~np.isfinite(rounded(expected, dtype))
        return np.where(odd & same(got, native), native.astype(expected.dtype), expected)


def _why(failing: str, measured: Any) -> str:
    where = ""
    if measured.worst is not None:
        worst = measured.worst
        where = f"; at {list(worst.index)} got {worst.got}, expected {worst.expected}"
    return (failing or f"{measured.different} of {measured.elements} elements differ") + where


def _objections(
    trial: Trial, need: Requirement, got: Any, expected: Any, dtype: str, material: Any
) -> list[str]:
    if material is None or need.name == "exact" or trial.case.fill != "normal":
        return []
    found = [guards.lost(got, expected, dtype), guards.tail(material, need.ulp[0])]
    if _should_vary(trial):
        found += [guards.zeros(got, need.name), guards.constant(expected)]
    return [o for o in found if o]


def _should_vary(trial: Trial) -> bool:
    """Whether many different values are to be expected: floats that were drawn, none empty."""
    return (
        trial.case.form == "functional"
        and trial.case.layout != "expanded"
        and trial.dtype in FORMATS
        and all(s.array.size for s in trial.recipe.slots)
    )


def _plausible(trial: Trial, got: Any) -> Result:
    if got.dtype.kind == "f" and not np.isfinite(got).all():
        return trial.result("FAIL", reason="drawn values are not finite")
    return trial.result("PASS", tier="none", required="none")


def _inputs_at(trial: Trial, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, str]:
    """The input elements that meet at an output's index, where shapes broadcast to it."""
    found = {}
    for position, slot in enumerate(trial.recipe.slots):
        try:
            value = np.broadcast_to(slot.array, shape)[index]
        except ValueError:
            continue
        found[f"input {position}"] = text(value)
    return found
