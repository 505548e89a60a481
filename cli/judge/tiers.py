"""Owns the judgement of one result: which tiers it passes, and whether that is enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import rules
from .classes import Requirement
from .metrics import Errors, Measure, errors
from .precision import Array, format_of
from .rules import Outcome

# A golden value in float64 of a float64 function is itself rounded: one more unit is its own.
_SLACK = 1e-3
# Sums in float64 have nothing wider that joins their parts: errors grow with the root of their
# length. A term that is wrong by itself is off by far more of such small units.
_ALONE = 16.0
# The largest of n errors lies root(2 ln n) deviations out: more than these from 3,000 on.
_DEVIATIONS = 4.0
# Different results below which a mean error is chance.
_TELLING = 64


@dataclass(frozen=True, slots=True)
class TierJudgement:
    """`headline` is the strictest tier that holds ("" for none); `outcomes` one row per tier."""

    passed: bool
    headline: str
    required: str
    outcomes: tuple[tuple[str, Outcome], ...]

    def failing(self) -> str:
        """The rule that was required and did not hold, with its numbers."""
        tiers = self.required.split("|")
        return "; ".join(f"{o.rule}: {o.numbers}" for t, o in self.outcomes if t in tiers)


def judge(
    need: Requirement,
    dtype: str,
    measure: Measure,
    deviations: Errors | None,
    other: Array | None = None,
    golden: Array | None = None,
) -> TierJudgement:
    """Judge a result of `dtype`; `other` is the CPU's result in the same precision, for T4."""
    differing = f"{measure.different} of {measure.elements} elements differ"
    if measure.signs:
        differing += f", zeros of the other sign: {measure.signs}"
    equal = not measure.different and not measure.nonfinite
    equal = equal and not (measure.signs and need.signed_zero)
    exact = Outcome("bit for bit", equal, differing)
    if deviations is None or equal or not measure.elements:
        # Integers, bool and equal results: nothing but equality counts, and T0 is the headline.
        headline = "T0" if equal else ""
        required = "T0" if format_of(dtype) is None else need.tier
        return TierJudgement(equal, headline, required, (("T0", exact),))
    tiers = [("T0", exact), ("T1", _unbiased(_ulp(need, deviations, measure), deviations, measure))]
    if measure.ratio is not None:
        tiers.append(("ratio", _ratio(need, deviations, measure)))
    if need.norm:
        tiers.append(("norm", _norm(need, deviations)))
    target = _available(need, measure)
    if not any(o.passed and t in target for t, o in tiers):
        # A result that meets its rule is not measured against weaker ones.
        tiers.append(("T2", rules.ASSERT_CLOSE(deviations)))
        tiers.append(("T3", _both(deviations)))
    if not any(o.passed for _, o in tiers) and other is not None and golden is not None:
        rival = errors(other, golden, dtype)
        if rival is not None:
            tiers.append(("T4", rules.against_competitor(deviations, rival)))
    kept_tiers = [name for name, outcome in tiers if outcome.passed]
    order = [name for name, _ in tiers]
    reached = [t for t in target if t in order]
    passed = any(order.index(h) <= order.index(t) for h in kept_tiers for t in reached if h == t or
                 _stricter(h, t))  # fmt: skip
    if need.signed_zero and measure.signs:
        return TierJudgement(False, kept_tiers[0] if kept_tiers else "", "T0", tuple(tiers))
    return TierJudgement(
        passed, kept_tiers[0] if kept_tiers else "", "|".join(target), tuple(tiers)
    )


def _available(need: Requirement, measure: Measure) -> tuple[str, ...]:
    """The required tiers; T2 stands in for a ratio whose scale could not be computed."""
    return tuple("T2" if t == "ratio" and measure.ratio is None else t for t in need.tiers)


def _stricter(tier: str, than: str) -> bool:
    """Whether holding `tier` implies `than` in a judgement: T0 implies all, T1 implies T2…"""
    if tier == "T0":
        return True
    order = {"T1": 1, "ratio": 1, "norm": 2, "T2": 2, "T3": 3, "T4": 4}
    return order[tier] < order.get(than, 9)


def _ulp(need: Requirement, deviations: Errors, measure: Measure) -> Outcome:
    limit = need.ulp_of(deviations.form.name)
    return _bounded("ULP bound", measure.max_ulp, limit, _SLACK, "ULP", deviations)


def _unbiased(outcome: Outcome, deviations: Errors, measure: Measure) -> Outcome:
    """Errors below 1 ULP that all point one way are no rounding to nearest (16-bit results)."""
    limit = bias_limit(measure.leaning)
    if deviations.form.digits > 11 or abs(measure.lean) <= limit or not outcome.passed:
        return outcome
    way = "away from zero" if measure.lean > 0 else "towards zero"
    numbers = f"mean error {measure.lean:+.3g} ULP {way}, |mean| > {limit:.3g}; {outcome.numbers}"
    return Outcome("signed bias", False, numbers)


def bias_limit(count: int) -> float:
    """Largest |mean signed error| in ULP of `count` results rounded to nearest.

    One rounding errs uniformly within ±1/2, a standard deviation of 0.29; seven of those of the
    mean leave one false alarm in 10^11. 0.15 stays for functions with an error of their own; few
    results say nothing.
    """
    return math.inf if count < _TELLING else 0.15 + 7 * 0.289 / math.sqrt(max(count, 1))


def _ratio(need: Requirement, deviations: Errors, measure: Measure) -> Outcome:
    ratio = measure.ratio or 0.0
    limit = need.ratio * (_ALONE if deviations.form.digits == 53 else 1.0)
    limit *= max(1.0, math.sqrt(2 * math.log(max(deviations.absolute.size, 1))) / _DEVIATIONS)
    return _bounded("componentwise ratio", ratio, limit, 0.0, "", deviations)


def _norm(need: Requirement, deviations: Errors) -> Outcome:
    largest = float(np.abs(np.where(np.isfinite(deviations.golden), deviations.golden, 0.0)).max())
    error = float(np.where(np.isfinite(deviations.absolute), deviations.absolute, 0.0).max())
    value = (
        error / max(deviations.form.unit * largest, 5e-324)
        if largest
        else float(error > 0) * np.inf
    )
    inner = min(deviations.form.unit, 2.0**-24) / deviations.form.unit
    limit = need.norm + need.accumulate * inner
    return _bounded("error against the largest element", value, limit, 0.0, "u", deviations)


def _bounded(
    rule: str, value: float, limit: float, slack: float, unit: str, deviations: Errors
) -> Outcome:
    if deviations.nonfinite:
        return Outcome(rule, False, f"{deviations.nonfinite} NaN or Inf out of place")
    passed = value <= limit + slack
    numbers = f"{value:.3g} {'≤' if passed else '>'} {limit:g} {unit}".strip()
    return Outcome(rule, passed, numbers)


def _both(deviations: Errors) -> Outcome:
    old, new = rules.MEANS(deviations), rules.MIXED_RULE(deviations)
    return Outcome(f"{old.rule} and {new.rule}", old.passed and new.passed,
                   f"{old.numbers}; {new.numbers}")  # fmt: skip
