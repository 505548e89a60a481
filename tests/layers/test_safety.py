"""A program under layers may use threads, throw, and call before aclInit and after main."""

from pathlib import Path

import compiled
import layered
import mindtorch_npu.recording as recording
import pytest

LAYERS = (("--strict",), ("--summary",), ("--strict", "--summary", "--data", "1/50"))

STORM = """
#include <thread>
#include <aclnnop/aclnn_add.h>
#include "sample.h"
int main() {
  Session session;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back([t] {
    OK_OR_EXIT(aclrtSetDevice(0));
    aclrtStream stream;
    OK_OR_EXIT(aclrtCreateStream(&stream));
    Scalar one(1);
    DeviceTensor<float> x(std::vector<float>(8, float(t)), {8}, ACL_FLOAT);
    DeviceTensor<float> y(std::vector<float>(8, 1), {8}, ACL_FLOAT);
    for (int i = 0; i < 200; ++i) {
      uint64_t size = 0;
      aclOpExecutor* executor = nullptr;
      OK_OR_EXIT(aclnnAddGetWorkspaceSize(x.handle, y.handle, one.handle, x.handle, &size,
                                          &executor));
      OK_OR_EXIT(aclnnAdd(nullptr, size, executor, stream));
    }
    OK_OR_EXIT(aclrtSynchronizeStream(stream));
    if (x.values()[0] != float(t + 200)) exit(9);
    OK_OR_EXIT(aclrtDestroyStream(stream));
  });
  for (auto& thread : threads) thread.join();
  printf("done\\n");
}
"""


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> str:
    return layered.program(STORM, tmp_path_factory.mktemp("storm"))


@pytest.mark.parametrize("layers", LAYERS)
def test_many_threads_compute_the_same(layers: tuple[str, ...], storm: str) -> None:
    outcome = layered.run(*layers, "--", storm)
    assert (outcome.code, outcome.out) == (0, "done\n"), outcome.err


def test_no_call_of_many_threads_is_lost(storm: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    assert layered.record(path, storm).code == 0
    opened = recording.open(path)
    assert opened.totals()["aclnnAdd"][0] == 1600
    numbers = [call.number for call in opened.calls()]
    assert sorted(numbers) == list(range(len(numbers)))
    launches = [call for call in opened.calls() if call.phase == 2]
    assert all(str(call.arguments["self"]) == "FLOAT[8]" for call in launches)


def test_an_exception_passes_through_a_call(tmp_path: Path) -> None:
    source = """
    #include <pthread.h>
    #include <unistd.h>
    #include "sample.h"
    int main() {
      Session session;
      uint64_t me = pthread_self();
      OK_OR_EXIT(aclrtSubscribeReport(me, session.stream));
      aclrtCallback thrower = [](void*) { throw 7; };
      OK_OR_EXIT(aclrtLaunchCallback(thrower, nullptr, ACL_CALLBACK_NO_BLOCK, session.stream));
      try {
        aclrtProcessReport(1000);
      } catch (int value) {
        printf("caught %d\\n", value);
      }
      fflush(stdout);
      _exit(0);
    }
    """
    program = layered.program(source, tmp_path)
    for layers in LAYERS:
        outcome = layered.run(*layers, "--", program)
        assert outcome.out == "caught 7\n", outcome.err


def test_calls_before_init_and_after_main_are_forwarded(tmp_path: Path) -> None:
    source = """
    #include "sample.h"
    struct Late {
      uint32_t early = 99;
      Late() { aclrtGetDeviceCount(&early); }
      ~Late() {
        float value = 1;
        aclDestroyScalar(aclCreateScalar(&value, ACL_FLOAT));
        printf("%u\\n", early);
      }
    };
    static Late late;
    int main() { Session session; }
    """
    program = layered.program(source, tmp_path)
    path = tmp_path / "calls.rec"
    outcome = layered.run("--record", str(path), "--strict", "--", program)
    assert (outcome.code, outcome.out) == (0, "2\n"), outcome.err
    names = [call.name for call in recording.open(path).calls()]
    assert {"aclrtGetDeviceCount", "aclDestroyScalar"} <= set(names)


def test_calls_after_main_leave_the_memory_of_others_alone(tmp_path: Path) -> None:
    """What a thread keeps from call to call is gone by then, and others have its memory."""
    source = """
    #include <unistd.h>
    #include <string>
    #include <aclnnop/aclnn_add.h>
    #include "sample.h"
    void call() {
      Scalar one(1);
      int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 1};
      static float value;
      aclTensor* x = aclCreateTensor(dims, 8, ACL_FLOAT, dims, 0, ACL_FORMAT_ND, dims, 8, &value);
      uint64_t size = 0;
      aclOpExecutor* executor = nullptr;
      aclnnAddGetWorkspaceSize(x, x, one.handle, x, &size, &executor);
      if (executor) aclDestroyAclOpExecutor(executor);
      aclDestroyTensor(x);
    }
    struct Late {
      ~Late() {
        std::vector<std::string> texts;
        for (size_t bytes = 16; bytes < 2048; bytes += 8) texts.emplace_back(bytes, 'x');
        for (int k = 0; k < 10; ++k) call();
        for (auto& text : texts)
          if (text != std::string(text.size(), 'x')) _exit(7);
        printf("unchanged\\n");
      }
    };
    static Late late;
    int main() {
      Session session;
      for (int k = 0; k < 10; ++k) call();
    }
    """
    program = layered.program(source, tmp_path)
    outcome = layered.run("--record", str(tmp_path / "calls.rec"), "--", program)
    assert (outcome.code, outcome.out) == (0, "unchanged\n"), outcome.err
    assert recording.open(tmp_path / "calls.rec").totals()["aclnnAddGetWorkspaceSize"][0] == 20


def test_without_a_signature_a_function_is_forwarded_and_named(tmp_path: Path) -> None:
    """The simulator exports counters that no header of CANN declares."""
    source = """
    #include "sample.h"
    extern "C" int64_t aclsimLiveHandles(const char*);
    int main() { Session session; printf("%ld\\n", aclsimLiveHandles("stream")); }
    """
    program = layered.program(source, tmp_path)
    path = tmp_path / "calls.rec"
    outcome = layered.record(path, program)
    assert outcome.out == compiled_alone(program)
    assert recording.open(path).totals()["aclsimLiveHandles"][0] == 1


def compiled_alone(program: str) -> str:
    import subprocess

    places = {"LD_LIBRARY_PATH": str(compiled.install() / "lib64")}
    return subprocess.run([program], env=places, capture_output=True, text=True).stdout


def test_a_recording_that_nobody_takes_stops_and_the_program_goes_on(tmp_path: Path) -> None:
    """The collector is killed: the program waits a while, and ends as without layers."""
    source = """
    #include <csignal>
    #include <unistd.h>
    #include "sample.h"
    int main() {
      Session session;
      kill(getppid(), SIGKILL);
      float value = 1;
      for (int i = 0; i < 500000; ++i) aclDestroyScalar(aclCreateScalar(&value, ACL_FLOAT));
      FILE* out = fopen("ended", "w");
      fprintf(out, "well");
      fclose(out);
    }
    """
    import time

    program = layered.program(source, tmp_path)
    layered.run("--record", str(tmp_path / "calls.rec"), "--", "sh", "-c",
                f"cd {tmp_path} && exec {program}")  # fmt: skip
    ended = tmp_path / "ended"
    for _ in range(300):
        if ended.exists() and ended.read_text():
            break
        time.sleep(0.1)
    assert ended.read_text() == "well"
    assert recording.open(tmp_path / "calls.rec").end is None
