"""Owns how far two right results may be from each other, by class and dtype: for laws that compare
libraries, devices and orders of summing, where no reference of higher precision is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .classes import class_named
from .precision import format_of


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|got - expected| <= absolute + relative * |expected|."""

    relative: float
    absolute: float
    reason: str


def tolerance(name: str, dtype: str) -> Tolerance:
    """The tolerance of class `name` for results of `dtype`; KeyError for an unknown class.

    Integers and bools are equal or wrong; random results only have a shape.
    """
    rule = class_named(name)
    relative, floor = rule.steps
    form = format_of(dtype)
    if relative == inf or relative == 0.0:
        return Tolerance(relative, floor, rule.reason)
    if form is None:
        return Tolerance(0.0, 0.0, "integers and bools are not rounded")
    return Tolerance(relative * 2 * form.unit, floor * 2 * form.unit, rule.reason)
