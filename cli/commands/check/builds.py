"""Owns checking two builds of the same operators: both run the same cases, and only what differs is
shown."""

from __future__ import annotations

from dataclasses import replace

import click

from ... import bisect, exits, render
from ...conformance.record import journal, state
from ...conformance.run import engine
from ...plurals import plural
from ..bench.builds import RivalBuild, rival_build
from ..bench.rivals import NoRivalError
from ..report import compare, write_all
from . import progress, runner
from .case_files import with_rows, write_results
from .options import CheckOptions


def run(options: CheckOptions) -> int:
    """Check the build of `--against`, then the one at hand, and show what differs; the exit code:
    4 for what only the one at hand gets wrong, 1 for what both do, 5 where nothing was judged."""
    return runner.watched(lambda: _run(options), options.target.device)


def _run(options: CheckOptions) -> int:
    build = _build(options)
    options = with_rows(options, runner.setup_of(options, None))
    ours = options.output.journal or state.default_path()
    theirs = state.default_path("against")
    names, whole = runner.names_of(options), True
    for path, environ in ((theirs, build.environ()), (runner.new_journal(ours), {})):
        going = engine.begin(
            runner.request(replace(options, environ=environ), names, None, path), path
        )
        results = progress.follow(going, options.output.verbose)
        code = runner.cut_off(going, path)
        if code is not None:
            return code
        whole = whole and not going.left_out
    record = journal.read(ours)
    comparison = compare.compare(journal.read(theirs), record)
    render.show(compare.document(comparison))
    write_results(options.file, results)
    if options.output.files.paths():
        write_all(record, options.output.files)
    click.echo(f"journals: {theirs}, {ours}")
    code = runner.verdict(options, going, results)
    return _code(code, comparison, going.counts.failing, whole)


def _code(code: int, comparison: compare.RunComparison, failing: int, whole: bool) -> int:
    """The exit code. A bisect looks for what became wrong: what both builds get wrong is good, and
    what has no verdict any more is none; neither is a part, where not the `whole` was judged."""
    wrong = [c.after.case for c in comparison.regressions if c.kind == "regression"]
    if wrong:
        bisect.because(exits.REGRESSIONS, f"{plural(len(wrong), 'regression')}: {wrong[0]}")
    if comparison.regressions and bisect.active():
        bisect.because(exits.NOT_JUDGED, f"not judged: {comparison.regressions[0].after.case}")
        return exits.REGRESSIONS if wrong else exits.NOT_JUDGED
    if comparison.regressions:
        return exits.REGRESSIONS
    if code != exits.PROBLEMS:
        return code
    click.echo(f"fail with both builds: {plural(failing, 'case')}", err=True)
    if bisect.active() and not whole:
        return exits.NOT_JUDGED
    bisect.because(exits.OK, f"no regressions; fail with both builds: {plural(failing, 'case')}")
    return exits.OK if bisect.active() else code


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
