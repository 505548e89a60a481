"""`mindtorch-npu check`: its modes, their records of options, and what counts as judged."""

import dataclasses
from pathlib import Path

import click
import pytest
from mindtorch_npu import exits, main
from mindtorch_npu.commands.check import options as opts, runner, unjudged
from mindtorch_npu.commands.check.command import check
from mindtorch_npu.conformance.record.result import Result

MODES = ("list", "explain", "contract", "soak", "campaign", "replay")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The records that the runner is given, in place of running them."""
    records: list[object] = []
    for name in ("run", "list_cases", "explain", "replay"):
        monkeypatch.setattr(runner, name, lambda record: records.append(record) or exits.OK)
    return records


def leave(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main.main(["check", *words])
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "kind", "contract", "minutes"),
    [
        (("add",), opts.CheckOptions, False, 0.0),
        (("contract", "aclnnAdd"), opts.CheckOptions, True, 0.0),
        (("soak", "--minutes", "2"), opts.CheckOptions, False, 2.0),
    ],
)
def test_the_first_word_names_the_mode(
    asked: list[object], words: tuple[str, ...], kind: type, contract: bool, minutes: float
) -> None:
    assert leave(*words) == exits.OK
    (record,) = asked
    assert isinstance(record, kind)
    assert (record.contract, record.minutes) == (contract, minutes)


@pytest.mark.parametrize("mode", MODES)
def test_operators_win_after_two_dashes(asked: list[object], mode: str) -> None:
    assert leave("--", mode) == exits.OK
    assert leave("add", mode) == exits.OK
    first, second = asked
    assert isinstance(first, opts.CheckOptions)
    assert isinstance(second, opts.CheckOptions)
    assert (first.selection.ops, second.selection.ops) == ((mode,), ("add", mode))


def test_records_of_options_are_frozen_and_complete(asked: list[object]) -> None:
    words = ("add", "--dtype", "int8", "--case", "add/out/s0", "--seed", "3", "--jobs", "2",
             "--simulator", "--compare-devices", "-v")  # fmt: skip
    assert leave(*words) == exits.OK
    (record,) = asked
    assert isinstance(record, opts.CheckOptions)
    assert record.selection.dtypes == ("int8",)
    assert (record.selection.only, record.selection.seed) == (("add/out/s0",), 3)
    assert (record.workers.jobs, record.target.simulator, record.compare) == (2, True, True)
    assert record.output.verbose
    for part in (record, record.selection, record.target, record.workers, record.output):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, dataclasses.fields(part)[0].name, None)


@pytest.mark.parametrize("word", ["--replay", "--list", "--explain", "--raw", "--minutes"])
def test_a_mode_is_no_option(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("add", word, "1") == exits.USAGE
    assert "No such option" in capsys.readouterr().err


def test_help_lists_the_modes(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--help") == exits.OK
    text = capsys.readouterr().out
    assert all(f"\n  {mode} " in text for mode in MODES)
    assert set(check.modes) == set(MODES)


def test_a_modes_usage_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("replay", "--help") == exits.OK
    assert "Usage: mindtorch-npu check replay [OPTIONS] FILE" in capsys.readouterr().out


def test_completion_knows_modes() -> None:
    context = click.Context(check, info_name="check")
    assert "replay" in [item.value for item in check.shell_complete(context, "rep")]


def results(op: str, **forms: str) -> list[Result]:
    """One result a form; `contract_call="PASS"` is of the form contract-call."""
    return [Result(f"{op}/{f}", op, f.replace("_", "-"), verdict) for f, verdict in forms.items()]


PASSES = results("aclnnA", functional="PASS", contract_call="PASS")
SKIPS = results("aclnnB", functional="SKIP", out="UNSUPPORTED")
CONTRACT = results("aclnnC", contract_call="PASS", contract_null="PASS")
REFUSED = results("aclnnD", functional="UNSUPPORTED", contract_call="PASS")


@pytest.mark.parametrize(
    ("run", "each", "contract", "says"),
    [
        (PASSES, True, False, []),
        (SKIPS, True, False, [f"aclnnB: {unjudged.NEUTRAL_ALONE}"]),
        (CONTRACT, True, False, [f"aclnnC: {unjudged.NO_REFERENCE}"]),
        (REFUSED, True, False, [f"aclnnD: {unjudged.CONTRACT_ALONE}"]),
        (CONTRACT, True, True, []),
        (SKIPS, True, True, [f"aclnnB: {unjudged.NEUTRAL_ALONE}"]),
        ([*PASSES, *SKIPS], True, False, [f"aclnnB: {unjudged.NEUTRAL_ALONE}"]),
        ([*PASSES, *SKIPS, *CONTRACT], False, False, []),
        (CONTRACT, False, False, [f"aclnnC: {unjudged.NO_REFERENCE}"]),
        ([*SKIPS, *CONTRACT], False, False,
         [f"aclnnB: {unjudged.NEUTRAL_ALONE}", f"aclnnC: {unjudged.NO_REFERENCE}"]),
        (results("aclnnE", functional="FAIL"), True, False, []),
        (results("aclnnE", functional="XFAIL"), True, False, []),
    ],
)  # fmt: skip
def test_what_has_no_verdict_is_named(
    run: list[Result], each: bool, contract: bool, says: list[str]
) -> None:
    assert unjudged.reasons(run, each, contract) == says


def test_what_named_operators_are_made_of_was_not_asked_for() -> None:
    assert unjudged.reasons([*PASSES, *SKIPS], each=True, parts=("aclnnB",)) == []


def test_many_operators_without_a_verdict_are_counted() -> None:
    run = [r for n in range(10) for r in results(f"aclnnX{n}", functional="SKIP")]
    (line,) = unjudged.reasons(run, each=True)
    assert "aclnnX7 and 2 more: " in line


def test_a_missing_verdict_has_an_exit_code_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = opts.TargetOptions("npu:0", None, True)
    strict = opts.ReplayOptions(Path("x"), target, allow_unjudged=False)
    lenient = dataclasses.replace(strict, allow_unjudged=True)
    assert runner._unjudged_code([], strict) == exits.OK
    assert runner._unjudged_code(["why"], strict) == exits.NOT_JUDGED == 5
    assert runner._unjudged_code(["why"], lenient) == exits.OK
    assert capsys.readouterr().err == "not judged: why\n" * 2
