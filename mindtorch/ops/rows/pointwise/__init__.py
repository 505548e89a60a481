"""Rows of elementwise operators."""

from . import arithmetic, binary, comparison, complex, signs, ternary, unary

__all__ = ["arithmetic", "binary", "comparison", "complex", "signs", "ternary", "unary"]
