"""Owns torch._higher_order_ops: control flow as functions."""

from .associative_scan import associative_scan
from .control import cond, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
