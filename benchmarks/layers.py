"""What layers cost a program: CPU time of small additions, bare, with no layer that looks at them,
recorded, and checked.

A C++ program prints the CPU time of its thread in ns a launch, the best of ten rounds: with
descriptors made for each launch (eight calls), and with both phases alone.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from aclnn_bindings.install.library import find_install

SOURCE = r"""
#include <acl/acl.h>
#include <aclnnop/aclnn_add.h>
#include <algorithm>
#include <cstdio>
#include <ctime>
static double cpu() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
int main() {
  const int launches = 2000;
  int64_t dims[] = {16}, strides[] = {1};
  float one = 1;
  void* data[3];
  aclrtStream stream;
  aclInit(nullptr), aclrtSetDevice(0), aclrtCreateStream(&stream);
  for (void*& at : data) {
    aclrtMalloc(&at, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(at, 64, 0, 64);
  }
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  auto tensor = [&](int i) {
    return aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, data[i]);
  };
  auto launch = [&](aclTensor* a, aclTensor* b, aclTensor* c) {
    uint64_t size;
    aclOpExecutor* executor;
    aclnnAddGetWorkspaceSize(a, b, alpha, c, &size, &executor);
    aclnnAdd(nullptr, size, executor, stream);
  };
  double whole = 1e9, phases = 1e9;
  for (int round = 0; round < 10; ++round) {
    double start = cpu();
    for (int i = 0; i < launches; ++i) {
      aclTensor *a = tensor(0), *b = tensor(1), *c = tensor(2);
      launch(a, b, c);
      aclDestroyTensor(a), aclDestroyTensor(b), aclDestroyTensor(c);
    }
    whole = std::min(whole, (cpu() - start) / launches);
    aclrtSynchronizeStream(stream);
    aclTensor *a = tensor(0), *b = tensor(1), *c = tensor(2);
    start = cpu();
    for (int i = 0; i < launches; ++i) launch(a, b, c);
    phases = std::min(phases, (cpu() - start) / launches);
    aclrtSynchronizeStream(stream);
    aclDestroyTensor(a), aclDestroyTensor(b), aclDestroyTensor(c);
  }
  printf("%.0f %.0f\n", whole, phases);
}
"""


def build(folder: Path, root: Path) -> str:
    (folder / "launches.cpp").write_text(SOURCE)
    program = str(folder / "launches")
    subprocess.run(
        ["g++", "-O2", str(folder / "launches.cpp"), f"-I{root / 'include'}",
         f"-L{root / 'lib64'}", "-lascendcl", "-lnnopbase", "-lopapi", "-o", program],
        check=True,
    )  # fmt: skip
    return program


def measure(command: list[str], **environment: str) -> tuple[int, int]:
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    whole, phases = done.stdout.split()
    return int(whole), int(phases)


def main() -> None:
    root = find_install(simulator=True).root
    run = [sys.executable, "-m", "mindtorch_npu", "run", "--simulator"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = build(folder, root)
        ways = {
            "bare": ([program], {"LD_LIBRARY_PATH": str(root / "lib64")}),
            "no layer": ([*run, "--fault", "aclrtMallocHost@9", "--", program], {}),
            "recorded": ([*run, "--record", str(folder / "calls.rec"), "--", program], {}),
            "strict": ([*run, "--strict", "--", program], {"ACLSIM_STRICT": "off"}),
        }
        print(f"{'':12}{'with descriptors':>20}{'both phases':>16}   ns a launch")
        for name, (command, environment) in ways.items():
            whole, phases = measure(command, **environment)
            print(f"{name:12}{whole:20}{phases:16}")


if __name__ == "__main__":
    main()
