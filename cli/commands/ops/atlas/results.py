"""Owns reading a folder of results of `probe`, `check` and `bench` of many machines.

Takes from a file only words of our own tables: operators that a catalog or a row declares, dtypes,
verdicts, releases and products by their form. Every other text of a file stays there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from aclnn_bindings.install.products import product_of
from aclnn_bindings.interface import catalog
from mindtorch.ops import OPS

from ....conformance.cases.case import BENCH, DTYPES, ITEMS
from ....conformance.record import compressed, journal, passes
from ....conformance.record.result import VERDICTS
from ....fleet import run_files
from ....foreign import ForeignError, parsed, text_of
from ...bench.rivals import BASELINE
from ...bench.statistics import from_json
from ...probe.document import SCHEMA as PROBE
from .measured import UNNAMED, Measured, MeasuredPlace, TimedWorkload

_SUFFIXES: Final = (".json", ".jsonl", *compressed.SUFFIXES)
_UNDECLARED: Final = "results of operators that no known release declares"
_DOCUMENT: Final = 32 << 20  # bytes of a report, which is read as a whole
_RELEASE: Final = re.compile(r"\d{1,4}(\.\d{1,3}){0,3}(\.?(RC|alpha|beta|B)\d{1,4}){0,2}")
_SOC: Final = re.compile(r"Ascend\d{3}[A-Z]{0,3}\d{0,2}([_-]\d{1,4})?")
_SHAPES: Final = re.compile(r"(scalar|\d{1,9}(x\d{1,9}){0,7})(,(scalar|\d{1,9}(x\d{1,9}){0,7}))*")
# What reading content of another form raises.
_OTHER_FORM: Final = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)


class ResultError(ValueError):
    """A file that is no result, or says too little of where it was measured; the message says it
    without a word of the file."""


class _RepeatedRunError(Exception):
    """Another file has the same run."""


@dataclass(slots=True)
class Results:
    """What a folder says, and which of its files say nothing."""

    measured: Measured = field(default_factory=Measured)
    unread: list[run_files.Unread] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a result was measured."""

    release: str
    soc: str
    simulated: bool
    machine: int

    def place(self, operator: str, soc: str = "") -> MeasuredPlace:
        return MeasuredPlace(operator, product_of(_soc(soc) or self.soc) or "", self.simulated)


def read(folder: Path) -> Results:
    """Every result below `folder`; what cannot be read is named in `unread`."""
    results = Results()
    runs: dict[str, Path] = {}
    for path in sorted(_files(folder), key=lambda p: (p.suffix == ".json", p)):
        try:
            _file(path, results.measured, runs)
            results.measured.read += 1
        except _RepeatedRunError:
            results.measured.left_out["files of a run that another file has"] += 1
        except (ResultError, journal.JournalError, ForeignError, OSError) as error:
            name = str(path.relative_to(folder))
            why = error.strerror if isinstance(error, OSError) else str(error)
            results.unread.append(run_files.Unread(name, why or "cannot be read"))
    return results


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file():  # neither a folder, a pipe nor a broken link
            yield path


def _file(path: Path, into: Measured, runs: dict[str, Path]) -> None:
    if path.suffix not in _SUFFIXES:
        raise ResultError("no result: the name ends neither in .json nor as journals do")
    first = run_files.as_object(next(run_files.lines(path), b""))
    if first is not None and "kind" in first:
        _journal(path, into, runs)
    elif path.stat().st_size > _DOCUMENT:
        raise ResultError(f"more than {_DOCUMENT >> 20} MiB: give the run's journal instead")
    else:
        _document(path, into, runs)


def _document(path: Path, into: Measured, runs: dict[str, Path]) -> None:
    """A report: none of it counts where a part is damaged."""
    try:
        data = parsed(text_of(path))
        reader = _DOCUMENTS[data["schema"]]
    except _OTHER_FORM:
        raise ResultError("no result of probe, check or bench, or one of another schema") from None
    try:
        reader(data, path, into, runs)
    except (ResultError, journal.JournalError):
        raise
    except _OTHER_FORM as error:
        raise ResultError(f"damaged: {type(error).__name__}") from None


def _journal(path: Path, into: Measured, runs: dict[str, Path]) -> None:
    """A journal, a line at a time. A torn line is skipped, as by `report --merge`; of a damaged
    one, what comes before the damage counts."""
    site: Site | None = None
    sites: dict[str, Site] = {}  # of a cluster's run, by node
    for text in run_files.lines(path):
        line = run_files.as_object(text) or {}
        kind = line.get("kind")
        if kind == "run":
            part = run_files.part_of(line, path, 0)
            _once(line, path, runs)
            site = _site(part.environment, part.node, into)
        elif kind == "place":
            node = str(line.get("node"))
            sites[node] = _site(_table(line.get("environment")), node, into)
        elif kind == "result" and site is not None:
            _result(line, sites.get(str(line.get("node")), site), into)
    if site is None:
        raise ResultError("a journal without a header line")


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _once(header: Mapping[str, Any], path: Path, runs: dict[str, Path]) -> None:
    """_RepeatedRunError where another file has the run: a journal and its report are one."""
    if runs.setdefault(str(header.get("run") or path), path) != path:
        raise _RepeatedRunError


def _site(environment: Mapping[str, Any], node: str, into: Measured) -> Site:
    """Where a run was; ResultError where the release or the kind of device is not stated."""
    if environment.get("kind") == "cpu":
        raise ResultError("a run on the cpu: no CANN was measured")
    release = environment.get("cann")
    if not isinstance(release, str) or not _RELEASE.fullmatch(release):
        raise ResultError("it states no CANN release")
    soc = _soc(environment.get("soc"))
    return Site(release, soc, environment.get("kind") == "simulator", into.machine(node))


def _soc(text: object) -> str:
    return text if isinstance(text, str) and _SOC.fullmatch(text) else ""


def _result(line: Mapping[str, Any], site: Site, into: Measured) -> None:
    """Count a result; lines that are none of ours, or of operators nobody declares, are counted as
    left out."""
    operator, verdict, form = line.get("op"), line.get("verdict"), line.get("form")
    if not isinstance(operator, str) or verdict not in VERDICTS or not isinstance(form, str):
        into.left_out["lines that are no results"] += 1
    elif operator not in names():
        into.left_out[_UNDECLARED] += 1
    elif form == BENCH:
        _timed_case(line, operator, site, into)
    elif form not in ITEMS:
        dtype = line.get("dtype")
        place = site.place(operator, str(line.get("soc") or ""))
        into.judge(place, site.release, site.machine, str(verdict),
                   dtype if dtype in DTYPES else "")  # fmt: skip
        into.results += 1


def _timed_case(line: Mapping[str, Any], operator: str, site: Site, into: Measured) -> None:
    """A result of `bench` with several devices: its case says dtype and shapes."""
    _, _, dtype, shapes, *_ = (*str(line.get("case")).split("/"), "", "", "")
    times = _table(line.get("measure")).get("times")
    problem = "" if line["verdict"] == "PASS" else str(line["verdict"])
    _timed(operator, dtype, shapes, times, problem, site, into)


def _timed(
    operator: str, dtype: str, shapes: str, times: object, problem: str, site: Site, into: Measured
) -> None:
    """A workload: its device time, or the verdict that it got instead of one."""
    place = site.place(operator)
    into.results += 1
    into.judge(place, site.release, site.machine, problem or "PASS",
               dtype if problem and dtype in DTYPES else "")  # fmt: skip
    device = _table(_table(times).get("device"))
    if problem or not device:
        return
    if dtype not in DTYPES or not _SHAPES.fullmatch(shapes):
        into.left_out["times of no known dtype or shapes"] += 1
        return
    try:
        spread = from_json(device)
    except (TypeError, ValueError):
        into.left_out["times that are none"] += 1
        return
    into.time(TimedWorkload(place, site.soc, dtype, shapes), site.release, spread)


def _check_report(
    data: Mapping[str, Any], path: Path, into: Measured, runs: dict[str, Path]
) -> None:
    journal.require_options(data, "a report")
    lines = [*data.get("results", ()), *passes.expanded(data.get("passes", []))]
    if not all(isinstance(line, dict) for line in lines):
        raise ResultError("damaged: a result that is no object")
    site = _site(data["environment"], str(data.get("node")), into)
    _once(data, path, runs)
    for line in lines:
        _result(line, site, into)


def _bench_report(
    data: Mapping[str, Any], _path: Path, into: Measured, _runs: dict[str, Path]
) -> None:
    environment = data["environment"]
    site = _site(environment, str(environment.get("node")), into)
    for args in [_workload(row) for row in data["results"]]:
        if args[0] in names():
            _timed(*args, site, into)
        else:
            into.left_out[_UNDECLARED] += 1


def _workload(row: Mapping[str, Any]) -> tuple[str, str, str, object, str]:
    """Operator, dtype, shapes, times and the verdict in place of these."""
    shapes = ",".join("x".join(map(str, shape)) or "scalar" for shape in row["shapes"])
    wrong = str(row.get("problem") or "")
    problem = ("FAIL" if wrong.startswith("wrong result") else "ERROR") if wrong else ""
    return str(row["op"]), str(row["dtype"]), shapes, row.get("times"), problem


def _probe_report(
    data: Mapping[str, Any], path: Path, into: Measured, _runs: dict[str, Path]
) -> None:
    install = data["install"]
    if not isinstance(install, Mapping):
        raise ResultError("a probe that found no CANN")
    facts = {"cann": install["versions"]["toolkit"], "kind": install["kind"],
             "soc": data["device"]["soc"]}  # fmt: skip
    operators = [(str(row["name"]), row["callable"] is True) for row in data["ops"]["rows"]]
    site = _site(facts, f"{UNNAMED}{path}", into)
    for name, works in operators:
        if name in names():
            cell = into.cell(site.place(name), site.release)
            cell.callable |= works << site.machine
            cell.missing |= (not works) << site.machine
            into.results += 1


_DOCUMENTS: Final[Mapping[str, Callable[[Any, Path, Measured, dict[str, Path]], None]]] = {
    journal.SCHEMA: _check_report, BASELINE: _bench_report, PROBE: _probe_report,
}  # fmt: skip


@cache
def names() -> frozenset[str]:
    """The operators whose names may stand on a page: rows, and what a known release declares."""
    declared = {name for v in catalog.versions() for name in catalog.load(v).ops}
    return frozenset(declared | set(OPS))
