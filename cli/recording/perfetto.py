"""Writes a recording as a trace that Perfetto and chrome://tracing open; streams, holds no calls.

Format: Trace Event Format, complete events ("ph": "X"), times in microseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aclnn_bindings.interface import whole

from .reader import Recording
from .values import Call, RecordedTensor


def write(recording: Recording, path: Path) -> int:
    """Write the trace; the number of calls in it."""
    start = recording.header["monotonic_ns"]
    count = 0
    with whole.writing(path) as file:
        file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
        for call in recording.calls():
            if call.finished:
                file.write(b",\n" if count else b"")
                file.write(json.dumps(_event(call, start)).encode())
                count += 1
        file.write(b"\n]}\n")
    return count


def _event(call: Call, start: int) -> dict[str, Any]:
    kind = {1: "phase 1", 2: "launch"}.get(call.phase, "runtime")
    return {
        "name": call.name, "cat": kind, "ph": "X", "pid": call.process, "tid": call.thread,
        "ts": (call.start - start) / 1000, "dur": call.duration / 1000,
        "args": {"call": call.number, "status": call.status, **_on_device(call),
                 **_texts(call.arguments)},
    }  # fmt: skip


def _on_device(call: Call) -> dict[str, float]:
    return {} if call.device_ns is None else {"device_us": call.device_ns / 1000}


def _texts(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in arguments.items() if value is not None}


def _text(value: Any) -> Any:
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, tuple):
        return " ".join(str(v) for v in value[:8]) + (" …" if len(value) > 8 else "")
    return str(value) if isinstance(value, RecordedTensor) else repr(value)
