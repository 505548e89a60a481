"""More live threads than slots, and large tensors: all is recorded, each thread's in its order."""

import os
import subprocess
import sys
import time
from pathlib import Path

import layered
import mindtorch_npu.recording as recording
import numpy as np
import pytest

from aclnn_bindings.layers.spool import Spool

# `MINDTORCH_TEST_LAUNCHES=100000` captures as many launches, as the full check does.
LAUNCHES = int(os.environ.get("MINDTORCH_TEST_LAUNCHES", "120"))

LIVE = """
#include <condition_variable>
#include <mutex>
#include <thread>
#include "sample.h"
int main(int, char** words) {
  Session session;
  int count = atoi(words[1]), there = 0;
  std::mutex mutex;
  std::condition_variable all_there;
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&] {
    auto call = [] { float value = 1; aclDestroyScalar(aclCreateScalar(&value, ACL_FLOAT)); };
    call();
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (++there == count) all_there.notify_all();
      all_there.wait(lock, [&] { return there == count; });
    }
    call();
  });
  for (auto& thread : threads) thread.join();
  printf("done\\n");
}
"""


@pytest.mark.parametrize("threads", [129, 600])
def test_all_calls_of_live_threads_are_recorded(threads: int, tmp_path: Path) -> None:
    program, path = layered.program(LIVE, tmp_path), tmp_path / "calls.rec"
    outcome = layered.record(path, program, str(threads))
    assert (outcome.code, outcome.out) == (0, "done\n"), outcome.err
    opened = recording.open(path)
    assert opened.totals()["aclCreateScalar"][0] == 2 * threads
    numbers = [call.number for call in opened.calls()]
    assert sorted(numbers) == list(range(len(numbers)))
    by_thread: dict[int, list[int]] = {}
    for call in opened.calls():
        by_thread.setdefault(call.thread, []).append(call.number)
    assert all(numbers == sorted(numbers) for numbers in by_thread.values())


def test_a_slot_that_is_freed_is_at_no_moment_another(tmp_path: Path) -> None:
    """Threads take slots by comparing the whole state word, how often it was taken included."""
    path = tmp_path / "spool"
    path.touch()
    spool = Spool(path, slots=1, slot_size=4096)
    full, free, at = 64 << 2 | 2, 64 << 2, 4096
    spool._numbers[at // 4] = full
    watch = (
        "import mmap, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        "word = memoryview(mmap.mmap(file.fileno(), 0)).cast('I')[int(sys.argv[2]) // 4:]\n"
        "print('ready', flush=True)\n"
        "seen = set()\n"
        "while word[1] != 7: seen.add(word[0])\n"
        "print(sorted(seen))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", watch, str(path), str(at)], stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "ready\n"
        until = time.monotonic() + 2
        while time.monotonic() < until:
            spool._numbers[at // 4] = full
            spool._free(at // 4, full)
        spool._numbers[at // 4 + 1] = 7
        seen = watcher.stdout.read()
    spool.close()
    assert seen == f"[{free}, {full}]\n"


# Each thread adds to tensors of as many bytes as several slots hold; what they hold is known.
CAPTURED = """
#include <thread>
#include <aclnnop/aclnn_add.h>
#include "sample.h"
int main(int, char** words) {
  Session session;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] {
    OK_OR_EXIT(aclrtSetDevice(0));
    aclrtStream stream;
    OK_OR_EXIT(aclrtCreateStream(&stream));
    Scalar one(1);
    const int64_t size = atoi(words[2]);
    DeviceTensor<float> x(std::vector<float>(size, 1), {size}, ACL_FLOAT);
    DeviceTensor<float> y(std::vector<float>(size, 1), {size}, ACL_FLOAT);
    for (int i = 0; i < atoi(words[1]) / 4; ++i) {
      uint64_t bytes = 0;
      aclOpExecutor* executor = nullptr;
      OK_OR_EXIT(aclnnAddGetWorkspaceSize(x.handle, y.handle, one.handle, x.handle, &bytes,
                                          &executor));
      OK_OR_EXIT(aclnnAdd(nullptr, bytes, executor, stream));
    }
    OK_OR_EXIT(aclrtSynchronizeStream(stream));
    OK_OR_EXIT(aclrtDestroyStream(stream));
  });
  for (auto& thread : threads) thread.join();
}
"""


@pytest.mark.parametrize("size", [250_000, 100])
def test_captured_data_are_whole(size: int, tmp_path: Path) -> None:
    """A piece that comes after its call, or not at all, would be zeros among the elements."""
    program, path = layered.program(CAPTURED, tmp_path), tmp_path / "calls.rec"
    words = ("--data", "all", "--record", str(path), "--", program, str(LAUNCHES), str(size))
    outcome = layered.command("run", "--simulator", *words, timeout=120 + LAUNCHES / 20)
    assert outcome.code == 0, outcome.err
    count = 0
    for launch in recording.open(path).captured():
        before, after = launch.before["self"][0], launch.after["out"][0]
        assert before.min() == before.max()
        np.testing.assert_array_equal(after, before + 1)
        count += 1
    assert count == LAUNCHES
