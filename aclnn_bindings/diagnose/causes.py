"""Turns the rows of a probe into causes with fixes; refuses to call a guess a cause.

Sources: messages of the glibc loader, CANN's installation and container documents, set_env.sh.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..install.describe import RUNTIME, Install, LibraryFile, arch, library_dirs
from ..install.elf import Elf, undefined
from ..install.file_queries import broken_link, closed, exists, has_content, listed, matching
from ..install.library import catalog_version
from ..install.machine import MANAGERS, Misfit, device_nodes, misfit
from ..install.products import kernels_of, product_of
from ..install.search import ENVIRONMENT
from ..install.versions import KERNELS, kernels_package, leads
from ..interface import catalog
from ..interface.signature import WORKSPACE_SUFFIX
from ..runtime.remedies import remedy_for
from .census import Status
from .child import EARLY, NO_CHILD, StepResult
from .frameworks import frameworks
from .loader_words import complaint, may_read
from .packages import packages
from .probe import Report
from .signals import ending
from .surroundings import VISIBLE, Cause as Cause, Severity, spelling, surroundings


def causes(report: Report, environ: Mapping[str, str]) -> tuple[Cause, ...]:
    """Every cause, errors first, in the order in which to deal with them."""
    likely = [*spelling(environ), *_of_search(report), *surroundings(report, environ)]
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


_PARTS: Final = ("lib64", "include", "opp")
_INSTALL_CANN: Final = (
    "install the toolkit and source its set_env.sh, or reinstall this package where a C++ "
    "compiler is available to get its simulator"
)


def _contents(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    install = report.install
    assert install is not None
    links = [link for part in _PARTS if (link := broken_link(install.root / part))]
    for link in links:
        severity: Severity = "warning" if link.name == "include" else "error"
        what = f"{link.name} is a broken link to {os.readlink(link)}"
        yield Cause(
            severity, what, "install the package that it names, or mend the link", str(link)
        )
    if not install.libraries and (refuser := _closed(install)):
        yield Cause("error", f"this user may not read {refuser}", may_read(), str(install.root))
    elif not install.libraries and not links:
        yield Cause(
            "error",
            "headers only: there are no libraries, so nothing can run",
            "give a toolkit's root, or install the toolkit's runtime package",
            str(install.root),
        )
    elif report.declared is not None and install.include_dirs and _from_catalog(report):
        yield Cause(
            "warning",
            f"the headers declare nothing: signatures come from the {report.declared_from}",
            "they were cut short or replaced on their way: install the development package again",
            str(install.include_dirs[0]),
        )
    elif report.declared is not None and _from_catalog(report):
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


def _from_catalog(report: Report) -> bool:
    return report.declared_from.startswith("catalog ")


def _layout(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    install = report.install
    assert install is not None
    if install.libraries and not any(lib.name in RUNTIME for lib in install.libraries):
        yield Cause(
            "error",
            "no runtime library (libascendcl.so) in this install",
            _unlinked(install, "libascendcl.so") or "install the toolkit's runtime package",
        )
    if install.libraries and install.layout == "none":
        yield Cause(
            "error",
            "no operator library (libopapi*.so) in this install",
            _unlinked(install, "libopapi.so")
            or "install the toolkit or the ops packages; the driver alone has no operators",
        )
    if install.layout == "mixed":
        yield Cause(
            "warning",
            "libopapi.so stands beside the split libopapi_*.so",
            "the split libraries are used; do not link both (CANN 8.5 documents)",
        )


def _unlinked(install: Install, name: str) -> str:
    """What to do where only the link to a library's numbered file is missing; else ""."""
    numbered = (path for d in library_dirs(install.root) for path in listed(d, f"{name}.[0-9]*"))
    path = next(numbered, None)
    return (
        f"the link to {path} is missing: `ln -s {path.name} {path.parent}/{name}`" if path else ""
    )


def _silent(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    """Operator libraries that are whole and export none: stubs, or built with hidden symbols."""
    for library, table in report.files:
        if library.role not in _OPERATORS or table.problem or misfit(table):
            continue
        if not any(name.startswith("acl") for name in table.exports):
            fix = "install the ops package again: this is a stub, or built with hidden symbols"
            yield Cause("error", f"{library.name} exports no operator", fix, str(library.path))
    operators = [(lib, table) for lib, table in report.files if lib.role in _OPERATORS]
    yield from _replaced(operators, "operator", lambda name: name.endswith(WORKSPACE_SUFFIX))
    runtimes = [(lib, table) for lib, table in report.files if lib.name in RUNTIME]
    yield from _replaced(runtimes, "aclInit", lambda name: name == "aclInit")


def _replaced(
    files: Sequence[tuple[LibraryFile, Elf]], what: str, predicate: Callable[[str], bool]
) -> Iterator[Cause]:
    """Libraries that are sound and have the functions of something else."""
    if not files or any(table.problem or misfit(table) for _, table in files):
        return
    exports = [name for _, table in files for name in table.exports]
    if any(name.startswith("acl") for name in exports) and not any(map(predicate, exports)):
        library, _ = files[0]
        yield Cause(
            "error",
            f"{library.name} exports no {what}: the file of another library is in its place",
            "install its package again, and see what wrote to this folder",
            str(library.path),
        )


def _undeclared(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    """Headers that lack most of what the libraries export: cut short, or of another release."""
    if report.declared is None or report.census is None or _from_catalog(report):
        return
    lacking = [op for op in report.census.ops.values() if op.installed and not op.declared]
    count = sum(op.declared for op in report.census.ops.values())
    if len(lacking) > count:
        yield Cause(
            "warning",
            f"the headers declare {count} operators, the libraries export {len(lacking)} more",
            "headers were cut short or are of another release: install the development package "
            "of the release that the libraries are of",
            f"{lacking[0].name} is in {lacking[0].library}",
        )


_OPERATORS: Final = ("split", "opapi", "legacy")


def _tables(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    wrong: dict[Misfit, list[str]] = {}
    for library, table in report.files:
        if table.problem:
            what = f"{library.name} {table.problem}"
            fix = may_read() if _REFUSED in table.problem else _INSTALL_AGAIN
            yield Cause(_severity(report, library), what, fix, str(library.path))
        elif reason := misfit(table):
            wrong.setdefault(reason, []).append(library.name)
    for reason, names in wrong.items():
        yield Cause("error", f"{_several(names)} {reason.reason}", reason.fix)


def _loading(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    assert report.install is not None
    severities = {str(lib.path): _severity(report, lib) for lib, _ in report.files}
    damaged = {str(lib.path) for lib, table in report.files if table.fatal or misfit(table)}
    grouped: dict[tuple[Severity, str, str], list[str]] = {}
    off_path: list[str] = []
    for step in report.loads:
        name = Path(step.name).name
        if step.state == "ok":
            if step.facts.get("preloaded"):
                off_path += step.facts["preloaded"]
        elif step.name in damaged or step.state == "not run" or _of_package(report, step):
            continue
        elif step.state in ("crashed", "timed out"):
            severity = severities.get(step.name, "error")
            what, fix = ending(step.detail) or (step.state, _LOAD_ALONE)
            yield Cause(severity, f"loading {name} {what}", fix, step.detail)
        elif step.detail.startswith(EARLY):
            severity = severities.get(step.name, "error")
            yield Cause(severity, f"loading {name} ended the process", _LOAD_ALONE, step.detail)
        else:
            key = severities.get(step.name, "error"), *complaint(step.detail, report.install)
            grouped.setdefault(key, []).append(f"{name}: {step.detail}")
    for (severity, what, fix), lines in grouped.items():
        yield Cause(severity, what, fix, lines[0])
    yield from _off_path(report.install, off_path)


def _of_package(report: Report, step: StepResult) -> bool:
    """Whether a custom package lacks a symbol: that is said of the package."""
    assert report.install is not None
    custom = {str(vendor.library) for vendor in report.install.vendors}
    return step.name in custom and "undefined symbol" in step.detail


def _off_path(install: Install, names: Sequence[str]) -> Iterator[Cause]:
    """One cause for each folder that holds libraries which the loader did not reach by itself."""
    folders: dict[Path, list[str]] = {}
    for name in sorted(set(names)):
        path = install.dependency(name)
        folders.setdefault(path.parent if path else install.root / "lib64", []).append(name)
    for folder, inside in folders.items():
        in_tree = folder in library_dirs(install.root)
        source = "source set_env.sh, or " if in_tree else "the driver's setup does it: "
        yield Cause(
            "warning",
            f"{_several(inside)} not on the loader's path",
            f"{source}add {folder} to LD_LIBRARY_PATH",
        )


def _severity(report: Report, library: LibraryFile) -> Severity:
    """What trouble with a library is: operators need none of those for tools and media."""
    assert report.install is not None
    return "error" if report.install.is_searched(library) else "warning"


def _closed(install: Install) -> Path | None:
    """The folder of libraries that this user may not read, or None."""
    places = (install.root / "lib64", install.root / f"{arch()}-linux" / "lib64")
    return next((refuser for place in places if (refuser := closed(place))), None)


_REFUSED: Final = "Permission denied"
_INSTALL_AGAIN: Final = "copy or install the file again, and compare its size with the source's"


_LOAD_ALONE: Final = "run `ldd` on it; an initializer of this library or of one it needs fails"


def _running(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    for step in report.smoke:
        if step.state in ("ok", "not run"):
            continue
        verb: str = step.state
        seen, fix = step.detail.split("\n")[0], ""
        if step.detail.startswith(NO_CHILD):
            if any(load.detail == step.detail for load in report.loads):
                continue  # said there
            assert report.install is not None
            verb, fix = complaint(step.detail, report.install)
        elif ending_text := ending(step.detail):
            verb, fix = ending_text
        elif "not declared by this install" in step.detail:
            fix = "headers are of another version or were cut short: install them again"
        elif "exported by none" not in step.detail:
            names = re.findall(r"\((ACL\w+)\)", step.detail)
            fix = next((r for r in map(remedy_for, names) if r), _RUN_FIXES.get(step.name, ""))
        if report.install is None or report.install.kind == "cann":
            fix = _with_devices(step, fix, environ)
        yield Cause("error", f"smoke test: {step.name} {verb}", fix, seen)


_RUN_FIXES: Final = {
    "device": "check `npu-smi info` and ASCEND_RT_VISIBLE_DEVICES",
    "init": "check that driver and toolkit versions go together",
}


def _with_devices(step: StepResult, fix: str, environ: Mapping[str, str]) -> str:
    """`fix`, and what this system shows of devices where that may be the cause."""
    device_named = " returned " in step.detail or "found no device" in step.detail
    if step.name not in ("init", "device") or not device_named:
        return fix
    seen = [f"{name} is {environ[name]!r}" for name in VISIBLE if name in environ]
    nodes = device_nodes()
    locked = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if not nodes:
        seen.append("there is no /dev/davinci*: start the container with --device /dev/davinci0")
    elif locked:
        seen.append(f"{locked[0]} cannot be opened: {may_read()}")
    else:
        seen += [f"there is no {path}" for path in MANAGERS if not exists(path)]
    return "; ".join(filter(None, [fix, *seen]))


def _missing_symbols(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    needed, ops = report.request.needed, report.census.ops if report.census else {}
    lacking = [op for op in needed if op not in ops or not ops[op].callable]
    if not lacking or not report.files:
        return
    known = ops.get(lacking[0])
    reason = known.reason if known else "not declared and not exported"
    yield Cause(
        "error" if len(lacking) == len(needed) else "warning",
        f"{len(lacking)} of {len(needed)} operators wanted cannot be called: {_several(lacking)}",
        _fix_of_lacking(report, lacking),
        f"{lacking[0]}: {reason}",
    )


def _fix_of_lacking(report: Report, lacking: Sequence[str]) -> str:
    """A newer toolkit helps with operators that this one does not declare and a later one does."""
    assert report.install is not None
    declared = report.declared.ops if report.declared else {}
    unknown = [op for op in lacking if op not in declared]
    newest = catalog.versions()[-1]
    if catalog_version(report.install) == newest or len(unknown) < len(lacking):
        return "see the reason: this toolkit declares them, so a newer one is not the remedy"
    later = catalog.load(newest).ops
    if all(op in later for op in unknown):
        return f"a newer toolkit has them: they are in the catalog {newest}"
    return "they are in no toolkit that is known here"


def _unexported(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    assert report.install is not None
    ops = report.census.ops.values() if report.census else ()
    half = [op.name for op in ops if op.reason.endswith("not exported")
            and not _is_vendors(report, op.name)]  # fmt: skip
    if not half or report.install.layout == "none":
        return
    number = "1 operator is" if len(half) == 1 else f"{len(half)} operators are"
    what = f"{number} declared but not exported: {_several(half)}"
    if report.install.kind == "simulator":
        yield Cause("error", what, "reinstall the package: its simulator is damaged")
    else:
        fix = "headers are newer than libraries, or a library is missing"
        yield Cause("warning", what, fix)


def _is_vendors(report: Report, op: str) -> bool:
    """Whether a custom package's header declares the operator: that is said of the package."""
    assert report.install is not None
    signature = report.declared.functions.get(op) if report.declared else None
    includes = [vendor.include for vendor in report.install.vendors if vendor.include]
    return signature is not None and any(exists(i / signature.header) for i in includes)


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
    for soc in install.versions.kernels:
        if install.kind == "cann" and not has_content(install.root / KERNELS / soc):
            what = f"opp holds no kernel for {soc}: its folder is empty, or its files are"
            package = kernels_package(install.versions.toolkit, soc)
            fix = f"a package was extracted in part: install {package} again"
            yield Cause("warning", what, fix, str(install.root / KERNELS / soc))
        index = install.root / KERNELS / "config"
        if exists(index) and not exists(index / soc / "binary_info_config.json"):
            what = f"the index of kernels for {soc} (binary_info_config.json) is missing"
            fix = f"install {kernels_package(install.versions.toolkit, soc)} again"
            yield Cause("warning", what, fix, str(index / soc))
    shut = closed(install.root / KERNELS) if install.kind == "cann" else None
    if shut is not None:
        yield Cause("error", f"this user may not read {shut}", may_read(), "kernels are read there")
    elif install.kind == "cann" and install.libraries and not install.versions.kernels:
        yield Cause(
            "note",
            "no built-in kernel binaries were found below opp/",
            "if operators fail with 561003, 561112 or 561000, install "
            + kernels_package(install.versions.toolkit, "<soc>"),
        )
    if install.kind == "cann" and install.libraries and not environ.get("ASCEND_OPP_PATH"):
        yield Cause(
            "warning",
            "ASCEND_OPP_PATH is not set, so operators cannot find their kernels",
            "source the toolkit's set_env.sh; these bindings set it for their own process",
        )


def _releases(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    """Packages of one toolkit are of one release, and fit to the driver and its firmware."""
    assert report.install is not None
    releases = report.install.versions.packages
    if len({release for _, release in releases}) > 1:
        releases_text = ", ".join(f"{package} {release}" for package, release in releases)
        fix = "install all packages of one release, or mend the links of `latest`"
        yield Cause(
            "warning", f"packages of different releases stand together: {releases_text}", fix
        )
    if parts := leads(report.install.root):
        releases_text = ", ".join(f"{part} into {release}" for part, release in parts)
        fix = "install one release again: its installer sets every link of `latest`"
        yield Cause("error", f"links lead into several releases: {releases_text}", fix)
    for what in report.install.versions.misfits:
        fix = "install driver and firmware of one release, one that this toolkit's notes list"
        yield Cause("warning", what, fix)


def _kernels(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    """Kernel binaries, where there are some, are for the device that is there."""
    assert report.install is not None
    installed, soc = report.install.versions.kernels, report.fact("soc") or ""
    product = product_of(soc)
    known = {name: kernels_of(name) for name in installed}
    if product is None or not known or None in known.values() or product in known.values():
        return
    yield Cause(
        "error",
        f"kernel binaries are for {', '.join(installed)}, this device is an {soc}",
        f"install the kernels package for {soc}: "
        + kernels_package(report.install.versions.toolkit, _folder(product)),
        str(report.install.root / KERNELS),
    )


def _folder(product: str) -> str:
    """The chip of a product as packages name it."""
    return {"A3": "910_93", "910b": "910b", "310p": "310p", "310b": "310b"}.get(product, product)


_HOST_KERNELS: Final = "opp/built-in/op_impl/host_cpu/*.so"
_GRAPH: Final = ("_ZN2ge", "_ZNK2ge")


def _mixed(report: Report, _environ: Mapping[str, str]) -> Iterator[Cause]:
    """Host kernels that want a graph engine of another release (Ascend/samples#21: 507033)."""
    install = report.install
    assert install is not None
    if install.kind != "cann" or not install.libraries:
        return
    exports: set[str] = set()
    for library in matching(install.root, _HOST_KERNELS):
        wanting = [name for name in undefined(library) if name.startswith(_GRAPH)]
        if wanting and not exports:
            exports.update(*(table.exports for _, table in report.files))
        if lacking := sorted(set(wanting) - exports):
            yield Cause(
                "error",
                f"{library.name} needs {_several(lacking)}, which no library here has",
                "opp and runtime are of two releases: install one, and source its set_env.sh",
                "loading it ends with an undefined symbol, and aclrtSetDevice with 507033",
            )


def _python(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    assert report.install is not None
    yield from frameworks(report.install, environ)


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


_Rule = Callable[[Report, Mapping[str, str]], Iterator[Cause]]
_RULES: Final[tuple[_Rule, ...]] = (
    _contents,
    _layout,
    _tables,
    _loading,
    _silent,
    _undeclared,
    _running,
    _missing_symbols,
    _unexported,
    _drift,
    _packages,
    packages,
    _releases,
    _kernels,
    _mixed,
    _python,
)
