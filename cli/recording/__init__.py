"""Owns reading recordings of `mindtorch-npu run --record`; writes and judges nothing."""

from __future__ import annotations

from .reader import Recording, open_recording as open
from .values import Array, Call, Captured, LaunchGroup, RecordedScalar, RecordedTensor, Unknown

__all__ = [
    "Array", "Call", "Captured", "LaunchGroup", "RecordedScalar", "RecordedTensor", "Recording",
    "Unknown", "open",
]  # fmt: skip
