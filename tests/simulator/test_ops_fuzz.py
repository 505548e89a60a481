"""No arguments crash or hang the simulator: every operator is called at random in a child."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("fuzz_child.py")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_arguments_are_refused_or_run_but_never_crash(seed: int) -> None:
    command = [sys.executable, str(CHILD), str(seed), "40"]
    child = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    lines = child.stdout.splitlines() or ["nothing was called"]
    assert child.returncode == 0, f"died in {lines[-1]}: {child.stderr[-2000:]}"
    ran = int(lines[-1].removeprefix("done: ").split()[0])
    assert ran > 1000, lines[-1]
