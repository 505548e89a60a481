"""Programs that once differed from torch, and newly drawn ones, agree on cpu and on npu."""

import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch

fuzz = pytest.importorskip("fuzz_programs", reason="torch 2.13 is the oracle")
HERE = Path(__file__).parent
DEVICES = {"any": ("cpu", "npu"), "cpu": ("cpu",)}
KEPT = [
    pytest.param(line, device, id=f"{name}:{number}:{device}")
    for name, devices in DEVICES.items()
    for number, line in enumerate((HERE / f"programs/{name}.txt").read_text().splitlines(), 1)
    for device in devices
    if not line.startswith("#")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("line", "device"), KEPT)
def test_a_kept_program_agrees_with_torch(line, device):
    what = fuzz.compare(line.split(" ;; "), device)
    assert what is None, f"{what.kind} at statement {what.at}: {what.detail}"


def drawn(*options):
    command = [sys.executable, HERE / "fuzz_programs.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_a_few_drawn_programs_give_what_torch_gives():
    drawn("--programs", "60", "--values")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_drawn_programs_give_what_torch_gives():
    """20 minutes of a core; refusals too: python tests/mindtorch/fuzz_programs.py"""
    drawn("--programs", "20000", "--values")


def test_a_planted_difference_is_seen_and_cut_down(monkeypatch):
    lines = ["v0 = T([1.0, 2.0])", "v1 = v0.abs()", "v2 = v0 * 2", "v3 = torch.sub(v2, v1)"]
    assert fuzz.compare(lines, "cpu") is None
    monkeypatch.setattr(mindtorch, "sub", mindtorch.add, raising=False)
    left, what = fuzz.shortened(lines, "cpu")
    assert (what.kind, len(left), left[-1]) == ("values", 3, lines[-1])
    monkeypatch.setattr(mindtorch, "sub", None, raising=False)
    assert fuzz.compare(lines, "cpu").kind == "refused"
