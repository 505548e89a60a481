"""Owns what the modes of `check` do: requests for the engine, what is shown, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from aclnn_bindings.errors import BindingError
from aclnn_bindings.install.camodel import camodel

from ... import bisect, exits, planted_faults, render
from ...conformance.cases import shard
from ...conformance.cases.case import CaseNameError, parse
from ...conformance.cases.case_file import CaseFileError
from ...conformance.cases.cases import CaseFilter
from ...conformance.cases.decomposition import with_parts
from ...conformance.operators.golden_files import assumptions, named, with_sources
from ...conformance.record import bundle, compressed, journal, known, state, votes
from ...conformance.record.result import Result
from ...conformance.run import engine
from ...conformance.run.devices import DeviceListError
from ...conformance.run.pool import EnvironmentFailedError, Setup
from ...fleet.ray_pool import maker
from ...plurals import plural
from ...progress import waiting
from ..report import UnwritableError, write_all
from . import devices, progress, text as check_text, unjudged
from .case_files import described, row_operators, with_rows, write_results
from .options import (
    NO_OUTPUT,
    CampaignOptions,
    CheckOptions,
    ExplainOptions,
    ListOptions,
    ReplayOptions,
    Selection,
    TargetOptions,
    WorkerOptions,
)

# What a journal says of the run that it records, so that --resume means the same one.
_SELECTED: Final = ("ops", "every", "families", "level", "dtypes", "layouts", "forms", "seed",
                    "fresh_seeds", "only", "alone", "deterministic")  # fmt: skip
# Options of the selection that a recording's launches, and rows of a case file, do not have.
_RESTRICTING: Final = ("ops", "every", "families", "dtypes", "layouts", "forms", "deterministic")
_OF_DESIGNS: Final = ("dtypes", "layouts", "forms")
_WORDS: Final = {"ops": "the named operators", "every": "--all", "families": "--family",
                 "dtypes": "--dtype", "layouts": "--layout", "forms": "--form", "only": "--case",
                 "deterministic": "--deterministic", "level": "--level", "seed": "--seed",
                 "fresh_seeds": "--fresh-seeds", "alone": "--alone"}  # fmt: skip
_TARGETED: Final = ("device", "simulator", "soc")
_MODES: Final = ("compare", "contract", "minutes")
_SIMULATED: Final = 1800.0  # seconds that a case may take on CANN's own simulator


def run(options: CheckOptions) -> int:
    """Run the cases that are selected; the exit code."""
    return watched(lambda: _run(options), options.target.device)


def watched(work: Callable[[], int], device: str) -> int:
    """The exit code of `work`; its faults are watched, its errors told."""
    with planted_faults.watch():
        return _guarded(work, device)


def campaign(options: CampaignOptions) -> int:
    """Run a campaign's rounds that are left; the exit code."""
    from .campaign import run as run_campaign

    return _guarded(lambda: run_campaign(options), options.target.device)


def list_cases(options: ListOptions) -> int:
    """Print the names of cases."""
    return _guarded(lambda: _list(options), options.target.device)


def explain(options: ExplainOptions) -> int:
    """Print each operator's rule."""
    return _guarded(lambda: _explain(options), options.target.device)


def _guarded(work: Callable[[], int], device: str) -> int:
    try:
        return work()
    except (engine.NothingSelectedError, CaseNameError, known.KnownIssuesError,
            journal.JournalError, UnwritableError, DeviceListError, CaseFileError,
            compressed.CompressionError) as error:  # fmt: skip
        raise click.UsageError(str(error)) from None
    except EnvironmentFailedError as error:
        click.echo(f"error: no worker can use {device}: {error}", err=True)
        bisect.because(exits.NOTHING, f"no worker can use {device}: {error}")
        click.echo("`mindtorch-npu probe` says what is missing and how to fix it", err=True)
        return exits.NOTHING


def _run(options: CheckOptions) -> int:
    _agree(options)
    if options.resume and compressed.is_compressed(options.resume):
        raise click.UsageError(
            f"{options.resume}: a compressed journal is not appended to: unpack it (gunzip, zstd "
            "-d), and resume that"
        )
    record = journal.read(options.resume) if options.resume else None
    if record is not None:
        options = _resumed(options, record)
    selection, missing = _with_launches(options.selection, options.target)
    if selection.recording and not selection.only:
        return _unjudged_code(missing, options)
    options = replace(options, selection=selection)
    options = with_rows(options, setup_of(options, None))
    names = names_of(options)
    parts = _parts(names, options)
    book = options.resume or options.output.journal or state.default_path()
    path = new_journal(book) if record is None else book
    with waiting("choosing cases"):
        going = engine.begin(request(options, names, record, path, parts), path)
    _tell_parts(parts, going)
    results = progress.follow(going, options.output.verbose)
    _show(options, going, results)
    _explain_failures(results)
    write_results(options.file, results)
    if options.output.files.paths():
        write_all(journal.read(path), options.output.files)
    code = cut_off(going, path)
    if code is None:
        compressed.pack(path, book)
    click.echo(f"journal: {book if code is None else path}")
    if code is not None:
        return code
    return verdict(options, going, results, parts, missing)


def new_journal(book: Path) -> Path:
    """Where a run writes that is to end as `book`; UsageError where there is something."""
    path = compressed.live(book)
    for one in (path, book):
        if one.exists():
            raise click.UsageError(f"{one} exists: go on with it by --resume, or name another file")
    return path


def _agree(options: CheckOptions) -> None:
    """Options that exclude each other."""
    if bisect.active() and (options.output.journal or options.resume):
        raise bisect.BisectUsageError("--git-bisect: every commit has a journal of its own")
    save = options.output.save
    if save is not None and save.is_symlink():
        raise click.UsageError(f"--save {save}: a link to {save.resolve()}; name that folder")
    if options.compare and options.selection.shard.count > 1:
        raise click.UsageError("--shard: a comparison gives every device every case")
    if options.budget and (options.compare or options.workers.ray):
        raise click.UsageError("--budget: not supported with --compare-devices and --ray")
    if options.compare and options.target.device == "cpu":
        word = "check soak" if options.minutes else "--compare-devices"
        raise click.UsageError(f"{word}: expected npu devices, cpu was given")
    if options.selection.recording:
        _refuse(options.selection, _RESTRICTING, "--from", "its cases are launches: use --case")
    if options.file is not None and not options.file.design:
        _refuse(options.selection, _OF_DESIGNS, "--cases", "they restrict --design")


def _refuse(selection: Selection, names: Sequence[str], option: str, why: str) -> None:
    """UsageError for the first option of `names` that was given: `option` would ignore it."""
    for name in names:
        if getattr(selection, name) != getattr(Selection(), name):
            raise click.UsageError(f"{option} ignores {_WORDS.get(name, name)}: {why}")


def _resumed(options: CheckOptions, record: journal.Record) -> CheckOptions:
    """What to check comes from the journal; what to load never does: journals are data."""
    declaration = record.header["options"]
    part = shard.parse(declaration.get("shard", "1/1"))
    restart = declaration.get("restart", {})
    for name in _SELECTED:
        if name in restart and list(_several(getattr(options.selection, name))) != list(
            _several(restart[name])
        ):
            _refuse(options.selection, (name,), "--resume", "the journal says what is checked")
    selected, targeted, modes = (
        _of_restart(restart, names) for names in (_SELECTED, _TARGETED, _MODES)
    )
    return replace(options, selection=replace(options.selection, shard=part, **selected),
                   target=replace(options.target, **targeted), **modes)  # fmt: skip


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _of_restart(restart: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    pairs = ((name, restart[name]) for name in names if name in restart)
    return {name: tuple(v) if isinstance(v, list) else v for name, v in pairs}


def _with_launches(selection: Selection, target: TargetOptions) -> tuple[Selection, list[str]]:
    """The cases of a recording, if one is given, and the launches that no formula judges."""
    if selection.recording is None or selection.only:
        return selection, []
    from ... import recording
    from ...recording import cases

    setup = Setup(target.device, *_install(target), recording=str(selection.recording))
    ids, refused = cases.case_ids(selection.recording, engine.declarations(setup))
    missing = [f"{name}: {why.removeprefix(name + ': ')}" for name, why in refused.items()]
    if why := recording.open(selection.recording).cut_off:
        missing.append(f"{selection.recording}: {why}")
    if not ids:
        missing.append(f"{selection.recording}: no launch can be judged")
    return replace(selection, only=tuple(ids)), missing


def _install(target: TargetOptions) -> tuple[str | None, bool]:
    return str(target.home) if target.home else None, target.simulator


def names_of(options: CheckOptions) -> tuple[str, ...]:
    """The rows and operators that are asked for."""
    selection = options.selection
    if options.contract or options.minutes:
        return ()
    named = selection.ops
    if selection.only and not named:
        named = tuple(dict.fromkeys(parse(c).op for c in selection.only))
        if any(n.startswith("acl") for n in named):
            return row_operators(options)
        return engine.find_ops(named, (), False)
    if not named and not selection.families and not selection.every:
        raise engine.NothingSelectedError("nothing selected: name operators, or give --all")
    if selection.only and all(n.startswith("acl") for n in named):
        return row_operators(options)
    return engine.find_ops(named, selection.families, selection.every)


def _parts(names: tuple[str, ...], options: CheckOptions) -> tuple[str, ...]:
    """What the operators that were named are made of, beside them."""
    selection = options.selection
    if selection.alone or selection.every or selection.only or not names or not selection.ops:
        return ()
    try:
        declared = engine.declarations(setup_of(options, None))
    except BindingError:
        return ()  # the worker says what is missing
    return with_parts(names, declared.ops if declared else ())[len(names) :]


def _tell_parts(parts: Sequence[str], going: engine.Run) -> None:
    planned = {name.partition("/")[0] for batch in going.batches for name in batch.cases}
    if here := [name for name in parts if name in planned]:
        words = "also checking their dependencies (--alone skips them)"
        click.echo(f"{words}: {', '.join(here)}", err=True)


def request(
    options: CheckOptions, names: tuple[str, ...], record: journal.Record | None, path: Path | None,
    parts: tuple[str, ...] = (),
) -> engine.RunRequest:  # fmt: skip
    selection, workers = options.selection, options.workers
    contract = options.contract
    return engine.RunRequest(
        names + parts,
        CaseFilter(selection.level, selection.dtypes, selection.layouts, selection.forms,
                   selection.deterministic),
        setup_of(options, path), selection.seed, selection.fresh_seeds, _jobs(workers.jobs),
        only=selection.only, every=selection.every and not contract,
        raw=selection.ops if contract else (), every_raw=contract and selection.every,
        done={} if record is None else record.results,
        issues=tuple(known.load(options.issues)) if options.issues else (),
        options=_header(options), save=str(options.output.save or ""), shard=selection.shard,
        compare=options.compare, minutes=options.minutes,
        run=journal.new_run() if record is None else str(record.header.get("run", "")),
        scheduler=maker(workers.ray) if workers.ray else None, budget=options.budget,
        design=options.file is not None and options.file.design, parts=parts,
    )  # fmt: skip


def _header(options: CheckOptions) -> dict[str, Any]:
    """What the journal's header says of the run."""
    selection, target = options.selection, options.target
    restart = {k: getattr(selection, k) for k in _SELECTED}
    restart |= {k: getattr(target, k) for k in _TARGETED}
    restart |= {k: getattr(options, k) for k in _MODES}
    declaration = {"what": _what(options), "level": selection.level, "seed": selection.seed,
              "restart": restart, "where": target.as_json()}  # fmt: skip
    if selection.shard.count > 1:
        declaration["shard"] = str(selection.shard)
    if options.compare:
        declaration["compare"] = True
    return declaration


def _what(options: CheckOptions) -> str:
    """What is checked, in words."""
    selection = options.selection
    if options.minutes:
        return f"soak for {options.minutes:g} minutes"
    if selection.recording:
        return f"launches of {selection.recording.name}"
    named = "all" if selection.every else " ".join((*selection.ops, *selection.families))
    named = named or " ".join(selection.only)
    return f"whether {named} is deterministic" if selection.deterministic else named


def setup_of(options: CheckOptions, path: Path | None) -> Setup:
    """What workers of a run are told, that keeps its journal at `path`."""
    target, seconds = options.target, _patience(options.workers.timeout)
    return Setup(target.device, *_install(target), str(path or ""), seconds,
                 recording=str(options.selection.recording or ""),
                 soc=target.soc or "", cases=described(options.file),
                 environ=options.environ)  # fmt: skip


def _jobs(number: int | None) -> int:
    """One worker where CANN's own simulator is the device: it takes the machine's cores."""
    one = camodel(os.environ) is not None
    return number or (1 if one else min(8, len(os.sched_getaffinity(0))))


def _patience(seconds: float) -> float:
    """Seconds of a case: CANN's own simulator takes minutes for a kernel."""
    return max(seconds, _SIMULATED) if camodel(os.environ) else seconds


def _show(options: CheckOptions, going: engine.Run, results: Sequence[Result]) -> None:
    header = {"options": dict(going.request.options), "environment": going.environment}
    where = with_sources({**options.target.as_json(), "recording": options.selection.recording,
                         "cases": described(options.file)})  # fmt: skip
    extra = journal.place_words(where, going.environment)
    on = render.console()
    document = check_text.document(
        header, results, going.seconds, options.output.verbose, extra, on.width
    )
    render.show(document, on)
    if named():
        judged = dict.fromkeys(r.op for r in results)
        declared = engine.declarations(going.request.setup)
        render.show(check_text.assumptions(assumptions(judged, declared)), on)
    voters = len({votes.place_of(r) for r in results}) if options.compare else 0
    render.show(devices.document(going.deviations, going.lost, voters), on)


def _explain_failures(results: Sequence[Result]) -> None:
    """Say to a bisect how many cases fail, and the first cause."""
    failing = check_text.ranked([r for r in results if r.failing and not r.blame])
    if failing:
        first, count = failing[0], f"{len(failing):,} of {plural(len(results), 'case')} failed"
        why = (first.cause or {}).get("text", first.reason)
        bisect.because(exits.PROBLEMS, f"{count}: {first.case}: {why}")


def cut_off(going: engine.Run, path: Path) -> int | None:
    """The exit code of a run that a full disk or the user ended; None for one that ended well."""
    again = f"  mindtorch-npu check --resume {path}"
    if going.stopped:
        click.echo(f"error: {going.stopped}; go on with:\n{again}", err=True)
        return exits.NOTHING
    if going.left_out:
        click.echo(f"the budget is spent; go on with the other cases:\n{again}", err=True)
        return None
    if going.done + sum(len(lost.cases) for lost in going.lost) < going.total:
        click.echo(f"interrupted after {going.done} of {going.total} cases; go on with:\n{again}",
                   err=True)  # fmt: skip
        return exits.INTERRUPTED
    return None


def _missing(
    options: CheckOptions, going: engine.Run, results: Sequence[Result], parts: Sequence[str]
) -> list[str]:
    """What a run that ended did not judge, although it was asked to."""
    selection = options.selection
    each = bool(selection.ops or selection.only)
    contract = options.contract or bool(selection.only and not selection.recording)
    lost = [f"{one.place}: lost with {plural(len(one.cases), 'case')} that only it could run"
            for one in going.lost if one.cases]  # fmt: skip
    spent = unjudged.left_out(going.left_out, going.total, going.request.budget, results)
    if options.compare and not options.minutes and len({votes.place_of(r) for r in results}) < 2:
        lost.append("--compare-devices: one device ran the cases, and there is none to compare")
    if selection.ops and selection.shard.count == 1 and not (lost or spent):
        names = [] if options.file else going.request.ops[: len(going.request.ops) - len(parts)]
        spent += unjudged.without_cases(names, selection.dtypes, results)
    return lost + spent + unjudged.reasons(results, each, contract, parts)


def verdict(
    options: CheckOptions, going: engine.Run, results: Sequence[Result],
    parts: Sequence[str] = (), missing: Sequence[str] = (),
) -> int:  # fmt: skip
    """The exit code of a run that ended; says what it did not judge, `missing` before."""
    missing = [*missing, *_missing(options, going, results, parts), *_unstruck(options)]
    code = _code(results, _unjudged_code(missing, options))
    return exits.PROBLEMS if going.deviations else code


def _code(results: Sequence[Result], code: int) -> int:
    """PROBLEMS where the device fails; where only references do, it has no verdict; else `code`."""
    wrong = unjudged.of_references(results)
    for reason in wrong:
        click.echo(render.printable(f"not judged: {reason}"), err=True)
        bisect.because(exits.NOT_JUDGED, f"not judged: {reason}")
    if any(r.failing and not r.blame for r in results):
        return exits.PROBLEMS
    return exits.NOT_JUDGED if wrong else code


def _unstruck(options: CheckOptions) -> list[str]:
    """Planted faults that changed nothing; other hosts cannot tell of theirs."""
    return [] if options.workers.ray else planted_faults.unstruck()


def _unjudged_code(missing: Sequence[str], options: CheckOptions | ReplayOptions) -> int:
    """Say what has no verdict; NOT_JUDGED unless that is allowed."""
    for reason in missing:
        click.echo(render.printable(f"not judged: {reason}"), err=True)
        bisect.because(exits.NOT_JUDGED, f"not judged: {reason}")
    return exits.NOT_JUDGED if missing and not options.allow_unjudged else exits.OK


def _explain(options: ExplainOptions) -> int:
    from ...conformance.cases import declared as domains
    from ...conformance.operators.find import subject
    from ...conformance.run.subject import UnknownSubjectError

    checked = CheckOptions(options.selection, options.target, WorkerOptions(), NO_OUTPUT)
    declared = engine.declarations(setup_of(checked, None))
    for name in names_of(checked):
        try:
            judged = subject(name, declared)
        except UnknownSubjectError as error:
            raise engine.NothingSelectedError(str(error)) from None
        render.show(check_text.explanation(name, judged.requirement("")))
        if judged.declaration is not None:
            render.show(check_text.constants(domains.constant(judged.declaration)))
    return exits.OK


def _list(options: ListOptions) -> int:
    from ...conformance.run.lane import Lane

    selection, missing = _with_launches(options.selection, options.target)
    checked = CheckOptions(selection, options.target, WorkerOptions(), NO_OUTPUT)
    if selection.recording and not selection.only:
        return _unjudged_code(missing, checked)
    names = names_of(checked)
    selected = request(checked, names, None, None, _parts(names, checked))
    lane = Lane(replace(selected.setup, every=selected.every))
    environment = lane.open()
    lane.stop()
    for case in engine.select(selected, environment, environment.get("exported", ())):
        click.echo(case.id)
    return exits.OK


def replay(options: ReplayOptions) -> int:
    """Run a saved case again."""
    from ...conformance.run.replay import replay as run_again

    target = options.target
    try:
        result, where = run_again(options.path, target.device, target.home, target.simulator)
    except (bundle.BundleError, CaseNameError) as error:
        raise click.UsageError(str(error)) from None
    render.show(check_text.failures([result], 1, where))
    render.show([render.Line(check_text.totals([result], result.seconds))])
    _explain_failures([result])
    code = _unjudged_code(unjudged.reasons([result], each=True, contract=True), options)
    return _code([result], code)
