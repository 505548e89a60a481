"""What a program computed is judged by each operator's formula; the first wrong one is named."""

import sys
from pathlib import Path

import compiled
import layered
import mindtorch_npu.recording as recording
import numpy as np
import pytest

# Samples whose operators a formula covers → the kernel of the simulator to break.
JUDGED = {
    "add": "add", "matmul": "matmul", "softmax": "softmax", "layer_norm": "layernorm",
    "reduce_sum": "reducesum", "two_streams": "add",
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sample", JUDGED)
def test_right_launches_pass(sample: str) -> None:
    outcome = layered.run("--verify", "--", str(compiled.build(f"samples/{sample}")))
    assert outcome.code == 0, outcome.err
    assert " right, 0 wrong, 0 not judged" in outcome.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sample", JUDGED)
def test_the_first_wrong_launch_is_named_and_saved(sample: str, tmp_path: Path) -> None:
    """The saved case fails where the fault is, and passes where it is not."""
    program = str(compiled.build(f"samples/{sample}"))
    fault = f"{JUDGED[sample]}:zeros"
    words = ("--verify", "--save", str(tmp_path / "wrong"), "--", program)
    outcome = layered.run(*words, ACLSIM_FAULTS=fault)
    assert outcome.code == 1, outcome.err
    assert "first wrong: aclnn" in outcome.err
    assert "got 0" in outcome.err
    (case, *_) = sorted((tmp_path / "wrong").glob("*.json"))
    assert f"check replay {case}\n" in outcome.err
    assert {p.suffix for p in (tmp_path / "wrong").iterdir()} == {".json", ".npz", ".rec"}
    if sample in ("add", "softmax"):  # each costs two processes
        replay = ("check", "replay", "--simulator", str(case))
        assert layered.command(*replay).code == 0
        again = layered.command(*replay, ACLSIM_FAULTS=fault)
        assert (again.code, "got 0" in again.out) == (1, True), again.out
        told = " ".join(again.out.split())
        assert f"--from {case.with_suffix('.rec')} --simulator" in told


def test_data_are_what_tensors_held_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    layered.run("--record", str(path), "--data", "all", "--", str(compiled.build("samples/add")))
    (launch,) = recording.open(path).captured()
    read, written = launch.before, launch.after
    assert set(read) == {"self", "other"}
    expected = read["self"][0] + 2 * read["other"][0]
    np.testing.assert_array_equal(written["out"][0], expected)


def test_views_are_recorded_by_their_strides(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    program = str(compiled.build("samples/strided_copy"))
    out = layered.run("--record", str(path), "--data", "all", "--", program).out
    launches = list(recording.open(path).captured())
    assert launches
    shown = [str(int(x)) for one in launches for x in one.after["selfRef"][0].ravel()]
    assert all(word in out.split() for word in shown)


def test_data_of_first_calls_only(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    program = str(compiled.build("samples/two_streams"))
    layered.run("--record", str(path), "--data", "first", "--", program)
    assert len(list(recording.open(path).captured())) == 1
    layered.run("--record", str(path), "--data", "op=aclnnAdd", "--", program)
    assert len(list(recording.open(path).captured())) == 2


def test_larger_tensors_than_the_limit_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    program = str(compiled.build("samples/add"))
    layered.run("--record", str(path), "--data", "all", "--data-limit", "8", "--", program)
    (launch,) = recording.open(path).captured()
    assert (launch.before, launch.after) == ({}, {})


def test_a_rule_for_data_that_means_nothing_is_refused() -> None:
    outcome = layered.run("--data", "most", "--", "true")
    assert outcome.code == 2
    assert "expected first, all, 1/N or op=GLOB" in outcome.err


PROGRAM = """
import mindtorch

def step(x):
    return x * 3

x = mindtorch.ones(4, device="npu")
print(step(x + 1).tolist())
"""


def test_launches_of_a_python_program_have_its_lines(tmp_path: Path) -> None:
    script, path = tmp_path / "train.py", tmp_path / "calls.rec"
    script.write_text(PROGRAM)
    words = ("--stacks", "--record", str(path), "--", sys.executable, str(script))
    outcome = layered.run(*words)
    assert outcome.code == 0, outcome.err
    stacks = {c.name: c.stack for c in recording.open(path).calls() if c.phase == 2}
    assert stacks["aclnnMuls"] == "train.py:5 step < train.py:8 <module>"
    assert stacks["aclnnAdds"] == "train.py:8 <module>"


def test_the_first_wrong_launch_has_its_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    words = ("--stacks", "--verify", "--", sys.executable, str(script))
    outcome = layered.run(*words, ACLSIM_FAULTS="muls:zeros")
    assert outcome.code == 1, outcome.err
    assert "first wrong: aclnnMuls" in outcome.err
    assert "at: train.py:5 step" in outcome.err
