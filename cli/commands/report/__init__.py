"""Owns the files that a record of a run is written to: HTML, JUnit, Markdown, JSON."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from aclnn_bindings.interface import atomic_write

from ...conformance.record.journal import Record

# Field of Files -> the module here that renders it, and its function.
_WRITERS: Final = {
    "html": ("html", "page"),
    "junit": ("junit", "xml"),
    "md": ("markdown", "text"),
    "json_file": ("json_report", "text"),
}


@dataclass(frozen=True, slots=True)
class Files:
    """Where reports go; a form whose path is None is not written."""

    html: Path | None = None
    junit: Path | None = None
    md: Path | None = None
    json_file: Path | None = None

    def paths(self) -> dict[str, Path]:
        """Form -> path of those that are asked for."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: path for name, path in pairs if path is not None}


class UnwritableError(ValueError):
    """A report's file cannot be written; the message names it and says why."""


def write_all(record: Record, files: Files) -> list[str]:
    """Write every file that is asked for; their paths."""
    paths = files.paths()
    for name, path in paths.items():
        module, function = _WRITERS[name]
        render = getattr(importlib.import_module(f".{module}", __name__), function)
        try:
            atomic_write.write(path, render(record))
        except OSError as error:
            raise UnwritableError(f"{path}: cannot be written: {error.strerror}") from None
    return [str(path) for path in paths.values()]
