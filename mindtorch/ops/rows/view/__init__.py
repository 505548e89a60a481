"""Rows whose result shares memory with an operand."""

from . import broadcast, regions, shape, splitting

__all__ = ["broadcast", "regions", "shape", "splitting"]
