"""Variables that hold what nobody meant are used or named; environment_sweep.py tries them all."""

from pathlib import Path

import environment_sweep
import pytest

CASES = [
    ("run", "MINDTORCH_CACHE_DIR", b"\xff\xfe\x80"), ("run", "MINDTORCH_CACHE_DIR", b"relative"),
    ("check", "MINDTORCH_NODE", b"\xff\xfe\x80"), ("check", "INF_NAN_MODE_ENABLE", b"\xff\xfe\x80"),
    ("use", "ACLSIM_MEMORY", b"9" * 40), ("use", "ACLSIM_DEVICES", b"nan"),
    ("use", "ACLSIM_THREADS", b"9" * 18),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("program", "name", "value"), CASES)
def test_a_value_that_nobody_meant_does_no_harm(program, name, value, tmp_path: Path):
    assert environment_sweep.outcome(program, name, value, tmp_path) == ""


def test_variables_are_found_in_the_sources():
    found = environment_sweep.names()
    assert {"MINDTORCH_CACHE_DIR", "ACLSIM_MEMORY", "ASCEND_HOME_PATH", "TORCH_HOME"} <= set(found)


def test_a_program_that_is_killed_or_says_nothing_of_the_variable_is_told(tmp_path: Path):
    programs = environment_sweep.PROGRAMS
    for words in ("import os; os.abort()", "import sys; sys.exit(1)", "import sys; sys.exit(70)"):
        programs["bad"] = [programs["use"][0], "-c", words]
        assert environment_sweep.outcome("bad", "TERM", b"x", tmp_path)
    del programs["bad"]
