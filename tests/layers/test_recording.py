"""Programs run under layers as without, and the recording says what they called."""

import signal
import subprocess
import sys
from pathlib import Path

import compiled
import layered
import mindtorch_npu.recording as recording
import pytest

from aclnn_bindings.layers.recording_file import RecordingError


@pytest.mark.sampled(5)
@pytest.mark.parametrize("sample", layered.SAMPLES)
def test_a_sample_runs_under_a_recording_as_without(sample: str, tmp_path: Path) -> None:
    alone = compiled.run(f"samples/{sample}")
    program = str(compiled.build(f"samples/{sample}"))
    path = tmp_path / "calls.rec"
    outcome = layered.record(path, program)
    assert (outcome.code, outcome.out) == (alone.code, alone.out), outcome.err
    opened = recording.open(path)
    assert opened.end is not None
    assert opened.end["lost"] == 0
    names = [call.name for call in opened.calls()]
    assert names.count("aclInit") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["calls.rec"]


def test_calls_have_names_parameters_and_status(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    layered.record(path, str(compiled.build("samples/add")))
    calls = sorted(recording.open(path).calls(), key=lambda call: call.number)
    assert [call.number for call in calls] == list(range(len(calls)))
    one = next(c for c in calls if c.phase == 1)
    two = next(c for c in calls if c.phase == 2)
    assert (one.name, two.name) == ("aclnnAddGetWorkspaceSize", "aclnnAdd")
    assert str(one.arguments["self"]) == "FLOAT[2, 2]"
    assert one.arguments["alpha"].dtype == "FLOAT"
    assert two.arguments["self"] == one.arguments["self"]
    assert two.arguments["preparedBy"] == one.number
    copy = next(c for c in calls if c.name == "aclrtMemcpy")
    assert copy.arguments["count"] == 16
    assert copy.status == 0
    assert all(call.finished and call.duration > 0 for call in calls)


def test_calls_that_the_install_makes_of_itself_are_not_the_programs(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    layered.record(path, str(compiled.build("samples/two_streams")))
    totals = recording.open(path).totals()
    assert totals["aclnnAdd"][0] == 2
    assert totals["aclrtCreateStream"][0] == 2


LOOP = """
#include "sample.h"
#include <csignal>
#include <pthread.h>
int main() {{
  aclInit(nullptr), aclrtSetDevice(0);
  for (int i = 0; i < 1000; ++i) {{
    void* memory = nullptr;
    aclrtMalloc(&memory, 1024, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtFree(memory);
  }}
  {end}
}}
"""


def test_a_killed_program_leaves_all_its_calls(tmp_path: Path) -> None:
    program = layered.program(LOOP.format(end="raise(SIGKILL);"), tmp_path)
    path = tmp_path / "calls.rec"
    outcome = layered.record(path, program)
    assert outcome.code == 128 + signal.SIGKILL
    totals = recording.open(path).totals()
    assert (totals["aclrtMalloc"][0], totals["aclrtFree"][0]) == (1000, 1000)


def test_the_call_that_a_program_died_in_is_named(tmp_path: Path) -> None:
    end = "aclrtCallback die = [](void*) { raise(SIGKILL); };\n"
    end += "  aclrtStream s; aclrtCreateStream(&s); uint64_t id = pthread_self();\n"
    end += (
        "  aclrtSubscribeReport(id, s); aclrtLaunchCallback(die, nullptr, ACL_CALLBACK_BLOCK, s);\n"
    )
    end += "  aclrtProcessReport(-1);"
    program = layered.program(LOOP.format(end=end), tmp_path)
    path = tmp_path / "calls.rec"
    layered.record(path, program)
    died = [call for call in recording.open(path).calls() if not call.finished]
    assert [call.name for call in died] == ["aclrtProcessReport"]


def test_a_torn_recording_reads_up_to_the_tear(tmp_path: Path) -> None:
    path, torn = tmp_path / "calls.rec", tmp_path / "torn.rec"
    layered.record(path, str(compiled.build("samples/add")))
    whole = path.read_bytes()
    torn.write_bytes(whole[:-10])
    opened = recording.open(torn)
    assert opened.end is None
    assert [c.name for c in opened.calls()] == [c.name for c in recording.open(path).calls()]


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no recording")
    with pytest.raises(RecordingError, match="no recording of version 1"):
        recording.open(tmp_path / "x")


PYTHON = """
import ctypes
{load}
assert acl.aclInit(None) == 0 and acl.aclrtSetDevice(0) == 0
stream = ctypes.c_void_p()
assert acl.aclrtCreateStream(ctypes.byref(stream)) == 0
assert acl.aclrtDestroyStream(stream) == 0
acl.aclFinalize()
"""
HOW = {
    "by name": 'acl = ctypes.CDLL("libascendcl.so")',
    "below ASCEND_HOME_PATH":
        'import os; acl = ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")',
    "through libopapi's handle": 'acl = ctypes.CDLL("libopapi.so")',
    "globally": 'ctypes.CDLL("libascendcl.so", ctypes.RTLD_GLOBAL); acl = ctypes.CDLL(None)',
}  # fmt: skip


@pytest.mark.parametrize("how", HOW)
def test_calls_are_seen_however_a_program_finds_them(how: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    outcome = layered.record(path, sys.executable, "-c", PYTHON.format(load=HOW[how]))
    assert outcome.code == 0, outcome.err
    totals = recording.open(path).totals()
    assert [totals[n][0] for n in ("aclInit", "aclrtCreateStream", "aclFinalize")] == [1, 1, 1]


FORK = """
#include "sample.h"
#include <sys/wait.h>
int main() {
  aclInit(nullptr);
  uint32_t count = 0;
  aclrtGetDeviceCount(&count);
  int value = 1;
  aclDestroyScalar(aclCreateScalar(&value, ACL_INT32));
  if (fork() == 0) {
    value = 2;
    aclDestroyScalar(aclCreateScalar(&value, ACL_INT32));
    aclrtGetDeviceCount(&count);
    _exit(0);
  }
  wait(nullptr);
  aclFinalize();
}
"""


def test_a_forked_child_records_as_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    outcome = layered.record(path, layered.program(FORK, tmp_path))
    assert outcome.code == 0, outcome.err
    calls = [c for c in recording.open(path).calls() if c.name == "aclCreateScalar"]
    assert len({c.process for c in calls}) == 2
    assert sorted(c.arguments["made"].data[0] for c in calls) == [1, 2]


FORK_TENSOR = """
#include <aclnnop/aclnn_relu.h>
#include <sys/wait.h>
#include "sample.h"
int main() {
  aclInit(nullptr);
  int64_t dims[] = {2, 3}, strides[] = {3, 1};
  static float data[6];
  aclTensor* t = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 2, data);
  auto prepare = [&] {
    uint64_t size;
    aclOpExecutor* executor = nullptr;
    aclnnReluGetWorkspaceSize(t, t, &size, &executor);
  };
  prepare();
  if (fork() == 0) {
    prepare();
    _exit(0);
  }
  wait(nullptr);
}
"""


def test_a_forked_child_tells_again_what_its_parent_had_made(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    assert layered.record(path, layered.program(FORK_TENSOR, tmp_path)).code == 0
    calls = [c for c in recording.open(path).calls() if c.phase == 1]
    assert len({c.process for c in calls}) == 2
    assert [str(c.arguments["self"]) for c in calls] == ["FLOAT[2, 3]", "FLOAT[2, 3]"]


def test_a_summary_names_operators_with_counts(tmp_path: Path) -> None:
    outcome = layered.run("--summary", "--", str(compiled.build("samples/two_streams")))
    assert outcome.code == 0
    row = next(line for line in outcome.err.splitlines() if "aclnnAdd " in line)
    assert row.split()[1] == "2"
    assert "FLOAT[2]" in row


def test_the_programs_exit_code_is_the_commands(tmp_path: Path) -> None:
    assert layered.run("--", sys.executable, "-c", "raise SystemExit(7)").code == 7
    missing = layered.run("--", "/no/such/program")
    assert missing.code == 2
    assert "/no/such/program" in missing.err


def test_a_call_that_no_layer_looks_at_costs_a_jump(tmp_path: Path) -> None:
    """Its slot holds the real function after the first call."""
    source = """
    #include "sample.h"
    #include <algorithm>
    #include <ctime>
    static double cpu() {
      timespec t;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return t.tv_sec * 1e9 + t.tv_nsec;
    }
    int main() {
      aclInit(nullptr);
      float value = 0;
      double least = 1e9;  // of many short rounds, so that a busy machine does not count
      for (int round = 0; round < 100; ++round) {
        double start = cpu();
        for (int i = 0; i < 10000; ++i) value += aclFloat16ToFloat(static_cast<aclFloat16>(i & 1));
        least = std::min(least, (cpu() - start) / 10000);
      }
      printf("%f %f\\n", value, least);
    }
    """
    program = layered.program(source, tmp_path)
    install = compiled.install()
    alone = {"LD_LIBRARY_PATH": str(install / "lib64")}
    done = subprocess.run([program], capture_output=True, text=True, check=True, env=alone)
    bare = done.stdout.split()
    under = layered.run("--fault", "aclrtMalloc@9", "--", program).out.split()
    assert bare[0] == under[0]
    assert float(under[1]) - float(bare[1]) < 20  # ns a call


DEVICE = """
#include "sample.h"
#include <aclnnop/aclnn_matmul.h>
#include <thread>
static void work(int device, int64_t n, int launches) {
  OK_OR_EXIT(aclrtSetDevice(device));
  aclrtStream stream;
  OK_OR_EXIT(aclrtCreateStream(&stream));
  void* data;
  OK_OR_EXIT(aclrtMalloc(&data, n * n * 4, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_OR_EXIT(aclrtMemset(data, n * n * 4, 0, n * n * 4));
  int64_t dims[] = {n, n}, strides[] = {n, 1};
  aclTensor* t = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 2, data);
  for (int i = 0; i < launches; ++i) {
    uint64_t size;
    aclOpExecutor* executor;
    OK_OR_EXIT(aclnnMatmulGetWorkspaceSize(t, t, t, 0, &size, &executor));
    OK_OR_EXIT(aclnnMatmul(nullptr, size, executor, stream));
  }
  aclDestroyTensor(t);
  OK_OR_EXIT(aclrtSynchronizeStream(stream));
  OK_OR_EXIT(aclrtFree(data));
  OK_OR_EXIT(aclrtDestroyStream(stream));
}
int main() {
  aclInit(nullptr);
  std::thread other(work, 1, 8, 50);
  work(0, 256, 3), work(0, 8, 5000);
  other.join();
  aclrtResetDevice(0), aclrtResetDevice(1), aclFinalize();
}
"""


def test_every_launch_has_its_time_on_the_device(tmp_path: Path) -> None:
    """On two devices and threads, more launches than events are pending; none of these leaks."""
    path = tmp_path / "calls.rec"
    program = layered.program(DEVICE, tmp_path)
    options = ("--device-time", "--strict", "--record", str(path), "--summary")
    outcome = layered.run(*options, "--", program)
    assert (outcome.code, "no misuse found" in outcome.err) == (0, True), outcome.err
    assert "Operators, by device time" in outcome.err
    opened = recording.open(path)
    calls = list(opened.calls(lambda name: name == "aclnnMatmul"))
    assert [c.device_ns is None for c in calls] == [False] * 5053
    large, small = opened.launches() if opened.launches()[0].count == 3 else reversed(
        opened.launches())  # fmt: skip
    assert (large.count, large.timed, small.count, small.timed) == (3, 3, 5050, 5050)
    # 33 million against a thousand products: an order of magnitude at the very least.
    assert large.device_ns / 3 > 10 * small.device_ns / 5050
    assert sum(c.device_ns or 0 for c in calls) == large.device_ns + small.device_ns


def test_times_that_nobody_would_see_are_refused() -> None:
    outcome = layered.run("--device-time", "--", "true")
    assert outcome.code == 2
    assert "--device-time adds to a recording: --record FILE" in outcome.err
