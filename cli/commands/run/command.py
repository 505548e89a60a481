"""The command `run`: puts layers between a program and CANN; shows what they saw."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aclnn_bindings.errors import BindingError
from aclnn_bindings.install import simulated
from aclnn_bindings.install.describe import Install
from aclnn_bindings.install.library import find_install
from aclnn_bindings.layers import parent, scratch, session
from aclnn_bindings.layers.interposed import interpose
from aclnn_bindings.layers.recording_file import RecordingError

from ... import choices, exits, planted_faults, render
from . import faults, findings, simulator, unjudged
from .options import RunOptions, is_sweep

if TYPE_CHECKING:
    from .verify import Verified

STRICT = choices.Word(("report", "error", "abort"))
FILE = choices.NewFile()
FAULT_HELP = (
    "Break calls: NAME[@N][=CODE] fails the N-th or every call of NAME (a glob), "
    "NAME[@N]:delay=20ms delays it, memory=512M limits device memory, sweep[:NAME][@N] runs the "
    "program once per call."
)
_PREFIX = "mindtorch-run-"
EPILOG = """\b
Examples:
  mindtorch-npu run --summary -- python train.py
  mindtorch-npu run --record calls.rec -- ./program
  mindtorch-npu run --fault 'aclnnMatmul@3=561000' -- python train.py
  mindtorch-npu run --simulator --strict --soc Ascend310P3 -- ./program
  mindtorch-npu run --simulator --fault sweep -- ./program

Exit codes: that of the program, when it is not 0. Else 1 when --strict or
--verify found something, or a sweep found a failure that was not survived; 5
when less was judged, recorded or changed than requested: no process of the
program loaded the layers, a launch was not judged, a fault matched no call,
records are lost. With --allow-unjudged: 0 instead of 5. If SIGINT or SIGQUIT
ends the program, this command ends by the same signal."""


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
    context_settings={"allow_interspersed_args": False},
    epilog=EPILOG,
)
@choices.golden
@choices.kernel
@choices.release
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--home", type=click.Path(path_type=Path), help="Use the CANN toolkit at this path.")
@click.option("--soc", type=choices.Product(), metavar="NAME",
              help="Product that the simulator behaves as (`sim info` lists them).")  # fmt: skip
@click.option("--devices", type=click.IntRange(1, 64), help="Devices of the simulator.  "
              "[default: 2]")  # fmt: skip
@click.option("--memory", callback=simulator.size, metavar="SIZE",
              help="Memory of each simulated device, such as 512M or 4G.")  # fmt: skip
@click.option("--record", type=FILE, help="Write every call to FILE.")
@click.option("--summary", "summarize", is_flag=True, help="Print a table of operators at the end.")
@click.option("--data", "data", multiple=True, metavar="WHICH", callback=_data_rules,
              help="Also record tensors of launches: first (of each distinct call), all, 1/N, "
              "op=GLOB.")  # fmt: skip
@click.option("--data-limit", type=click.IntRange(min=1), metavar="BYTES",
              help="Largest tensor to record.  [default: 64 MiB]")  # fmt: skip
@click.option("--verify", is_flag=False, flag_value="first", metavar="[WHICH]",
              callback=_verify_rule,
              help="Judge launches against each operator's formula when the program ended: first "
              "(of each distinct call, the default), all, 1/N or op=GLOB.")  # fmt: skip
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="With --verify: save wrong launches as cases for `check replay`.")  # fmt: skip
@click.option("--device-time", is_flag=True, help="Also time launches on the device, by events.")
@click.option("--stacks", is_flag=True, help="Record the Python lines of launches.")
@click.option("--strict", is_flag=False, flag_value="report", type=STRICT, metavar="[MODE]",
              help="Find misuse of the API, races and leaks: report them (the default), error lets "
              "the call fail too, abort ends the program there.")  # fmt: skip
@click.option("--allow", multiple=True, metavar="FILE", help="Ignore known findings: a TOML "
              "file with reasons, or the included list for torch_npu or mindspore.")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="SPEC", help=FAULT_HELP)
@click.option("--allow-unjudged", is_flag=True, help="Exit with 0 instead of 5 when less was "
              "judged, recorded or changed than requested.")  # fmt: skip
@click.option("--html", type=FILE, help="Write a page: summary and timeline.")
@click.option("--perfetto", type=FILE, help="Write a trace that Perfetto opens.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(**values: Any) -> int:
    """Run COMMAND with layers between it and CANN; they see every call, and change none."""
    options = RunOptions.of(values)
    options.require_agreement()
    install = find_install(options.target.home, simulator=options.target.simulator)
    with parent.orderly_end(), planted_faults.watch():
        environ = simulator.environment(install, options.target)
        if sweeps := [spec for spec in options.faults if is_sweep(spec)]:
            from . import sweep

            code = sweep.run(interpose(install), options.command, environ, sweeps[0])
            unjudged_is_fine = code == exits.NOT_JUDGED and options.judging.allow_unjudged
            return exits.OK if unjudged_is_fine else code
        with ExitStack() as stack:
            seen = _look(install, options, environ, stack)
            code = _judge(options, seen, install)
    return parent.end_as(seen.ended.code) or code


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a run left: how it ended, its recording, its findings, and those that are known."""

    ended: session.Ended
    path: Path | None
    report: Path
    known: Sequence[findings.Allowed]


def _look(
    install: Install, options: RunOptions, environ: dict[str, str], stack: ExitStack
) -> _Seen:
    """Run the program with layers; what they saw lasts as long as `stack`."""
    allow = [findings.file_of(name) for name in options.judging.allow]
    known = [entry for path in allow for entry in findings.allowed(path)]
    report = scratch.create(
        stack.enter_context(scratch.folder(_PREFIX, scratch.places()[0])), "findings"
    )
    settings = _settings(options)
    if options.judging.strict:
        itself = simulator.checks_itself(install, environ)
        if itself:
            environ |= simulator.strict(options.judging.strict, report, allow)
        settings += findings.settings(options.judging.strict, report, known, races_only=itself)
    path = options.recording.record
    if path is None and options.needs_recording:
        path = stack.enter_context(scratch.folder(_PREFIX)) / "calls.rec"
    ended = _run(install, options.command, session.LayerRequest(path, settings), environ)
    return _Seen(ended, path, report, known)


def _judge(options: RunOptions, seen: _Seen, install: Install) -> int:
    """Show what the layers saw; the exit code for it."""
    _tell(options, seen)
    verified = _verify(options, seen, install)
    reported = simulated.findings(seen.report)
    left = findings.unexpected(reported, seen.known)
    if options.judging.strict and seen.ended.loaded:
        killed = parent.signal_name(seen.ended.code)
        blocks = findings.document(left, len(reported) - len(left), killed)
        render.show(blocks, render.console(sys.stderr))
    calls, holds_data = _recorded(options, seen)
    reasons = unjudged.reasons(options, seen.ended, verified, calls, holds_data)
    for reason in reasons:
        click.echo(render.printable(f"not judged: {reason}"), err=True)
    if left or (verified is not None and verified.wrong):
        return exits.PROBLEMS
    return exits.NOT_JUDGED if reasons and not options.judging.allow_unjudged else exits.OK


def _recorded(options: RunOptions, seen: _Seen) -> tuple[dict[str, tuple[int, int, int]], bool]:
    """How often each function was called, where calls were recorded; whether data was."""
    if seen.path is None or not seen.path.exists():
        return {}, True
    from ... import recording

    try:
        opened = recording.open(seen.path)
        return opened.totals(), not options.recording.data or opened.holds_data()
    except RecordingError:  # cut off before its first chunk: that is said elsewhere
        return {}, True


def _settings(options: RunOptions) -> list[tuple[str, str]]:
    """What the interceptor is told, but for strict mode."""
    settings = [("fault", faults.rule(spec)) for spec in options.faults]
    rules = (*options.recording.data, *([options.judging.verify] if options.judging.verify else []))
    settings += [("data", rule) for rule in rules]
    if options.recording.device_time:
        settings.append(("device_time", "1"))
    if options.recording.stacks:
        settings.append(("stacks", "1"))
    if options.recording.data_limit:
        settings.append(("data_limit", str(options.recording.data_limit)))
    return settings


def _run(
    install: Install,
    command: Sequence[str],
    run_options: session.LayerRequest,
    environ: Mapping[str, str],
) -> session.Ended:
    """Run with the layers wanted, or, where none is, on the install itself."""
    try:
        if run_options.recording is None and not run_options.settings:
            return session.alone(install, command, environ)
        return session.run(interpose(install), command, run_options, environ)
    except OSError as error:
        if error.filename != command[0]:
            raise  # not the program: a folder or file of this command has no room
        reason = choices.program_reason(command[0], str(error.strerror))
        raise click.UsageError(reason) from error
    except BindingError as error:  # 1 would say that something was found
        raise click.UsageError(str(error)) from error


def _verify(options: RunOptions, seen: _Seen, install: Install) -> Verified | None:
    """Judge the launches, and show which were wrong; None where that is not asked, or no
    process was seen."""
    if not options.judging.verify or seen.path is None or not seen.path.exists():
        return None
    from ... import recording
    from . import verify

    verified = verify.verify(recording.open(seen.path), install, options.judging.save)
    render.show(verify.document(verified), render.console(sys.stderr))
    for case in verified.saved:  # no block: a line to copy must not be broken
        click.echo(f"saved: mindtorch-npu check replay {shlex.quote(str(case))}", err=True)
    return verified


def _tell(options: RunOptions, seen: _Seen) -> None:
    """Show the recording as was asked."""
    if seen.path is None or not seen.path.exists():
        return
    from ... import recording
    from . import forms, summary

    if options.output.summarize:
        render.show(summary.document(recording.open(seen.path)), render.console(sys.stderr))
    forms.write(seen.path, options.output.html, options.output.perfetto)
    if options.recording.record is not None:
        size = options.recording.record.stat().st_size
        click.echo(f"recorded to {options.recording.record} ({size:,} bytes)", err=True)
