"""A short coverage-guided run: `pytest -m fuzz`; the script documents longer ones."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "fuzz_headers.py"
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.fuzz
def test_short_fuzz_run_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "-max_total_time=20", "-max_len=2048"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
