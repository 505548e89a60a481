"""Owns how far a result may be from the reference, by op class and dtype, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from .._dtype import bfloat16, complex64, complex128, dtype, float16, float32, float64


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|got - expected| <= absolute + relative * |expected|."""

    relative: float
    absolute: float
    reason: str


EXACT = Tolerance(0.0, 0.0, "moves, compares or counts: no rounding happens")

# Units in the last place of each type, as relative steps.
_STEP = {
    float16: 2.0**-10,
    bfloat16: 2.0**-7,
    float32: 2.0**-23,
    float64: 2.0**-52,
    complex64: 2.0**-23,
    complex128: 2.0**-52,
}

# class -> (steps allowed, absolute floor in steps, why)
CLASSES = {
    "exact": (0.0, 0.0, "moves, compares or counts: no rounding happens"),
    "rounded": (1.0, 1.0, "one correctly rounded operation; fused multiply-add may differ by one"),
    "elementary": (16.0, 4.0, "elementary functions of two libraries differ by a few steps"),
    "accumulated": (64.0, 64.0, "sums of many terms in another order"),
    "composite": (256.0, 256.0, "several rounded steps one after another"),
    "random": (float("inf"), float("inf"), "values are drawn; laws look at their distribution"),
}


def tolerance(kind: str, d: dtype) -> Tolerance:
    """The tolerance of class `kind` for results of dtype `d`; KeyError for an unknown class."""
    steps, floor, reason = CLASSES[kind]
    step = _STEP.get(d)
    if step is None or steps == 0.0:
        return EXACT if kind != "random" else Tolerance(steps, floor, reason)
    return Tolerance(steps * step, floor * step, reason)
