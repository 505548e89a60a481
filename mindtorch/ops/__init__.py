"""What an op is: schemas, rules, and one row per op, by family."""

from . import (
    binary,
    comparison,
    copying,
    creation,
    gathering,
    grids,
    indexing,
    joining,
    linalg,
    ordering,
    nn,
    pointwise,
    products,
    random,
    reduction,
    statistics,
    ternary,
    unary,
    view,
)
from .spec import OPS, Op, aten

__all__ = ["OPS", "Op", "aten", "binary", "comparison", "copying", "creation", "gathering", "grids", "indexing", "joining", "linalg", "ordering", "nn",
           "pointwise", "products", "random", "reduction", "statistics", "ternary", "unary", "view"]  # fmt: skip
