"""The name under which older code imports the npu backend; owns nothing."""

from .npu import (
    backend,
    current_stream,
    device_count,
    is_available,
    symbols_ok,
)

__all__ = ["backend", "current_stream", "device_count", "is_available", "symbols_ok"]
