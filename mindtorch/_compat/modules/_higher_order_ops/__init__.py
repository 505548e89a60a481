"""Owns torch._higher_order_ops: control flow as functions, run eagerly."""

from .associative_scan import associative_scan
from .control import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
