"""Child programs: their steps, and what becomes of one that crashes, hangs or never speaks."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_bindings.diagnose import child

Go = Callable[..., list[tuple[str, str, str]]]

BODY = """
import sys, os, time
from aclnn_bindings.diagnose.child import main

def body(steps, request):
    with steps.step("first", {"given": request["x"]}):
        print("noise on stdout")
        os.write(1, b'{"done": "forged"' + b"\\n")
    with steps.step("second"):
        __ACTION__

main(body)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    def go(action: str, timeout: float = 60.0) -> list[tuple[str, str, str]]:
        package = tmp_path / "play"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "program.py").write_text(BODY.replace("__ACTION__", action))
        monkeypatch.setattr(child, "__package__", "play")
        monkeypatch.syspath_prepend(tmp_path)
        steps = child.run("program", {"x": 7}, timeout, dict(os.environ))
        assert steps[0].facts == {"given": 7}
        return [(s.name, s.state, s.detail) for s in steps]

    return go


def test_steps_come_back_in_order(run: Go) -> None:
    assert run("pass") == [("first", "ok", ""), ("second", "ok", "")]


def test_an_exception_is_the_detail_of_its_step(run: Go) -> None:
    assert run("raise ValueError('no device')")[1] == ("second", "failed", "no device")


def test_a_signal_is_named(run: Go) -> None:
    died = run("os.kill(os.getpid(), 11)")[1]
    assert died == ("second", "crashed", "the process died of SIGSEGV")


def test_a_signal_without_a_name_is_told_by_number(run: Go) -> None:
    number = signal.SIGRTMIN + 3
    died = run(f"os.kill(os.getpid(), {number})")[1]
    assert died == ("second", "crashed", f"the process died of signal {number}")


def test_a_folder_that_was_removed_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Go
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    gone.rmdir()
    assert run("pass")[1] == ("second", "ok", "")


def test_a_hang_is_stopped(run: Go) -> None:
    assert run("time.sleep(60)", 1.5)[1] == (
        "second",
        "timed out",
        "no answer within 1.5 s, stopped",
    )


def test_an_exit_in_a_step_belongs_to_that_step(run: Go) -> None:
    name, state, detail = run("os._exit(3)")[1]
    assert (name, state) == ("second", "failed")
    assert "exit status 3" in detail


def test_a_silent_exit_with_zero_is_still_a_crash(run: Go) -> None:
    assert run("os._exit(0)")[1][:2] == ("second", "crashed")


def test_much_output_does_not_block(run: Go) -> None:
    assert run("print('x' * 5_000_000)")[1][:2] == ("second", "ok")


def test_a_program_that_cannot_start_is_reported() -> None:
    (only,) = child.run("no_such_program", {}, 30.0, dict(os.environ))
    assert (only.name, only.state) == ("process", "failed")
    assert "no_such_program" in only.detail
