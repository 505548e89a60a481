"""Rows that make tensors from numbers, random ones too."""

from . import creation, grids, random, windows

__all__ = ["creation", "grids", "random", "windows"]
