"""Owns the verdict of results against references: measure, tiers, guards, reason in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...judge import guards
from ...judge.classes import TIERS, Requirement
from ...judge.formats import FORMATS
from ...judge.metrics import Measure, bits, errors, measure, rounds_to, same, text
from ...judge.pattern import mask_of, pattern
from ...judge.precision import Array, format_of, name_of, rounded
from ...judge.tiers import judge
from ...plurals import plural
from ..cases.case import Case
from ..cases.layouts import REPEATED
from ..cases.values import magnified
from ..record.result import Result
from .modes import in_overflow_mode
from .reference import Golden
from .ties import settled
from .trial import Trial


def compare(
    trial: Trial, reference: Golden, got: list[tuple[str, Any]], objections: list[str],
    need: Requirement | None = None,
) -> Result:  # fmt: skip
    """Judge every result; the worst one is the case's."""
    reference, got = settled(trial, reference, got)
    trial.outputs, trial.expected = [a for _, a in got], reference.values
    if len(got) != len(reference.native):
        reason = f"{plural(len(got), 'result')} where the reference has {len(reference.native)}"
        return trial.result("FAIL", reason=reason)
    if not got:
        return trial.result("PASS", tier="T0", required="T0", guards=tuple(objections))
    outcomes = [
        _compare_one(trial, need or trial.need, reference, i, *item) for i, item in enumerate(got)
    ]
    worst = min(outcomes, key=lambda r: (r.verdict == "PASS", -len(r.tier and "x"), r.verdict))
    if worst.verdict == "PASS":
        worst = max(outcomes, key=lambda r: _rank(r.tier))
    objections = [*objections, *(g for r in outcomes for g in r.guards)]
    if objections and worst.verdict == "PASS":
        return worst.with_(verdict="MISTRUSTED", guards=tuple(objections), reason=objections[0])
    return worst.with_(guards=tuple(objections))


def _rank(tier: str) -> int:
    return (*TIERS, "none", "").index(tier)


def _compare_one(
    trial: Trial, need: Requirement, reference: Golden, i: int, dtype: str, got: Array
) -> Result:
    native, expected = reference.native[i], reference.values[i]
    if i > 0 and dtype == "float32" and _keeps_whole(trial, name_of(native)):
        native = expected.astype(np.float32)
    if dtype == "complex32":
        return trial.result("SKIP", reason="numpy has no complex numbers of halves to judge by")
    if got.shape != native.shape or dtype != name_of(native):
        reason = (f"result {i}: {dtype}{list(got.shape)} where the reference has "
                  f"{name_of(native)}{list(native.shape)}")  # fmt: skip
        return trial.result("FAIL", reason=reason)
    if need.tier == "none":
        return _plausible(trial, got)
    if (factor := magnified(trial.case)) != 1:
        need = replace(need, accumulate=need.accumulate * factor)
    if trial.case.fill in ("special", "sweep") or _extreme(trial.case) or need.name == "chained":
        expected = agreed(got, expected, native, dtype)
    expected = in_overflow_mode(got, expected, dtype, trial.device)
    if rounds_to(got, expected, dtype):
        # Nothing is nearer than the reference rounded once: only guards of the inputs object.
        measured, material = Measure(int(got.size)), None
    else:
        material = errors(got, expected, dtype)
        measured = measure(got, expected, dtype, reference.scale[i], need.accumulator, material,
                           need.one_sign)  # fmt: skip
    verdict = judge(need, dtype, measured, material, native, expected)
    worst = measured.as_json()
    if measured.worst is not None and not verdict.passed:
        worst["worst"]["inputs"] = _inputs_at(trial, measured.worst.index, tuple(got.shape))
    objections = _objections(trial, need, got, expected, dtype, material)
    where = None
    if not verdict.passed:
        limit = need.ulp_of(dtype) if dtype in FORMATS and need.tier != "T0" else 0.0
        text = pattern(mask_of(got, expected, dtype, limit))
        where = {"wrong": text.wrong, "elements": text.elements, "text": text.text,
                 "blocks": text.blocks}  # fmt: skip
    return trial.result(
        "PASS" if verdict.passed else "FAIL",
        tier=verdict.headline, required=verdict.required, measure=worst,
        reason="" if verdict.passed else _why(verdict.failing(), measured),
        outcomes=tuple((t, o.rule, o.passed, o.numbers) for t, o in verdict.outcomes),
        guards=tuple(objections), pattern=where,
    )  # fmt: skip


def _keeps_whole(trial: Trial, native: str) -> bool:
    """Whether a device keeps statistics of halves in float32, where the cpu has halves: CANN's
    PyTorch adapter does (op-plugin, native_layer_norm)."""
    return (
        trial.device.startswith("npu")
        and native in ("bfloat16", "float16")
        and trial.subject.op is not None
        and trial.op.base_name == "native_layer_norm"
    )


def agreed(got: Array, expected: Array, native: Array, dtype: str) -> Array:
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
    trial: Trial, need: Requirement, got: Array, expected: Array, dtype: str, material: Any
) -> list[str]:
    if format_of(dtype) is None or need.name == "exact" or not _ordinary(trial.case):
        return []
    complaints = [] if material is None else [guards.lost(got, expected, dtype)]
    # Where sums cancel, a few are far off in ULP alone.
    if material is not None and need.tier == "T1" and not need.norm:
        complaints.append(guards.tail(material, need.ulp[0]))
    if _should_vary(trial):
        complaints += [guards.zeros(got, need.name), guards.constant(expected)]
    return [o for o in complaints if o]


# Fills of designed cases in which products or sums on the way may overflow where a result does not.
_EXTREME = frozenset(("special", "nan", "large", "infinite", "wide", "tiny", "hard"))


def _extreme(case: Case) -> bool:
    return case.designed and dict(case.factors).get("values") in _EXTREME


def _ordinary(case: Case) -> bool:
    """Whether inputs were drawn from a range, so that results differ and none is lost."""
    levels = dict(case.factors)
    return case.fill == "normal" and levels.get("values", "normal") == "normal"


def _should_vary(trial: Trial) -> bool:
    """Whether many different values are to be expected: floats that were drawn, none empty."""
    return (
        trial.case.form == "functional"
        and not trial.subject.sparse
        and not trial.case.designed  # the samples show that results vary
        and trial.case.layout not in REPEATED
        and not any(s.arg.layout in REPEATED for s in trial.recipe.slots)
        and trial.dtype in FORMATS
        and all(s.array.size for s in trial.recipe.slots)
    )


def _plausible(trial: Trial, got: Array) -> Result:
    if got.dtype.kind == "f" and not np.isfinite(got).all():
        return trial.result("FAIL", reason="drawn values are not finite")
    return trial.result("PASS", tier="none", required="none")


def _inputs_at(trial: Trial, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, str]:
    """The input elements that meet at an output's index, where shapes broadcast to it."""
    by_name = {}
    for position, slot in enumerate(trial.recipe.slots):
        try:
            value = np.broadcast_to(slot.array, shape)[index]
        except ValueError:
            continue
        by_name[f"input {position}"] = f"{text(value)} {bits(value)}".strip()
    return by_name
