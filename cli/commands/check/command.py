"""The command `check`: turns options into a request, shows progress and the report, exits."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from aclnn_bindings.errors import BindingError

from ... import choices, exits, op_names, render
from ...conformance.cases import shard
from ...conformance.cases.case import DTYPES, FORMS, LAYOUTS, CaseNameError, parse
from ...conformance.cases.cases import LEVELS, Plan
from ...conformance.cases.parts import with_parts
from ...conformance.record import bundle, journal, known, votes
from ...conformance.record.result import NEUTRAL, Result
from ...conformance.run import engine
from ...conformance.run.devices import DeviceListError
from ...conformance.run.pool import EnvironmentFailedError, Setup
from ...fleet.ray_pool import maker
from ..report import Files, UnwritableError, write_all
from . import devices, progress
from . import text as check_text

EPILOG = """\b
Examples:
  mindtorch-npu check add matmul index_put
  mindtorch-npu check --all --level quick
  mindtorch-npu check softmax --level full --dtype bfloat16 -v
  mindtorch-npu check aclnnRmsNorm aclnnFlashAttentionScore
  mindtorch-npu check --raw aclnnAdd
  mindtorch-npu check --all --html report.html --junit junit.xml
  mindtorch-npu check --all --device all --shard 3/8 --journal part3.jsonl
  mindtorch-npu check --all --ray auto
  mindtorch-npu check --compare-devices --device npu:0-7 --minutes 60

Exit codes: 0 all pass, 1 failures, 2 usage, 3 environment (no worker starts), 130 interrupted."""
SOURCE = click.Path(dir_okay=False, exists=True, readable=True, path_type=Path)
FILE = choices.NewFile()
SECONDS = click.FloatRange(min=0, min_open=True)
NATURAL = click.IntRange(min=0)


@click.command(epilog=EPILOG)
@click.argument("ops", nargs=-1, metavar="OPS…", shell_complete=op_names.complete)
@click.option("--all", "every", is_flag=True, help="Every row, every operator exported.")
@click.option("--family", "families", multiple=True, metavar="F", help="pointwise, matrix, nn, …")
@click.option("--level", type=click.Choice(LEVELS), default="quick", show_default=True)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=choices.Word(DTYPES),
    metavar="D",
    help="Only these dtypes.",
)
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    type=choices.Word(LAYOUTS),
    metavar="L",
    help="Only these layouts.",
)
@click.option("--form", "forms", multiple=True, type=choices.Word(FORMS), metavar="F",
              help="Only these forms: functional, grad, …")  # fmt: skip
@click.option("--device", default="npu:0", show_default=True,
              help="npu:0, npu:0-7, npu:0,2 or all: cases go to whichever is free.")  # fmt: skip
@click.option("--compare-devices", "compare", is_flag=True,
              help="Run each case on every device, and let them vote bit by bit.")  # fmt: skip
@click.option("--minutes", type=SECONDS, default=None, metavar="M",
              help="With --compare-devices: soak for M minutes instead.")  # fmt: skip
@click.option("--shard", type=choices.Part(), default="1/1", metavar="I/N",
              help="Run part I of N; `report --merge` puts the parts together.")  # fmt: skip
@click.option("--ray", metavar="ADDRESS|auto",
              help="Deal cases to every NPU of a Ray cluster.")  # fmt: skip
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--soc", type=choices.Product(), metavar="NAME",
              help="Product that the simulator is to be; default: Ascend910B2, and for operators "
              "that documents list for others alone one of those.")  # fmt: skip
@click.option("--raw", is_flag=True, help="OPS are ACLNN functions: check phase 1's contract.")
@click.option("--seed", type=NATURAL, default=0, show_default=True, help="Of the inputs.")
@click.option("--fresh-seeds", type=NATURAL, default=0, metavar="N", help="Run N more seeds.")
@click.option("--case", "only", multiple=True, metavar="ID", help="Run this case only.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Worker processes; default: the cores, at most 8."
)
@click.option(
    "--timeout", type=SECONDS, default=60.0, show_default=True, help="Seconds for one case."
)
@click.option("--known-issues", "issues", type=SOURCE, help="TOML file of expected failures.")
@click.option("--journal", "book", type=FILE, help="Where to record the run (JSON lines).")
@click.option("--from", "recording", type=SOURCE, metavar="FILE",
              help="Check each distinct launch of a recording of `run`.")  # fmt: skip
@click.option("--resume", type=SOURCE, help="Go on with a run that was cut off.")
@click.option("--save", type=click.Path(path_type=Path), help="Save failing cases here.")
@click.option("--replay", type=SOURCE, help="Run a saved case with its saved inputs.")
@click.option("--explain", is_flag=True, help="Print each operator's rule, and run nothing.")
@click.option("--list", "listing", is_flag=True, help="Print the cases, and run nothing.")
@click.option("--html", type=FILE, help="Also write a self-contained HTML page.")
@click.option("--junit", type=FILE, help="Also write JUnit XML.")
@click.option("--md", type=FILE, help="Also write Markdown.")
@click.option("--json", "json_file", type=FILE, help="Also write the report as JSON.")
@click.option("--alone", is_flag=True, help="Not also what the named operators are made of.")
@click.option("--allow-unjudged", is_flag=True, help="Accept operators without any judged case.")
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
            journal.JournalError, UnwritableError, DeviceListError) as error:  # fmt: skip
        raise click.UsageError(str(error)) from None
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {options['device']}: {error}", err=True)
        click.echo("`mindtorch-npu probe` says what is missing and how to fix it", err=True)
        return exits.NOTHING


def _check(options: dict[str, Any]) -> int:
    _agree(options)
    record = journal.read(options["resume"]) if options["resume"] else None
    if record is not None:
        # What to check comes from the journal; what to load never does: journals are data.
        restart = record.header["options"].get("restart", {})
        options.update({k: v for k, v in restart.items() if k in _RESTART})
        options["shard"] = shard.parse(record.header["options"].get("shard", "1/1"))
    if options["recording"] and not options["only"]:
        _take_launches(options)
    ops = _ops(options)
    path = options["resume"] or options["book"] or journal.default_path()
    if options["explain"]:
        return _explain(ops, _request(options, ops, record, None).setup)
    parts = _parts(ops, options)
    ops += parts
    if options["listing"]:
        return _list(_request(options, ops, record, None))
    if record is None and path.exists():
        raise click.UsageError(f"{path} exists: go on with it by --resume, or name another file")
    request = _request(options, ops, record, path)
    run = engine.begin(request, path)
    verbose = options["verbose"]
    results = progress.follow(run, verbose)
    header = {"options": dict(request.options), "environment": run.environment}
    extra = journal.place_words(options)
    on = render.console()
    document = check_text.document(header, results, run.seconds, verbose, extra, on.width)
    render.show(document, on)
    voters = len({votes.place_of(r) for r in results}) if options["compare"] else 0
    render.show(devices.document(run.deviations, run.lost, voters), on)
    click.echo(f"journal: {path}")
    files = Files(options["html"], options["junit"], options["md"], options["json_file"])
    if files.paths():
        write_all(journal.read(path), files)
    if run.stopped:
        click.echo(f"error: {run.stopped}; go on with:\n"
                   f"  mindtorch-npu check --resume {path}", err=True)  # fmt: skip
        return exits.NOTHING
    if run.done + sum(len(lost.cases) for lost in run.lost) < run.total:
        click.echo(f"interrupted after {run.done} of {run.total} cases; go on with:\n"
                   f"  mindtorch-npu check --resume {path}", err=True)  # fmt: skip
        return exits.INTERRUPTED
    unrun = any(lost.cases for lost in run.lost)
    wrong = run.counts.failing or unrun or run.deviations
    return exits.PROBLEMS if wrong or _unjudged(results, options, parts) else exits.OK


def _agree(options: Mapping[str, Any]) -> None:
    """Options that need each other."""
    if options["minutes"] and not options["compare"]:
        raise click.UsageError("--minutes: soaking compares devices; add --compare-devices")
    if options["compare"] and options["shard"].count > 1:
        raise click.UsageError("--shard: a comparison gives every device every case")
    if options["compare"] and options["device"] == "cpu":
        raise click.UsageError("--compare-devices: expected npu devices, cpu was given")


def _unjudged(
    results: Sequence[Result], options: Mapping[str, Any], parts: Collection[str]
) -> bool:
    """Whether an operator that was asked for by name (or all together) got no judgement at all."""
    judged = {r.op for r in results if r.verdict not in NEUTRAL}
    left = sorted({r.op for r in results if r.op not in parts} - judged)
    if not left or options["allow_unjudged"] or (judged and not options["ops"]):
        return False
    shown = ", ".join(left[:8]) + (f" and {len(left) - 8} more" if len(left) > 8 else "")
    click.echo(f"nothing of {shown} was judged: every case is UNSUPPORTED or SKIP; "
               "--allow-unjudged accepts that", err=True)  # fmt: skip
    return True


def _take_launches(options: dict[str, Any]) -> None:
    """The cases of a recording; says which launches no formula can be asked about."""
    from ...recording import cases

    declared = engine.declarations(_setup(options, None))
    ids, refused = cases.case_ids(options["recording"], declared)
    for name, why in refused.items():
        click.echo(
            render.printable(f"not judged: {name}: {why.removeprefix(name + ': ')}"), err=True
        )
    if not ids:
        raise engine.NothingSelectedError(f"{options['recording']}: no launch can be judged")
    options["only"] = tuple(ids)


def _ops(options: dict[str, Any]) -> tuple[str, ...]:
    named = tuple(options["ops"])
    if options["raw"]:
        return ()
    if options["only"] and not named:
        named = tuple(dict.fromkeys(parse(c).op for c in options["only"]))
        return () if any(n.startswith("acl") for n in named) else engine.find_ops(named, (), False)
    if options["minutes"]:
        return ()
    if not named and not options["families"] and not options["every"]:
        raise engine.NothingSelectedError("nothing selected: name operators, or give --all")
    if options["only"] and all(n.startswith("acl") for n in named):
        return ()
    return engine.find_ops(named, options["families"], options["every"])


def _parts(ops: tuple[str, ...], options: Mapping[str, Any]) -> tuple[str, ...]:
    """What the operators that were named are made of, beside them."""
    if options["alone"] or options["every"] or options["only"] or not options["ops"]:
        return ()
    try:
        declared = engine.declarations(_setup(options, None))
    except BindingError:
        return ()  # the worker says what is missing
    more = with_parts(ops, declared.ops if declared else ())[len(ops) :]
    if more:
        click.echo(f"with what they are made of: {', '.join(more)}", err=True)
    return more


_RESTART = ("ops", "every", "families", "level", "dtypes", "layouts", "forms", "device", "raw",
            "seed", "fresh_seeds", "only", "simulator", "soc", "compare", "minutes",
            "alone")  # fmt: skip


def _request(
    options: dict[str, Any],
    ops: tuple[str, ...],
    record: journal.Record | None,
    path: Path | None,
) -> engine.Request:
    plan = Plan(options["level"], tuple(options["dtypes"]), tuple(options["layouts"]),
                tuple(options["forms"]))  # fmt: skip
    setup = _setup(options, path)
    home = setup.home
    issues = tuple(known.load(options["issues"])) if options["issues"] else ()
    done = {} if record is None else record.results
    what = "all" if options["every"] else " ".join((*options["ops"], *options["families"]))
    if options["recording"]:
        what = f"launches of {options['recording'].name}"
    if options["minutes"]:
        what = f"soak for {options['minutes']:g} minutes"
    where = {"device": options["device"], "home": home, "simulator": options["simulator"]}
    if options["soc"]:
        where["soc"] = options["soc"]
    kept = {
        "what": what or " ".join(options["only"]), "level": options["level"],
        "seed": options["seed"], "restart": {k: options[k] for k in _RESTART},
        "where": where,
    }  # fmt: skip
    if options["shard"].count > 1:
        kept["shard"] = str(options["shard"])
    if options["compare"]:
        kept["compare"] = True
    return engine.Request(
        ops, plan, setup, options["seed"], options["fresh_seeds"], _jobs(options["jobs"]),
        tuple(options["only"]), bool(options["every"] and not options["raw"]),
        tuple(options["ops"]) if options["raw"] else (),
        bool(options["raw"] and options["every"]), done, issues, kept,
        str(options["save"] or ""), options["shard"], options["compare"],
        options["minutes"] or 0.0,
        journal.new_run() if record is None else str(record.header.get("run", "")),
        maker(options["ray"]) if options["ray"] else None,
    )  # fmt: skip


def _setup(options: Mapping[str, Any], path: Path | None) -> Setup:
    home = str(options["home"]) if options["home"] else None
    return Setup(options["device"], home, options["simulator"], str(path or ""),
                 options["timeout"], recording=str(options["recording"] or ""),
                 soc=options["soc"] or "")  # fmt: skip


def _jobs(asked: int | None) -> int:
    return asked or min(8, len(os.sched_getaffinity(0)))


def _explain(ops: tuple[str, ...], setup: Setup) -> int:
    from ...conformance.operators.find import subject
    from ...conformance.run.subject import UnknownSubjectError

    declared = engine.declarations(setup)
    for name in ops:
        try:
            need = subject(name, declared).requirement("")
        except UnknownSubjectError as error:
            raise engine.NothingSelectedError(str(error)) from None
        render.show(check_text.explanation(name, need))
    return exits.OK


def _list(request: engine.Request) -> int:
    from ...conformance.run.lane import Lane

    lane = Lane(request.setup)
    environment = lane.open()
    lane.stop()
    for case in engine.select(request, environment, environment.get("exported", ())):
        click.echo(case.id)
    return exits.OK


def _replay(path: Path, options: dict[str, Any]) -> int:
    from ...conformance.run.replay import replay

    try:
        result, where = replay(path, options["device"], options["home"], options["simulator"])
    except bundle.BundleError as error:
        raise click.UsageError(str(error)) from None
    render.show(check_text.failures([result], 1, where))
    render.show([render.Line(check_text.totals([result], result.seconds))])
    return exits.PROBLEMS if result.failing else exits.OK
