"""Says what is wrong with packages of custom operators, from their files; loads nothing.

Sources: what `msopgen` projects install (`vendors/<name>/{op_api,op_impl,op_proto}`, `bin/
set_env.bash`), and CANN's documents on deploying custom operators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..install.describe import Install, LibraryFile
from ..install.elf import undefined
from ..install.file_queries import exists, has_content, is_dir, listed, loader_path, matching, text
from ..install.products import kernels_of, product_of
from ..install.vendors import VARIABLE, Vendor, near
from ..interface.signature import WORKSPACE_SUFFIX
from .census import unlinked
from .probe import Report
from .surroundings import Cause

_TBE: Final = "op_impl/ai_core/tbe"
# C++ of libopapi and libnnopbase, which no version of CANN promises to keep.
_CLASSES: Final = re.compile(r"_ZNK?(?:4l0op|2op)")
_WORDS: Final = re.compile(r"undefined symbol: (\w+)")


def packages(report: Report, environ: Mapping[str, str]) -> Iterator[Cause]:
    """Every cause that lies in a package of custom operators."""
    install = report.install
    assert install is not None
    for vendor in install.vendors:
        yield from _files(vendor)
        yield from _folders(vendor, install)
        yield from _kernels(vendor, report)
        yield from _interface(vendor, report)
    yield from _unresolved(report)
    yield from _priorities(install)
    yield from _shadows(report)
    yield from _forgotten(install, environ)


def hand_written(library: Path) -> list[str]:
    """C++ functions of CANN's own classes that a library calls, sorted."""
    return sorted(name for name in undefined(library) if _CLASSES.match(name))


def _named(vendor: Vendor) -> str:
    return f"custom operators {vendor.name}"


def _files(vendor: Vendor) -> Iterator[Cause]:
    """The package's folder and library are there, and used."""
    if vendor.problem:
        yield Cause("warning", f"{_named(vendor)}: {vendor.problem}", _fix_of_place(vendor))
    elif vendor.shadowed:
        yield Cause("note", f"{_named(vendor)}: {vendor.shadowed}")


def _fix_of_place(vendor: Vendor) -> str:
    if vendor.problem.endswith("it is not used"):
        config = vendor.root.parent / "config.ini"
        return f"write load_priority={vendor.name} to {config}, or let {VARIABLE}={vendor.root}"
    if not is_dir(vendor.root):
        candidate = near(vendor.root)
        if candidate is not None:
            return f"did you mean {candidate}?"
        return f"correct {VARIABLE}" if vendor.found_via == VARIABLE else "install the package"
    inside = matching(vendor.root, "vendors/*/op_api") or matching(vendor.root, "*/op_api")
    if inside:
        return f"name the package's own folder: {VARIABLE}={inside[0].parent}"
    return "build the package again: its op_api part was not installed"


def _folders(vendor: Vendor, install: Install) -> Iterator[Cause]:
    """Headers, and what was built with another release."""
    if vendor.library is None:
        return
    if vendor.include is None or not listed(vendor.include, "*.h"):
        include = vendor.include or vendor.library.parent.parent / "include"
        yield Cause(
            "warning",
            f"{_named(vendor)}: there is no header below {include}",
            "install the package's headers: without them parameters are unknown, and no operator "
            "of it is called from Python",
            str(vendor.library),
        )
    built, here = vendor.version, install.version
    if built and here and _release(built) != _release(here):
        yield Cause(
            "warning",
            f"{_named(vendor)}: built for CANN {built}, this is {here}",
            "build the package with this toolkit, or source the one that it was built for",
            str(vendor.root / "version.info"),
        )


def _release(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _kernels(vendor: Vendor, report: Report) -> Iterator[Cause]:
    """Kernels: compiled, and for the product that is here."""
    if vendor.library is None or vendor.root.match("op_api/lib"):
        return
    if not is_dir(vendor.root / "op_impl"):
        yield Cause(
            "warning",
            f"{_named(vendor)}: there is no op_impl, so its operators have no kernels",
            "build the package again: calls end with 561003",
            str(vendor.root),
        )
        return
    kernel = vendor.root / _TBE / "kernel"
    socs = [p for p in listed(kernel) if kernels_of(p.name)]
    full = [folder for folder in socs if has_content(folder)]
    if not full:
        yield Cause(
            "warning",
            f"{_named(vendor)}: there are no compiled kernels below {kernel}",
            "compile them (ENABLE_BINARY_PACKAGE=True in CMakePresets.json): else the first call "
            "of each shape compiles, or ends with 561003",
        )
        return
    yield from _product(vendor, report, [folder.name for folder in full])
    for folder in full:
        yield from _of_operators(vendor, folder)


def _product(vendor: Vendor, report: Report, socs: Sequence[str]) -> Iterator[Cause]:
    product = product_of(report.fact("soc") or "")
    if product is None or product in [kernels_of(soc) for soc in socs]:
        return
    yield Cause(
        "error",
        f"{_named(vendor)}: its kernels are for {', '.join(socs)}, this device is an "
        f"{report.fact('soc')}",
        "add this product to the operator's configuration (AddConfig) and to "
        "ASCEND_COMPUTE_UNIT, and build again",
        str(vendor.root / _TBE / "kernel"),
    )


def _of_operators(vendor: Vendor, folder: Path) -> Iterator[Cause]:
    """Each operator of the package's list has a folder of kernels with something in it."""
    soc = folder.name
    info = vendor.root / _TBE / "config" / soc / f"aic-{soc}-ops-info.json"
    if not exists(info):
        what = f"{_named(vendor)}: {info.name} is missing, so its kernels are not found"
        yield Cause("warning", what, "build the package again", str(info))
        return
    try:
        listed_types = json.loads(text(info))
    except ValueError:
        yield Cause(
            "warning", f"{_named(vendor)}: {info.name} is no JSON", "build it again", str(info)
        )
        return
    files = [snake for snake in (_file_of(t, row) for t, row in listed_types.items()) if snake]
    lacking = [name for name in files if not has_content(folder / name)]
    if lacking:
        yield Cause(
            "warning",
            f"{_named(vendor)}: no compiled kernel of {', '.join(lacking)} for {soc}",
            "build the package again, and read its build's log for this operator",
            str(folder),
        )


def _file_of(operator: str, row: object) -> str:
    """The name under which an operator's kernels lie, by the list's row."""
    file = row.get("opFile") if isinstance(row, dict) else None
    named = file.get("value") if isinstance(file, dict) else None
    return str(named) if named else re.sub(r"(?<!^)(?=[A-Z])", "_", operator).lower()


def _interface(vendor: Vendor, report: Report) -> Iterator[Cause]:
    """Headers and library declare and export the same operators."""
    table = next((t for lib, t in report.files if lib.path == vendor.library), None)
    if table is None or vendor.include is None or table.fatal:
        return
    code = " ".join(text(path) for path in vendor.include.rglob("aclnn*.h"))
    declared = set(re.findall(rf"\b(aclnn\w+){WORKSPACE_SUFFIX}\s*\(", code))
    exported = {name.removesuffix(WORKSPACE_SUFFIX) for name in table.exports
                if name.startswith("aclnn") and name.endswith(WORKSPACE_SUFFIX)}  # fmt: skip
    public = {name for name in exported if not name.startswith("aclnnInner")}
    if lacking := sorted(declared - exported):
        yield Cause(
            "warning",
            f"{_named(vendor)}: its headers declare {', '.join(lacking)}, its library does not "
            "export it",
            "headers and library are of two builds: install the package again",
            str(vendor.library),
        )
    if declared and (silent := sorted(public - declared)):
        yield Cause(
            "warning",
            f"{_named(vendor)}: no header declares {', '.join(silent)}",
            "install the package's headers again, of the build that the library is of",
            str(vendor.include),
        )


def _unresolved(report: Report) -> Iterator[Cause]:
    """A library that calls what nothing provides ends the process at the first such call."""
    assert report.install is not None
    for vendor in report.install.vendors:
        if vendor.library is None or vendor.shadowed:
            continue
        step = next((s for s in report.loads if s.name == str(vendor.library)), None)
        missing = _WORDS.search(step.detail) if step and step.state == "failed" else None
        lacking = unlinked(LibraryFile(vendor.library, "custom"), report.files)
        classes = hand_written(vendor.library)
        if classes and report.install.kind == "simulator":
            yield Cause(
                "error",
                f"{_named(vendor)}: written against C++ classes of CANN (l0op::, opdev/): it "
                "needs a real CANN",
                "the simulator runs libraries that were generated from an operator's definition; "
                "judge this one on a device",
                f"{vendor.library} calls {classes[0]}",
            )
        elif lacking is not None:
            yield _missing_symbol(vendor, lacking[0], f"link the package with {lacking[1]}")
        elif missing is not None:
            fix = "build the package with this toolkit: it is of another release, or lacks a file"
            yield _missing_symbol(vendor, missing.group(1), fix)


def _missing_symbol(vendor: Vendor, name: str, fix: str) -> Cause:
    what = f"{_named(vendor)}: {name} is called and no library that it names provides it"
    return Cause("error", what, fix, str(vendor.library))


def _priorities(install: Install) -> Iterator[Cause]:
    """`config.ini` says each package once, in one line."""
    for config in {v.root.parent / "config.ini" for v in install.vendors}:
        lines = re.findall(r"^\s*load_priority\s*=\s*(.*)$", text(config), re.MULTILINE)
        names = [name.strip() for line in lines[:1] for name in line.split(",") if name.strip()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if len(lines) > 1:
            what = f"{config} has {len(lines)} lines of load_priority: the first one counts"
            yield Cause("warning", what, "leave one line with every package, by priority", lines[1])
        if twice:
            what = f"{config} lists {', '.join(twice)} twice: the first place counts"
            yield Cause("warning", what, "list each package once")


def _shadows(report: Report) -> Iterator[Cause]:
    """Operators that two packages, or a package and CANN itself, export."""
    assert report.install is not None
    of_file = {str(v.library): v for v in report.install.vendors if v.library}
    functions = report.census.functions if report.census else {}
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, function in functions.items():
        winner = of_file.get(function.library)
        if winner is None or not function.shadowed or name.endswith(WORKSPACE_SUFFIX):
            continue
        grouped.setdefault((function.library, function.shadowed[0]), []).append(name)
    for (library, loser), names in grouped.items():
        other = of_file.get(loser)
        whose = f"those of {other.name}" if other else "CANN's own"
        yield Cause(
            "warning" if other else "note",
            f"{_named(of_file[library])} come before {whose}: {', '.join(sorted(names))}",
            "that is the priority of packages; take one out where it is not meant" if other else "",
            f"{library} before {loser}",
        )


def _forgotten(install: Install, environ: Mapping[str, str]) -> Iterator[Cause]:
    """Packages of .run files that their `bin/set_env.bash` would set up, and did not."""
    used = {vendor.root.resolve() for vendor in install.vendors}
    places = [*_installed_beside(environ), *loader_path(environ)]
    for place in dict.fromkeys(places):
        root = place.parent.parent if place.match("op_api/lib") else place
        script = root / "bin" / "set_env.bash"
        if root.resolve() not in used and exists(script) and is_dir(root / "op_api"):
            yield Cause(
                "warning",
                f"custom operators {root.name} at {root} are not set up in this shell",
                f"source {script}",
                f"{VARIABLE}={environ.get(VARIABLE, '')!r}",
            )


def _installed_beside(environ: Mapping[str, str]) -> list[Path]:
    """Where people let a .run file install: the current folder, its own, their home."""
    roots = [Path.cwd(), Path(environ.get("HOME", "/nonexistent"))]
    roots += [Path(entry).parent.parent for entry in environ.get(VARIABLE, "").split(":") if entry]
    return [path for root in roots for pattern in ("vendors/*", "*/vendors/*")
            for path in matching(root, pattern)]  # fmt: skip
