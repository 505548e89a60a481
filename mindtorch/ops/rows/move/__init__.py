"""Rows that copy, gather, scatter and join."""

from . import copies, copying, gathering, indexing, joining, scattering

__all__ = ["copies", "copying", "gathering", "indexing", "joining", "scattering"]
