"""A recording larger than memory would like is written and read in little of it.

python -m pytest -m slow tests/layers/test_large_recording.py     (2.3 GB of disk, some minutes)
"""

import subprocess
import sys
from pathlib import Path

import layered
import pytest

SOURCE = """
#include <aclnnop/aclnn_add.h>
#include "sample.h"
int main() {
  Session session;
  const int64_t n = 1 << 22;  // 16 MiB a tensor, of elements that do not deflate
  std::vector<float> drawn(n);
  for (float& x : drawn) x = float(rand()) / 7;
  DeviceTensor<float> a(drawn, {n}, ACL_FLOAT), b(drawn, {n}, ACL_FLOAT), c(drawn, {n}, ACL_FLOAT);
  Scalar one(1);
  for (int i = 0; i < 45; ++i) {
    uint64_t size;
    aclOpExecutor* executor;
    OK_OR_EXIT(aclnnAddGetWorkspaceSize(a.handle, b.handle, one.handle, c.handle, &size,
                                        &executor));
    OK_OR_EXIT(aclnnAdd(nullptr, size, executor, session.stream));
  }
  OK_OR_EXIT(aclrtSynchronizeStream(session.stream));
}
"""
MIB = 1 << 20
# Each prints the most memory that it, or what it started, had (KiB, getrusage).
WRITE = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "mindtorch_npu", *sys.argv[1:]]).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
READ = """
import resource, sys
import mindtorch_npu.recording as recording
opened = recording.open(sys.argv[1])
calls = sum(1 for _ in opened.calls())
kept = sum(a.nbytes for one in opened.captured()
           for side in (one.before, one.after) for many in side.values() for a in many)
print(calls, opened.totals()["aclnnAdd"][0], kept,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def numbers(code: str, *arguments: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True,
        env=layered.variables(),
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_gigabytes_are_written_and_read_in_bounded_memory(tmp_path: Path) -> None:
    program, path = layered.program(SOURCE, tmp_path), tmp_path / "calls.rec"
    words = ("run", "--simulator", "--record", str(path), "--data", "all", "--", program)
    code, written_kib = numbers(WRITE, *words)
    assert code == 0
    assert path.stat().st_size > 2_000_000_000
    # The program's own tensors are 64 MiB, the shared slots 16, Python the rest.
    assert written_kib * 1024 < 256 * MIB
    calls, launches, kept, read_kib = numbers(READ, str(path))
    assert (launches, kept) == (45, 45 * 3 << 24)
    assert calls > 2 * launches
    assert read_kib * 1024 < 384 * MIB  # one launch's three tensors, in pieces and as arrays
