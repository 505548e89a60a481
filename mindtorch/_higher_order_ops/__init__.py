"""Owns torch._higher_order_ops: control flow as functions, run eagerly."""

from .associative_scan import associative_scan

__all__ = ["associative_scan"]
