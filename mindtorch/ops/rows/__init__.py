"""One row per operator, in families."""

import gc

_collecting = gc.isenabled()
gc.disable()  # what is made here stays, and would be walked again and again
try:
    from . import create, fft, foreach, matrix, move, nn, pointwise, reduce, special, view
finally:
    if _collecting:
        gc.enable()

__all__ = [
    "create", "fft", "foreach", "matrix", "move", "nn", "pointwise", "reduce", "special",
    "view",
]  # fmt: skip
