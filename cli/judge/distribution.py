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

from .precision import Array

# One false alarm in 10^9 per test, about 10 tests per case: one in 10^5 runs of 1,000 cases.
ALARM: Final = 1e-9
_SIGMAS: Final = 6.2  # two-sided normal tail below ALARM
_ENOUGH: Final = 200


def objections(
    kind: str, params: Any, x: Array, again: Array, other: Array, later: Array,
    far: Array | None = None,
) -> list[str]:  # fmt: skip
    """What speaks against `x` being of distribution `kind` with `params`.

    Kinds are uniform, normal, integers, bernoulli, categories and permutation. `again` is the same
    seed, `other` another, `later` a later offset, `far` a seed that is another in its high half.
    """
    every = [np.asarray(d) for d in (x, again, other, later, x if far is None else far)]
    imaginary = sum(int((d.imag != 0).sum()) for d in every if np.iscomplexobj(d))
    if imaginary:
        return [f"{imaginary} draws have imaginary parts, which no distribution here has"]
    x, again, other, later, high = (d.real for d in every)
    first = np.asarray(x, np.float64).reshape(-1)
    complaints = (
        []
        if np.array_equal(np.asarray(again), np.asarray(x))
        else ["the same seed and offset give other numbers"]
    )
    # Draws of different chances correlate by those.
    chance = _chances(params if kind == "bernoulli" else 0.0, first)
    others = {"another seed": other, "a later offset": later}
    if far is not None:
        others["a seed with another high half"] = high
    for what, draws in others.items():
        second = np.asarray(draws, np.float64).reshape(-1)
        complaints += _independent(first - chance, second - chance, what, kind != "categories")
    if kind == "permutation":
        return complaints + _permutation(first)
    if kind == "bernoulli":
        return complaints + _bernoulli(first, chance)
    if kind == "categories":
        return complaints + _categories(np.asarray(x), *params)
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


def _support(kind: str, params: tuple[float, ...], x: Array) -> list[str]:
    if not np.isfinite(x).all():
        return [f"{int((~np.isfinite(x)).sum())} draws are not finite"]
    if kind == "normal" or not x.size:
        return []
    low, high = params
    outside = int(((x < low) | (x > high)).sum()) + int((x == high).sum() * (kind == "integers"))
    return [f"{outside} draws lie outside [{low:g}, {high:g})"] if outside else []


def _moments(kind: str, params: tuple[float, ...], x: Array) -> list[str]:
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


def _rounding(x: Array) -> float:
    """Half the largest gap that 16-bit numbers of this size have: they cannot show more."""
    values = np.unique(x)
    if values.size < 2 or values.size > 20000:
        return 0.0
    return float(np.diff(values).max()) / 2 if values.size < x.size / 4 else 0.0


def _shape(kind: str, params: tuple[float, ...], x: Array) -> list[str]:
    if kind == "integers":
        return _counts(params, x)
    ordered = np.sort(x)
    n = ordered.size
    below = _cumulative(kind, params, ordered)
    blur = _blur(ordered)
    steps = np.arange(n + 1) / n
    distance = float(max((steps[1:] - below).max(), (below - steps[:-1]).max())) - blur
    limit = sqrt(-log(ALARM / 2) / 2 / n)
    return [f"Kolmogorov distance {distance:.4g} > {limit:.4g} from the {kind} distribution"
            ] if distance > limit else []  # fmt: skip


def _blur(ordered: Array) -> float:
    """The largest probability of one value: rounded draws sit on steps of that height."""
    _, counts = np.unique(ordered, return_counts=True)
    return float(counts.max()) / ordered.size if counts.max() > 1 else 0.0


def _cumulative(kind: str, params: tuple[float, ...], x: Array) -> Array:
    if kind == "normal":
        scaled = (x - params[0]) / (params[1] * sqrt(2)) if params[1] else np.sign(x - params[0])
        return np.array([0.5 * (1 + erf(v)) for v in scaled])
    return np.clip((x - params[0]) / (params[1] - params[0]), 0, 1)


def _counts(params: tuple[float, ...], x: Array) -> list[str]:
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


def _lag(x: Array) -> list[str]:
    """Neighbours, halves, and what a generator that starts again would repeat."""
    half = x.size // 2
    faults = _correlated(x[:-1], x[1:], "neighbours") + _correlated(x[:half], x[-half:], "halves")
    steps = (1 << n for n in range(2, 20) if 1 << n <= half)
    return faults + [o for n in steps for o in _correlated(x[:-n], x[n:], f"numbers {n} apart")]


def _independent(first: Array, second: Array, what: str, alike: bool = True) -> list[str]:
    """`alike` draws have one distribution, so that independent ones do not correlate."""
    if first.size > 8 and np.array_equal(first, second) and np.unique(first).size > 2:
        return [f"{what} gives the same numbers"]
    enough = alike and first.size >= _ENOUGH
    return _correlated(first, second, f"draws of {what}") if enough else []


def _chances(p: Array | float, x: Array) -> Array:
    return np.full(x.shape, float(p)) if np.ndim(p) == 0 else np.asarray(p).reshape(x.shape)


def _correlated(a: Array, b: Array, what: str) -> list[str]:
    spread = float(a.std() * b.std())
    if not spread or a.size < _ENOUGH:
        return []
    r = float(((a - a.mean()) * (b - b.mean())).mean()) / spread
    limit = _SIGMAS / sqrt(a.size)
    return [f"{what} correlate by {r:.3g}, beyond ±{limit:.3g}"] if abs(r) > limit else []


def _bernoulli(x: Array, chance: Array) -> list[str]:
    """Zeros and ones; `chance` is that of a one for each draw."""
    others = int(((x != 0) & (x != 1)).sum())
    if others:
        return [f"{others} draws are neither 0 nor 1"]
    off, variance = x - chance, chance * (1 - chance)
    complaints = []
    # The sum, and the sum weighted by the chances: a draw of 1 - p may have the right mean.
    weights = {"ones": np.ones_like(chance), "ones by chance": chance - chance.mean()}
    for what, weight in weights.items():
        limit = _SIGMAS * sqrt(float((variance * weight**2).sum())) + 1e-9
        value = float((off * weight).sum())
        if x.size >= _ENOUGH and abs(value) > limit:
            complaints.append(f"{what} are {value:+.4g} off, beyond ±{limit:.4g}")
    return complaints + (_lag(off) if x.size >= _ENOUGH else [])


def _categories(x: Array, weights: Array, replacement: bool) -> list[str]:
    """Places drawn from rows of weights `[rows, n]`: `x` is `[rows, draws]`."""
    chance = np.atleast_2d(np.asarray(weights, np.float64))
    chance = chance / chance.sum(-1, keepdims=True)
    x = np.atleast_2d(x)
    if x.size and (x.min() < 0 or x.max() >= chance.shape[-1]):
        return ["draws lie outside of the weights"]
    if not replacement and (np.diff(np.sort(x, -1), axis=-1) == 0).any():
        return ["without replacement, draws of a row repeat"]
    # Without replacement only the first draw of a row has the weights' chances.
    counted = x if replacement else x[:, :1]
    if counted.size < _ENOUGH:
        return []
    complaints = []
    for place in range(chance.shape[-1]):
        p = chance[:, place : place + 1]
        limit = _SIGMAS * sqrt(float((p * (1 - p)).sum()) * counted.shape[1]) + 1
        off = float((counted == place).sum() - p.sum() * counted.shape[1])
        if abs(off) > limit:
            complaints.append(f"place {place} came {off:+.4g} times more, beyond ±{limit:.4g}")
    return complaints + _likely(counted, chance)


def _likely(counted: Array, chance: Array) -> list[str]:
    """The chances of what was drawn: their mean is the sum of squared chances of each row."""
    mean = np.square(chance).sum(-1)
    spread = float(((chance**3).sum(-1) - np.square(mean)).sum()) * counted.shape[1]
    off = float((np.take_along_axis(chance, counted, -1) - mean[:, None]).sum())
    limit = _SIGMAS * sqrt(max(spread, 0.0)) + 1e-9
    return [f"the chances of draws sum up to {off:+.4g} more, beyond ±{limit:.4g}"
            ] if abs(off) > limit else []  # fmt: skip


def _permutation(x: Array) -> list[str]:
    if not np.array_equal(np.sort(x), np.arange(x.size)):
        return ["not every index occurs once"]
    n = x.size
    if n < _ENOUGH:
        return []
    stay = int((x == np.arange(n)).sum())
    # The number of fixed points is Poisson(1) in the limit: more than 16 has probability 1e-15.
    complaints = [f"{stay} indices stay in place"] if stay > 16 else []
    return complaints + _correlated(x, np.arange(n, dtype=np.float64), "places and values")
