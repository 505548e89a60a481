"""Selection calls fail, wait or run out of memory, and a sweep finds what a program survives."""

from pathlib import Path

import click
import compiled
import layered
import mindtorch_npu.recording as recording
import pytest
from mindtorch_npu.commands.run import faults


def add() -> str:
    return str(compiled.build("samples/add"))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("aclnnMatmul", "aclnnMatmul 0 fail 561000"),
        ("aclnnMatmul@3=161002", "aclnnMatmul 3 fail 161002"),
        ("aclrtMalloc*", "aclrtMalloc* 0 fail 207001"),
        ("aclrtMemcpy@2:delay=50ms", "aclrtMemcpy 2 delay 50000"),
        ("memory=2K", "memory 2048"),
    ],
)
def test_a_spec_means_one_line(spec: str, line: str) -> None:
    assert faults.rule(spec) == line


@pytest.mark.parametrize(
    "spec",
    ["aclnnAdd=0", "aclnnAdd@0", "aclnnAdd@99999999999999999999", "aclnnAdd=99999999999",
     "aclnnAdd:delay=0ms", "aclnnAdd:delay=5000s", "memory=0", "memory=99999999T", ""],
)  # fmt: skip
def test_a_spec_that_no_call_could_feel_is_refused(spec: str) -> None:
    with pytest.raises(click.UsageError, match="--fault"):
        faults.rule(spec)


def test_a_spec_that_means_nothing_says_what_one_may_be() -> None:
    outcome = layered.run("--fault", "aclnnAdd@zero", "--", "true")
    assert outcome.code == 2
    assert "expected NAME[@N][=CODE]" in outcome.err


def test_the_chosen_call_fails_with_its_code_and_is_recorded_as_injected(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    outcome = layered.run("--fault", "aclrtMalloc@2=207018", "--record", str(path), "--", add())
    assert outcome.code != 0
    calls = [c for c in recording.open(path).calls() if c.name == "aclrtMalloc"]
    assert [(c.status, c.injected) for c in calls] == [(0, False), (207018, True)]


def test_a_failing_constructor_gives_null(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    layered.run("--fault", "aclCreateTensor@1", "--record", str(path), "--", add())
    first = next(c for c in recording.open(path).calls() if c.name == "aclCreateTensor")
    assert first.injected
    assert first.arguments["returned"] == 0


def test_memory_has_a_limit_that_frees_move() -> None:
    source = """
    #include "sample.h"
    int main() {
      aclInit(nullptr), aclrtSetDevice(0);
      void *a, *b;
      auto get = [](void** to) { return aclrtMalloc(to, 600, ACL_MEM_MALLOC_HUGE_FIRST); };
      printf("%d ", get(&a)), printf("%d ", get(&b));
      aclrtFree(a), printf("%d\\n", get(&b));
    }
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        program = layered.program(source, Path(folder))
        assert layered.run("--fault", "memory=1K", "--", program).out == "0 207001 0\n"


def test_a_delay_is_spent_in_the_call(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    layered.run("--fault", "aclrtSetDevice:delay=30ms", "--record", str(path), "--", add())
    opened = sorted(recording.open(path).calls(), key=lambda call: call.number)
    at = next(i for i, c in enumerate(opened) if c.name == "aclrtSetDevice")
    assert opened[at].start - opened[at - 1].start > 25e6


def test_a_sweep_names_the_failures_that_a_program_does_not_survive(tmp_path: Path) -> None:
    source = """
    #include "sample.h"
    int main() {
      if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 3;
      void* memory = nullptr;
      aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
      float value = 1;
      aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
      if (!memory) *static_cast<volatile int*>(nullptr) = 1;  // dies instead of saying so
      printf("%s\\n", scalar ? "all well" : "nothing made");
    }
    """
    outcome = layered.run("--fault", "sweep", "--", layered.program(source, tmp_path))
    assert outcome.code == 1
    rows = {line.split()[0]: line for line in outcome.out.splitlines() if line.strip()}
    assert "4 failures, 2 survived (2 with exit code 3)" in outcome.out
    assert "signal 11" in rows["aclrtMalloc"]
    assert "silent" in rows["aclCreateScalar"]


def test_a_sweep_may_fail_only_one_call_of_each_name() -> None:
    outcome = layered.run("--fault", "sweep:aclCreate*@2", "--", add())
    assert "1 failure, 1 survived" in outcome.out  # it makes several tensors, one scalar
    wrong = layered.run("--fault", "sweep:acl@", "--", add())
    assert wrong.code == 2
    assert "sweep:aclnn*@2" in wrong.err


def test_every_sample_survives_every_failure() -> None:
    """Samples check what they call: a failure ends them with a code."""
    outcome = layered.run("--fault", "sweep", "--", add())
    assert "survived" in outcome.out
    assert outcome.code == 0, outcome.out
