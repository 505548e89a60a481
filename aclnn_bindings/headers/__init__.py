"""Owns the reading of C headers into `Declarations`; refuses to load or call anything."""

from .cache import load
from .tree import find_headers, parse_text, parse_tree

__all__ = ["find_headers", "load", "parse_text", "parse_tree"]
