"""Whole programs, unmodified, print what they print on torch: on cpu and npu, through `exec`.

The programs in `programs/whole` were written from outside, by what people write. A few run with
the suite; all of them with `-m slow`.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "programs"))
compare = pytest.importorskip("compare")

PROGRAMS = sorted((HERE / "programs" / "whole").glob("*.py"))
SAMPLE = ("double_backward", "generators", "hooks", "quant_pack")
# What differs and why; each is a gap, and a program that comes to agree fails here.
GAPS = {
    "deprecations": "some warnings of deprecation are not given",
    ("solvers", "npu"): "aclnnInverse of a singular matrix reports no error",
}


@cache
def printed(library, device, names, folder):
    """What each program prints, by its name."""
    runner = str(HERE / "programs" / "runner.py")
    output = Path(folder) / f"{library}-{device}.json"
    paths = [str(p) for p in PROGRAMS if p.stem in names]
    command = [sys.executable, runner, device, str(output), *paths]
    if library == "mindtorch":
        flags = ["--npu"] if device == "npu" else []
        command = [sys.executable, "-m", "mindtorch_npu", "exec", *flags, "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("programs"))


def hold(name, names, device, folder):
    if device == "npu" and not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    theirs = printed("torch", "cpu", names, folder)[f"{name}.py"]
    ours = printed("mindtorch", device, names, folder)[f"{name}.py"]
    assert "uncaught" not in theirs, theirs
    difference = compare.difference(theirs, ours)
    gap = GAPS.get(name) or GAPS.get((name, device))
    if gap is not None:
        assert difference is not None, f"{name} agrees now: take it off the list ({gap})"
        pytest.xfail(gap)
    assert difference is None, "torch | mindtorch\n" + "\n".join(difference)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_programs_prints_what_it_prints_on_torch(name, device, folder):
    hold(name, SAMPLE, device, folder)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", [p.stem for p in PROGRAMS])
def test_whole_programs_print_what_they_print_on_torch(name, device, folder):
    hold(name, tuple(p.stem for p in PROGRAMS), device, folder)


def test_a_difference_is_seen_in_words_and_numbers():
    assert compare.difference("a 1.0\nb 2", "a 1.00001\nb 2") is None
    assert compare.difference("tensor([1.])", "tensor([1.], device='npu:0')") is None
    assert compare.difference("a 1.0\nb 2.0", "a 1.0\nb 2.1") == ("b 2.0", "b 2.1")
    assert compare.difference("float32", "float64") == ("float32", "float64")
    assert compare.difference("a", "a\nb") == ("1 lines", "2 lines")
