"""Rows that reduce, order or select along dims."""

from . import counting, distances, ordering, robust, spread, statistics, sums

__all__ = ["counting", "distances", "ordering", "robust", "spread", "statistics", "sums"]
