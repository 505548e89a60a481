"""Programs that start, run or end in an unusual way do the same under every layer."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import compiled
import layered
import mindtorch_npu.recording as recording
import pytest

SOURCE = Path(__file__).parent / "programs" / "unusual.cpp"
# How each ends, and how often it says what it computed.
ENDS = {"plain": (3, 1), "files": (4, 1), "after": (5, 2), "vfork": (6, 5), "spawn": (4, 2),
        "faults": (8, 3), "quick": (9, 1), "threads": (10, 1), "deep": (11, 1),
        "signals": (12, 1), "stack": (13, 1)}  # fmt: skip
LAYERS = {
    "all": ("--strict", "--data", "first", "--device-time", "--record"),
    "strict": ("--strict",),
    "record": ("--record",),
    "fault": ("--fault", "aclrtMallocHost@9"),
}


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> str:
    return layered.program(SOURCE.read_text(), tmp_path_factory.mktemp("unusual"))


@functools.cache
def alone(program: str, mode: str) -> tuple[int, str]:
    variables = {**os.environ, "LD_LIBRARY_PATH": str(compiled.install() / "lib64")}
    done = subprocess.run(
        [program, mode], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ENDS)
@pytest.mark.parametrize(
    "layers",
    ["all", *(pytest.param(name, marks=pytest.mark.slow) for name in list(LAYERS)[1:])],
)
def test_it_says_and_ends_as_alone(layers: str, mode: str, unusual: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    options = [*LAYERS[layers], *([str(path)] if LAYERS[layers][-1] == "--record" else [])]
    outcome = layered.run(*options, "--", unusual, mode)
    assert (outcome.code, outcome.out) == alone(unusual, mode), outcome.err
    assert (outcome.code, outcome.out.split().count("7")) == ENDS[mode]
    if path.exists():  # what was recorded can be read, and holds the launches
        launched = sum(call.phase == 2 for call in recording.open(path).calls())
        assert launched >= ENDS[mode][1]


def test_a_program_that_python_spawns_is_seen(unusual: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    spawn = (
        "import os, sys; child = os.posix_spawn(sys.argv[1], [*sys.argv[1:]], os.environ); "
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    outcome = layered.record(path, sys.executable, "-c", spawn, unusual, "plain")
    assert (outcome.code, outcome.out) == (3, "7\n"), outcome.err
    assert sum(call.phase == 2 for call in recording.open(path).calls()) == 1


def test_a_program_without_the_loaders_variables_runs_unseen(unusual: str, tmp_path: Path) -> None:
    """As one that starts with other rights, whose LD_* the loader leaves out."""
    path, root = tmp_path / "calls.rec", compiled.install()
    cleared = ["env", "-u", "LD_LIBRARY_PATH", "-u", "LD_PRELOAD"]
    linked = layered.program(
        SOURCE.read_text(), tmp_path, "-L" + str(root / "lib64"), "-lascendcl", "-lnnopbase",
        "-lopapi", "-Wl,-rpath," + str(root / "lib64"),
    )  # fmt: skip
    outcome = layered.record(path, *cleared, linked, "plain")
    assert (outcome.code, outcome.out) == (3, "7\n"), outcome.err
    assert list(recording.open(path).calls()) == []
