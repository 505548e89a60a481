"""Owns the record of a run: an append-only file of JSON lines that survives what the run does not.

Lines: {"kind": "run"} once, {"kind": "start"} before each case (written by the worker, so that a
case that takes the machine down is the last line), {"kind": "result"} after it, {"kind": "end"}.
A torn last line is ignored. Lines carry the id of their run, so that two runs in one file can be
told apart; while a run writes, the file is locked against a second one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import shlex
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...foreign import ForeignError, leads_to_file, lines_of, most_of, most_unpacked, opened, parsed
from . import compressed, passes, state
from .result import VERDICTS, Counts, Result, from_json

SCHEMA: Final = "mindtorch-npu/check/1"
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_RESERVE: Final = 4096
_BLOCK: Final = 1 << 16


class JournalError(ValueError):
    """A file that is no journal of `check`, or of a newer kind; the message names the line."""


class JournalFullError(OSError):
    """A line could not be written whole: the disk, or the user's share of it, is full."""


class Journal:
    """An open journal; every line is one write of at most a few KiB, appended atomically."""

    def __init__(self, path: Path, run: str = "") -> None:
        self.path, self.run = path, run
        path.parent.mkdir(parents=True, exist_ok=True)
        if leads_to_file(path):
            raise JournalError(f"{path}: a link to a file: name the file itself")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._reserve: int | None = None

    def own(self) -> None:
        """Lock the file for one run, cut off half a last line, which a crash leaves, and set room
        aside for the last line of this one.

        JournalError while another run writes into it, of whose lines none is touched.
        """
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(
                f"{self.path}: another run is writing into it: wait for it, or name another file"
            ) from None
        except OSError:
            pass  # a file system without locks; run ids still tell lines apart
        if not self.path.is_file():
            return  # a device or a pipe: nothing is cut off, and nothing made beside it
        self._cut()
        with contextlib.suppress(OSError):  # a file without a name, which nobody else can be at
            self._reserve, name = tempfile.mkstemp(dir=self.path.parent)
            os.unlink(name)
            os.write(self._reserve, b"\0" * _RESERVE)

    def _cut(self) -> None:
        """End the file where its last whole line ends."""
        with self.path.open("rb") as file:
            size = whole = file.seek(0, os.SEEK_END)
            while whole:
                start = max(whole - _BLOCK, 0)
                file.seek(start)
                at = file.read(whole - start).rfind(b"\n") + 1
                whole = start + at
                if at:
                    break
        if whole < size:
            os.ftruncate(self._file, whole)

    def write(self, kind: str, data: Mapping[str, Any]) -> None:
        """Append a line; JournalFullError where the disk took none of it, or a part.

        ValueError for data that have a kind or a run of their own: those are the line's.
        """
        if "kind" in data or "run" in data:
            raise ValueError(f"a {kind!r} line cannot have another {sorted(data)}")
        fields = {"kind": kind, **data, **({"run": self.run} if self.run else {})}
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        # Names of hosts and files, and variables, may hold bytes of no encoding.
        line = text.encode("utf-8", "backslashreplace") + b"\n"
        size = os.fstat(self._file).st_size if self._reserve is not None else -1
        try:
            length = os.write(self._file, line)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            length = 0
        if length < len(line):
            if size >= 0 and length:
                os.ftruncate(self._file, size)
            raise JournalFullError(errno.ENOSPC, f"{self.path}: no space left for its next line")

    def last(self, data: Mapping[str, Any]) -> None:
        """Write the end line, into the room set aside if there is no other."""
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        with contextlib.suppress(OSError):
            self._break_line()
            self.write("end", data)

    def _break_line(self) -> None:
        """End half a line, which a worker leaves where the disk is full, so that it spoils none."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size and file.seek(size - 1) >= 0 and file.read(1) != b"\n":
                os.write(self._file, b"\n")

    def result(self, result: Result) -> None:
        self.write("result", result.as_json())

    def close(self) -> None:
        os.close(self._file)
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None


@dataclass(slots=True)
class Record:
    """What a journal says: the header, results by case and seed, what started and never ended."""

    header: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    started: dict[str, None] = field(default_factory=dict)
    end: dict[str, Any] | None = None

    @property
    def unfinished(self) -> list[str]:
        """Cases that were under way when the run stopped."""
        return [key for key in self.started if key not in self.results]

    @property
    def cut_off(self) -> str:
        """Why not all was judged that the run was to judge; "" where all was."""
        planned, count = self.header.get("cases", 0), len(self.results)
        if count < planned:
            return f"{count:,} of {planned:,} cases have a result"
        return "" if self.end is not None else "the run has no end: it was cut off, or goes on"

    def counts(self) -> Counts:
        counts = Counts()
        for result in self.results.values():
            counts.add(result)
        return counts


def read(path: Path) -> Record:
    """The record of a journal or of a JSON report; JournalError if it is neither."""
    packed = compressed.is_compressed(path)
    try:
        with opened(path) as file:
            most = most_unpacked(file) if packed else most_of(file)
            lines = lines_of(compressed.opened(file) if packed else file, most)
            first = next(lines, "")
            if first == "{":  # a report, which is indented
                return _from_report(_parsed("\n".join([first, *lines]), path), path)
            return _from_lines(chain([first], lines), path)
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror or error}") from None
    except compressed.damage() as error:
        raise JournalError(f"{path}: cannot be read: {error}") from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        data = parsed(text)
    except ValueError as error:
        raise JournalError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise JournalError(f"{path}: no report of `mindtorch-npu check`")
    return data


def _from_lines(lines: Iterable[str], path: Path) -> Record:
    record = Record()
    torn = 0  # a line that is no JSON: the last may be, or what a full disk left before the end's
    for number, line in enumerate(lines, 1):
        if torn and (number > torn + 1 or not line.startswith('{"kind":"end"')):
            break
        try:
            data = parsed(line)
        except ForeignError:
            raise
        except ValueError:
            torn = torn or number
            continue
        if not isinstance(data, dict):
            raise JournalError(f"{path}: line {number} is no object")
        _take(record, data, f"{path}: line {number}")
    else:
        torn = 0
    if torn:
        raise JournalError(f"{path}: line {torn} is not JSON")
    if not record.header:
        raise JournalError(f"{path}: no journal of `mindtorch-npu check`: it has no header line")
    return record


def _take(record: Record, data: dict[str, Any], where: str) -> None:
    kind, run = data.pop("kind", None), data.pop("run", "")
    if kind == "run":
        if run:
            data["run"] = run
        if data.get("schema") != SCHEMA:
            raise JournalError(f"{where}: schema {data.get('schema')!r}, expected {SCHEMA!r}")
        require_options(data, where)
        record.header = record.header or data
    elif kind == "start":
        place = str(data.get("device", "")) if compares(record.header) else ""
        key = key_of(str(data.get("case")), data.get("seed", 0), place)
        record.started[key] = None
    elif kind == "result":
        result = _result(data, where)
        place = f"{result.node} {result.device}".strip() if compares(record.header) else ""
        record.results[key_of(result.case, result.seed, place)] = result
    elif kind == "end":
        record.end = data


# What is read of a header without asking what it is.
_HEADER: Final[dict[tuple[str, ...], type]] = {
    ("node",): str, ("folder",): str, ("started",): str, ("cases",): int, ("options",): dict,
    ("options", "where"): dict, ("options", "restart"): dict, ("environment",): dict,
    ("environment", "device"): str, ("environment", "soc"): str,
    ("environment", "operators"): int, ("environment", "switches"): dict,
    ("environment", "unspecified"): list,
}  # fmt: skip


def require_options(header: Mapping[str, Any], where: str) -> None:
    """JournalError where a header's parts are not of the kinds that they are read as."""
    for (*above, name), kind in _HEADER.items():
        table = header.get(above[0], {}) if above else header
        if not isinstance(table.get(name, kind()), kind):
            raise JournalError(
                f"{where}: {name} of the header is of another kind: {table[name]!r:.100}"
            )


def compares(header: Mapping[str, Any]) -> bool:
    """Whether a run gave the same cases to every device."""
    return bool(header.get("options", {}).get("compare"))


def _result(data: dict[str, Any], where: str) -> Result:
    """The Result of a line; JournalError for a verdict that this version does not know."""
    if str(data.get("verdict")) not in VERDICTS:
        raise JournalError(
            f"{where}: verdict {data.get('verdict')!r} is none of {', '.join(VERDICTS)}; "
            "a newer version wrote this: read it with that one"
        )
    try:
        return from_json(data)
    except (TypeError, ValueError) as error:
        raise JournalError(f"{where}: no result: {error}") from None


def _from_report(data: dict[str, Any], path: Path) -> Record:
    if data.get("schema") != SCHEMA:
        raise JournalError(f"{path}: schema {data.get('schema')!r}, expected {SCHEMA!r}")
    require_options(data, str(path))
    rows = data.get("results", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise JournalError(f"{path}: its results are no list of objects")
    try:
        rows = [*rows, *passes.expanded(data.get("passes", []))]
    except ValueError as error:
        raise JournalError(f"{path}: {error}") from None
    judged = [_result(row, str(path)) for row in rows]
    places = compares(data)
    results = {
        key_of(r.case, r.seed, f"{r.node} {r.device}".strip() if places else ""): r for r in judged
    }
    header = {k: v for k, v in data.items() if k not in ("results", "passes", "summary")}
    return Record(header, results, end=data.get("summary"))


def key_of(case: str, seed: int, place: str = "") -> str:
    """What tells one run of a case from another; a comparison runs it at several places."""
    return f"{case} --seed {seed}" + (f" --device {place}" if place else "")


def header(
    environment: Mapping[str, Any], options: Mapping[str, Any], total: int
) -> dict[str, Any]:
    """The first line of a run."""
    return {
        "schema": SCHEMA,
        "node": node(),
        "folder": state.here(),
        "started": now(),
        "environment": dict(environment),
        "options": dict(options),
        "cases": total,
    }


def now() -> str:
    """This host's clock, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def new_run() -> str:
    """An id that no other run has."""
    return uuid.uuid4().hex[:12]


def node() -> str:
    """What this host is called in reports: MINDTORCH_NODE, else its name in the network."""
    return os.environ.get("MINDTORCH_NODE") or platform.node()


def repro(case: str, seed: int, extra: Iterable[str] = ()) -> str:
    """The command that runs one case again."""
    op = case.partition("/")[0]
    options = list(extra)
    end = options.index(_REMARK) if _REMARK in options else len(options)
    words = ["mindtorch-npu", "check", op, "--case", case, "--seed", str(seed), *options[:end]]
    return "  ".join(filter(None, (shlex.join(words), " ".join(options[end:]))))


# What follows it in a repro line is a remark to the shell.
_REMARK: Final = "#"


def place_words(
    options: Mapping[str, Any], environment: Mapping[str, Any] = MappingProxyType({})
) -> list[str]:
    """Options that a repro line needs to mean the same device and install; at the end, as a
    remark, the custom operator packages of `environment`, which a variable names."""
    packages = environment.get("packages") or {}
    remark = [f"{path} sha256 {digest}" for path, digest in packages.items()]
    return [*_place(options), *([_REMARK, "with", ", ".join(remark)] if remark else [])]


def _place(options: Mapping[str, Any]) -> list[str]:
    device = options.get("device") or "npu:0"
    words = [] if device == "npu:0" else ["--device", str(device)]
    if options.get("home"):
        words += ["--home", str(options["home"])]
    if options.get("recording"):
        words += ["--from", str(options["recording"])]
    if options.get("cases"):
        words += ["--cases", _case_file(str(options["cases"]))]
    for golden in options.get("golden") or ():
        words += ["--golden", str(golden)]
    for kernel in options.get("kernels") or ():
        words += ["--kernel", str(kernel)]
    if options.get("soc"):
        words += ["--soc", str(options["soc"])]
    return words + (["--simulator"] if options.get("simulator") else [])


def _case_file(described: str) -> str:
    """The path of a case file as workers are told of it."""
    return str(json.loads(described)[0]) if described.startswith("[") else described
