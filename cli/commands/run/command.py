"""The command `run`: puts layers between a program and CANN; shows what they saw."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from aclnn_bindings.install import simulated
from aclnn_bindings.install.describe import Install
from aclnn_bindings.install.library import find_install
from aclnn_bindings.layers import session
from aclnn_bindings.layers.interposed import interpose

from ... import choices, exits, render
from . import faults, findings, forms, simulator, summary, sweep, unseen

STRICT = click.Choice(["report", "error", "abort"])
FILE = click.Path(dir_okay=False, path_type=Path)
FAULT_HELP = (
    "Break calls: NAME[@N][=CODE] fails the N-th or every call of NAME (a glob), "
    "NAME[@N]:delay=20ms delays it, memory=512M limits device memory, sweep[:NAME][@N] runs the "
    "program once per call."
)
# Options that need a recording, whether or not it is kept.
_RECORDED = ("summarize", "verify", "data", "html", "perfetto")
# Options that promise a finding: a program that was not seen has not passed them.
_ASKED = ("strict", "verify", "faults")
EPILOG = """\b
Examples:
  mindtorch-npu run --summary -- python train.py
  mindtorch-npu run --record calls.rec -- ./program
  mindtorch-npu run --fault 'aclnnMatmul@3=561000' -- python train.py
  mindtorch-npu run --simulator --strict --soc Ascend310P3 -- ./program
  mindtorch-npu run --simulator --fault sweep -- ./program

Exit codes: that of the program; 1 when it ended well and --strict or --verify
found something or, as --fault, saw nothing of the program, or when
a sweep found a failure that was not survived."""


def _data_rules(
    _ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Rules as the interceptor reads them."""
    for rule in value:
        if not re.fullmatch(r"first|all|1/[1-9]\d*|op=.+", rule):
            raise click.BadParameter(f"{rule!r}: expected first, all, 1/N or op=GLOB")
    return value


def _verify_rule(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return _data_rules(ctx, param, (value,))[0] if value is not None else None


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=EPILOG,
)
@click.option("--simulator", is_flag=True, help="On the bundled simulator.")
@click.option("--home", type=click.Path(path_type=Path), help="On the install at this root.")
@click.option("--soc", type=choices.Product(), metavar="NAME",
              help="Product for the simulator to behave like (see `sim info`).")  # fmt: skip
@click.option("--devices", type=click.IntRange(1, 64), help="Devices of the simulator.  "
              "[default: 2]")  # fmt: skip
@click.option("--memory", callback=simulator.size, metavar="SIZE",
              help="Of each simulated device, with a unit of K, M or G if wanted.")  # fmt: skip
@click.option("--record", type=FILE, help="Write every call to FILE.")
@click.option("--summary", "summarize", is_flag=True, help="End with a table of operators.")
@click.option("--data", "data", multiple=True, metavar="WHICH", callback=_data_rules,
              help="Also record tensors of launches: first (of each distinct call), all, 1/N, "
              "op=GLOB.")  # fmt: skip
@click.option("--data-limit", type=int, metavar="BYTES", help="Of one tensor.  [default: 64 MiB]")
@click.option("--verify", is_flag=False, flag_value="first", metavar="[WHICH]",
              callback=_verify_rule,
              help="Judge launches against each operator's formula when the program ended: first "
              "(of each distinct call, the default), all, 1/N or op=GLOB.")  # fmt: skip
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="With --verify: save wrong launches as cases for `check --replay`.")  # fmt: skip
@click.option("--device-time", is_flag=True, help="Also time launches on the device, by events.")
@click.option("--stacks", is_flag=True, help="Record the Python lines of launches.")
@click.option("--strict", is_flag=False, flag_value="report", type=STRICT, metavar="[MODE]",
              help="Find misuse of the API, races and leaks: report them (the default), error lets "
              "the call fail too, abort ends the program there.")  # fmt: skip
@click.option("--allow", multiple=True, metavar="FILE", help="Known findings, a TOML file with "
              "reasons, or torch_npu or mindspore for the ones that come along.")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="SPEC", help=FAULT_HELP)
@click.option("--html", type=FILE, help="Write a page: summary and timeline.")
@click.option("--perfetto", type=FILE, help="Write a trace that Perfetto opens.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(**options: Any) -> int:
    """Run COMMAND with layers between it and CANN; they see every call, and change none."""
    install = find_install(options["home"], simulator=options["simulator"])
    environ = simulator.environment(install, options)
    if sweeps := [spec for spec in options["faults"] if re.match(r"sweep\b", spec)]:
        return sweep.run(interpose(install), options["command"], environ, sweeps[0])
    allow = [findings.file_of(name) for name in options["allow"]]
    known = [entry for path in allow for entry in findings.allowed(path)]
    with tempfile.TemporaryDirectory(prefix="mindtorch-run-") as folder:
        report = Path(folder) / "findings.jsonl"
        report.touch()
        settings = _settings(options)
        if options["strict"]:
            itself = simulator.checks_itself(install, environ)
            if itself:
                environ |= simulator.strict(options["strict"], report, allow)
            settings += findings.settings(options["strict"], report, known, races_only=itself)
        kept = any(options[n] for n in _RECORDED)
        path = options["record"] or (Path(folder) / "calls.rec" if kept else None)
        if path is None and (options["device_time"] or options["stacks"]):
            raise click.UsageError(
                "--device-time and --stacks add to a recording; say also --record FILE, --summary, "
                "--verify, --html or --perfetto"
            )
        ended = _run(install, options["command"], session.Wanted(path, settings), environ)
        _tell(options, path, ended)
        blind = not ended.loaded and _unseen(options)
        wrong = _verify(options, path, install)
        reported = simulated.findings(report)
    left = findings.unexpected(reported, known)
    if options["strict"] and ended.loaded:
        blocks = findings.document(left, len(reported) - len(left))
        render.show(blocks, render.console(sys.stderr))
    bad = left or wrong or blind
    return session.end_as_program(ended.code) or (exits.PROBLEMS if bad else exits.OK)


def _settings(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the interceptor is told, but for strict mode."""
    settings = [("fault", faults.rule(spec)) for spec in options["faults"]]
    rules = (*options["data"], *([options["verify"]] if options["verify"] else []))
    settings += [("data", rule) for rule in rules]
    if options["device_time"]:
        settings.append(("device_time", "1"))
    if options["stacks"]:
        settings.append(("stacks", "1"))
    if options["data_limit"]:
        settings.append(("data_limit", str(options["data_limit"])))
    return settings


def _run(
    install: Install, command: Sequence[str], wanted: session.Wanted, environ: Mapping[str, str]
) -> session.Ended:
    """Run with the layers wanted, or, where none is, on the install itself."""
    try:
        if wanted.recording is None and not wanted.settings:
            return session.alone(install, command, environ)
        return session.run(interpose(install), command, wanted, environ)
    except OSError as error:
        raise click.UsageError(f"{command[0]}: {error.strerror}") from error


def _unseen(options: Mapping[str, Any]) -> bool:
    """Say that the layers saw nothing, and why; True where that is no answer to what was asked."""
    click.echo(f"the layers saw nothing of {unseen.told(options['command'][0])}", err=True)
    return any(options[name] for name in _ASKED)


def _verify(options: Mapping[str, Any], path: Path | None, install: Install) -> int:
    """How many launches were wrong; shows which."""
    if not options["verify"] or path is None:
        return 0
    from ... import recording
    from . import verify

    verified = verify.verify(recording.open(path), install, options["save"])
    render.show(verify.document(verified), render.console(sys.stderr))
    for case in verified.saved:  # no block: a line to copy must not be broken
        click.echo(f"saved: mindtorch-npu check --replay {shlex.quote(str(case))}", err=True)
    return len(verified.wrong)


def _tell(options: Mapping[str, Any], path: Path | None, ended: session.Ended) -> None:
    error = render.console(sys.stderr)
    if ended.failure:
        click.echo(f"the recording ends early: {ended.failure}", err=True)
    if ended.lost:
        click.echo(f"{ended.lost} records found no room and are lost", err=True)
    if path is not None and options["summarize"]:
        from ... import recording

        render.show(summary.document(recording.open(path)), error)
    if path is not None:
        forms.write(path, options["html"], options["perfetto"])
    if options["record"] is not None:
        size = options["record"].stat().st_size
        click.echo(f"recorded to {options['record']} ({size:,} bytes)", err=True)
