"""One row per operator, in families."""

from . import create, fft, foreach, masked, matrix, move, nn, pointwise, reduce, special, view

__all__ = [
    "create", "fft", "foreach", "masked", "matrix", "move", "nn", "pointwise", "reduce", "special",
    "view",
]  # fmt: skip
