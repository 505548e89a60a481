"""The npu backend, the only door to `aclnn_bindings`; importing it opens nothing."""

from .aclnn import symbols_ok
from .backend import backend
from .runtime import current_stream, device_count, is_available

__all__ = ["backend", "current_stream", "device_count", "is_available", "symbols_ok"]
