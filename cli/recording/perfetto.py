"""Writes a recording as a trace that ui.perfetto.dev opens; streams, holds no calls.

Each process has tracks for its threads, for the device's streams and for the device memory that it
holds. Arrows lead from phase 1 to the launch and to the kernel. Times are those of the recording's
clock, in ns. Of a kernel only its duration is known: it is drawn as early as its launch and the
end of the kernel before it on the stream allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from aclnn_bindings.interface import atomic_write

from .reader import Recording
from .values import Array, Call, NotAskableError, RecordedScalar, RecordedTensor, number

_MISSING: Final = "--perfetto needs the package perfetto: pip install 'mindtorch-npu[trace]'"
# Elements of an array of numbers that are shown.
_MOST: Final = 8


def write(recording: Recording, path: Path) -> int:
    """Write the trace; the number of calls in it. UsageError where perfetto is not installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError:
        raise click.UsageError(_MISSING) from None
    with atomic_write.writing(path) as file:
        trace = _Trace(StreamingTraceProtoBuilder(file), protos, recording.header)
        return sum(trace.add(call) for call in recording.calls() if call.finished)


class _Trace:
    """Packets of one trace: a track is described before its first event."""

    def __init__(self, builder: Any, protos: Any, header: Mapping[str, Any]) -> None:
        self.builder = builder
        self.event = protos.TrackEvent
        self.command = " ".join(header["command"])
        self.tracks: dict[tuple[object, ...], int] = {}
        self.free_at: dict[int, int] = {}  # by the track of a stream
        self.blocks: dict[tuple[int, int], int] = {}  # bytes by process and address
        self.usage: dict[int, int] = {}  # bytes by process

    def add(self, call: Call) -> int:
        """Write one call, what it does on the device, and what it changes of memory."""
        kind = {1: "phase 1", 2: "launch"}.get(call.phase, "runtime")
        flow = call.arguments.get("preparedBy") if call.phase == 2 else None
        if call.phase == 1:
            flow = call.number
        packet = self._begin(self._thread(call), call.start, call.name, kind, flow)
        self._annotate(packet.track_event, call)
        self.builder.write_packet(packet)
        self._end(self._thread(call), call.start + call.duration)
        if call.device_ns is not None:
            self._kernel(call, call.device_ns, flow)
        self._memory(call)
        return 1

    def _kernel(self, call: Call, duration: int, flow: int | None) -> None:
        track = self._stream(call)
        start = max(call.start, self.free_at.get(track, 0))
        self.builder.write_packet(self._begin(track, start, call.name, "kernel", flow, last=True))
        self._end(track, start + duration)
        self.free_at[track] = start + duration

    def _memory(self, call: Call) -> None:
        """Counts what aclrtMalloc and its kin took, and aclrtFree gave back."""
        at = (call.process, call.arguments.get("devPtr", 0))
        if call.status == 0 and call.name.startswith("aclrtMalloc") and "size" in call.arguments:
            self.blocks[at] = call.arguments["size"]
            change = self.blocks[at]
        elif call.status == 0 and call.name == "aclrtFree":
            change = -self.blocks.pop(at, 0)
        else:
            return
        self.usage[call.process] = self.usage.get(call.process, 0) + change
        packet = self._packet(call.start + call.duration)
        packet.track_event.type = self.event.TYPE_COUNTER
        packet.track_event.track_uuid = self._counter(call.process)
        packet.track_event.counter_value = self.usage[call.process]
        self.builder.write_packet(packet)

    # --- packets ---------------------------------------------------------------------------------

    def _packet(self, time: int | None = None) -> Any:
        packet = self.builder.create_packet()
        packet.trusted_packet_sequence_id = 1
        if time is not None:
            packet.timestamp = time
        return packet

    def _begin(
        self, track: int, time: int, name: str, kind: str, flow: int | None, last: bool = False
    ) -> Any:
        packet = self._packet(time)
        event = packet.track_event
        event.type, event.track_uuid = self.event.TYPE_SLICE_BEGIN, track
        event.name = name
        event.categories.append(kind)
        if flow is not None:
            (event.terminating_flow_ids if last else event.flow_ids).append(flow + 1)
        return packet

    def _end(self, track: int, time: int) -> None:
        packet = self._packet(time)
        packet.track_event.type = self.event.TYPE_SLICE_END
        packet.track_event.track_uuid = track
        self.builder.write_packet(packet)

    def _annotate(self, event: Any, call: Call) -> None:
        details = {"call": call.number, "status": call.status, "python": call.stack or None,
                   **{name: _text(value) for name, value in call.arguments.items()}}  # fmt: skip
        for name, value in details.items():
            if value is None:
                continue
            annotation = event.debug_annotations.add(name=name)
            if isinstance(value, int) and -(2**63) <= value < 2**63:
                annotation.int_value = value
            else:
                annotation.string_value = str(value)

    # --- tracks ----------------------------------------------------------------------------------

    def _track(self, key: tuple[object, ...], parent: int = 0) -> tuple[int, Any]:
        """A track's number, and its packet where it is to be described."""
        if key in self.tracks:
            return self.tracks[key], None
        self.tracks[key] = len(self.tracks) + 1
        packet = self._packet()
        packet.track_descriptor.uuid = self.tracks[key]
        if parent:
            packet.track_descriptor.parent_uuid = parent
        return self.tracks[key], packet

    def _process(self, process: int) -> int:
        number_, packet = self._track(("process", process))
        if packet is not None:
            packet.track_descriptor.process.pid = process
            packet.track_descriptor.process.process_name = self.command
            self.builder.write_packet(packet)
        return number_

    def _thread(self, call: Call) -> int:
        parent = self._process(call.process)
        number_, packet = self._track(("thread", call.process, call.thread), parent)
        if packet is not None:
            thread = packet.track_descriptor.thread
            thread.pid, thread.tid = call.process, call.thread
            thread.thread_name = "main" if call.thread == call.process else "thread"
            self.builder.write_packet(packet)
        return number_

    def _stream(self, call: Call) -> int:
        stream = call.arguments.get("stream", 0)
        parent = self._process(call.process)
        number_, packet = self._track(("stream", call.process, stream), parent)
        if packet is not None:
            packet.track_descriptor.name = f"NPU stream {stream:#x}"
            self.builder.write_packet(packet)
        return number_

    def _counter(self, process: int) -> int:
        number_, packet = self._track(("memory", process), self._process(process))
        if packet is not None:
            packet.track_descriptor.name = "device memory"
            counter = packet.track_descriptor.counter
            counter.unit = counter.UNIT_SIZE_BYTES
            self.builder.write_packet(packet)
        return number_


def _text(value: Any) -> Any:
    """An argument as text or number."""
    if isinstance(value, RecordedScalar):
        try:
            return f"{number(value)} ({value.dtype})"
        except NotAskableError:
            return value.dtype
    if isinstance(value, Array | tuple):
        values = value.values if isinstance(value, Array) else value
        return ", ".join(map(str, values[:_MOST])) + (", …" if len(values) > _MOST else "")
    return str(value) if isinstance(value, RecordedTensor) else value
