"""Owns whether numbers look drawn from a distribution, with stated rates of false alarms.

Every test refuses true draws with probability ALARM at most (the tests are of large samples; for
small ones the bound holds by Chebyshev's or Hoeffding's inequality only where said). Tests:
Kolmogorov and Smirnov's distance, mean and variance, neighbours' correlation, chi-squared of
counts, and that other seeds and offsets give other, uncorrelated numbers.
"""

from __future__ import annotations

from math import erf, exp, log, sqrt
from typing import Any, Final

import numpy as np

# One false alarm in 10^9 per test, about 10 tests per case: one in 10^5 runs of 1,000 cases.
ALARM: Final = 1e-9
_SIGMAS: Final = 6.2  # two-sided normal tail below ALARM
_ENOUGH: Final = 200


def objections(
    kind: str, params: tuple[float, ...], drawn: Any, again: Any, other: Any, later: Any
) -> list[str]:
    """What speaks against `drawn` being of distribution `kind` (uniform, normal, integers or
    permutation) with `params`; `again` is the same seed, `other` another, `later` a later offset.
    """
    first = np.asarray(drawn, np.float64).reshape(-1)
    complaints = (
        []
        if np.array_equal(np.asarray(again), np.asarray(drawn))
        else ["the same seed and offset give other numbers"]
    )
    complaints += _independent(first, other, "another seed") + _independent(
        first, later, "a later offset"
    )
    if kind == "permutation":
        return complaints + _permutation(first)
    complaints += _support(kind, params, first)
    if first.size < _ENOUGH:
        return complaints
    return complaints + _moments(kind, params, first) + _shape(kind, params, first) + _lag(first)


def expected(kind: str, params: tuple[float, ...]) -> tuple[float, float, float]:
    """(mean, variance, fourth central moment) of a distribution."""
    if kind == "normal":
        return params[0], params[1] ** 2, 3 * params[1] ** 4
    low, high = params
    if kind == "integers":
        n = high - low
        return (low + high - 1) / 2, (n * n - 1) / 12, (n * n - 1) * (3 * n * n - 7) / 240
    width = high - low
    return (low + high) / 2, width**2 / 12, width**4 / 80


def _support(kind: str, params: tuple[float, ...], x: Any) -> list[str]:
    if not np.isfinite(x).all():
        return [f"{int((~np.isfinite(x)).sum())} draws are not finite"]
    if kind == "normal" or not x.size:
        return []
    low, high = params
    outside = int(((x < low) | (x > high)).sum()) + int((x == high).sum() * (kind == "integers"))
    return [f"{outside} draws lie outside [{low:g}, {high:g})"] if outside else []


def _moments(kind: str, params: tuple[float, ...], x: Any) -> list[str]:
    mean, variance, fourth = expected(kind, params)
    n, complaints = x.size, []
    step = 0.0 if kind == "integers" else _rounding(x)
    off = abs(x.mean() - mean) - step
    if off > _SIGMAS * sqrt(variance / n):
        complaints.append(
            f"mean {x.mean():.6g}, expected {mean:.6g} ± {_SIGMAS * sqrt(variance / n):.3g}"
        )
    spread = float(np.square(x - mean).mean())
    error = _SIGMAS * sqrt(max(fourth - variance**2, 0.0) / n) + 2 * step * sqrt(variance) + step**2
    if abs(spread - variance) > error:
        complaints.append(f"variance {spread:.6g}, expected {variance:.6g} ± {error:.3g}")
    return complaints


def _rounding(x: Any) -> float:
    """Half the largest gap that 16-bit numbers of this size have: they cannot show more."""
    values = np.unique(x)
    if values.size < 2 or values.size > 20000:
        return 0.0
    return float(np.diff(values).max()) / 2 if values.size < x.size / 4 else 0.0


def _shape(kind: str, params: tuple[float, ...], x: Any) -> list[str]:
    if kind == "integers":
        return _counts(params, x)
    ordered = np.sort(x)
    n = ordered.size
    below = _cumulative(kind, params, ordered)
    blur = _blur(kind, params, ordered)
    steps = np.arange(n + 1) / n
    distance = float(max((steps[1:] - below).max(), (below - steps[:-1]).max())) - blur
    limit = sqrt(-log(ALARM / 2) / 2 / n)
    return [f"Kolmogorov distance {distance:.4g} > {limit:.4g} from the {kind} distribution"
            ] if distance > limit else []  # fmt: skip


def _blur(kind: str, params: tuple[float, ...], ordered: Any) -> float:
    """The largest probability of one value: rounded draws sit on steps of that height."""
    _, counts = np.unique(ordered, return_counts=True)
    return float(counts.max()) / ordered.size if counts.max() > 1 else 0.0


def _cumulative(kind: str, params: tuple[float, ...], x: Any) -> Any:
    if kind == "normal":
        scaled = (x - params[0]) / (params[1] * sqrt(2)) if params[1] else np.sign(x - params[0])
        return np.array([0.5 * (1 + erf(v)) for v in scaled])
    return np.clip((x - params[0]) / (params[1] - params[0]), 0, 1)


def _counts(params: tuple[float, ...], x: Any) -> list[str]:
    """Chi-squared of equal shares in at most 16 bins; the tail by Chernoff's bound."""
    low, high = params
    bins = int(min(high - low, 16))
    edges = np.floor(np.linspace(low, high, bins + 1))
    counts, _ = np.histogram(x, edges)
    shares = np.diff(edges) / (high - low) * x.size
    value, free = float((np.square(counts - shares) / shares).sum()), bins - 1
    if free and value > free and exp(-(value - free - free * log(value / free)) / 2) < ALARM:
        return [f"chi-squared {value:.4g} of {free} degrees of freedom"]
    return []


def _lag(x: Any) -> list[str]:
    half = x.size // 2
    return _correlated(x[:-1], x[1:], "neighbours") + _correlated(x[:half], x[-half:], "halves")


def _independent(first: Any, other: Any, what: str) -> list[str]:
    second = np.asarray(other, np.float64).reshape(-1)
    if first.size > 8 and np.array_equal(first, second) and np.unique(first).size > 1:
        return [f"{what} gives the same numbers"]
    return _correlated(first, second, f"draws of {what}") if first.size >= _ENOUGH else []


def _correlated(a: Any, b: Any, what: str) -> list[str]:
    spread = float(a.std() * b.std())
    if not spread or a.size < _ENOUGH:
        return []
    r = float(((a - a.mean()) * (b - b.mean())).mean()) / spread
    limit = _SIGMAS / sqrt(a.size)
    return [f"{what} correlate by {r:.3g}, beyond ±{limit:.3g}"] if abs(r) > limit else []


def _permutation(x: Any) -> list[str]:
    if not np.array_equal(np.sort(x), np.arange(x.size)):
        return ["not every index occurs once"]
    n = x.size
    if n < _ENOUGH:
        return []
    stay = int((x == np.arange(n)).sum())
    # The number of fixed points is Poisson(1) in the limit: more than 16 has probability 1e-15.
    complaints = [f"{stay} indices stay in place"] if stay > 16 else []
    return complaints + _correlated(x, np.arange(n, dtype=np.float64), "places and values")
