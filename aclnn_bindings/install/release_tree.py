"""Owns the bundled simulator as another CANN release: what that release lacks is gone from it.

A tree of links beside the user's caches. Libraries are copies whose symbols that the release does
not declare, or declares with other types, are hidden: the loader skips hidden symbols (System V
gABI, symbol visibility), so that a program fails where it would fail on that release. Headers lose
the same declarations, and version files name the release. What kernels compute is that of the
bundled simulator; refuses releases without a catalog.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ..errors import BindingError
from ..interface import catalog
from ..interface.compare import diff
from ..interface.user_dir import of_user, to_write
from . import elf
from .versions import read_versions

_DECLARED: Final = re.compile(
    r"(?:/\*(?:(?!\*/).)*\*/\n)?ACL_FUNC_VISIBILITY [^;{]*?\b(\w+)\([^;]*;\n\n?", re.DOTALL
)
_HIDDEN: Final = 2


@cache
def tree(root: Path, release: str) -> Path:
    """The simulator at `root` as CANN `release`, made at first use.

    UnknownVersionError where no catalog describes the release.
    """
    version = catalog.version_of(release)
    if version is None:
        catalog.read(release)
        raise BindingError(f"release {release}: no catalog describes it")
    interface = read_versions(root).catalog or catalog.versions()[-1]
    folder = to_write(of_user("XDG_CACHE_HOME", ".cache") / "simulator")
    place = folder / f"{release}-{_digest(root, version)}"
    if not place.is_dir():
        _make(root, place, release, version, _lacks(interface, version))
    return place


def _digest(root: Path, version: str) -> str:
    """Changes with the simulator's libraries and with what is known of the release."""
    facts = [repr(sorted(catalog.read(version)["functions"].items()))]
    for path in sorted((root / "lib64").iterdir()):
        facts.append(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}")
    return sha256("\n".join(facts).encode()).hexdigest()[:16]


def _lacks(interface: str, version: str) -> frozenset[str]:
    """Functions of the simulator that CANN `version` has not, or not with these types."""
    here, there = catalog.load(interface), catalog.load(version)
    difference = diff(here, there)
    changed = {change.name for change in difference.breaking if change.what == "function"}
    phases = {name.removesuffix("GetWorkspaceSize") for name in changed}
    return frozenset({*difference.removed, *changed, *phases})


def _make(root: Path, place: Path, release: str, version: str, lacks: frozenset[str]) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as text:
        work = Path(text) / "cann"
        for folder, _, files in os.walk(root):
            target = work / Path(folder).relative_to(root)
            target.mkdir()
            for name in files:
                (target / name).symlink_to(Path(folder, name))
        libraries = [path for path in (work / "lib64").glob("*.so") if path.is_symlink()]
        needed = frozenset[str]().union(*(elf.undefined(path) for path in libraries))
        for path in libraries:
            _hide(path, lacks - needed)
        for path in (work / "include").rglob("*.h"):
            _undeclare(path, lacks - needed)
        for path in _version_files(work):
            _state(path, release, version)
        try:
            work.rename(place)
        except OSError:
            if not place.is_dir():  # another process made it meanwhile
                raise


def _hide(path: Path, names: frozenset[str]) -> None:
    """Replace the link at `path` by a copy without `names`, where it exports any of them."""
    if not elf.read(path).exports & names:
        return
    source = path.resolve()
    path.unlink()
    shutil.copy(source, path)
    with path.open("r+b") as file:
        for offset in list(_offsets(file, names)):
            file.seek(offset)
            other = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([other & ~3 | _HIDDEN]))


def _offsets(file: IO[bytes], names: frozenset[str]) -> Iterator[int]:
    """Where the visibility of each defined symbol of `names` stands in a 64-bit library."""
    table = ELFFile(file).get_section_by_name(".dynsym")
    assert isinstance(table, SymbolTableSection)
    for index, symbol in enumerate(table.iter_symbols()):
        if symbol.name in names and symbol["st_shndx"] != "SHN_UNDEF":
            yield table["sh_offset"] + index * table["sh_entsize"] + 5


def _undeclare(path: Path, names: frozenset[str]) -> None:
    """Replace the link at `path` by a header without `names`; none where nothing is left."""
    text = path.read_text(encoding="utf-8")
    functions = set(_DECLARED.findall(text))
    if not functions & names:
        return
    path.unlink()
    if path.parent.name != "aclnnop" or functions - names:
        text = _DECLARED.sub(lambda m: "" if m[1] in names else m[0], text)
        path.write_text(text, encoding="utf-8")


def _version_files(work: Path) -> Iterator[Path]:
    yield work / "include" / "version" / "cann_version.h"
    yield from work.rglob("version.info")


def _state(path: Path, release: str, version: str) -> None:
    text = path.read_text(encoding="utf-8")
    path.unlink()
    for pattern, value in (
        (r"(?<=^Version=).*", release), (r"(?<=^version_dir=).*", release),
        (r"(?<=^catalog=).*", version), (r'(?<=CANN_VERSION_STR ").*(?=")', release),
    ):  # fmt: skip
        text = re.sub(pattern, value, text, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
