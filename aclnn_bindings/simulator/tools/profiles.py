"""Owns what a PROF_… folder of the simulator holds: its events, read into tasks, calls and memory.

Stands alone (standard library only), because clients run `msprof` by path with any Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

EVENTS = Path("host", "data", "aclsim.jsonl")
OVERLAPS = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
FORMATS = {-1: "UNDEFINED", 0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z",
           27: "NDHWC", 29: "FRACTAL_NZ", 30: "NCDHW", 47: "NCL"}  # fmt: skip

Span = tuple[int, int]


@dataclass(frozen=True)
class ProfiledTensor:
    """One tensor of a launch."""

    dtype: str
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class DeviceTask:
    """One piece of work of a stream; times in ns of the wall clock."""

    name: str
    device: int
    stream: int
    ticket: int
    begin: int
    end: int
    operator: bool
    inputs: tuple[ProfiledTensor, ...]
    outputs: tuple[ProfiledTensor, ...]

    @property
    def communication(self) -> bool:
        return self.name.startswith("Hccl")

    @property
    def title(self) -> str:
        if not self.communication:
            return self.name
        operation = self.name.removeprefix("Hccl")
        return f"hcom_{operation[0].lower()}{operation[1:]}_"

    @property
    def kind(self) -> str:
        if self.communication:
            return "COMMUNICATION"
        return "AI_CORE" if self.operator else self.name

    @property
    def type(self) -> str:
        return self.title if self.communication else self.name.removeprefix("aclnn")


@dataclass(frozen=True)
class ProfiledCall:
    """A call of the program, or a message of its own (`domain` is then not None)."""

    name: str
    thread: int
    begin: int
    end: int
    domain: str | None = None


@dataclass
class Profile:
    """What one PROF_… folder holds."""

    folder: Path
    process: int = 0
    shift: int = 0  # from the events' clock to the wall clock
    tasks: list[DeviceTask] = field(default_factory=list)
    calls: list[ProfiledCall] = field(default_factory=list)
    queued: dict[int, tuple[int, int]] = field(default_factory=dict)  # ticket: thread, when
    memory: list[tuple[int, int, int]] = field(default_factory=list)  # device, when, bytes

    @property
    def stamp(self) -> str:
        return self.folder.name.split("_")[2]


def read(folder: Path) -> Profile:
    """Read a folder's events; a last line that was cut off is left out."""
    profile = Profile(folder)
    with (folder / EVENTS).open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                _take(profile, json.loads(line))
            except json.JSONDecodeError:
                break
    profile.tasks.sort(key=lambda task: (task.begin, task.end))
    profile.calls.sort(key=lambda call: (call.begin, -call.end))
    return profile


def _take(profile: Profile, row: dict[str, Any]) -> None:
    shift = profile.shift
    if "process" in row:
        profile.process, profile.shift = row["process"], row["wall"] - row["clock"]
    elif "task" in row:
        profile.tasks.append(
            DeviceTask(row["task"], row["device"], row["stream"], row["ticket"],
                       row["begin"] + shift, row["end"] + shift, "in" in row,
                       _tensors(row.get("in", ())), _tensors(row.get("out", ())))
        )  # fmt: skip
    elif "queued" in row:
        profile.queued[row["queued"]] = (row["thread"], row["at"] + shift)
    elif "memory" in row:
        profile.memory.append((row["device"], row["at"] + shift, row["memory"]))
    else:
        name = row["call"] if "call" in row else row["mark"]
        times = (row["begin"] + shift, row["end"] + shift)
        profile.calls.append(ProfiledCall(name, row["thread"], *times, row.get("domain")))


def _tensors(rows: Iterable[tuple[str, int, list[int]]]) -> tuple[ProfiledTensor, ...]:
    return tuple(
        ProfiledTensor(dtype.removeprefix("DT_"), FORMATS.get(format, str(format)), tuple(shape))
        for dtype, format, shape in rows
    )


def us(ns: int) -> str:
    """Microseconds with all digits: times since 1970 do not fit a float."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def columns(tensors: tuple[ProfiledTensor, ...]) -> list[str]:
    """Shapes, dtypes and formats, as tables show them."""
    if not tensors:
        return ["N/A"] * 3
    shapes = ";".join(",".join(map(str, t.shape)) for t in tensors)
    types = ";".join(t.dtype for t in tensors)
    return [f'"{shapes}"', types, ";".join(t.format for t in tensors)]


def overlaps(profile: Profile, device: int) -> dict[str, list[Span]]:
    """When a device computed, communicated, did so alone, and did nothing; by OVERLAPS."""
    mine = [task for task in profile.tasks if task.device == device]
    computing = union((t.begin, t.end) for t in mine if t.operator)
    communication = union((t.begin, t.end) for t in mine if t.communication)
    busy = union([*computing, *communication])
    alone = without(communication, computing)
    free = [(a[1], b[0]) for a, b in pairwise(busy)]
    return dict(zip(OVERLAPS, (computing, communication, alone, free), strict=True))


def union(spans: Iterable[Span]) -> list[Span]:
    """The spans' union as disjoint spans in order."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def without(spans: list[Span], selection: list[Span]) -> list[Span]:
    """What is left of disjoint spans where none of `selection` lies."""
    left: list[Span] = []
    for begin, end in spans:
        for low, high in selection:
            if high <= begin or low >= end:
                continue
            if low > begin:
                left.append((begin, low))
            begin = max(begin, high)
        if begin < end:
            left.append((begin, end))
    return left
