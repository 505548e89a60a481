"""Each call of ACL and ACLNN fails once, and mindtorch tells it, lives on, and leaks nothing."""

import re
import subprocess
import sys
from pathlib import Path

import compiled
import fault_sweep
import layered
import pytest


def test_one_failure_in_a_few_is_taken_well() -> None:
    compiled.install()
    results = fault_sweep.start(life=7, streams=23, memory=29, devices=23, step=79, check=71)
    assert sum(result["failures"] for result in results) > 20
    assert [result["wrong"] for result in results] == [[]] * len(results)


@pytest.mark.slow
def test_every_failure_is_taken_well() -> None:
    """Four minutes of a core; the table: python tests/layers/fault_sweep.py all --table"""
    compiled.install()
    results = fault_sweep.start(**dict.fromkeys(fault_sweep.SCENARIOS, 1))
    assert sum(result["failures"] for result in results) > 1200
    assert [result["wrong"] for result in results] == [[]] * len(results)


def test_what_a_scenario_swallows_leaks_or_misnames_is_taken_badly() -> None:
    compiled.install()
    (result,) = fault_sweep.start(careless=2)
    said = {how.partition(" ")[0] for _, _, how in result["wrong"]}
    assert {"wrong", "ValueError:", "leak:"} <= said, result


@pytest.mark.slow
def test_a_training_step_ends_by_itself_after_any_failure() -> None:
    """Half a minute of a core; through torch_npu, in its environment: client_sweep.py torch_npu."""
    compiled.install()
    script = str(Path(__file__).with_name("client_sweep.py"))
    done = subprocess.run(
        [sys.executable, script, "mindtorch"], capture_output=True, text=True, check=True,
        env=layered.variables(),
    )  # fmt: skip
    *badly, counts = done.stdout.splitlines()
    assert badly == []
    assert int(re.match(r"(\d+) failures", counts)[1]) > 25
