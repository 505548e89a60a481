"""`bench --against vendor:DIR` and `--against aclnnOther`, on two builds of a package of C."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mindtorch_npu.commands.bench.builds import rival_build
from mindtorch_npu.commands.bench.rivals import NoRivalError
from mindtorch_npu.commands.bench.verdict import paired

from tests.simulator import compiled

OPERATOR = r"""
#include <stdint.h>
#include <stdlib.h>
int aclGetRawTensorAddr(const void *tensor, void **address);
int aclGetViewShape(const void *tensor, int64_t **dims, uint64_t *count);
int aclrtLaunchHostFunc(void *stream, void (*function)(void *), void *arguments);
typedef struct { const float *x, *y; float *out; int64_t n; } Call;
static Call *call_of(const void *x, const void *y, void *out) {
  Call *call = calloc(1, sizeof *call);
  int64_t *dims;
  uint64_t rank;
  aclGetRawTensorAddr(x, (void **)&call->x);
  aclGetRawTensorAddr(y, (void **)&call->y);
  aclGetRawTensorAddr(out, (void **)&call->out);
  aclGetViewShape(out, &dims, &rank);
  call->n = 1;
  for (uint64_t i = 0; i < rank; ++i) call->n *= dims[i];
  return call;
}
#define DEFINE(name, repeats, operation)                                                    \
  static void compute##name(void *arguments) {                                              \
    Call *call = arguments;                                                                 \
    for (int repeat = 0; repeat < (repeats); ++repeat)                                      \
      for (volatile int64_t i = 0; i < call->n; ++i)                                        \
        call->out[i] = call->x[i] operation call->y[i];                                     \
  }                                                                                         \
  int aclnn##name##GetWorkspaceSize(const void *x, const void *y, void *out, uint64_t *size, \
                                    void **executor) {                                      \
    *size = 0;                                                                              \
    *executor = call_of(x, y, out);                                                         \
    return 0;                                                                               \
  }                                                                                         \
  int aclnn##name(void *workspace, uint64_t size, void *executor, void *stream) {           \
    return aclrtLaunchHostFunc(stream, compute##name, executor);                            \
  }
DEFINE(Product, REPEATS, *)
DEFINE(SlowProduct, 8, *)
DEFINE(ProductOfSums, 1, +)
"""
HEADER = """
aclnnStatus aclnn{0}GetWorkspaceSize(const aclTensor *x, const aclTensor *y, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnn{0}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                     aclrtStream stream);
"""
GOLDEN = "def aclnnProduct(x, y):\n    return x * y\n"


def package(root: Path, repeats: int) -> Path:
    """A build of the package whose aclnnProduct does its work `repeats` times."""
    lib, include = root / "op_api/lib", root / "op_api/include"
    lib.mkdir(parents=True)
    include.mkdir()
    (root / "product.c").write_text(OPERATOR)
    libraries = [f"-L{compiled.install() / 'lib64'}", "-Wl,--no-as-needed", "-lascendcl",
                 "-lnnopbase"]  # fmt: skip
    command = [compiled.compiler(), "-x", "c", "-shared", "-fPIC", "-O1", f"-DREPEATS={repeats}",
               str(root / "product.c"), *libraries,
               "-o", str(lib / "libcust_opapi.so")]  # fmt: skip
    subprocess.run(command, check=True)
    names = ("Product", "SlowProduct", "ProductOfSums")
    text = '#include "aclnn/acl_meta.h"\n' + "".join(map(HEADER.format, names))
    (include / "aclnn_product.h").write_text(text)
    return root


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    package(folder / "fast", 1)
    package(folder / "slow", 8)
    (folder / "golden.py").write_text(GOLDEN)
    return folder


def bench(folder: Path, ours: str, against: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindtorch_npu", "bench", "aclnnProduct", "--simulator",
               "--golden", "golden.py", "--shapes", "512x64", "--dtype", "float32",
               "--seconds", "0.2", "--against", against, *words]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / ours)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_slower_build_is_bad_for_a_bisect_and_the_faster_side_is_named(builds):
    done = bench(builds, "slow", "vendor:fast", "--git-bisect", "--json", "times.json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "git bisect: bad (1): aclnnProduct float32 512x64,512x64: SLOWER" in done.stderr
    (row,) = json.loads((builds / "times.json").read_text())["results"]
    verdict = row["verdicts"]["device"]
    assert verdict["verdict"] == "SLOWER"
    assert re.search(r"against vendor:fast \(sha256 [0-9a-f]{12}\): ", done.stdout)
    assert 1 < verdict["low"] < verdict["ratio"] < verdict["high"]
    assert verdict["ratio"] > 2


def test_another_operator_is_timed_with_the_same_arguments(builds):
    done = bench(builds, "fast", "aclnnSlowProduct", "--host", "--fail-on", "slower")
    assert "host" in done.stdout
    assert done.returncode in (0, 4), done.stdout + done.stderr
    assert "against aclnnSlowProduct: 1 " in done.stdout


def test_what_computes_something_else_is_not_compared(builds):
    done = bench(builds, "fast", "aclnnProductOfSums")
    assert done.returncode == 5
    assert (
        "not judged: aclnnProduct float32 512x64,512x64: aclnnProductOfSums: wrong result"
        in done.stderr
    )
    with pytest.raises(NoRivalError, match=r"--against vendor:nowhere: .*nowhere does not exist"):
        rival_build("vendor:nowhere")


def test_chance_makes_a_verdict_once_in_a_thousand_runs_at_most():
    draw = np.random.default_rng(5)
    runs, words = 4000, []
    for _ in range(runs):
        noise = np.exp(draw.normal(0, 0.05, (2, 6, 2)))
        words.append(paired([[(a, b) for a, b in rounds] for rounds in noise]).word)
    assert words.count("FASTER") + words.count("SLOWER") <= 4
    shifted = np.exp(draw.normal(0, 0.005, (100, 2, 6, 2)))
    shifted[..., 0] *= 1.1
    assert [paired([[(a, b) for a, b in r] for r in one]).word for one in shifted] == (
        ["SLOWER"] * 100
    )
    calm = np.exp(draw.normal(0, 1e-4, (2, 6, 2)))
    assert paired([[(a, b) for a, b in rounds] for rounds in calm]).word == "SAME"
