"""Finds custom operator packages, their priority and what shadows what; refuses to load them.

Order (CANN operator deployment documents; the same in op-plugin and nnopbase): each entry of
ASCEND_CUSTOM_OPP_PATH, earlier first; then `<opp>/vendors/<name>` in the order of `load_priority`
in `vendors/config.ini`. An entry may be a vendor's folder or its `op_api/lib` folder itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from .file_queries import exists, is_dir, listed, text

LIBRARY: Final = "libcust_opapi.so"
VARIABLE: Final = "ASCEND_CUSTOM_OPP_PATH"
_VERSION: Final = re.compile(r"^custom_opp_compiler_version\s*=\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vendor:
    """One package: `priority` counts from 0; `shadowed` names an earlier entry of the same file."""

    name: str
    root: Path
    found_via: str
    priority: int
    library: Path | None
    include: Path | None
    problem: str = ""
    shadowed: str = ""

    @property
    def version(self) -> str:
        """The release of the compiler that built it, "" where its version.info says none."""
        match = _VERSION.search(text(self.root / "version.info"))
        return match.group(1) if match else ""

    @property
    def digest(self) -> str:
        """The first 12 digits of the library's SHA-256, which tells builds apart; or ""."""
        return digest(self.library) if self.library else ""


def digest(path: Path) -> str:
    """The first 12 digits of a file's SHA-256; "" where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError:
        return ""


def near(path: Path) -> Path | None:
    """The folder that `path` may have meant: its first part that is not there, spelt as one beside
    it is; None where none is like it."""
    for place in [*reversed(path.parents), path]:
        if exists(place):
            continue
        names = [entry.name for entry in listed(place.parent) if is_dir(entry)]
        alike = get_close_matches(place.name, names, 1, 0.75)
        candidate = place.parent / alike[0] / path.relative_to(place) if alike else None
        return candidate if candidate is not None and exists(candidate) else None
    return None


def vendors(root: Path, environ: Mapping[str, str]) -> tuple[Vendor, ...]:
    """The custom packages that an install at `root` would use, first wins."""
    packages: list[Vendor] = []
    for vendor in (*_from_environment(environ), *_from_opp(root, environ)):
        same = next((v for v in packages if _same_file(v.library, vendor.library)), None)
        shadow = f"same file as {same.name}, priority {same.priority}" if same else ""
        packages.append(replace(vendor, priority=len(packages), shadowed=shadow))
    return tuple(packages)


def at(folder: Path) -> Vendor:
    """The package in a folder, wherever it lies; its `problem` says what it lacks."""
    return _vendor(folder, str(folder))


def _same_file(a: Path | None, b: Path | None) -> bool:
    return a is not None and b is not None and os.path.realpath(a) == os.path.realpath(b)


def _from_environment(environ: Mapping[str, str]) -> Iterator[Vendor]:
    for entry in filter(None, environ.get(VARIABLE, "").split(":")):
        yield _vendor(Path(entry), VARIABLE)


def _from_opp(root: Path, environ: Mapping[str, str]) -> Iterator[Vendor]:
    folders = [root / "opp" / "vendors"]
    if opp := environ.get("ASCEND_OPP_PATH"):
        folders.insert(0, Path(opp) / "vendors")
    for folder in {os.path.realpath(path): path for path in folders if is_dir(path)}.values():
        present = [p.name for p in listed(folder) if is_dir(p)]
        priority = _load_priority(folder / "config.ini")
        for name in priority:
            yield _vendor(folder / name, f"{folder.name}/config.ini")
        for name in present:
            if name not in priority:
                unlisted = _vendor(folder / name, "vendors folder")
                reason = _not_used(folder / "config.ini")
                yield replace(unlisted, library=None, include=None, problem=reason)


def _not_used(config: Path) -> str:
    missing = "does not exist" if not exists(config) else "has no load_priority"
    if _load_priority(config):
        return f"not in load_priority of {config}: it is not used"
    return f"{config} {missing}: it is not used"


def _load_priority(config: Path) -> list[str]:
    match = re.search(r"^\s*load_priority\s*=\s*(.*)$", text(config), re.MULTILINE)
    return [name.strip() for name in match.group(1).split(",") if name.strip()] if match else []


def _vendor(folder: Path, found_via: str) -> Vendor:
    if folder.match("op_api/lib"):
        lib_dir, include, name = folder, folder.parent / "include", folder.parents[1].name
    else:
        lib_dir, include, name = folder / "op_api/lib", folder / "op_api/include", folder.name
    library: Path | None = lib_dir / LIBRARY
    problem = ""
    if not is_dir(folder):
        library, problem = None, f"{folder} does not exist"
    elif library is not None and not exists(library):
        library, problem = None, f"{library} does not exist"
    headers = include if is_dir(include) else None
    return Vendor(name, folder, found_via, 0, library, headers, problem)
