"""The command `check`: turns options into a request, shows progress and the report, exits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from . import check_text, exits, op_names, progress, render
from .conformance import engine, journal, known
from .conformance.case import CaseNameError, parse
from .conformance.cases import LEVELS, Plan
from .conformance.pool import EnvironmentFailedError, Setup

EPILOG = """\b
Examples:
  mindtorch-npu check add matmul index_put
  mindtorch-npu check --all --level quick
  mindtorch-npu check softmax --level full --dtype bfloat16 -v
  mindtorch-npu check --raw aclnnAdd
  mindtorch-npu check --all --html report.html --junit junit.xml

Exit codes: 0 all pass, 1 failures, 2 usage, 3 environment (no worker starts), 130 interrupted."""
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("ops", nargs=-1, metavar="OPS…", shell_complete=op_names.complete)
@click.option("--all", "every", is_flag=True, help="Every operator that has samples.")
@click.option("--family", "families", multiple=True, metavar="F", help="pointwise, linalg, …")
@click.option("--level", type=click.Choice(LEVELS), default="quick", show_default=True)
@click.option("--dtype", "dtypes", multiple=True, help="Only these dtypes.")
@click.option("--layout", "layouts", multiple=True, help="Only these layouts.")
@click.option("--form", "forms", multiple=True, help="Only these forms: functional, grad, …")
@click.option("--device", default="npu:0", show_default=True)
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--raw", is_flag=True, help="OPS are ACLNN functions: check phase 1's contract.")
@click.option("--seed", default=0, show_default=True, help="Of the inputs.")
@click.option("--fresh-seeds", default=0, metavar="N", help="Run N more seeds.")
@click.option("--case", "only", multiple=True, metavar="ID", help="Run this case only.")
@click.option("--jobs", type=int, help="Worker processes; default: the cores, at most 8.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for one case.")
@click.option("--known-issues", "issues", type=FILE, help="TOML file of expected failures.")
@click.option("--journal", "book", type=FILE, help="Where to record the run (JSON lines).")
@click.option("--resume", type=FILE, help="Go on with a run that was cut off.")
@click.option("--save", type=click.Path(path_type=Path), help="Save failing cases here.")
@click.option("--replay", type=FILE, help="Run a saved case with its saved inputs.")
@click.option("--explain", is_flag=True, help="Print each operator's rule, and run nothing.")
@click.option("--list", "listing", is_flag=True, help="Print the cases, and run nothing.")
@click.option("--html", type=FILE, help="Also write a self-contained HTML page.")
@click.option("--junit", type=FILE, help="Also write JUnit XML.")
@click.option("--md", type=FILE, help="Also write Markdown.")
@click.option("--json", "json_file", type=FILE, help="Also write the report as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="One line for every case.")
def check(**options: Any) -> int:
    """Check that operators compute what they should: a verdict per case, a rule per operator.

    Compares the device with a float64 reference over dtypes, layouts, edge shapes and call forms;
    derivatives with finite differences; meta with cpu; refusals with the reference's. Each case
    runs in a worker process, so a crash or hang costs one case.
    """
    if options["replay"]:
        return _replay(options["replay"], options)
    try:
        return _check(options)
    except (engine.NothingSelectedError, CaseNameError, known.KnownIssuesError,
            journal.JournalError) as error:  # fmt: skip
        raise click.UsageError(str(error)) from None
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {options['device']}: {error}", err=True)
        click.echo("`mindtorch-npu probe` says what is missing and how to fix it", err=True)
        return exits.NOTHING


def _check(options: dict[str, Any]) -> int:
    record = journal.read(options["resume"]) if options["resume"] else None
    if record is not None:
        options.update(record.header["options"].get("restart", {}))
    ops = _ops(options)
    if options["explain"]:
        return _explain(ops)
    path = options["resume"] or options["book"] or journal.default_path()
    if record is None and path.exists():
        raise click.UsageError(f"{path} exists: go on with it by --resume, or name another file")
    request = _request(options, ops, record, path)
    if options["listing"]:
        return _list(request)
    run = engine.begin(request, path)
    results = progress.follow(run)
    header = {"options": dict(request.options), "environment": run.environment}
    extra = journal.place_words(options)
    on = render.console()
    verbose = options["verbose"]
    document = check_text.document(header, results, run.seconds, verbose, extra, on.width)
    render.show(document, on)
    click.echo(f"journal: {path}")
    from .reports import write_all

    write_all(journal.read(path), options)
    if run.done < run.total:
        click.echo(f"interrupted after {run.done} of {run.total} cases; go on with:\n"
                   f"  mindtorch-npu check --resume {path}", err=True)  # fmt: skip
        return exits.INTERRUPTED
    return exits.PROBLEMS if run.counts.failing else exits.OK


def _ops(options: dict[str, Any]) -> tuple[str, ...]:
    named = tuple(options["ops"])
    if options["raw"]:
        return ()
    if options["only"] and not named:
        named = tuple(dict.fromkeys(parse(c).op for c in options["only"]))
        return () if any(n.startswith("acl") for n in named) else engine.find_ops(named, (), False)
    if not named and not options["families"] and not options["every"]:
        raise engine.NothingSelectedError("nothing selected: name operators, or give --all")
    if options["only"] and all(n.startswith("acl") for n in named):
        return ()
    return engine.find_ops(named, options["families"], options["every"])


_RESTART = ("ops", "every", "families", "level", "dtypes", "layouts", "forms", "device", "raw",
            "seed", "fresh_seeds", "only", "simulator")  # fmt: skip


def _request(
    options: dict[str, Any], ops: tuple[str, ...], record: journal.Record | None, path: Path
) -> engine.Request:
    plan = Plan(options["level"], tuple(options["dtypes"]), tuple(options["layouts"]),
                tuple(options["forms"]))  # fmt: skip
    home = str(options["home"]) if options["home"] else None
    setup = Setup(options["device"], home, options["simulator"], str(path), options["timeout"])
    issues = tuple(known.load(options["issues"])) if options["issues"] else ()
    done = {} if record is None else record.results
    what = "all" if options["every"] else " ".join((*options["ops"], *options["families"]))
    where = {"device": options["device"], "home": home, "simulator": options["simulator"]}
    kept = {
        "what": what or " ".join(options["only"]), "level": options["level"],
        "seed": options["seed"], "restart": {k: options[k] for k in _RESTART},
        "where": where,
    }  # fmt: skip
    return engine.Request(
        ops, plan, setup, options["seed"], options["fresh_seeds"], _jobs(options["jobs"]),
        tuple(options["only"]), tuple(options["ops"]) if options["raw"] else (),
        bool(options["raw"] and options["every"]), done, issues, kept,
        str(options["save"] or ""),
    )  # fmt: skip


def _jobs(asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise click.UsageError(f"--jobs {asked}: give 1 or more")
    return asked or min(8, len(os.sched_getaffinity(0)))


def _explain(ops: tuple[str, ...]) -> int:
    from mindtorch.ops import OPS

    for name in ops:
        render.show(check_text.explanation(name, OPS[name].tolerance))
    return exits.OK


def _list(request: engine.Request) -> int:
    from .conformance.pool import Pool

    pool = Pool(request.setup, 1)
    environment = pool.open()
    pool.stop()
    for case in engine.select(request, environment):
        click.echo(case.id)
    return exits.OK


def _replay(path: Path, options: dict[str, Any]) -> int:
    from .conformance import bundle

    result = bundle.replay(path, options["device"], options["home"], options["simulator"])
    render.show(check_text.failures([result], 1))
    render.show([render.Line(check_text.totals([result], result.seconds))])
    return exits.PROBLEMS if result.failing else exits.OK
