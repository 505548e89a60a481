"""Owns `check --cases`: which rows run, what workers are told of them, and the CSV of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from aclnn_bindings.interface import atomic_write

from ...conformance.cases import case_file
from ...conformance.cases.case import parse
from ...conformance.cases.case_file import MARK, RESULTS, FileCase
from ...conformance.operators import filed
from ...conformance.record.result import Result
from ...conformance.run import engine
from ...conformance.run.process import Setup
from ...plurals import plural
from .options import CaseFileOptions, CheckOptions

# The kit's word for a verdict.
_STATUS = {"PASS": "PASS", "SKIP": "SKIP", "UNSUPPORTED": "FAIL"}


def described(options: CaseFileOptions | None) -> str:
    """What workers are told of the file; "" without one."""
    if options is None:
        return ""
    return filed.describe(options.cases, options.sheet, options.rerun, options.standards,
                          options.deciding)  # fmt: skip


def with_rows(options: CheckOptions, setup: Setup) -> CheckOptions:
    """The options with the cases of the file's rows: of the operators and cases that are named, if
    any are. Says which columns are ignored; CaseFileError for a cell that is invalid."""
    if options.file is None:
        return options
    file = case_file.read(options.file.cases, options.file.sheet, options.file.rerun)
    for name in file.ignored:
        click.echo(f"{file.path}: column {name!r} is ignored", err=True)
    if file.disabled:
        click.echo(f"{file.path}: not enabled: {plural(file.disabled, 'row')}", err=True)
    filed.validate(described(options.file), engine.declarations(setup))
    selection = options.selection
    if selection.only:
        return options
    named = {n.partition(MARK)[0] for n in selection.ops}
    ids = [c for c in filed.case_ids(described(options.file))
           if not named or parse(c).op.partition(MARK)[0] in named]  # fmt: skip
    if not ids:
        raise case_file.CaseFileError(f"{file.path}: no row is enabled and asked for")
    return replace(options, selection=replace(selection, only=tuple(ids)))


def row_operators(options: CheckOptions) -> tuple[str, ...]:
    """The operators of the rows, whose own cases --design adds."""
    if options.file is None or not options.file.design:
        return ()
    names = (parse(c).op.partition(MARK)[0] for c in options.selection.only)
    return tuple(dict.fromkeys(names))


def write_results(options: CaseFileOptions | None, results: Sequence[Result]) -> None:
    """The file's columns and what came of each row, as CSV."""
    if options is None or options.results is None:
        return
    file = case_file.read(options.cases, options.sheet, options.rerun)
    by_subject = {r.op: r for r in results}
    columns = [c for c in file.columns if c not in RESULTS]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*columns, *RESULTS], restval="", lineterminator="\n")
    writer.writeheader()
    for row in file.rows:
        result = by_subject.get(filed.subject_name(row))
        writer.writerow({**{c: row.raw.get(c, "") for c in columns}, **_columns(row, result)})
    atomic_write.write(options.results, text.getvalue())


def _columns(row: FileCase, result: Result | None) -> Mapping[str, str]:
    if result is None:
        return {c: row.raw.get(c, "") for c in RESULTS}
    status = _STATUS.get(result.verdict, "FAIL")
    return {"precision_status": status, "verdict": result.verdict,
            "standards": "; ".join(result.standards), "message": result.reason,
            "time_us": f"{result.seconds * 1e6:.0f}"}  # fmt: skip
