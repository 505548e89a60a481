"""Owns which install of CANN the device `npu` means; opens nothing at import."""

from .._backends.npu.runtime import cann, current_stream, device, use

__all__ = ["cann", "current_stream", "device", "use"]
