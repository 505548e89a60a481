"""Owns torch._higher_order_ops: control flow as functions."""

import importlib

from . import control
from .associative_scan import associative_scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

# Modules of the functions' names come first: imported later they would take the functions' places.
for _name in ("cond", "map", "scan", "while_loop"):
    importlib.import_module(f"{__name__}.{_name}")

cond, map, scan = control.cond, control.map, control.scan
while_loop = control.while_loop
