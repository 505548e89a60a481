"""Owns facts that headers do not state, each with its reason and source; refuses guesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .signature import Direction

# Operator → parameter → direction, where types, names and comments lead to another one.
DIRECTIONS: Final[Mapping[str, Mapping[str, Direction]]] = {}
