"""Owns whether this thread records the rows of a composite; what a replay would miss says so."""

from __future__ import annotations

import threading
from typing import Any


class CurrentRecorder(threading.local):
    """The recorder of this thread, None where nothing is recorded."""

    recorder: Any = None


RECORDING = CurrentRecorder()


class Unrepeatable(BaseException):
    """No program for this call; no `except Exception` of a body may take it."""


def unrepeatable() -> None:
    """End a recording before values are read, numbers drawn, or a warning is given."""
    if RECORDING.recorder is not None:
        raise Unrepeatable
