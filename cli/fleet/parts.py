"""Owns the journals of a fleet as they are on disk: runs in files, whatever their order, repeats
and torn lines; refuses journals of another format or of another version of this program.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..conformance.record import journal
from ..conformance.record.result import VERDICTS, Result, from_json
from ..foreign import ForeignError, opened, parsed

Line = Mapping[str, Any]
_NOTES: Final = frozenset(("soak", "repeat", "lost", "deviation", "killed"))
_UNNAMED: Final = "host without a name"


class ForeignJournalError(journal.JournalError):
    """Journals that cannot be merged; the message names the files and what differs."""


@dataclass(slots=True)
class Part:
    """One run as one file tells it. `plan` and `started` are (case, seed, device) keys; `torn`
    counts lines that are none. Of a cluster's run, `places` are the environments of its nodes, and
    `skews` what their clocks were ahead of the head's, in seconds."""

    path: Path
    run: str
    header: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    plan: dict[tuple[str, int, str], None] = field(default_factory=dict)
    started: dict[tuple[str, int, str], None] = field(default_factory=dict)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    skews: dict[str, float] = field(default_factory=dict)
    end: dict[str, Any] | None = None
    torn: int = 0

    @property
    def node(self) -> str:
        """The host's name."""
        named = self.header.get("node") or self.environment.get("node")
        return str(named or _UNNAMED)

    @property
    def environment(self) -> dict[str, Any]:
        stated: dict[str, Any] = self.header.get("environment", {})
        return stated

    @property
    def options(self) -> dict[str, Any]:
        stated: dict[str, Any] = self.header.get("options", {})
        return stated

    @property
    def compares(self) -> bool:
        """Whether every device was given every case."""
        return journal.compares(self.header)


def read(paths: Sequence[Path]) -> list[Part]:
    """The runs of all files, each run once, in an order that does not depend on the files'.

    ForeignJournalError where formats or versions differ; JournalError for what is no journal.
    """
    by_run: dict[str, Part] = {}
    for path in paths:
        for part in runs(path):
            known = by_run.get(part.run)
            by_run[part.run] = part if known is None else _joined(known, part)
    parts = sorted(by_run.values(), key=lambda p: (p.node, p.run))
    _require_one_version(parts)
    return parts


def runs(path: Path) -> Iterator[Part]:
    """The runs that wrote into one file; lines without a run's id belong to the last header."""
    parts: dict[str, Part] = {}
    last, torn = "", 0
    for line in _lines(path):
        if line is None:
            torn += 1
            continue
        if line.get("kind") == "run":
            _require_format(line, path)
            last = str(line.get("run") or f"{path}#{len(parts)}")
            parts.setdefault(last, Part(path, last, {k: v for k, v in line.items() if k != "kind"}))
        part = parts.get(str(line.get("run") or last))
        if part is not None:
            try:
                _take(part, line, path)
            except journal.JournalError:
                raise
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise journal.JournalError(
                    f"{path}: a {line.get('kind')!r} line is none of ours: {error!r}"
                ) from None
    if not parts:
        raise journal.JournalError(f"{path}: no journal of `mindtorch-npu check`: no header line")
    for part in parts.values():
        part.torn = torn
    yield from parts.values()


_LINE, _FILE = 1 << 24, 1 << 33  # characters of one line, and of a journal


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Every line as an object; None for one that is torn."""
    try:
        with io.TextIOWrapper(opened(path), "utf-8", "replace") as file:
            size = 0
            while text := file.readline(_LINE):
                size += len(text)
                if size > _FILE:
                    raise journal.JournalError(f"{path}: longer than any journal")
                try:
                    data = parsed(text)
                except ValueError:
                    data = None
                yield data if isinstance(data, dict) else None
    except ForeignError as error:
        raise journal.JournalError(f"{path}: {error}") from None
    except OSError as error:
        raise journal.JournalError(f"{path}: cannot be read: {error.strerror}") from None


def _require_format(line: Line, path: Path) -> None:
    if line.get("schema") != journal.SCHEMA:
        raise ForeignJournalError(
            f"{path}: format {line.get('schema')!r}, expected {journal.SCHEMA!r}: merge it with "
            "the version that wrote it"
        )


def _require_one_version(parts: Sequence[Part]) -> None:
    """One version of this program: a case's name means the same inputs only within one."""
    written: dict[str, Path] = {}
    for part in parts:
        version = part.environment.get("mindtorch_npu")
        if version:
            written.setdefault(str(version), part.path)
    if len(written) > 1:
        told = ", ".join(f"{path} by {version}" for version, path in sorted(written.items()))
        raise ForeignJournalError(
            f"journals of different versions of mindtorch-npu: {told}; a case's inputs may differ "
            "between them: run the fleet with one version"
        )


def _take(part: Part, line: Line, path: Path) -> None:
    kind = line.get("kind")
    if kind == "result":
        if str(line.get("verdict")) not in VERDICTS:
            raise ForeignJournalError(
                f"{path}: verdict {line.get('verdict')!r} is none of {', '.join(VERDICTS)}; a "
                "newer version wrote this: merge it with that one"
            )
        result = from_json(line)
        device = result.device or str(part.environment.get("device", ""))
        part.results.append(result.with_(node=result.node or part.node, device=device))
    elif kind == "plan":
        place = str(line.get("device", ""))
        part.plan.update({(case, int(line["seed"]), place): None for case in line["cases"]})
    elif kind == "start":
        place = str(line.get("device", "")) if part.compares else ""
        part.started[str(line.get("case")), int(line.get("seed", 0)), place] = None
    elif kind == "place":
        part.places[str(line["node"])] = dict(line["environment"])
        part.skews[str(line["node"])] = float(line.get("skew", 0.0))
    elif kind == "end":
        part.end = dict(line)
    elif str(kind) in _NOTES:
        part.notes.append((str(kind), dict(line)))


def _joined(one: Part, other: Part) -> Part:
    """Two copies of one run's journal, perhaps taken at different times."""
    longer, shorter = (one, other) if _size(one) >= _size(other) else (other, one)
    known = {(r.case, r.seed, r.node, r.device) for r in longer.results}
    longer.results += [
        r for r in shorter.results if (r.case, r.seed, r.node, r.device) not in known
    ]
    longer.plan |= shorter.plan
    longer.started |= shorter.started
    longer.notes += [n for n in shorter.notes if n not in longer.notes]
    longer.end = longer.end or shorter.end
    longer.torn = max(longer.torn, shorter.torn)
    return longer


def _size(part: Part) -> tuple[int, int, str]:
    return len(part.results), len(part.notes), str(part.path)
