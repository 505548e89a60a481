"""Options that a command would ignore, and files that it would both read and write, are refused."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from mindtorch_npu.commands.check import runner, unjudged
from mindtorch_npu.commands.check.options import (
    NO_OUTPUT,
    CaseFileOptions,
    CheckOptions,
    Selection,
    TargetOptions,
    WorkerOptions,
)
from mindtorch_npu.commands.report.command import report
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.main import group

ANY = TargetOptions("npu:0", None, True)


def options(**selection: object) -> CheckOptions:
    return CheckOptions(Selection(**selection), ANY, WorkerOptions(), NO_OUTPUT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "restriction",
    [{"ops": ("mul",)}, {"every": True}, {"families": ("nn",)}, {"dtypes": ("int8",)},
     {"layouts": ("transposed",)}, {"forms": ("grad",)}, {"deterministic": True}],
)  # fmt: skip
def test_a_recording_has_launches_and_no_restrictions(restriction: dict[str, object]) -> None:
    with pytest.raises(click.UsageError, match="--from ignores"):
        runner._agree(options(recording=Path("calls.rec"), **restriction))


def test_restrictions_of_designs_do_not_restrict_a_case_file() -> None:
    file = CaseFileOptions(Path("cases.csv"))
    asked = CheckOptions(Selection(dtypes=("int8",)), ANY, WorkerOptions(), NO_OUTPUT, file=file)
    with pytest.raises(click.UsageError, match="--cases ignores --dtype"):
        runner._agree(asked)


@pytest.mark.parametrize(
    "other", [{"ops": ("mul",)}, {"dtypes": ("float16",)}, {"seed": 7}, {"level": "full"}]
)
def test_a_run_is_resumed_as_it_was_begun(other: dict[str, object]) -> None:
    restart = {"ops": ["add"], "dtypes": ["float32"], "seed": 0, "level": "quick"}
    record = journal.Record({"options": {"restart": restart}}, {}, {}, None)
    with pytest.raises(click.UsageError, match="--resume ignores"):
        runner._resumed(options(**other), record)
    same = runner._resumed(options(ops=("add",), dtypes=("float32",)), record)
    assert same.selection.ops == ("add",)


def test_what_was_named_and_has_no_case_is_not_judged() -> None:
    results = [Result("add/functional/s0", "add", "functional", "PASS", "float32")]
    assert unjudged.without_cases(("add",), ("float32",), results) == []
    assert unjudged.without_cases(("add", "argmax"), ("float32", "int8"), results) == [
        "argmax: no case matches the restrictions", "--dtype int8: no case has it",
    ]  # fmt: skip


def test_a_report_does_not_take_the_place_of_its_journal(tmp_path: Path) -> None:
    book = tmp_path / "run.jsonl"
    book.write_text(json.dumps({"schema": "x"}))
    link = tmp_path / "link"
    link.symlink_to(book)
    for words in (
        [str(book), "--json", str(book)],
        [str(book), "--html", str(link)],
        ["--merge", str(book), "--prometheus", f"{tmp_path}/./run.jsonl"],
        ["--from", str(book), "--md", str(book)],
    ):
        done = CliRunner().invoke(report, words)
        assert done.exit_code == 2, words
        assert " it too: name another file" in done.output
    assert json.loads(book.read_text()) == {"schema": "x"}


def test_two_results_do_not_share_a_file(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for words in (
        ["report", "--json", out, "--html", out],
        ["run", "--record", out, "--html", out, "--", "true"],
        ["check", "add", "--journal", out, "--json", out],
        ["bench", "add", "--json", out, "--plot", out],
    ):
        done = CliRunner().invoke(group, words)
        assert done.exit_code == 2, words
        assert "writes it too" in done.output


def test_devices_without_contents_are_shared() -> None:
    done = CliRunner().invoke(report, ["--json", "/dev/null", "--html", "/dev/null", "--merge"])
    assert "name another file" not in done.output


@pytest.mark.parametrize("words", [["--list", "--prune"], ["--list", "--html", "/dev/null"]])
def test_the_list_of_runs_takes_no_other_option(words: list[str]) -> None:
    done = CliRunner().invoke(report, words)
    assert done.exit_code == 2
    assert "--list and --prune are about the state folder" in done.output


def test_saved_cases_go_to_no_folder_behind_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    with pytest.raises(click.UsageError, match="name that folder"):
        CliRunner().invoke(
            group, ["check", "add", "--simulator", "--save", str(link)], standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip
