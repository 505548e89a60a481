"""Owns the loaded libraries of one install and the addresses of their functions."""

from __future__ import annotations

import threading
from typing import Final

from ..errors import MissingSymbolError
from ..install.describe import Install, Library
from .native import ffi, lib

_ROOM: Final = 1024
_DEPTH: Final = 40


class Symbols:
    """Looks functions up in an install's libraries, in order; each is loaded when first needed."""

    def __init__(self, install: Install) -> None:
        self._install = install
        self.root = install.root
        self._handles: dict[Library, int] = {}
        self._complaints: dict[Library, str] = {}
        self._found: dict[str, int] = {}
        self._lock = threading.Lock()

    def address(self, name: str) -> int:
        """The address of `name`, 0 if no library exports it."""
        with self._lock:
            if name not in self._found:
                self._found[name] = self._search(name)
            return self._found[name]

    def require(self, name: str) -> int:
        """The address of `name`; MissingSymbolError names the libraries that were searched."""
        address = self.address(name)
        if address:
            return address
        searched = [library.name for library in self._handles]
        broken = [f"{library.name}: {why}" for library, why in self._complaints.items()]
        raise MissingSymbolError(
            f"{name}: not exported by {', '.join(searched) or 'any library'} of "
            f"{self.root}"
            + (f"; not loaded: {'; '.join(broken)}" if broken else "")
            + "; see `mindtorch-npu probe`"
        )

    def _search(self, name: str) -> int:
        for library in self._order(name):
            handle = self._open(library)
            if handle:
                address = int(lib.mt_library_symbol(handle, name.encode()))
                if address:
                    return address
        return 0

    def _order(self, name: str) -> list[Library]:
        """Operators in the install's order; the runtime's functions from its own libraries first,
        so that using memory and streams does not load the operators."""
        libraries = list(self._install.libraries)
        if name.startswith("aclnn"):
            return libraries
        return sorted(libraries, key=lambda library: library.role != "core")

    def _open(self, library: Library) -> int:
        if library not in self._handles and library not in self._complaints:
            handle, why = self._load(str(library.path))
            if handle:
                self._handles[library] = handle
            else:
                self._complaints[library] = why
        return self._handles.get(library, 0)

    def _load(self, path: str, depth: int = 0) -> tuple[int, str]:
        """A handle or the loader's words; what a library needs from its own install comes first,
        because a home that is given need not be on the loader's path."""
        words = ffi.new("char[]", _ROOM)
        handle = int(lib.mt_library_open(path.encode(), words, _ROOM))
        why = ffi.string(words).decode("utf-8", "replace") if not handle else ""
        needed = self._install.dependency(why.partition(":")[0])
        if handle or needed is None or str(needed) == path or depth > _DEPTH:
            return handle, why
        before = self._load(str(needed), depth + 1)
        return self._load(path, depth + 1) if before[0] else before
