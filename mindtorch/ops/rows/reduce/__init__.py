"""Rows that reduce, order or select along dims."""

from . import counting, ordering, spread, statistics, sums

__all__ = ["counting", "ordering", "spread", "statistics", "sums"]
