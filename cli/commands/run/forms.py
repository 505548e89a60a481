"""A recording in other forms: on the terminal, as a page, as a trace."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_bindings.interface import atomic_write

from ... import exits, recording, render
from ...plurals import plural
from ...recording import page, perfetto
from . import summary


def report(path: Path, html: Path | None, trace: Path | None) -> int:
    """Show a recording, or write the forms that are asked for."""
    opened = recording.open(path)
    if not write(path, html, trace):
        render.show(summary.document(opened))
    if opened.cut_off:
        click.echo(render.printable(f"not judged: {path}: {opened.cut_off}"), err=True)
        return exits.NOT_JUDGED
    return exits.OK


def write(path: Path, html: Path | None, trace: Path | None) -> int:
    """Write a page and a trace where they are wanted; how many were written."""
    opened = recording.open(path)
    if html is not None:
        atomic_write.write(html, page.page(opened, summary.document(opened, most=100)))
        click.echo(render.printable(f"wrote {html}"), err=True)
    if trace is not None:
        count = perfetto.write(opened, trace)
        click.echo(render.printable(f"wrote {trace} ({plural(count, 'call')})"), err=True)
    return sum(form is not None for form in (html, trace))
