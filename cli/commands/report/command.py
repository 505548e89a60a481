"""The command `report`: renders a recorded run again, or compares two."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import click

from ... import choices, exits, render
from ...conformance.record import compressed, journal, state
from ...fleet import stores
from ...foreign import BYTE_ORDER_MARK, ForeignError
from ...plurals import plural
from ..check import text as check_text
from . import Files, UnwritableError, compare, write_all

FILE = choices.NewFile()
# What a line of the right form and the wrong content raises as it is shown.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
SOURCE = choices.OldFile()
EPILOG = """\b
Examples:
  mindtorch-npu report                                   the latest run
  mindtorch-npu report run.jsonl --html page.html --junit junit.xml
  mindtorch-npu report --compare before.jsonl after.jsonl
  mindtorch-npu report --merge journals/*.jsonl --html fleet.html --prometheus npu.prom
  mindtorch-npu report --merge journals/*.jsonl --watch 10

Exit codes: 0 rendered, 1 the run has failures, 2 usage, 3 no run, 4 regressions in a comparison,
5 no failure, but less was judged than planned: a run or recording was cut off; the compared runs
have no case in common; with --merge, cases, shards or journals are missing or unreadable."""


class Source(choices.OldFile):
    """A file that is there, or the address of journals in an object store (s3://bucket/run/*)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if stores.is_address(value):
            return value
        return super().convert(value, param, ctx)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What to show, of which files, and where to write it."""

    named: tuple[Path, ...]
    source: Path | None
    perfetto: Path | None
    files: Files
    pair: tuple[Path, Path] | None
    merge: bool
    watch: float | None
    prometheus: Path | None
    verbose: bool
    listing: bool
    prune: bool


@click.command(epilog=EPILOG)
@click.argument("named", metavar="[FILES]…", nargs=-1, type=Source(readable=False))
@click.option("--from", "source", type=SOURCE,
              help="Journal or JSON report to show; default: the latest run.")  # fmt: skip
@click.option("--perfetto", type=FILE, help="Write a Perfetto trace of a recording.")
@click.option("--html", type=FILE, help="Write a self-contained HTML page.")
@click.option("--junit", type=FILE, help="Write JUnit XML.")
@click.option("--md", type=FILE, help="Write Markdown.")
@click.option("--json", "json_file", type=FILE, help="Write the report as JSON.")
@click.option("--compare", "pair", type=SOURCE, nargs=2, metavar="A B", help="What changed.")
@click.option("--merge", is_flag=True, help="Merge the journals of many hosts into one report.")
@click.option("--watch", type=choices.Seconds(1), metavar="SECONDS",
              help="With --merge: repeat every SECONDS until all runs have ended.")  # fmt: skip
@click.option("--prometheus", type=FILE, help="With --merge: write metrics for Prometheus.")
@click.option("--list", "listing", is_flag=True, help="List the runs in the state folder.")
@click.option("--prune", is_flag=True, help="Delete the runs in the state folder except the "
              "latest of each command.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="One line for every case.")
def report(
    html: Path | None, junit: Path | None, md: Path | None, json_file: Path | None, **values: Any
) -> int:
    """Show a recorded run of `check` again, write it in other forms, or compare two runs.

    With a recording of `run`: what the program called. With --merge and journals of many hosts, in
    any order, some of them twice: hosts × devices × verdicts, and what went wrong.
    """
    options = ReportOptions(files=Files(html, junit, md, json_file), **values)
    if options.listing or options.prune:
        return _stored(options)
    if options.prometheus and not options.merge:
        raise click.UsageError("--prometheus: metrics are those of a fleet; add --merge")
    if options.watch and not options.merge:
        raise click.UsageError("--watch: of a fleet's journals; add --merge")
    if options.named and not options.merge:
        if not _is_journal(options.named[0]):
            return _recorded(options)
        if len(options.named) > 1 or options.source:
            raise click.UsageError("one journal at a time; those of many hosts need --merge")
        options = replace(options, source=options.named[0])
    try:
        if options.merge:
            return _merge(options)
        if options.pair:
            return _compare(*options.pair)
        return _show(options)
    except (journal.JournalError, UnwritableError, ForeignError) as error:
        raise click.UsageError(str(error)) from None
    except _NONSENSE as error:
        paths = [*options.named, *(options.pair or ())] or [options.source or state.latest()]
        raise click.UsageError(
            f"{', '.join(map(str, paths))}: a line of it is none of ours: "
            f"{type(error).__name__}: {error}; run the check again"
        ) from error


def _stored(options: ReportOptions) -> int:
    """List the runs in the state folder, or delete them."""
    others = [options.named, options.source, options.perfetto, *astuple(options.files),
              options.pair, options.merge, options.verbose]  # fmt: skip
    if any(others) or (options.listing and options.prune):
        raise click.UsageError("--list and --prune are about the state folder: give one, alone")
    if options.prune:
        removed = state.prune_all()
        size = sum(one.size for one in removed)
        click.echo(
            f"deleted {plural(len(removed), 'run')} of {size / 1e6:.1f} MB in {state.folder()}"
        )
        return exits.OK
    rows: list[list[render.Content]] = [
        [one.path.name, str(one.header.get("started", "?")), f"{one.size / 1e6:.1f}", one.what,
         one.folder]
        for one in state.stored()
    ]  # fmt: skip
    columns = ("run", "started", "MB", "what", "folder")
    render.show([render.Line(str(state.folder())), render.Grid(columns, rows, frozenset((2,)))])
    return exits.OK


def _is_journal(path: Path) -> bool:
    """Whether a file holds JSON, as journals and reports do, or is compressed as only journals are;
    pipes are not asked."""
    if not path.is_file():
        return False
    if compressed.is_compressed(path):
        return True
    with path.open("rb") as file:
        return file.read(4).removeprefix(BYTE_ORDER_MARK)[:1] == b"{"


def _recorded(options: ReportOptions) -> int:
    from ..run import forms

    if len(options.named) > 1:
        raise click.UsageError("one recording at a time; journals of many hosts need --merge")
    return forms.report(options.named[0], options.files.html, options.perfetto)


def _merge(options: ReportOptions) -> int:
    from ...fleet import files, merge, report

    if not options.named:
        raise click.UsageError("--merge: name the journals, such as --merge journals/*.jsonl")
    if options.files.junit:
        raise click.UsageError("--junit: of one run; a fleet has --json, --md and --html")
    outputs = {**options.files.paths(), "prometheus": options.prometheus}
    while True:
        fleet = merge.merge(stores.expanded(options.named))
        paths = files.write_all(fleet, outputs)
        if not options.watch or fleet.ended:
            break
        render.show(report.progress(fleet))
        time.sleep(options.watch)
    if not paths:
        render.show(report.document(fleet))
    for path in paths:
        click.echo(render.printable(f"wrote {path}"))
    for one in fleet.unread:
        click.echo(render.printable(f"not read: {one.source}: {one.why}"), err=True)
    if fleet.failing:
        return exits.PROBLEMS
    return exits.NOT_JUDGED if fleet.incomplete else exits.OK


def _compare(before: Path, after: Path) -> int:
    comparison = compare.compare(journal.read(before), journal.read(after))
    render.show(compare.document(comparison))
    if comparison.regressions:
        return exits.REGRESSIONS
    if not comparison.shared:
        return _unjudged("the runs have no case in common")
    for path, record in ((before, comparison.before), (after, comparison.after)):
        if record.cut_off:
            return _unjudged(f"{path}: {record.cut_off}")
    return exits.OK


def _unjudged(reason: str) -> int:
    click.echo(render.printable(f"not judged: {reason}"), err=True)
    return exits.NOT_JUDGED


def _show(options: ReportOptions) -> int:
    source = options.source or state.latest()
    if source is None:
        click.echo("no run recorded yet; `mindtorch-npu check` makes one", err=True)
        return exits.NOTHING
    record = journal.read(source)
    folder = record.header.get("folder", "")
    if options.source is None and folder != state.here():
        place = f"in {folder}" if folder else "in another folder"
        click.echo(render.printable(f"no run of this folder; the latest was {place}"), err=True)
    if record.header.get("options", {}).get("items"):
        return _merge(replace(options, named=(source,)))
    results = list(record.results.values())
    paths = write_all(record, options.files)
    if not paths:
        seconds = float((record.end or {}).get("seconds", 0.0))
        on = render.console()
        verbose = options.verbose
        where = journal.place_words(
            record.header.get("options", {}).get("where", {}), record.header.get("environment", {})
        )
        render.show(
            check_text.document(record.header, results, seconds, verbose, where, on.width), on
        )
        for case in record.unfinished:
            click.echo(render.printable(f"under way when the run stopped: {case}"))
    for path in paths:
        click.echo(render.printable(f"wrote {path}"))
    if record.counts().failing:
        return exits.PROBLEMS
    return _unjudged(record.cut_off) if record.cut_off else exits.OK
