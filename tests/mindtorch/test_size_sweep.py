"""Wrong sizes are refused at once, by the class of torch: a part of the sweep, and all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("size_sweep.py")


def sweep(*options):
    pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    done = subprocess.run(
        [sys.executable, SWEEP, *options], capture_output=True, text=True, timeout=3000, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def test_wrong_sizes_are_refused_by_torch_s_class():
    assert " 0 differ" in sweep("--calls", "--every", "37")


def test_no_size_hangs_a_row():
    assert " 0 differ" in sweep("--rows", "", "--hangs", "--every", "400")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_wrong_sizes_of_calls_are_refused_by_torch_s_class():
    assert " 0 differ" in sweep("--calls")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_size_hangs_any_row():
    assert " 0 differ" in sweep("--rows", "", "--hangs")
