"""Owns the line search for a point that meets the strong Wolfe conditions, by bracketing and zoom.

Source: Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6; cubic steps of section
3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor.tensor import Tensor


class _Point(NamedTuple):
    t: float
    loss: float
    grad: Any
    slope: float


def _cubic(a: _Point, b: _Point, low: float, high: float) -> float:
    """The minimum of the cubic through two points and slopes, held to [low, high]."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    place = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(place, low), high)


def strong_wolfe(
    at: Callable[[float], tuple[float, Any]],
    length: float,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: float,
    tolerance: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    limit: int = 25,
) -> tuple[float, Any, float, int]:
    """Gives (loss, gradient, length, evaluations) at a length that
    decreases enough and is flat enough."""
    norm = float(direction.abs().max())
    start = _Point(0.0, loss, grad.clone(), slope)
    used = 0

    def probe(t: float) -> _Point:
        nonlocal used
        used += 1
        value, gradient = at(t)
        gradient = gradient.clone()
        return _Point(t, value, gradient, float(gradient.dot(direction)))

    def too_high(p: _Point) -> bool:
        return p.loss > loss + c1 * p.t * slope

    def flat(p: _Point) -> bool:
        return abs(p.slope) <= -c2 * slope

    before, now = start, probe(length)
    bracket = None
    for i in range(limit):
        if too_high(now) or (i > 0 and now.loss >= before.loss):
            bracket = (before, now)
            break
        if flat(now):
            return now.loss, now.grad, now.t, used
        if now.slope >= 0:
            bracket = (before, now)
            break
        low = now.t + 0.01 * (now.t - before.t)
        high = now.t * 10
        before, now = now, probe(_cubic(before, now, low, high))
    if bracket is None:
        bracket = (start, now)
    low_point, high_point = sorted(bracket, key=lambda p: p.loss)
    stuck = False
    while used < limit and abs(high_point.t - low_point.t) * norm >= tolerance:
        left, right = sorted((low_point.t, high_point.t))
        t = _cubic(low_point, high_point, left, right)
        edge = 0.1 * (right - left)
        if min(right - t, t - left) < edge:  # too near an end: twice in a row is moved inward
            if stuck or t >= right or t <= left:
                t = right - edge if abs(t - right) < abs(t - left) else left + edge
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = probe(t)
        if too_high(new) or new.loss >= low_point.loss:
            high_point = new
            if high_point.loss < low_point.loss:
                low_point, high_point = high_point, low_point
            continue
        if flat(new):
            return new.loss, new.grad, new.t, used
        if new.slope * (high_point.t - low_point.t) >= 0:
            high_point = low_point
        low_point = new
    return low_point.loss, low_point.grad, low_point.t, used
