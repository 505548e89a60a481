"""What `check` says of an operator that a person wrote and gave a reference for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.c_packages import package

TASK = """
from mindtorch_npu.spec import Rule, out, spec, tensor

@spec("aclnnProduct aclnnSmallProduct", Rule("rounded", "this file", strided=False),
      x=tensor("*S", "f32"), y=tensor("*S", "x"), out=out("x"))
def product(x, y):
    return x * y
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    package(folder / "mine")
    (folder / "task.py").write_text(TASK)
    return folder


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    mode = () if words[0] == "contract" else ("--alone",)
    command = [sys.executable, "-m", "mindtorch_npu", "check", *words, "--simulator", *mode,
               "--golden", "task.py", "--jobs", "1"]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / "mine"), "COLUMNS": "400"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_a_kernel_that_is_missing_for_declared_sizes_fails_and_names_the_build(folder):
    done = check(folder, "aclnnSmallProduct")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no kernel for what its reference declares" in done.stdout
    assert "561003" in done.stdout
    library = folder / "mine/op_api/lib/libcust_opapi.so"
    again = next(line for line in done.stdout.splitlines() if "again: " in line)
    assert f"# with {library} sha256 " in again


def test_any_rank_may_be_taken_where_no_document_limits_it(folder):
    done = check(folder, "contract", "aclnnProduct", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no document limits the rank, and it takes rank 9" in done.stdout
