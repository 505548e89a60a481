"""Rows of elementwise operators."""

from . import arithmetic, binary, comparison, complex, logit, signs, ternary, unary

__all__ = ["arithmetic", "binary", "comparison", "complex", "logit", "signs", "ternary", "unary"]
