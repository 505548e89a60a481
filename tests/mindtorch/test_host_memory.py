"""Where the host's memory runs out, an error comes, never a crash or a wrong result."""

import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("host_memory_sweep.py")
EVERY = {"step": 23, "streams": 17, "views": 17, "copies": 3, "calls": 11}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scenario", EVERY)
def test_a_refused_allocation_crashes_nothing(scenario: str) -> None:
    pytest.importorskip("_testcapi", reason="this Python has no hook that refuses memory")
    command = [sys.executable, str(SWEEP), scenario, "--every", str(EVERY[scenario])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
