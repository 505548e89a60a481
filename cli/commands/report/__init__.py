"""Owns the files that a record of a run is written to: HTML, JUnit, Markdown, JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclnn_bindings.interface import whole

from ...conformance.record.journal import Record

# The options that name a file for a report.
FILES: Final = ("html", "junit", "md", "json_file")


class UnwritableError(ValueError):
    """A report's file cannot be written; the message names it and says why."""


def write_all(record: Record, options: Mapping[str, Any]) -> list[str]:
    """Write every file that `options` names (html, junit, md, json_file); their paths."""
    from . import html, json_report, junit, markdown

    writers = dict(zip(FILES, (html.page, junit.xml, markdown.text, json_report.text), strict=True))
    written = []
    for name, render in writers.items():
        path = options.get(name)
        if path is not None:
            try:
                whole.write(path, render(record))
            except OSError as error:
                raise UnwritableError(f"{path}: cannot be written: {error.strerror}") from None
            written.append(str(path))
    return written
