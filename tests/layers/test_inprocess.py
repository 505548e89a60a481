"""`mindtorch.npu.record` sees what mindtorch calls between two moments, and nothing of the rest."""

import subprocess
import sys
from pathlib import Path

import layered
import mindtorch_npu.recording as recording

# Before the block, inside and after it other functions run, so that each call tells where it was.
PROGRAM = """
import sys
import mindtorch
import mindtorch_npu.recording as recording

x = mindtorch.rand(4, 4, device="npu")
before = (x @ x).exp()          # plans and streams are there already

def step(x):
    return (x @ x).relu()

with mindtorch.npu.record(sys.argv[1], data="first", stacks=True):
    inside = step(x)
    step(x)
    mindtorch.npu.synchronize()
after = (x @ x).tanh()
expected = x.cpu() @ x.cpu()
assert mindtorch.allclose(inside.cpu(), expected.relu())
assert mindtorch.equal((x @ x).relu().cpu(), inside.cpu())

with mindtorch.npu.record(sys.argv[2]):
    for _ in range(3):
        x.sin()
try:
    with mindtorch.npu.record(sys.argv[3]):
        x.cos()
        with mindtorch.npu.record(sys.argv[3] + ".inner"):
            pass
except RuntimeError as error:
    assert "records already" in str(error), error
x.exp()
try:
    with mindtorch.npu.record(sys.argv[1], data="most"):
        pass
except ValueError as error:
    assert "expected first, all, 1/N or op=GLOB" in str(error)
print("ended")
"""


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    variables = layered.variables()
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False)


def launches(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for launch in recording.open(path).launches():
        counts[launch.name] = counts.get(launch.name, 0) + launch.count
    return counts


def test_only_what_runs_inside_is_recorded(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.rec", "two.rec", "three.rec")]
    done = alone(*map(str, paths))
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    one, two, three = map(launches, paths)
    assert one["aclnnRelu"] == 2
    assert sum(one.values()) == 4
    assert two == {"aclnnSin": 3}
    assert three == {"aclnnCos": 1}
    opened = recording.open(paths[0])
    assert opened.end == {"code": 0, "lost": 0}
    calls = {c.name for c in opened.calls()}
    assert calls >= {"aclCreateTensor", "aclrtSynchronizeDeviceWithTimeout"}
    relu = next(c for c in opened.calls(lambda name: name == "aclnnRelu"))
    assert str(relu.arguments["self"]) == "FLOAT[4, 4]"
    assert relu.stack == "<string>:10 step < <string>:13 <module>"
    assert [one.call.name for one in opened.captured()][-1] == "aclnnRelu"
    # The second recording knows nothing of what the first had told.
    sin = next(c for c in recording.open(paths[1]).calls(lambda name: name == "aclnnSin"))
    assert str(sin.arguments["self"]) == "FLOAT[4, 4]"


def test_a_recording_of_a_block_is_checked_like_one_of_a_program(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("one.rec", "two.rec", "three.rec")]
    alone(*paths)
    outcome = layered.command("check", "--simulator", "--jobs", "1", "--from", paths[0])
    assert outcome.code == 0, outcome.out + outcome.err


def test_a_program_under_run_is_told_that_it_is_recorded_already(tmp_path: Path) -> None:
    source = "import mindtorch\nwith mindtorch.npu.record('x.rec'): pass"
    path = str(tmp_path / "calls.rec")
    outcome = layered.run("--record", path, "--", sys.executable, "-c", source)
    assert outcome.code == 1
    assert "runs under `mindtorch-npu run`" in outcome.err
