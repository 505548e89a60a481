"""The command `probe`: asks the diagnosis, chooses a form of output and an exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import click

from aclnn_bindings import ENVIRONMENT, Cause, Report, Request, causes, probe as look
from aclnn_bindings.install.environment import concealed

from ... import choices, exits, render
from . import diff as probe_diff, document as probe_json, needs, text as probe_text

SOURCE = choices.OldFile()
FOLDER = click.Path(path_type=Path)
FILE = choices.NewFile()
# Loading every library and touring the device, each with limits of its own.
_TIMEOUT = 600.0


@click.command(epilog="Exit codes: 0 ok, 1 problems found, 2 usage, 3 nothing to probe.")
@click.option(
    "--json", "form", flag_value="json", help="Write JSON (schema mindtorch-npu/probe/1)."
)
@click.option("--md", "form", flag_value="md", help="Write Markdown, for an issue or a wiki.")
@click.option("--home", type=FOLDER, help="Examine only the toolkit at this path.")
@click.option("--simulator", is_flag=True, help="Examine only the bundled simulator.")
@choices.release
@click.option("--headers", type=FOLDER,
              help="Read declarations from this folder of headers; default: those of "
                   "the toolkit found.")  # fmt: skip
@click.option("--op", "ops", multiple=True, metavar="NAME…", help="Show these operators in detail.")
@click.option("--diff", "against", metavar="VERSION_OR_JSON", help=probe_diff.HELP)
@click.option("--from", "recorded", type=SOURCE, metavar="FILE",
              help="Show which calls of a recording this install lacks or "
                   "declares differently.")  # fmt: skip
@click.option("--no-run", is_flag=True,
              help="Read files only; load no library and call no function.")  # fmt: skip
@click.option("--ray", metavar="ADDRESS|auto", help="Diagnose every host of a Ray cluster.")
@click.option("--journal", "book", type=choices.AppendedFile(),
              help="Record the result for `report --merge`.")  # fmt: skip
@click.option("--html", type=FILE, help="With --ray or --journal: write a page.")
@click.option("--prometheus", type=FILE,
              help="With --ray or --journal: write metrics for Prometheus.")  # fmt: skip
@click.argument("more_ops", nargs=-1, metavar="")
def probe(
    form: str | None,
    home: Path | None,
    simulator: bool,
    headers: Path | None,
    ops: tuple[str, ...],
    against: str | None,
    recorded: Path | None,
    no_run: bool,
    ray: str | None,
    book: Path | None,
    html: Path | None,
    prometheus: Path | None,
    more_ops: tuple[str, ...],
) -> int:
    """Tell which CANN is here, what it declares and exports, whether it works, and what to fix.

    Nothing is changed. Loading and calling happen in child processes. Where to look, in order:
    --home, MINDTORCH_CANN_HOME, ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, set_env.sh files, default
    roots, LD_LIBRARY_PATH, the bundled simulator.
    """
    if home is not None and simulator:
        raise click.UsageError("--home and --simulator exclude each other")
    if ray or book:
        named = {"--json": form == "json", "--md": form == "md", "--headers": headers, "--op": ops,
                 "--diff": against, "--from": recorded, "--no-run": no_run}  # fmt: skip
        return _fleet(home, simulator, ray, book, {"html": html, "prometheus": prometheus}, named)
    if html or prometheus:
        raise click.UsageError("--html and --prometheus: of a fleet; add --ray or --journal")
    if against and (ends := probe_diff.ends(against)):
        return _between(probe_diff.between(*ends, recorded), recorded, form)
    if recorded is not None:
        from . import recorded as probe_recorded

        if against:
            raise click.UsageError("--from with --diff: give two versions, such as 8.5.0..9.1.0")

        files = look(Request(home, simulator, headers, (), run=False))
        blocks, left = probe_recorded.document(recorded, files)
        render.show(blocks)
        return left
    names = _operators(ops, more_ops)
    reference = probe_diff.load(against) if against else None
    request = Request(home, simulator, headers, needs.needed_by_check(), run=not no_run)
    report = look(request)
    likely = causes(report, os.environ)
    code = exit_code(report, likely, names)
    difference = probe_diff.compare(reference, report) if reference else None
    blocks = concealed(list(probe_text.document(report, likely, names, difference)), os.environ)
    if form == "json":
        data = probe_json.report(report, likely, code, names, difference, os.environ)
        click.echo(json.dumps(data, indent=1, ensure_ascii=False))
    elif form == "md":
        click.echo(render.markdown(blocks), nl=False)
    else:
        render.show(blocks)
    return code


def _between(
    comparison: probe_diff.InterfaceComparison, recorded: Path | None, form: str | None
) -> int:
    """Two versions compared, without an install; problems are what a recorded program calls."""
    blocks = list(probe_text.comparison_of(comparison))
    if form == "json":
        click.echo(json.dumps(probe_json.diff_of(comparison), indent=1, ensure_ascii=False))
    elif form == "md":
        click.echo(render.markdown(blocks), nl=False)
    else:
        render.show(blocks)
    difference = comparison.difference
    touched = recorded is not None and (difference.removed or difference.breaking)
    return exits.PROBLEMS if touched else exits.OK


def _fleet(
    home: Path | None, simulator: bool, ray: str | None, book: Path | None,
    outputs: Mapping[str, Path | None], named: Mapping[str, object],
) -> int:  # fmt: skip
    """This host's diagnosis, or that of every host of a cluster, in a journal."""
    from ...conformance.record import state
    from ...conformance.run.pool import Setup
    from ...fleet import items
    from .item import CASE

    if wrong := [name for name, value in named.items() if value]:
        raise click.UsageError(f"{wrong[0]}: of this host alone, without --journal or --ray")
    path = book or state.default_path("probe")
    setup = Setup("cpu", str(home) if home else None, simulator, str(path), _TIMEOUT)
    return items.run(items.WorkItems("probe", (CASE,), setup, ray=ray), path, outputs)[1]


def _operators(ops: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Full names of the operators asked for: `add` and `Add` mean `aclnnAdd`."""
    if more and not ops:
        raise click.UsageError(f"unexpected argument {more[0]!r}; operators go after --op")
    names = (*ops, *more)
    return tuple(n if n.startswith("acl") else f"aclnn{n[:1].upper()}{n[1:]}" for n in names)


def exit_code(report: Report, likely: tuple[Cause, ...], names: tuple[str, ...]) -> int:
    """0 when all is well; 3 when nothing was named and nothing is here; else 1."""
    if report.install is None:
        named = report.request.home or report.request.simulator or report.request.headers
        from_environment = any(s.via in ENVIRONMENT and s.verdict != "unset" for s in report.steps)
        return exits.PROBLEMS if named or from_environment else exits.NOTHING
    ops = report.census.ops if report.census else {}
    lacking = [name for name in names if name not in ops or not ops[name].callable]
    failed = any(cause.severity == "error" for cause in likely)
    return exits.PROBLEMS if failed or lacking else exits.OK
