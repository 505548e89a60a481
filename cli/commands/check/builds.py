"""Owns checking two builds of the same operators: both run the same cases, and only what differs is
shown."""

from __future__ import annotations

from dataclasses import replace

import click

from ... import exits, render
from ...conformance.record import journal, state
from ...conformance.run import engine
from ..bench.builds import RivalBuild, rival_build
from ..bench.rivals import NoRivalError
from ..report import compare, write_all
from . import progress, runner
from .options import CheckOptions


def run(options: CheckOptions) -> int:
    """Check the build of `--against`, then the one at hand, and show what differs; the exit code:
    4 for what only the one at hand gets wrong, 1 for what both do, 5 where nothing was judged."""
    return runner.watched(lambda: _run(options), options.target.device)


def _run(options: CheckOptions) -> int:
    build = _build(options)
    ours = options.output.journal or state.default_path()
    theirs = state.default_path("against")
    names = runner.names_of(options)
    for path, environ in ((theirs, build.environ()), (runner.new_journal(ours), {})):
        going = engine.begin(
            runner.request(replace(options, environ=environ), names, None, path), path
        )
        results = progress.follow(going, options.output.verbose)
        code = runner.cut_off(going, path)
        if code is not None:
            return code
    record = journal.read(ours)
    comparison = compare.compare(journal.read(theirs), record)
    render.show(compare.document(comparison))
    if options.output.files.paths():
        write_all(record, options.output.files)
    click.echo(f"journals: {theirs}, {ours}")
    code = runner.verdict(options, going, results)
    if comparison.regressions:
        return exits.REGRESSIONS
    if code == exits.PROBLEMS:
        click.echo(f"{going.counts.failing} cases fail with both builds", err=True)
    return code


def _build(options: CheckOptions) -> RivalBuild:
    if options.resume or options.compare or options.workers.ray or options.selection.recording:
        raise click.UsageError(
            "--against: not supported with --resume, --compare-devices, --ray and --from"
        )
    try:
        build = rival_build(options.against)
    except NoRivalError as error:
        raise click.UsageError(str(error)) from None
    if build is None or build.package is None:
        raise click.UsageError(
            f"--against {options.against}: expected vendor:DIR, a folder of an operator package; "
            "two stored runs are compared by `mindtorch-npu report --compare BEFORE AFTER`"
        )
    return build
