"""Owns the line search for a point that meets the strong Wolfe conditions, by bracketing and zoom.

Source: Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6; cubic steps of section
3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor.tensor import Tensor

Length = float | Tensor


class _Point(NamedTuple):
    t: Length
    loss: float
    grad: Any
    slope: Tensor


def _cubic(a: _Point, b: _Point, low: Length, high: Length) -> Length:
    """The minimum of the cubic through two points and slopes, held to [low, high].

    Slopes are 0-d tensors, and the arithmetic is that of their dtype.
    """
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    place = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(place, low), high)


def _lower(bracket: list[_Point]) -> int:
    """The index of the point of least loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def strong_wolfe(
    at: Callable[[Length], tuple[float, Any]],
    length: Length,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: Tensor,
    tolerance: float,
    limit: int = 25,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> tuple[float, Any, Length, int]:
    """Gives (loss, gradient, length, evaluations) at a length that
    decreases enough and is flat enough, or the best after `limit` trials."""
    norm = direction.abs().max()
    used = 0

    def probe(t: Length) -> _Point:
        nonlocal used
        used += 1
        value, gradient = at(t)
        return _Point(t, value, gradient.clone(), gradient.dot(direction))

    def too_high(p: _Point) -> bool:
        return bool(p.loss > loss + c1 * p.t * slope)

    def flat(p: _Point) -> bool:
        return bool(abs(p.slope) <= -c2 * slope)

    start = before = _Point(0.0, loss, grad.clone(), slope)
    now, trials = probe(length), 0
    bracket: list[_Point] = []
    while trials < limit and not bracket:
        if too_high(now) or (trials > 1 and now.loss >= before.loss):
            bracket = [before, now]
        elif flat(now):
            return now.loss, now.grad, now.t, used
        elif now.slope >= 0:
            bracket = [before, now]
        else:
            low = now.t + 0.01 * (now.t - before.t)
            before, now = now, probe(_cubic(before, now, low, now.t * 10))
            trials += 1
    bracket = bracket or [start, now]
    best = _lower(bracket)
    stuck = False
    while trials < limit and not abs(bracket[1].t - bracket[0].t) * norm < tolerance:
        ends: tuple[Any, Any] = (bracket[0].t, bracket[1].t)
        left, right = min(ends), max(ends)
        t = _cubic(bracket[0], bracket[1], left, right)
        edge = 0.1 * (right - left)
        near = bool(right - t < edge or t - left < edge)
        if near and (stuck or t >= right or t <= left):
            t = right - edge if abs(t - right) < abs(t - left) else left + edge
            near = False
        stuck = near  # too near an end: twice in a row is moved inward
        new = probe(t)
        trials += 1
        if too_high(new) or new.loss >= bracket[best].loss:
            bracket[1 - best] = new
            best = _lower(bracket)
            continue
        done = flat(new)
        if not done and new.slope * (bracket[1 - best].t - bracket[best].t) >= 0:
            bracket[1 - best] = bracket[best]
        bracket[best] = new
        if done:
            break
    point = bracket[best]
    return point.loss, point.grad, point.t, used
