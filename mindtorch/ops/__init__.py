"""What an op is: schemas, rules, and one row per op, by family."""

from . import copying, creation, indexing, linalg, pointwise, reduction, view
from .spec import OPS, Op, aten

__all__ = ["OPS", "Op", "aten", "copying", "creation", "indexing", "linalg", "pointwise",
           "reduction", "view"]  # fmt: skip
