"""Reads a recording chunk by chunk: calls in the file's order, launches added up; holds no more
than what calls refer to.

Numbers of calls count over the whole recording. Chunks of several threads follow each other in
pieces of at most a quarter of a second, so that calls come nearly in order; `Call.number` says it
exactly.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.signature import WORKSPACE_SUFFIX
from aclnn_bindings.layers import recording_file
from aclnn_bindings.layers.recording_file import Chunk, RecordingError

from . import damage, data, rows
from .details import EXECUTOR, POINTER, REAL, STRING, Details, RecordedParameter
from .device_times import DeviceTimes
from .values import Call, Captured, LaunchGroup

VERSION: Final = 1
# What says something of the recording as a whole.
_ABOUT: Final = frozenset(
    (recording_file.HEADER, recording_file.FUNCTIONS, recording_file.FINDING, recording_file.END)
)
_CREATORS: Final = {
    "aclCreateTensor": 0, "aclCreateTensorList": 1, "aclCreateScalar": 2,
    "aclCreateScalarList": 3, "aclCreateIntArray": 4, "aclCreateBoolArray": 5,
    "aclCreateFloatArray": 6,
}  # fmt: skip


class _Function:
    """A row of the recording's table of functions."""

    def __init__(self, row: list[Any]) -> None:
        self.name = str(row[0])
        self.parameters = tuple(RecordedParameter(*p) for p in row[1])
        self.word_returned = bool(row[2])


class _Process:
    """What calls of one process refer to, by number."""

    def __init__(self, dtypes: dict[int, str]) -> None:
        self.details = Details(dtypes)
        self.blobs: dict[int, tuple[int, bytes]] = {}
        self.stacks: dict[int, str] = {}


class Recording:
    """An open recording; every method reads the file anew, from its start.

    `header` says who recorded what and when; `end` how the program ended, None when the recording
    was cut off.
    """

    @damage.named
    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.end: dict[str, Any] | None = None
        self.findings: list[dict[str, Any]] = []
        self._functions: list[_Function] = []
        self._dtypes: dict[int, str] = {}
        self._known: dict[int, _Process] = {}
        self._known_size = -1
        self._device = DeviceTimes()
        for chunk in recording_file.chunks(path, _ABOUT):
            self._learn(chunk)
        if not self.header:
            raise RecordingError(f"{path}: a recording without a header: it was cut off at once")

    def _learn(self, chunk: Chunk) -> None:
        if chunk.kind == recording_file.HEADER:
            self.header = chunk.json()
            if self.header.get("version") != VERSION:
                raise RecordingError(
                    f"{self.path}: version {self.header.get('version')}, expected {VERSION}; "
                    "read it with the release that wrote it"
                )
            damage.check_header(self.header)
            self._dtypes = {int(k): str(v) for k, v in self.header["dtypes"].items()}
        elif chunk.kind == recording_file.FUNCTIONS:
            self._functions = [_Function(row) for row in chunk.json()]
        elif chunk.kind == recording_file.FINDING:
            self.findings.append(chunk.json())
        elif chunk.kind == recording_file.END:
            self.end = chunk.json()

    @property
    def cut_off(self) -> str:
        """Why calls may be missing; "" of a recording that was ended."""
        if self.end is not None:
            return ""
        return "the recording has no end, or is damaged before it: calls may be missing"

    @damage.named
    def holds_data(self) -> bool:
        """Whether what some tensor held was recorded."""
        return any(
            payload.type == rows.DATA
            for chunk in recording_file.chunks(self.path, (recording_file.ROWS,))
            for payload in rows.split(chunk.data)[2]
        )

    def functions(self) -> tuple[str, ...]:
        """Names of every function that the install exports, in order of their numbers."""
        return tuple(f.name for f in self._functions)

    def types(self, name: str) -> tuple[str, ...]:
        """C types of a function's parameters as they were declared then; () when unknown."""
        function = next((f for f in self._functions if f.name == name), None)
        return tuple(p.type for p in function.parameters) if function else ()

    def _chunks(self) -> Iterator[tuple[Chunk, _Process, rows.Rows, dict[int, tuple[int, ...]]]]:
        """Chunks of rows; what their calls refer to is known then, wherever it was written.

        A thread may use what another wrote a moment ago, and whose chunk follows: so references
        are read first, in a pass of their own.
        """
        processes = self._references()
        for chunk in recording_file.chunks(self.path):
            if chunk.kind == recording_file.ROWS:
                calls, words, _ = rows.split(chunk.data)
                yield chunk, processes[chunk.process], calls, words

    def _references(self) -> dict[int, _Process]:
        """What calls refer to; kept, unless the file has grown since."""
        size = self.path.stat().st_size
        if size == self._known_size:
            return self._known
        processes: dict[int, _Process] = {}
        self._device = DeviceTimes()
        for chunk in recording_file.chunks(self.path):
            if chunk.kind != recording_file.ROWS:
                continue
            process = processes.setdefault(chunk.process, _Process(self._dtypes))
            for payload in rows.split(chunk.data)[2]:
                if payload.type == rows.DEVICE_TIME:
                    self._device.add(payload.data)
                elif payload.type == rows.GEOMETRY:
                    process.details.add_geometry(payload.id, payload.data)
                elif payload.type == rows.DETAIL:
                    process.blobs[payload.id] = (payload.extra, payload.data)
                elif payload.type == rows.STACK:
                    process.stacks[payload.id] = payload.data.decode("utf-8", "replace")
        self._known, self._known_size = processes, size
        return processes

    @damage.named
    def calls(self, wanted: Callable[[str], bool] | None = None) -> Iterator[Call]:
        """Every call, or those whose name `wanted` accepts."""
        chosen = [wanted is None or wanted(f.name) for f in self._functions]
        for chunk, process, calls, words in self._chunks():
            for at, row in enumerate(calls):
                if chosen[row["function"]]:
                    yield self._call(chunk, process, row, words.get(at, ()))

    def _call(self, chunk: Chunk, process: _Process, row: Any, more: tuple[int, ...]) -> Call:
        function = self._functions[row["function"]]
        flags, detail = int(row["flags"]), int(row["detail"])
        words = [int(w) for w in row["word"]] + list(more)
        phase = 1 if flags & rows.PHASE_ONE else 2 if flags & rows.PHASE_TWO else 0
        finished = int(row["type"]) == rows.CALL
        device = int(self._device.of(row["number"][None])[0]) if phase == 2 else -1
        return Call(
            number=int(row["number"]),
            name=function.name,
            phase=phase,
            process=chunk.pid,
            thread=chunk.thread,
            start=int(row["start"]),
            duration=int(row["duration"]) * (1000 if flags & rows.MICROSECONDS else 1),
            status=int(row["status"]),
            arguments=self._arguments(process, function, flags, detail, words[: row["words"]]),
            stack=process.stacks.get(int(row["stack"]), ""),
            device_ns=device if device >= 0 else None,
            injected=bool(flags & rows.INJECTED),
            finished=finished,
        )

    def _arguments(
        self, process: _Process, function: _Function, flags: int, detail: int, words: list[int]
    ) -> dict[str, Any]:
        arguments = self._detail(process, detail)
        if flags & rows.PHASE_TWO:
            names: tuple[str, ...] = ("stream", "workspaceSize", "preparedBy")
        elif flags & rows.PHASE_ONE:
            names = ("workspaceSize", "executor")
        elif flags & rows.MAKES:
            names = ("returned", "data")
        else:
            return arguments | _plain(function, words)
        return arguments | dict(zip(names, words, strict=False))

    def _detail(self, process: _Process, number: int) -> dict[str, Any]:
        """What the parameters of a call were; of a create call, what it made."""
        function_number, blob = process.blobs.get(number, (0, b""))
        if not blob:
            return {}
        function = self._functions[function_number]
        if function.name in _CREATORS:
            parameter = RecordedParameter("made", _CREATORS[function.name], "")
            return process.details.read(blob, [parameter])
        if function.name.endswith(WORKSPACE_SUFFIX):
            return process.details.read(blob, function.parameters[:-2])
        texts = [p for p in function.parameters if p.code == STRING]
        return process.details.read(blob, texts)

    @damage.named
    def captured(self) -> Iterator[Captured]:
        """Launches whose data were kept, with what their tensors held."""
        processes = self._references()
        names = {f.name: [p.name for p in f.parameters] for f in self._functions}
        pieces = data.Pieces()
        waiting: dict[int, Call] = {}
        for chunk in recording_file.chunks(self.path):
            if chunk.kind != recording_file.ROWS:
                continue
            calls, words, payloads = rows.split(chunk.data)
            for payload in payloads:
                if payload.type == rows.DATA:
                    pieces.add(payload.data)
            for at in np.flatnonzero(calls["flags"] & rows.HAS_DATA).tolist():
                call = self._call(chunk, processes[chunk.process], calls[at], words.get(at, ()))
                waiting[call.number] = call
            for number in [n for n in waiting if pieces.whole(n)]:
                yield self._captured(waiting.pop(number), pieces, names)
        for call in waiting.values():  # what is lost of them is None
            yield self._captured(call, pieces, names)

    def _captured(self, call: Call, pieces: data.Pieces, names: dict[str, list[str]]) -> Captured:
        params = names[call.name + WORKSPACE_SUFFIX]
        before, after = (data.arrays(s, params, call.arguments) for s in pieces.take(call.number))
        return Captured(call, before, after)

    @damage.named
    def launches(self) -> list[LaunchGroup]:
        """Launches of phase 2, equal ones together, the longest total first.

        `host_ns` counts both phases. What differs only by recording process is one.
        """
        totals: dict[tuple[int, int, int], list[int]] = {}
        spent: dict[tuple[int, int], int] = {}
        processes: dict[int, _Process] = {}
        for chunk, process, calls, _ in self._chunks():
            processes[chunk.process] = process
            _add_up(chunk.process, calls, self._device, totals, spent)
        merged: dict[tuple[str, bytes], LaunchGroup] = {}
        for (number, function, detail), one in totals.items():
            count, host, failures, first, device, timed = one
            process = processes[number]
            name = self._functions[function].name
            blob = process.blobs.get(detail, (0, b""))[1]
            host += spent.get((number, detail), 0) if detail else 0
            arguments = self._detail(process, detail)
            key = (name, json.dumps(arguments, default=str).encode() if arguments else blob)
            old = merged.get(key)
            if old is not None:
                count, host = count + old.count, host + old.host_ns
                failures, first = failures + old.failures, min(first, old.first)
                device, timed = device + old.device_ns, timed + old.timed
            merged[key] = LaunchGroup(name, arguments, count, host, failures, first, device, timed)
        return sorted(merged.values(), key=lambda launch: -launch.host_ns)

    @damage.named
    def totals(self) -> dict[str, tuple[int, int, int]]:
        """Per function: calls, host time in ns, calls that failed."""
        count = len(self._functions)
        calls_of, time_of, failed_of = (np.zeros(count, np.int64) for _ in range(3))
        for _, _, calls, _ in self._chunks():
            function = calls["function"]
            took = calls["duration"].astype(np.int64)
            took = np.where(calls["flags"] & rows.MICROSECONDS, took * 1000, took)
            np.add.at(calls_of, function, 1)
            np.add.at(time_of, function, took)
            np.add.at(failed_of, function, calls["status"] != 0)
        return {
            f.name: (int(calls_of[i]), int(time_of[i]), int(failed_of[i]))
            for i, f in enumerate(self._functions)
            if calls_of[i]
        }


def _add_up(
    process: int,
    calls: rows.Rows,
    device: DeviceTimes,
    totals: dict[tuple[int, int, int], list[int]],
    spent: dict[tuple[int, int], int],
) -> None:
    """Phase 2 by function and detail; phase 1's time by detail."""
    took = calls["duration"].astype(np.int64)
    took = np.where(calls["flags"] & rows.MICROSECONDS, took * 1000, took)
    for phase in (rows.PHASE_ONE, rows.PHASE_TWO):
        at = np.flatnonzero(calls["flags"] & phase)
        if not len(at):
            continue
        pairs = calls["function"][at].astype(np.uint64) << np.uint64(32) | calls["detail"][at]
        keys, inverse = np.unique(pairs, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(keys))
        times = np.bincount(inverse, took[at], minlength=len(keys))
        failures = np.bincount(inverse, calls["status"][at] != 0, minlength=len(keys))
        on_device = device.of(calls["number"][at])
        timed = np.bincount(inverse, on_device >= 0, minlength=len(keys))
        device_ns = np.bincount(inverse, np.maximum(on_device, 0), minlength=len(keys))
        first = np.full(len(keys), np.iinfo(np.int64).max)
        np.minimum.at(first, inverse, calls["number"][at].astype(np.int64))
        for i, key in enumerate(keys.tolist()):
            function, detail = key >> 32, key & 0xFFFFFFFF
            if phase == rows.PHASE_ONE:
                spent[process, detail] = spent.get((process, detail), 0) + int(times[i])
                continue
            row = totals.setdefault((process, function, detail), [0, 0, 0, int(first[i]), 0, 0])
            row[0] += int(counts[i])
            row[1] += int(times[i])
            row[2] += int(failures[i])
            row[3] = min(row[3], int(first[i]))
            row[4] += int(device_ns[i])
            row[5] += int(timed[i])


def _plain(function: _Function, words: list[int]) -> dict[str, Any]:
    """Values of parameters that are words, in order; then what the function returned."""
    taken = [p for p in function.parameters if p.code != STRING]
    named = {p.name: _value(p, word) for p, word in zip(taken, words, strict=False)}
    if function.word_returned and len(words) > len(taken):
        named["returned"] = words[len(taken)]
    return named


def _value(parameter: RecordedParameter, word: int) -> int | float:
    if parameter.code == REAL:
        return float(struct.unpack("<d", struct.pack("<Q", word))[0])
    unsigned = parameter.code in (EXECUTOR, POINTER) or parameter.type.startswith(("u", "size"))
    return word if unsigned or word < 1 << 63 else word - (1 << 64)


def open_recording(path: str | Path) -> Recording:
    """The recording at `path`; RecordingError when it is none. What a crash tore is left out."""
    return Recording(Path(path))
