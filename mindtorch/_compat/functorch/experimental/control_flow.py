"""functorch.experimental.control_flow: torch.cond and map by an older module."""

from importlib import import_module

_CONTROL = import_module("mindtorch._higher_order_ops.control")
cond, map = _CONTROL.cond, _CONTROL.map

__all__ = ["cond", "map"]
