"""Owns the loaded libraries of one install and the addresses of their functions.

Refuses to load an install beside another one: the loader knows libraries by their soname, so that
the operators of the second would run on the runtime of the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..errors import MissingSymbolError, RuntimeStateError
from ..install import elf
from ..install.describe import Install, LibraryFile
from .locks import Lock
from .native import ffi, lib

_ROOM: Final = 1024
_DEPTH: Final = 40
_MAPS: Final = Path("/proc/self/maps")


class SymbolLookup:
    """Looks functions up in an install's libraries, in order; each is loaded when first needed.

    Libraries of tools and media come last, and only one whose own table exports the function is
    loaded: their constructors are nobody's business who did not ask for them.
    """

    def __init__(self, install: Install) -> None:
        self.install = install
        self.root: Path = install.root
        self._handles: dict[LibraryFile, int] = {}
        self._complaints: dict[LibraryFile, str] = {}
        self._found: dict[str, tuple[int, LibraryFile | None]] = {}
        self._exports: dict[LibraryFile, frozenset[str]] = {}
        self._instead: Mapping[Path, Path] = {}
        self._files = {library: _file(library.path) for library in install.libraries}
        self._lock = Lock()

    def go_through(self, places: Mapping[Path, Path]) -> None:
        """Look functions up in other files from now on: library → the file that stands before it,
        and that needs it by its path. {}: in the libraries themselves again."""
        with self._lock:
            self._instead = dict(places)
            self._found.clear()

    def address(self, name: str) -> int:
        """The address of `name`, 0 if no library exports it."""
        return self._find(name)[0]

    def provider(self, name: str) -> LibraryFile | None:
        """The library that `address` found `name` in; None if no library exports it."""
        return self._find(name)[1]

    def core(self, name: str) -> int:
        """The address of a function of the runtime, 0 if none of its own libraries exports it.

        Older installs lack some of these: the answer must not cost the loading of every library.
        """
        core = [library for library in self.install.libraries if library.role == "core"]
        with self._lock:
            return self._search(name, core)[0] if core else self._look(name)[0]

    def require(self, name: str) -> int:
        """The address of `name`; MissingSymbolError names the libraries that were searched."""
        return self.address(name) or self._refuse(name)

    def require_core(self, name: str) -> int:
        """As `core`; MissingSymbolError as `require`."""
        return self.core(name) or self._refuse(name)

    def _refuse(self, name: str) -> int:
        searched = [library.name for library in self._handles]
        broken = [f"{library.name}: {why}" for library, why in self._complaints.items()]
        raise MissingSymbolError(
            f"{name}: not exported by {', '.join(searched) or 'any library'} of "
            f"{self.root}"
            + (f"; not loaded: {'; '.join(broken)}" if broken else "")
            + "; see `mindtorch-npu probe`"
        )

    def _find(self, name: str) -> tuple[int, LibraryFile | None]:
        with self._lock:
            return self._look(name)

    def _look(self, name: str) -> tuple[int, LibraryFile | None]:
        if name not in self._found:
            self._found[name] = self._search(name, self._order(name))
        return self._found[name]

    def _search(
        self, name: str, libraries: Iterable[LibraryFile]
    ) -> tuple[int, LibraryFile | None]:
        for library in libraries:
            # dlsym on a package's handle also finds what the libraries that it needs export.
            if library.role == "custom" and not self._exported(library, name):
                continue
            handle = self._open(library)
            if handle and library.path in self._instead:
                handle = self._load(str(self._instead[library.path]))[0] or handle
            if handle:
                address = int(lib.mt_library_symbol(handle, name.encode()))
                if address:
                    return address, library
        return 0, None

    def _order(self, name: str) -> Iterator[LibraryFile]:
        """Operators in the install's order; the runtime's functions from its own libraries first,
        so that using memory and streams does not load the operators, nor read their tables."""
        install = self.install
        first = [lib for lib in install.libraries if install.is_searched(lib)]
        if not name.startswith("aclnn"):
            core = [library for library in first if library.role == "core"]
            yield from core
            first = [lib for lib in first if lib not in core and self._says(lib, name)]
        yield from first
        rest = (library for library in install.libraries if not install.is_searched(library))
        yield from (library for library in rest if self._says(library, name))

    def _says(self, library: LibraryFile, name: str) -> bool:
        """Whether the file's own table exports `name`."""
        return library in self._handles or self._exported(library, name)

    def _exported(self, library: LibraryFile, name: str) -> bool:
        if library not in self._exports:
            self._exports[library] = elf.read(library.path).exports
        return name in self._exports[library]

    def _open(self, library: LibraryFile) -> int:
        if library not in self._handles and library not in self._complaints:
            if _file(library.path) != self._files[library]:
                raise RuntimeStateError(
                    f"load {library.name} of {self.root}: the file changed since this process "
                    "looked at the install, whose headers and other libraries it has from before: "
                    "another release was installed, or `latest` leads elsewhere; start the "
                    "process again"
                )
            if not self._handles and (other := _stranger(self.install)):
                raise RuntimeStateError(
                    f"load {library.name} of {self.root}: {other} is loaded in this process, and "
                    "two installs in one process would be mixed by the loader: use the other one, "
                    "or start another process for this one"
                )
            # A package that nobody tried may lack a symbol, and a call would end the process.
            handle, why = self._load(str(library.path), whole=library.role == "custom")
            if handle:
                self._handles[library] = handle
            else:
                self._complaints[library] = why
        return self._handles.get(library, 0)

    def _load(self, path: str, depth: int = 0, whole: bool = False) -> tuple[int, str]:
        """A handle or the loader's words; what a library needs from its own install comes first,
        because a home that is given need not be on the loader's path. `whole`: every function
        that it calls must be there."""
        words = ffi.new("char[]", _ROOM)
        handle = int(lib.mt_library_open(os.fsencode(path), whole, words, _ROOM))
        why = ffi.string(words).decode("utf-8", "replace") if not handle else ""
        needed = self.install.dependency(why.partition(":")[0])
        if handle or needed is None or str(needed) == path or depth > _DEPTH:
            return handle, why
        before = self._load(str(needed), depth + 1)
        return self._load(path, depth + 1, whole) if before[0] else before


def _file(path: Path) -> tuple[str, int, int, int] | None:
    """Which file `path` leads to, None if to none: installers replace files, or links to them."""
    try:
        real = os.path.realpath(path)
        state = os.stat(real)
    except OSError:
        return None
    return real, state.st_ino, state.st_size, state.st_mtime_ns


def _stranger(install: Install) -> Path | None:
    """A library that is loaded in this process, of the soname of one of `install`, from elsewhere.

    Layers stand between a program and its libraries under the same names on purpose.
    """
    if "MINDTORCH_LAYERS" in os.environ:
        return None
    names = {lib.name: lib.path for lib in install.libraries if install.is_searched(lib)}
    for path in _mapped():
        path_here = names.get(path.name)
        if path_here is None or os.path.realpath(path_here) == os.path.realpath(path):
            continue
        if elf.read(path_here).soname and elf.read(path_here).soname == elf.read(path).soname:
            return path
    return None


def _mapped() -> Iterator[Path]:
    """Files that this process has mapped."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for text in dict.fromkeys(line[line.index("/") :] for line in lines if "/" in line):
        yield Path(text.removesuffix(" (deleted)"))
