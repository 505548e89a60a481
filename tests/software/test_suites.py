"""The driver of libraries' own tests tells what passes on torch and not on mindtorch."""

import argparse
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).resolve().parent)
CODE = """
import os
import pytest

def test_that_passes():
    pass

def test_that_only_torch_passes():
    assert "torch_shim" not in os.environ["PYTHONPATH"], "other\\nin two lines"

def test_that_is_skipped():
    pytest.skip("not here")

def test_that_ends_the_process():
    if "torch_shim" in os.environ["PYTHONPATH"]:
        os._exit(3)

def test_behind_it(broken):
    pass

@pytest.fixture
def broken():
    yield
    raise ValueError("in the end")
"""


@pytest.fixture
def suites(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    import suites

    return suites


@pytest.fixture
def ran(suites, tmp_path):
    (tmp_path / "test_it.py").write_text(CODE)
    args = argparse.Namespace(
        tests=None, python=sys.executable, timeout=60, pytest=[], folder=tmp_path, device="cpu"
    )
    files = {}
    for side in ("torch", "mindtorch"):
        files[side] = tmp_path / f"{side}.jsonl"
        suites.run(suites.Suite(("test_it.py",)), side, args, files[side])
    return files


def test_what_is_lost_is_listed_with_its_words(suites, ran, capsys):
    theirs, ours = (suites.told(ran[side]) for side in ("torch", "mindtorch"))
    assert len(theirs) == len(ours) == 5
    assert ours["test_it.py::test_behind_it"] == ("failed", "ValueError: in the end")
    assert not suites.show("it", theirs, ours, 0.5)
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "it: 1 of 3 that pass on torch pass on mindtorch (33.33%)"
    assert said[:4] == [
        "died     test_it.py::test_that_ends_the_process", "         ",
        "failed   test_it.py::test_that_only_torch_passes", "         AssertionError: other",
    ]  # fmt: skip
    assert suites.show("it", theirs, ours, 0.3)


def test_what_was_lost_can_be_run_again(suites, ran):
    suites.forget_lost(ran)
    left = suites.told(ran["mindtorch"])
    assert "test_it.py::test_that_passes" in left
    assert "test_it.py::test_that_ends_the_process" not in left
    assert len(left) == 3
