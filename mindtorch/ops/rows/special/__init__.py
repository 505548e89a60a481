"""Rows of torch.special: functions of statistics, Bessel functions, orthogonal polynomials."""

from . import bessel, functions, gamma, polynomials

__all__ = ["bessel", "functions", "gamma", "polynomials"]
