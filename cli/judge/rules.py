"""Owns published acceptance rules as data with name, version and numbers; refuses to choose one.

Sources stand with each rule. None of them is trusted alone: several pass an all-zero softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .metrics import Errors
from .precision import spacing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rule says of one result; `numbers` shows measured values beside the limits."""

    rule: str
    passed: bool
    numbers: str


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """A published rule: `judge(errors)` gives whether it holds, and the numbers."""

    name: str
    version: str
    source: str
    judge: Callable[[Errors], tuple[bool, str]]

    def __call__(self, deviations: Errors) -> Outcome:
        passed, numbers = self.judge(deviations)
        return Outcome(
            f"{self.name} ({self.version})", passed and not deviations.nonfinite, numbers
        )


# dtype -> (rtol, atol): torch.testing.assert_close, torch 2.13.
TORCH: Final = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}
# dtype -> T of the ecosystem rule before 2026: mean relative error < T, largest < 10 T.
THRESHOLD: Final = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-13,
    "float64": 2.0**-13,
}
# dtype -> (rtol, atol, limit) of the mixed rule.
MIXED: Final = {
    "float16": (2.0**-9, 2.0**-9, 1e-1),
    "bfloat16": (2.0**-6, 2.0**-6, 1.0),
    "float32": (2.0**-10, 2.0**-16, 1e-2),
    "float64": (2.0**-10, 2.0**-16, 1e-2),
}
# dtype -> relative error that may be exceeded by as large a share of the elements; for bfloat16 the
# number of an operator contest, since a correctly rounded result already errs by 2e-3.
SHARE: Final = {"float16": 1e-3, "bfloat16": 4e-3, "float32": 1e-4, "float64": 1e-4}


def _torch(deviations: Errors) -> tuple[bool, str]:
    relative, absolute = TORCH[deviations.form.name]
    with np.errstate(all="ignore"):
        beyond = deviations.absolute > absolute + relative * np.abs(deviations.golden)
    count = int(beyond.sum())
    return not count, f"{count} of {beyond.size} beyond rtol {relative:g}, atol {absolute:g}"


def _relative(deviations: Errors) -> Any:
    with np.errstate(all="ignore"):
        relative = deviations.absolute / (np.abs(deviations.golden) + 1e-7)
    return np.where(np.isfinite(relative), relative, 0.0)


def _means(deviations: Errors) -> tuple[bool, str]:
    limit = THRESHOLD[deviations.form.name]
    relative = _relative(deviations)
    mean, largest = float(relative.mean()), float(relative.max())
    passed = mean < limit and largest < 10 * limit
    return passed, (f"MERE {mean:.3g}, limit {limit:.3g}; MARE {largest:.3g}, "
                    f"limit {10 * limit:.3g}")  # fmt: skip


def _mixed(deviations: Errors) -> tuple[bool, str]:
    relative, absolute, limit = MIXED[deviations.form.name]
    with np.errstate(all="ignore"):
        close = deviations.absolute <= absolute + relative * np.abs(deviations.golden)
        step = 32 * spacing(
            np.where(np.isfinite(deviations.golden), deviations.golden, 0.0), deviations.form
        )
    share = float(close.mean())
    bounded = bool(((deviations.absolute <= limit) | (deviations.absolute <= step)).all())
    largest = float(deviations.absolute.max())
    text = f"{share:.2%} close, at least 99%; max |e| {largest:.3g}, limit {limit:g} or 32 ULP"
    return share >= 0.99 and bounded, text


def _share(deviations: Errors) -> tuple[bool, str]:
    limit = SHARE[deviations.form.name]
    share = float((_relative(deviations) > limit).mean())
    return share <= limit, f"{share:.3%} with relative error > {limit:g}, limit {limit:.2%}"


def _cosine(deviations: Errors) -> tuple[bool, str]:
    a, b = deviations.got, deviations.golden
    with np.errstate(all="ignore"):
        length = np.sqrt(np.square(a).sum()) * np.sqrt(np.square(b).sum())
        cosine = float((a * b).sum() / length) if length else float(not b.any())
    return cosine >= 0.99, f"cosine {cosine:.5f}, at least 0.99"


ASSERT_CLOSE: Final = PublishedRule("torch.testing.assert_close defaults", "torch 2.13",
                           "torch.testing document", _torch)  # fmt: skip
MEANS: Final = PublishedRule("ecosystem MERE/MARE", "before 2026-07",
                    "ops_precision_standard, English text", _means)  # fmt: skip
MIXED_RULE: Final = PublishedRule("ecosystem mixed", "2026-07-22",
                         "experimental_standard, Chinese text", _mixed)  # fmt: skip
SHARE_RULE: Final = PublishedRule("share of relative errors", "Ascend C API documents",
                         "two per thousand, two per ten thousand", _share)  # fmt: skip
COSINE: Final = PublishedRule(
    "cosine similarity", "ops-test-kit", "Precision_Comparison document", _cosine
)

# Shown as numbers by `check explain` and in reports; no verdict rests on them.
NUMBERS_ONLY: Final = (SHARE_RULE, COSINE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest ratios of our errors to those of the same precision on the CPU."""

    level: str
    largest: float
    mean: float
    root: float


# COMMERCIAL_OPS_PRECISION document, levels L0 to L2.
COMPETITOR: Final = (
    Limits("L2", 2.0, 1.2, 1.2),
    Limits("L1", 5.0, 1.5, 1.5),
    Limits("L0", 10.0, 2.0, 2.0),
)


def against_competitor(deviations: Errors, other: Errors) -> Outcome:
    """The double benchmark: our errors over those of the CPU in the same precision.

    A competitor without error counts as one that errs by half a unit of rounding.
    """
    ours, theirs, floor = _relative(deviations), _relative(other), deviations.form.unit / 2
    ratios = (
        float(ours.max()) / max(float(theirs.max()), floor),
        float(ours.mean()) / max(float(theirs.mean()), floor),
        float(np.sqrt(np.square(deviations.absolute).mean()))
        / max(float(np.sqrt(np.square(other.absolute).mean())), floor * _level(deviations)),
    )
    numbers = f"MARE ×{ratios[0]:.3g}, MERE ×{ratios[1]:.3g}, RMSE ×{ratios[2]:.3g}"
    for limits in COMPETITOR:
        if all(r <= m for r, m in zip(ratios, (limits.largest, limits.mean, limits.root),
                                      strict=True)):  # fmt: skip
            rule = f"competitor ratio {limits.level} (commercial standard)"
            return Outcome(rule, not deviations.nonfinite, numbers)
    return Outcome("competitor ratio L0 (commercial standard)", False, numbers)


def _level(deviations: Errors) -> float:
    golden = np.where(np.isfinite(deviations.golden), deviations.golden, 0.0)
    return max(float(np.sqrt(np.square(golden).mean())), 1e-30)
