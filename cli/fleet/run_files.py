"""Owns the journals of a fleet as they are on disk or in an object store: compressed or not, runs
in files, whatever their order, repeats and torn lines; keeps no result.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from ..conformance.record import compressed, journal
from ..foreign import BYTE_ORDER_MARK, parsed
from . import stores

Line = Mapping[str, Any]
Source = Path | str  # a file, or the address of one in an object store
_UNNAMED: Final = "host without a name"
_LINE, _FILE = 1 << 24, 1 << 36  # bytes of one line, and of a journal


@dataclass(slots=True)
class RunPart:
    """One run as its files tell it. `started` are the cases under way, by their numbers in the
    report, of each (seed, device); `planned`: it names cases; `judged` are the results and failing
    ones of each device, by its number; `torn` counts lines that are none. Of a cluster's run,
    `places` are the environments of its nodes, and `skews` what their clocks were ahead of the
    head's, in seconds."""

    path: Source
    run: str
    header: dict[str, Any]
    results: int = 0
    failing: int = 0
    started: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    notes: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    skews: dict[str, float] = field(default_factory=dict)
    end: dict[str, Any] | None = None
    torn: int = 0
    planned: bool = False
    judged: dict[int, tuple[int, int]] = field(default_factory=dict)
    node: str = field(init=False)
    environment: dict[str, Any] = field(init=False)
    options: dict[str, Any] = field(init=False)
    compares: bool = field(init=False)
    device: str = field(init=False)
    day: str = field(init=False)

    def __post_init__(self) -> None:
        """What every line asks for: of a header, which stays as it is."""
        self.environment = self.header.get("environment", {})
        self.options = self.header.get("options", {})
        self.node = str(self.header.get("node") or self.environment.get("node") or _UNNAMED)
        self.compares = journal.compares(self.header)
        self.device = str(self.environment.get("device", ""))
        self.day = str(self.header.get("started", ""))[:10]

    @property
    def begun(self) -> bool:
        """Whether it says which cases it is for: a host without a device never does, nor a run that
        was cut off in its first lines."""
        cut = self.end is None or bool(self.end.get("interrupted"))
        return self.planned or not cut

    @property
    def version(self) -> str:
        """Of the program that wrote it: a case's name means the same inputs only within one."""
        return str(self.environment.get("mindtorch_npu", ""))

    @property
    def order(self) -> str:
        """Sorts runs by their starts."""
        return f"{self.header.get('started', '')} {self.run}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A journal, or the rest of one, that is not in the report, and why."""

    source: str
    why: str

    def __post_init__(self) -> None:
        """Addresses may hold passwords and signatures."""
        for name in ("source", "why"):
            object.__setattr__(self, name, stores.without_secrets(getattr(self, name)))


def lines(source: Source) -> Iterator[bytes]:
    """Every line; JournalError where the source cannot be read, at whatever line."""
    try:
        with closing(compressed.opened(stores.opened(source))) as plain:
            file = io.BufferedReader(cast(Any, plain), 1 << 20)
            size = 0
            while text := file.readline(_LINE):
                size += len(text)
                if size > _FILE:
                    raise journal.JournalError("longer than any journal")
                yield text.removeprefix(BYTE_ORDER_MARK) if size == len(text) else text
    except compressed.damage() as error:
        raise journal.JournalError(f"cannot be read: {error}") from None
    except OSError as error:
        raise journal.JournalError(f"cannot be read: {error.strerror or error}") from None


def as_object(text: bytes) -> dict[str, Any] | None:
    """What a line says; None for one that is torn."""
    try:
        data = parsed(text.decode("utf-8", "replace"))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def head(source: Source) -> RunPart:
    """The first run of a journal by its header; JournalError where there is none."""
    first = as_object(next(lines(source), b""))
    if first is not None and first.get("kind") == "run":
        return part_of(first, source, 0)
    raise journal.JournalError("it has no header line: it is no journal, or its run only begins")


def part_of(line: Line, source: Source, number: int) -> RunPart:
    """The run that a header line begins; JournalError for one of another format."""
    if line.get("schema") != journal.SCHEMA:
        raise journal.JournalError(
            f"format {line.get('schema')!r}, expected {journal.SCHEMA!r}: merge it with the "
            "version that wrote it"
        )
    header = {k: v for k, v in line.items() if k != "kind"}
    journal.require_options(header, str(source))
    return RunPart(source, str(line.get("run") or f"{source}#{number}"), header)


def ordered(sources: Sequence[Source]) -> tuple[list[Source], list[Unread]]:
    """Those that can be read, in an order that does not depend on that of `sources`, and the
    others. Of journals by different versions of this program, those of most are read."""
    heads: list[RunPart] = []
    unread: list[Unread] = []
    for source in dict.fromkeys(sources):
        try:
            heads.append(head(source))
        except journal.JournalError as error:
            unread.append(Unread(str(source), str(error).removeprefix(f"{source}: ")))
    versions = [part.version for part in heads if part.version]
    usual = min(set(versions), key=lambda v: (-versions.count(v), v), default="")
    for part in [p for p in heads if p.version not in ("", usual)]:
        heads.remove(part)
        unread.append(Unread(str(part.path), f"written by version {part.version} of mindtorch-npu, "
                             f"most by {usual}: a case's inputs may differ"))  # fmt: skip
    heads.sort(key=lambda p: (p.node, p.run, -stores.size(p.path), str(p.path)))
    return [part.path for part in heads], sorted(unread, key=lambda u: u.source)
