"""One row per operator, in families."""

from . import create, matrix, move, nn, pointwise, reduce, view

__all__ = ["create", "matrix", "move", "nn", "pointwise", "reduce", "view"]
