"""One row per operator, in families."""

from . import create, fft, foreach, matrix, move, nn, pointwise, reduce, special, view

__all__ = [
    "create", "fft", "foreach", "matrix", "move", "nn", "pointwise", "reduce", "special",
    "view",
]  # fmt: skip
