"""Writes one launch of a recording as a recording of its own, with what its tensors held."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from aclnn_bindings.layers import recording_file
from aclnn_bindings.layers.recording_file import Chunk, Writer

from . import rows
from .data import call_number
from .reader import Recording
from .values import Call

_WHOLE = (recording_file.HEADER, recording_file.FUNCTIONS, recording_file.END)


def write(recording: Recording, launch: Call, path: Path) -> None:
    """The launch's two phases, the tensors' metadata, its parameters and data, to a new file."""
    numbers = {launch.number, int(launch.arguments.get("preparedBy", launch.number))}
    detail = _detail(recording, launch.number)
    writer = Writer(path)
    try:
        for chunk in recording_file.chunks(recording.path):
            if chunk.kind in _WHOLE:
                writer.add(chunk)
            elif chunk.kind == recording_file.ROWS and chunk.pid == launch.process:
                data = _selected_rows(chunk.data, numbers, detail)
                if data:
                    writer.add(Chunk(chunk.kind, chunk.process, chunk.pid, chunk.thread, data))
    finally:
        writer.close()


def _detail(recording: Recording, number: int) -> int:
    """The id of a call's parameters in its process."""
    for chunk in recording_file.chunks(recording.path):
        if chunk.kind == recording_file.ROWS:
            calls = rows.split(chunk.data)[0]
            at = calls["number"] == number
            if at.any():
                return int(calls["detail"][at][0])
    return 0


def _selected_rows(data: bytes, numbers: Collection[int], detail: int) -> bytes:
    """Of a chunk's rows those of the calls, and what they refer to; geometries are kept all."""

    def keeps(payload: rows.Payload) -> bool:
        match payload.type:
            case rows.GEOMETRY:
                return True
            case rows.DETAIL:
                return payload.id == detail
            case rows.DATA:
                return call_number(payload.data) in numbers
            case _:
                return False

    return rows.choose(data, numbers, keeps)
