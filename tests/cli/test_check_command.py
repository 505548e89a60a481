"""`mindtorch-npu check`: selection, output, exit codes, resume, interruption, replay."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from mindtorch_npu import main
from mindtorch_npu.commands.check import runner
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.run import batches

from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command here, with one worker; its state folder is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out, err = io.StringIO(), io.StringIO()

    def call(*words: str, **environ: str) -> Ended:
        for stream in (out, err):
            stream.seek(0)
            stream.truncate()
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(runner, "_jobs", lambda number: number or 1)
            for name, value in environ.items():
                patch.setenv(name, value)
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main.main(list(words))
        return Ended(ended.value.code, out.getvalue(), err.getvalue())

    return call


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "mindtorch_npu", *words]


@pytest.fixture
def run_apart(tmp_path, monkeypatch):
    """Run the command in a process of its own, with as many workers as it takes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words), capture_output=True, text=True, cwd=tmp_path, timeout=120,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ}, check=False,
        )  # fmt: skip

    return call


def test_rows_that_warn_of_their_names_do_not_warn_who_checks_them(run_apart):
    deprecated = ("qr", "cholesky", "triangular_solve", "chain_matmul", "upsample")
    done = run_apart("check", *deprecated, "--alone", "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    assert "deprecated" not in done.stderr


def test_the_three_ops_pass_with_a_verdict_for_each(run_apart):
    done = run_apart("check", "add", "matmul", "index_put")
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("add", "matmul", "index_put"):
        assert f"  {line} " in done.stdout
    assert "PASS" in done.stdout
    assert "FAIL" not in done.stdout
    assert "cases per second" in done.stdout


def test_verbose_shows_every_case(run):
    words = ("check", "add", "--alone", "--form", "inplace", "--dtype", "float32")
    cases = run("check", "list", *words[1:]).stdout.split()
    shown = [line.split() for line in run(*words, "-v").stdout.splitlines()]
    rows = [words for words in shown if len(words) > 1 and words[1].startswith("add/inplace/")]
    assert cases
    assert len(rows) == sum(case.startswith("add/inplace/") for case in cases)


def test_failure_leaves_with_one_and_prints_the_repro(run):
    done = run("check", "matmul", "--alone", "--form", "method", ACLSIM_FAULTS="matmul:zeros")
    assert done.returncode == 1
    assert "again: mindtorch-npu check matmul --case" in done.stdout
    assert "ACLSIM_FAULTS=matmul:zeros" in done.stdout


def test_repro_line_runs_that_case_alone(run):
    done = run("check", "matmul", "--alone", "--case", "matmul/method/s0", "--seed", "0")
    assert done.returncode == 0
    assert "1 case of 1 operator" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "nothing selected"),
        (("ad",), "did you mean pad, add"),
        (("add", "--dtype", "float61"), "did you mean float"),
        (("add", "--layout", "transpose"), "did you mean transposed?"),
        (("add", "--form", "functionl"), "did you mean functional?"),
        (("neg", "--dtype", "bool"), "no case matches"),
        (("add", "--fresh-seeds", "-2"), "not in the range"),
        (("add", "--seed", "-1"), "not in the range"),
        (("add", "--timeout", "-1"), "not in the range"),
        (("add", "--known-issues", "missing.toml"), "does not exist"),
        (("--resume", "missing.jsonl"), "does not exist"),
        (("replay", "missing.json"), "does not exist"),
        (("add", "--html", "no/such/folder/page.html"), "does not exist"),
        (("add", "--case", "add/sideways"), "FORM is one of"),
        (("add", "--case", "add/functional/s77"), "samples, counted from s0"),
        (("--family", "nonsense"), "there are activation, attention"),
        (("contract", "aclnnNonsense"), "declares no such operator"),
        (("add", "--jobs", "0"), "not in the range"),
    ],
)
def test_nothing_to_run_is_a_usage_error(run, words, says):
    done = run("check", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_install_is_an_environment_error(run, tmp_path):
    done = run("check", "add", "--home", str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert "mindtorch-npu probe" in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_prints_rule_reason_and_source(run):
    done = run("check", "explain", "exp")
    assert done.returncode == 0
    for text in ("elementary", "≤ 2 / 3 / 3 ULP", "range reduction", "OpenCL"):
        assert text in done.stdout


def test_explain_prints_what_no_case_varies_and_why(run):
    done = run("check", "explain", "aclnnDistributeBarrier")
    assert done.returncode == 0
    for text in ("no case varies", "worldSize", "a communicator of one rank", "group"):
        assert text in done.stdout


def test_list_prints_cases_and_runs_none(run):
    words = ("check", "list", "add", "--alone", "--form", "out", "--dtype", "int8")
    lines = run(*words).stdout.splitlines()
    assert lines
    assert all(line.startswith("add/out/") and " " not in line for line in lines)
    assert len(set(lines)) == len(lines)


def test_contract_mode_checks_the_contract_from_the_header_alone(run):
    done = run("check", "contract", "aclnnAdd", "-v")
    assert done.returncode == 0, done.stdout
    for form in ("contract-call", "contract-null/self", "contract-dtype", "contract-rank"):
        assert f"aclnnAdd/{form}" in done.stdout


def test_resume_runs_what_is_missing_and_reports_all(run, tmp_path):
    book = tmp_path / "run.jsonl"
    whole = run(
        "check", "add", "--alone", "--form", "out", "--form", "meta", "--journal", str(book)
    )
    assert whole.returncode == 0
    lines = book.read_text().splitlines()
    book.write_text("\n".join(lines[:6]) + "\n")
    done = run("check", "--resume", str(book))
    assert done.returncode == 0, done.stderr
    first, second = (d.stdout.splitlines()[-2].split(" in ")[0] for d in (whole, done))
    assert first == second
    cases = [json.loads(line)["case"] for line in book.read_text().splitlines()
             if '"kind":"result"' in line]  # fmt: skip
    assert len(cases) == len(set(cases))


def test_journal_that_exists_is_not_mixed_with_another_run(run, tmp_path):
    book = tmp_path / "run.jsonl"
    assert run("check", "add", "--alone", "--form", "out", "--journal", str(book)).returncode == 0
    done = run("check", "add", "--alone", "--form", "out", "--journal", str(book))
    assert done.returncode == 2
    assert "--resume" in done.stderr


def test_a_spent_budget_says_what_was_left_out_and_a_resumed_run_judges_it(run, tmp_path):
    words = ("check", "abs", "add", "--alone", "--device", "cpu", "--budget", "0.01")
    done = run(*words, "--journal", "run.jsonl")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "not judged: --budget 0.01: " in done.stderr
    book = tmp_path / "run.jsonl"
    part = journal.read(book)
    assert part.end["left_out"] == part.header["cases"] - len(part.results)
    assert {r.op for r in part.results.values()} == {"abs", "add"}
    assert {r.form for r in part.results.values()} == {"functional"}
    assert run(*words, "--allow-unjudged").returncode == 0
    whole = run("check", "--resume", str(book))
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert len(journal.read(book).results) == part.header["cases"]


def test_cases_that_tell_most_come_first():
    selected = [Case("a", "meta"), Case("a", "functional"), Case("a", "functional", 1),
                Case("b", "grad"), Case("b", "functional")]  # fmt: skip
    ordered = [(c.op, c.form, c.sample) for c in batches.by_value(selected)]
    assert ordered == [("a", "functional", 0), ("b", "functional", 0), ("a", "functional", 1),
                       ("b", "grad", 0), ("a", "meta", 0)]  # fmt: skip


def test_interrupt_leaves_a_valid_partial_report_to_resume(tmp_path):
    book, page = tmp_path / "run.jsonl", tmp_path / "page.html"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ACLSIM_FAULTS": "add:hang"}
    words = ("check", "add", "--alone", "--case", "add/meta/s0",
             "--case", "add/method/s0", "--jobs", "1",
             "--journal", str(book), "--html", str(page))  # fmt: skip
    with subprocess.Popen(command(*words), env=environ, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          preexec_fn=_heed_interrupts) as process:  # fmt: skip
        _wait_for(book, '"start","case":"add/method/s0"')
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "check --resume" in err
    assert "Traceback" not in err
    record = journal.read(book)
    assert record.end is not None
    assert record.end["interrupted"]
    assert "cases of" in out or "case of" in out
    assert "add/method/s0" in page.read_text()


def _heed_interrupts() -> None:
    """A shell's background job ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_for(path: Path, text: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{text} never started")


def _children(pid: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir()
            for p in (t / "children").read_text().split()]  # fmt: skip


def _wait_until_gone(pids: list[int]) -> None:
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end, f"workers {pids} outlive the run"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
def test_killed_run_resumes(tmp_path, run):
    book = tmp_path / "run.jsonl"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ACLSIM_FAULTS": "add:hang"}
    words = (
        "check",
        "add",
        "--case",
        "add/meta/s0",
        "--case",
        "add/method/s0",
        "--jobs",
        "1",
        "--journal",
        str(book),
    )
    with subprocess.Popen(command(*words), env=environ, start_new_session=True) as process:
        _wait_for(book, '"start","case":"add/method/s0"')
        _wait_for(book, '"result","case":"add/meta/s0"')
        workers = _children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert workers
    _wait_until_gone(workers)
    assert journal.read(book).unfinished == ["add/method/s0 --seed 0"]
    done = run("check", "--resume", str(book))
    assert done.returncode == 0, done.stdout + done.stderr
    assert journal.read(book).unfinished == []


def test_known_issue_turns_a_failure_into_xfail(run, tmp_path):
    issues = tmp_path / "known.toml"
    issues.write_text(
        "[[issue]]\nop = 'matmul'\nreason = 'kernel returns zeros'\nexpires = 2099-01-01\n"
    )
    words = ("check", "matmul", "--alone", "--form", "method", "--known-issues", str(issues))
    done = run(*words, ACLSIM_FAULTS="matmul:zeros")
    assert done.returncode == 0
    assert "XFAIL" in done.stdout
    assert "kernel returns zeros" in done.stdout
    assert "XPASS" in run(*words).stdout


def test_saved_case_replays_with_its_own_inputs(run, run_apart, tmp_path):
    run("check", "matmul", "--alone", "--case", "matmul/method/s0",
        "--save", str(tmp_path / "saved"), ACLSIM_FAULTS="matmul:zeros")  # fmt: skip
    saved = tmp_path / "saved" / "matmul_method_s0-seed0.json"
    again = run_apart("check", "replay", str(saved), ACLSIM_FAULTS="matmul:zeros")
    assert again.returncode == 1
    assert "matmul/method/s0" in again.stdout
    assert run_apart("check", "replay", str(saved)).returncode == 0


def test_fresh_seeds_repeat_the_cases(run):
    words = ("check", "add", "--alone", "--form", "method", "--dtype", "float32")
    once = run("check", "list", *words[1:]).stdout
    thrice = run(*words, "--fresh-seeds", "2").stdout
    assert f"{3 * len(once.splitlines())} cases of 1 operator" in thrice


def test_cpu_can_be_checked_too(run):
    done = run(
        "check", "add", "--alone", "--device", "cpu", "--form", "functional", "--dtype", "float32"
    )
    assert done.returncode == 0, done.stdout


def test_operator_of_which_nothing_is_judged_has_its_exit_code_unless_allowed(run):
    asked = ("check", "linalg_eigvals", "--alone", "--form", "functional")
    done = run(*asked)
    assert done.returncode == 5
    assert "not judged: linalg_eigvals: every case is UNSUPPORTED or SKIP" in done.stderr
    assert run(*asked, "--allow-unjudged").returncode == 0


def test_operator_without_a_reference_is_not_judged_by_its_contract(run):
    done = run("check", "aclnnSleep", "--simulator")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "PASS" in done.stdout
    assert "not judged: aclnnSleep: no reference says what it computes" in done.stderr
    assert run("check", "aclnnSleep", "--simulator", "--allow-unjudged").returncode == 0
    assert run("check", "contract", "aclnnSleep", "--simulator").returncode == 0


def test_listing_leaves_no_journal_behind(run, tmp_path):
    assert run("check", "list", "add", "--alone", "--form", "out").returncode == 0
    assert list((tmp_path / "state").rglob("*.jsonl")) == []


def test_torn_journal_is_resumed_and_still_reads(run, tmp_path):
    book = tmp_path / "run.jsonl"
    assert run("check", "add", "--alone", "--form", "out", "--journal", str(book)).returncode == 0
    whole = book.read_bytes()
    book.write_bytes(whole[: whole.rindex(b'{"kind":"result"') + 25])
    done = run("check", "--resume", str(book))
    assert done.returncode == 0, done.stderr
    assert run("report", "--from", str(book)).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_fails_on_the_clean_simulator(tmp_path, seed):
    """A/A: other inputs by each seed, no fault, no failure."""
    book = tmp_path / "run.jsonl"
    words = ("--all", "--level", "quick", "--seed", str(seed), "--journal", str(book))
    done = subprocess.run(command("check", *words), capture_output=True, text=True, check=False)
    failing = [r.case for r in journal.read(book).results.values() if r.failing]
    assert failing == []
    assert done.returncode == 0, done.stderr[-2000:]
