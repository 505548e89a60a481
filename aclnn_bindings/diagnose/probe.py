"""Finds out what is installed, what it declares and whether it works; changes and prints nothing.

Files are read first; loading and calling happen only in child processes, so that a crash or a hang
there is a row of the report.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..install import elf
from ..install.describe import Install, LibraryFile, describe
from ..install.file_queries import listed
from ..install.library import (
    DeclarationsUnknownError,
    InstallNotFoundError,
    catalog_version,
    choose,
    declarations as declared_by,
)
from ..install.search import ENVIRONMENT, Step, bundled_simulator, search
from ..interface import catalog
from ..interface.abi import kind_of
from ..interface.signature import Declarations
from ..runtime.status import StatusCodes
from . import census, child, smoke

# Seconds for one step: a library or a call.
LOAD_TIMEOUT = 15.0
SMOKE_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """What to probe: `home`, else the simulator if asked for, else what is found.

    `headers` replaces the install's own; `needed` are operators that the caller wants to run;
    `run` False reads files only.
    """

    home: Path | None = None
    simulator: bool = False
    headers: Path | None = None
    needed: Sequence[str] = ()
    run: bool = True
    bases: tuple[Path, ...] | None = None
    load_timeout: float = LOAD_TIMEOUT
    smoke_timeout: float = SMOKE_TIMEOUT


@dataclass(frozen=True, slots=True)
class Report:
    """Everything found, as data; `refusal` says why no install was chosen."""

    request: Request
    steps: tuple[Step, ...]
    install: Install | None = None
    refusal: str = ""
    declared: Declarations | None = None
    declared_from: str = ""
    files: tuple[tuple[LibraryFile, elf.Elf], ...] = ()
    census: census.Census | None = None
    loads: tuple[child.StepResult, ...] = ()
    smoke: tuple[child.StepResult, ...] = ()

    def fact(self, name: str) -> Any:
        """A fact that the smoke test found, such as `soc`, or None."""
        return next((s.facts[name] for s in self.smoke if name in s.facts), None)


def probe(request: Request, environ: Mapping[str, str] | None = None) -> Report:
    """Look, read, load and try, as far as `request` allows and the install carries."""
    environ = os.environ if environ is None else environ
    home = request.home
    if request.simulator and home is None:
        home = bundled_simulator() or Path("simulator that was not built")
    steps = search(environ, home, request.bases, request.headers)
    report = Report(request, steps)
    try:
        report = replace(report, install=_choose(steps, home, request.headers, environ))
    except InstallNotFoundError as error:
        return replace(report, refusal=str(error))
    report = _read(report)
    return _run(report, environ) if request.run else report


def _choose(
    steps: tuple[Step, ...], home: Path | None, headers: Path | None, environ: Mapping[str, str]
) -> Install:
    """As `choose`, but an install with headers only is worth a report, and so are bare headers."""
    if home is not None and steps[0].install is not None:
        return steps[0].install
    if headers is not None:
        installs = [s.install for s in steps if s.install and s.install.kind == "cann"]
        if installs:
            return replace(installs[0], include_dirs=(headers,))
        if not headers.is_dir():
            raise InstallNotFoundError(f"headers: {headers} is not a folder")
        alone = describe(headers, "--headers", environ, headers)
        assert alone is not None
        return alone
    for step in steps:
        if step.via not in ENVIRONMENT or step.verdict == "unset":
            continue
        if step.install is None or step.install.libraries:
            break
        return step.install
    return choose(steps, explicit=home is not None)


def _read(report: Report) -> Report:
    """What files say: declarations, symbol tables, and the census of both."""
    install = report.install
    assert install is not None
    files = tuple((library, elf.read(library.path)) for library in install.libraries)
    version = catalog_version(install)
    declared: Declarations | None = None
    source = ", ".join(map(str, install.include_dirs))
    try:
        declared = declared_by(install)
        if version and declared is catalog.load(version):
            source = f"catalog {version}"
    except DeclarationsUnknownError as error:
        source = str(error)
    reference = catalog.load(version) if version and install.include_dirs else None
    counted = census.restrict(census.take(files, declared, reference), _unlinked(files))
    return replace(report, files=files, declared=declared, declared_from=source, census=counted)


def _unlinked(files: Sequence[tuple[LibraryFile, elf.Elf]]) -> dict[str, str]:
    """Custom packages' libraries that do not name what they need → the reason."""
    reasons = {}
    for library, _ in files:
        if library.role == "custom" and (lacking := census.unlinked(library, files)):
            symbol, provider = lacking
            reasons[str(library.path)] = f"is not linked with {provider}, which has {symbol}"
    return reasons


def _run(report: Report, environ: Mapping[str, str]) -> Report:
    """Load every library in one child, then tour the device in another."""
    install = report.install
    assert install is not None
    paths = [str(library.path) for library in load_order(report.files)]
    if not paths:
        return report
    preload = _preload(install)
    custom = [str(library.path) for library in install.libraries if library.role == "custom"]
    load_request = {"preload": preload, "custom": custom}
    loads = _load(paths, load_request, _patience(report.request.load_timeout, environ), environ)
    report = replace(report, loads=loads, census=_without_unloadable(report, loads))
    if report.declared is None:
        reason = f"calling is refused: {report.declared_from}"
        return replace(report, smoke=(child.StepResult("init", "not run", 0.0, reason),))
    usable = {s.name for s in loads if s.state == "ok"}
    before = [preload[n] for s in loads for n in s.facts.get("preloaded", ()) if n in preload]
    searched = [str(lib.path) for lib in _searched(install) if str(lib.path) in usable]
    order = dict.fromkeys([*reversed(before), *(p for p in paths if p in searched)])
    tour = _smoke_request(report.declared, list(order), searched)
    patience = _patience(report.request.smoke_timeout, environ)
    steps = child.run("smoke", tour, patience, environ)
    if report.request.headers is None and all(step.state == "ok" for step in steps):
        root = {"root": str(install.root)}
        steps += child.run("trial", root, patience, environ)
    return replace(report, smoke=steps)


def _patience(seconds: float, environ: Mapping[str, str]) -> float:
    """How long a child may be silent: longer than `seconds` on machines that are said to be slow,
    such as an emulator, as for the workers of `check`."""
    try:
        return max(seconds, float(environ.get("MINDTORCH_START_SECONDS") or 0))
    except ValueError:
        return seconds


def _load(
    paths: list[str], request: dict[str, Any], timeout: float, environ: Mapping[str, str]
) -> tuple[child.StepResult, ...]:
    """One step per library; after one that kills its child or hangs there, the rest get a new
    child, but for those that need it: they would end the same way."""
    done: list[child.StepResult] = []
    while paths:
        steps = child.run("loading", {"libraries": paths, **request}, timeout, environ)
        done += steps
        tried = {step.name for step in steps}
        rest = [path for path in paths if path not in tried]
        if len(rest) == len(paths):
            break
        last = steps[-1]
        lost = _needing(last.name, rest) if last.state in ("crashed", "timed out") else []
        why = f"it needs {Path(last.name).name}, whose loading {last.state}"
        done += [child.StepResult(path, "not run", 0.0, why) for path in lost]
        paths = [path for path in rest if path not in lost]
    return tuple(done)


def _needing(killer: str, paths: Sequence[str]) -> list[str]:
    """Those of `paths`, in load order, that need the library `killer`, others of them between."""
    names, needing = {Path(killer).name}, []
    for path in paths:
        if names & set(elf.read(Path(path)).needed):
            names.add(Path(path).name)
            needing.append(path)
    return needing


def _without_unloadable(
    report: Report, loads: tuple[child.StepResult, ...]
) -> census.Census | None:
    """The census, in which operators of a library that does not load are not callable."""
    failed = {s.name: f"does not load: {s.detail}" for s in loads if s.state != "ok"}
    return census.restrict(report.census, failed) if report.census and failed else report.census


def load_order(files: Sequence[tuple[LibraryFile, elf.Elf]]) -> list[LibraryFile]:
    """Libraries with each after those that it needs, so that one process can load them in turn."""
    by_name: dict[str, LibraryFile] = {}
    for library, _ in files:
        by_name.setdefault(library.name, library)
    needs = {library.path: table.needed for library, table in files}
    ordered: dict[Path, LibraryFile] = {}
    seen: set[Path] = set()

    def place(library: LibraryFile | None) -> None:
        if library is None or library.path in seen:
            return
        seen.add(library.path)
        for needed in needs[library.path]:
            place(by_name.get(needed))
        ordered[library.path] = library

    for library, _ in files:
        place(library)
    return list(ordered.values())


def _searched(install: Install) -> list[LibraryFile]:
    """Where a caller looks for functions: libraries of tools and media stay out of the process."""
    return [library for library in install.libraries if install.is_searched(library)]


def _preload(install: Install) -> dict[str, str]:
    """Library name → path, of everything that a library of the install may need."""
    symbols: dict[str, str] = {}
    for folder in install.dependency_dirs():
        for path in listed(folder, "lib*.so*"):
            symbols.setdefault(path.name, str(path))
    return symbols


def _smoke_request(
    declared: Declarations, libraries: list[str], searched: list[str]
) -> dict[str, Any]:
    functions: dict[str, list[str]] = {}
    types = declared.typedefs, declared.enums, declared.structs
    for name in smoke.FUNCTIONS:
        if signature := declared.functions.get(name):
            returns = kind_of(signature.returns, *types)
            kinds = [p.kind.value for p in signature.params]
            functions[name] = [returns.value if returns else "pointer", *kinds]
    constants: dict[str, int] = {}
    for name in smoke.CONSTANTS:
        try:
            constants[name] = declared.constant(name)
        except KeyError:
            continue
    codes = StatusCodes(declared).names()
    names = {str(code): name for code, name in codes.items()}
    return {
        "libraries": libraries,
        "searched": searched,
        "functions": functions,
        "constants": constants,
        "codes": names,
    }
