"""Looks for installs in an ordered list of places and reports every place; refuses to choose.

Order: explicit argument, MINDTORCH_CANN_HOME, ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, what
set_env.sh files and install records name, default roots, LD_LIBRARY_PATH, the bundled simulator.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .describe import Install, describe
from .file_queries import closed, is_dir, listed, loader_path, matching, text as _text, why_absent

Verdict = Literal["found", "duplicate", "absent", "empty", "unset"]

ENVIRONMENT: Final = ("MINDTORCH_CANN_HOME", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
RELEASE: Final = "ACLSIM_RELEASE"
_RECORD: Final = Path("/etc/Ascend/ascend_cann_install.info")
_BELOW: Final = ("ascend-toolkit/latest", "cann", "latest", "nnae/latest", "nnrt/latest")
_VERSIONED: Final = ("cann-*", "ascend-toolkit/[0-9]*", "nnae/[0-9]*", "nnrt/[0-9]*", "[0-9]*")
_SET_ENV: Final = ("ascend-toolkit", "cann", "cann-*", "nnae", "nnrt")
_PARTS: Final = frozenset({"include", "lib64", "opp", "devlib"})
_HOME_LINE: Final = re.compile(
    r"^\s*(?:export\s+)?(ASCEND_HOME_PATH|ASCEND_TOOLKIT_HOME)=[\"']?([^\s\"'#]+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Step:
    """One place looked at: which rule named it, what was there, and why it was not taken."""

    via: str
    path: Path | None
    verdict: Verdict
    detail: str = ""
    install: Install | None = None


def default_bases(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders below which installers put CANN: system-wide, then the user's own."""
    home = environ.get("HOME")
    return (Path("/usr/local/Ascend"), *([Path(home) / "Ascend"] if home else []))


def search(
    environ: Mapping[str, str],
    home: Path | None = None,
    bases: tuple[Path, ...] | None = None,
    headers: Path | None = None,
) -> tuple[Step, ...]:
    """Every place in order; an install that two rules name is found once."""
    steps: list[Step] = []
    seen: dict[Path, str] = {}
    bases = default_bases(environ) if bases is None else bases
    for via, path in _places(environ, home, bases):
        steps.append(_look(via, path, environ, seen, headers if via == "argument" else None))
    return tuple(steps)


def _look(
    via: str,
    path: Path | None,
    environ: Mapping[str, str],
    seen: dict[Path, str],
    headers: Path | None,
) -> Step:
    if path is None:
        return Step(via, None, "unset")
    try:
        if not is_dir(path):
            return Step(via, path, "absent", why_absent(path))
        return _enter(via, path, environ, seen, headers)
    except OSError as error:
        return Step(via, path, "absent", f"{path} cannot be read: {error.strerror}")


def _enter(
    via: str, path: Path, environ: Mapping[str, str], seen: dict[Path, str], headers: Path | None
) -> Step:
    """The install at `path`, or in the usual places below it."""
    for root in dict.fromkeys((_root_of(path), *(path / below for below in _BELOW))):
        described = describe(root, via, environ, headers) if is_dir(root) else None
        if described is None:
            continue
        real = Path(os.path.realpath(root))
        if real in seen:
            return Step(via, root, "duplicate", f"the install of {seen[real]}")
        seen[real] = via
        return Step(via, root, "found", install=described)
    refuser = closed(path) or closed(path / "lib64") or closed(path / "include")
    if refuser:
        return Step(via, path, "empty", f"{path} cannot be read: this user may not read {refuser}")
    return Step(via, path, "empty", f"{path} holds neither headers nor libraries of CANN")


def _places(
    environ: Mapping[str, str], home: Path | None, bases: tuple[Path, ...]
) -> Iterator[tuple[str, Path | None]]:
    if home is not None:
        yield "argument", home
    for name in ENVIRONMENT:
        value = environ.get(name)
        yield name, Path(os.path.expanduser(value)) if value else None
    for base in bases:
        yield from _set_env_places(base)
    if match := re.search(r"^Install_Path=(.+)$", _text(_RECORD), re.MULTILINE):
        yield str(_RECORD), Path(match.group(1).strip())
    for base in bases:
        yield from _default_places(base)
    for folder in loader_path(environ):
        if listed(folder, "libascendcl.so*") or listed(folder, "libopapi*.so"):
            yield "LD_LIBRARY_PATH", _root_of_libraries(folder)
    yield "bundled simulator", bundled_simulator()


def _set_env_places(base: Path) -> Iterator[tuple[str, Path]]:
    for pattern in _SET_ENV:
        for script in matching(base, f"{pattern}/set_env.sh"):
            for _, value in _HOME_LINE.findall(_text(script)):
                if "$" not in value:
                    yield str(script), Path(value)


def _default_places(base: Path) -> Iterator[tuple[str, Path]]:
    """`latest` links first, then versioned folders, newest first; absent ones are not reported."""
    for below in _BELOW:
        if is_dir(base / below):
            yield "default root", base / below
    for pattern in _VERSIONED:
        for path in sorted(matching(base, pattern), key=_release, reverse=True):
            if is_dir(path):
                yield "default root", path


def _release(path: Path) -> list[tuple[int, str]]:
    """Sort key by which 8.10 follows 8.9, and a release follows its candidates."""
    parts = re.findall(r"\d+|[A-Za-z]+", path.name.removeprefix("cann-"))
    ranked = [(int(p), "") if p.isdigit() else (-1, p) for p in parts]
    return [*ranked, (0, "")]


def _root_of(path: Path) -> Path:
    """The install that `path` names, by its root or by a folder in it that people give instead."""
    inside = path.name in _PARTS and any(
        is_dir(path.parent / part) for part in _PARTS - {path.name}
    )
    return path.parent if inside else _root_of_libraries(path)


def _root_of_libraries(folder: Path) -> Path:
    """The install that a library folder belongs to: above `lib64` or `<arch>-linux/lib64`."""
    if folder.name != "lib64":
        return folder
    above = folder.parent
    return above.parent if above.name.endswith("-linux") else above


# Kept, as modules are forgotten one by one when the interpreter ends.
_PACKAGE = sys.modules[__name__.partition(".")[0]]


def _as_release(root: Path, release: str | None) -> Path:
    if not release:
        return root
    from .release_tree import tree

    return tree(root, release)


def bundled_simulator() -> Path | None:
    """The simulator installed beside these bindings, or None when it was not built.

    As the release that ACLSIM_RELEASE names, where it is set.
    """
    for place in _PACKAGE.__path__:
        root = Path(place) / "simulator" / "cann"
        if (root / "lib64" / "libascendcl.so").exists():
            return _as_release(root, os.environ.get(RELEASE))
    return None
