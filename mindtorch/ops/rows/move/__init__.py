"""Rows that copy, gather, scatter and join."""

from . import copying, gathering, indexing, joining

__all__ = ["copying", "gathering", "indexing", "joining"]
