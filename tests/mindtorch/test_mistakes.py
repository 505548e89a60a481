"""Of ordinary mistakes the same is said as by torch, on the cpu and on an NPU.

In a process of its own: mistakes change settings that other tests keep.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from mistakes import KNOWN, mistakes


@pytest.mark.parametrize(
    ("device", "every"),
    [("cpu", 6), ("npu", 6), *(pytest.param(d, 1, marks=pytest.mark.slow) for d in ("cpu", "npu"))],
)
def test_mistakes_are_refused_in_torchs_words(device, every):
    pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    program = Path(__file__).parent / "mistakes.py"
    command = [sys.executable, program, "--device", device, "--known", "--every", str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_what_differs_is_in_the_table():
    listed = {m.code for m in mistakes()}
    assert {m.code for m in mistakes(KNOWN)} <= listed
