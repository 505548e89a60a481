"""What an op is: schemas, rules, and one row per op, by family."""

from . import rows
from .spec import OPS, Op, aten

__all__ = ["OPS", "Op", "aten", "rows"]
