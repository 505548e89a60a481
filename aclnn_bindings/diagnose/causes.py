"""Turns the rows of a probe into causes with fixes; refuses to call a guess a cause.

Sources: messages of the glibc loader, CANN's installation and container documents, set_env.sh.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..install.machine import Misfit, device_nodes, misfit
from ..install.search import ENVIRONMENT
from ..runtime.remedies import remedy_for
from .census import Status
from .child import StepResult
from .loader_words import complaint
from .probe import Report

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong or worth knowing: what was seen, and what to do about it."""

    severity: Severity
    what: str
    fix: str = ""
    evidence: str = ""


def causes(report: Report, environ: Mapping[str, str]) -> tuple[Cause, ...]:
    """Every cause, errors first, in the order in which to deal with them."""
    likely = [*_of_search(report), *_of_environment(report, environ)]
    if report.install is not None:
        for rule in _RULES:
            likely += rule(report, environ)
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(dict.fromkeys(likely), key=lambda cause: rank[cause.severity]))


def _of_search(report: Report) -> Iterator[Cause]:
    if report.install is None:
        named = any(s.via in ENVIRONMENT and s.verdict != "unset" for s in report.steps)
        what = report.refusal.partition(";")[0]
        if named or report.request.home or report.request.simulator or report.request.headers:
            yield Cause("error", what, report.refusal.partition("; ")[2])
        else:
            yield Cause("error", "no CANN and no simulator on this machine", _INSTALL_CANN)
        for step in report.steps:
            if step.install and step.install.kind == "simulator":
                yield Cause("note", "the bundled simulator is here", "add --simulator to use it")


_INSTALL_CANN: Final = (
    "install the toolkit and source its set_env.sh, or reinstall this package where a C++ "
    "compiler is available to get its simulator"
)


def _of_environment(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    home, toolkit = environ.get("ASCEND_HOME_PATH"), environ.get("ASCEND_TOOLKIT_HOME")
    if home and toolkit and os.path.realpath(home) != os.path.realpath(toolkit):
        yield Cause(
            "warning",
            "ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME name two installs",
            "source one set_env.sh in a fresh shell",
            f"{home} and {toolkit}",
        )
    folders = environ.get("LD_LIBRARY_PATH", "").split(":")
    stubs = next((i for i, f in enumerate(folders) if "devlib" in Path(f).parts), None)
    real = next((i for i, f in enumerate(folders) if Path(f).name == "lib64"), None)
    if stubs is not None and (real is None or stubs < real):
        yield Cause(
            "warning",
            "LD_LIBRARY_PATH reaches the stub libraries first",
            "put lib64 before devlib: stubs answer every call with 100039",
            folders[stubs],
        )
    if report.install is None:
        return
    via, root = report.install.found_via, report.install.root
    if via.endswith("set_env.sh") or via == "default root":
        near = (root / "set_env.sh", root.parent / "set_env.sh")
        script = via if via.endswith(".sh") else next((p for p in near if p.exists()), near[0])
        yield Cause("note", "CANN is installed but not set up in this shell", f"source {script}")


def _contents(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    install = report.install
    assert install is not None
    if not install.libraries:
        yield Cause(
            "error",
            "headers only: there are no libraries, so nothing can run",
            "give a toolkit's root, or install the toolkit's runtime package",
            str(install.root),
        )
    elif report.declared is not None and report.declared_from.startswith("catalog "):
        yield Cause(
            "note",
            f"no headers: signatures come from the {report.declared_from}",
            "install the development package to read this install's own headers",
        )
    elif report.declared is None:
        yield Cause(
            "error",
            "no headers and no catalog of this version: functions are listed, not called",
            "install the development package, or give --headers with this version's headers",
            report.declared_from,
        )


def _layout(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    install = report.install
    assert install is not None
    if install.libraries and install.layout == "none":
        yield Cause(
            "error",
            "no operator library (libopapi*.so) in this install",
            "install the toolkit or the ops packages; the driver alone has no operators",
        )
    if install.layout == "mixed":
        yield Cause(
            "warning",
            "libopapi.so stands beside the split libopapi_*.so",
            "the split libraries are used; do not link both (CANN 8.5 documents)",
        )


def _tables(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    wrong: dict[Misfit, list[str]] = {}
    for library, table in report.files:
        if table.problem:
            fix = "copy or install the file again, and compare its size with the source's"
            yield Cause("error", f"{library.name} {table.problem}", fix, str(library.path))
        elif reason := misfit(table):
            wrong.setdefault(reason, []).append(library.name)
    for reason, names in wrong.items():
        yield Cause("error", f"{_several(names)} {reason.reason}", reason.fix)


def _loading(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    assert report.install is not None
    damaged = {str(lib.path) for lib, table in report.files if table.fatal or misfit(table)}
    grouped: dict[tuple[str, str], list[str]] = {}
    off_path: list[str] = []
    for step in report.loads:
        name = Path(step.name).name
        if step.state == "ok":
            if step.facts.get("preloaded"):
                off_path += step.facts["preloaded"]
        elif step.name in damaged:
            continue
        elif step.state in ("crashed", "timed out"):
            yield Cause("error", f"loading {name} {step.state}", _LOAD_ALONE, step.detail)
        else:
            key = complaint(step.detail, report.install)
            grouped.setdefault(key, []).append(f"{name}: {step.detail}")
    for (what, fix), lines in grouped.items():
        yield Cause("error", what, fix, lines[0])
    if off_path:
        where = report.install.root / "lib64"
        yield Cause(
            "warning",
            f"{_several(sorted(set(off_path)))} not on the loader's path",
            f"source set_env.sh, or add {where} to LD_LIBRARY_PATH",
        )


_LOAD_ALONE: Final = "run `ldd` on it; an initializer of this library or of one it needs fails"


def _running(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    for step in report.smoke:
        if step.state in ("ok", "not run"):
            continue
        verb = "failed" if step.state == "failed" else step.state
        seen, fix = step.detail.split("\n")[0], ""
        if "exported by none" not in step.detail:
            names = re.findall(r"\((ACL\w+)\)", step.detail)
            fix = next((r for r in map(remedy_for, names) if r), _RUN_FIXES.get(step.name, ""))
        yield Cause("error", f"smoke test: {step.name} {verb}", _with_devices(step, fix), seen)


_RUN_FIXES: Final = {
    "device": "check `npu-smi info` and ASCEND_RT_VISIBLE_DEVICES",
    "init": "check that driver and toolkit versions go together",
}


def _with_devices(step: StepResult, fix: str) -> str:
    if step.name not in ("init", "device") or " returned " not in step.detail:
        return fix
    nodes = device_nodes()
    if not nodes:
        return f"{fix}; there is no /dev/davinci*: start the container with --device /dev/davinci0"
    closed = [str(n) for n in nodes if not os.access(n, os.R_OK | os.W_OK)]
    return f"{fix}; {closed[0]} cannot be opened by this user" if closed else fix


def _wanted(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    needed, ops = report.request.needed, report.census.ops if report.census else {}
    lacking = [op for op in needed if op not in ops or not ops[op].callable]
    if not lacking or not report.files:
        return
    known = ops.get(lacking[0])
    reason = known.reason if known else "not declared and not exported"
    yield Cause(
        "error" if len(lacking) == len(needed) else "warning",
        f"{len(lacking)} of {len(needed)} operators wanted cannot be called: {_several(lacking)}",
        "a newer toolkit may have them",
        f"{lacking[0]}: {reason}",
    )


def _unexported(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    assert report.install is not None
    ops = report.census.ops.values() if report.census else ()
    half = [op.name for op in ops if op.reason.endswith("not exported")]
    if not half or report.install.layout == "none":
        return
    number = "1 operator is" if len(half) == 1 else f"{len(half)} operators are"
    what = f"{number} declared but not exported: {_several(half)}"
    if report.install.kind == "simulator":
        yield Cause("error", what, "reinstall the package: its simulator is damaged")
    else:
        fix = "headers are newer than libraries, or a library is missing"
        yield Cause("warning", what, fix)


def _drift(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    functions = report.census.functions.values() if report.census else ()
    drifted = [f for f in functions if f.status is Status.DRIFTED and f.drift]
    breaking = [f for f in drifted if f.drift and f.drift.effect == "breaks ABI"]
    for first in (breaking or drifted)[:1]:
        assert first.drift is not None
        count = "1 function differs" if len(drifted) == 1 else f"{len(drifted)} functions differ"
        yield Cause(
            "error" if breaking else "note",
            f"{count} from this version's catalog",
            "headers and libraries may be of two versions" if breaking else "",
            f"{first.name}: {first.drift.detail}",
        )


def _packages(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    install = report.install
    assert install is not None
    for vendor in install.vendors:
        if vendor.problem:
            yield Cause("warning", f"custom operators {vendor.name}: {vendor.problem}")
        elif vendor.shadowed:
            yield Cause("note", f"custom operators {vendor.name}: {vendor.shadowed}")
    if install.kind == "cann" and install.libraries and not install.versions.kernels:
        yield Cause(
            "note",
            "no built-in kernel binaries were found below opp/",
            "if operators fail with 561003, 561112 or 561000, install Ascend-cann-kernels-<soc>",
        )
    if install.kind == "cann" and install.libraries and not environ.get("ASCEND_OPP_PATH"):
        yield Cause(
            "warning",
            "ASCEND_OPP_PATH is not set, so operators cannot find their kernels",
            "source the toolkit's set_env.sh",
        )


def _several(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


_Rule = Callable[[Report, Mapping[str, str]], Iterator[Cause]]
_RULES: Final[tuple[_Rule, ...]] = (
    _contents,
    _layout,
    _tables,
    _loading,
    _running,
    _wanted,
    _unexported,
    _drift,
    _packages,
)
