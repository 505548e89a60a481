"""What `check` says of an operator that a person wrote and gave a reference for."""

import os
import re
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

@spec("aclnnBrittleProduct", Rule("rounded", "this file", strided=False),
      x=tensor("H", "f32"), y=tensor("H", "x"), out=out("x"))
def vector(x, y):
    return x * y
"""

WIDE = """
from mindtorch_npu.spec import Rule, out, require, spec, tensor

@spec("aclnnProduct", Rule("composite", "this file", strided=False),
      x=tensor("*#S", "f16 bf16 f32"), y=tensor("*#S", "x"), out=out("x"))
def product(x, y):
    return x * y

@spec("aclnnSlowProduct", Rule("composite", "this file", strided=False), require("H == N"),
      x=tensor("H N", "f32"), y=tensor("H N", "x"), out=out("x"))
def square(x, y):
    return x * y
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    package(folder / "mine")
    (folder / "task.py").write_text(TASK)
    (folder / "wide.py").write_text(WIDE)
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


def test_a_folder_without_references_is_refused(folder, tmp_path):
    done = check(folder, "add", "--golden", str(tmp_path))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "holds no Python file of references" in done.stderr


def test_any_rank_may_be_taken_where_no_document_limits_it(folder):
    done = check(folder, "contract", "aclnnProduct", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no document limits the rank, and it takes rank 9" in done.stdout


def cases(folder: Path, *words: str) -> list[str]:
    command = [sys.executable, "-m", "mindtorch_npu", "check", "list", *words, "--alone",
               "--simulator", "--golden", "wide.py"]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / "mine")}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return done.stdout.split()


@pytest.mark.parametrize("part", ["dtype=float16", "dtype=bfloat16", "dtype=float32", "*S=0x3",
                                  "y=last", "y=middle", "values=offset"])  # fmt: skip
def test_all_that_is_declared_is_tried_and_what_nobody_declares_too(folder, part):
    assert any(part in name.split("/") for name in cases(folder, "aclnnProduct"))


def test_no_case_breaks_what_the_declaration_requires_and_sizes_differ(folder):
    sizes = set()
    for name in cases(folder, "aclnnSlowProduct"):
        levels = dict(part.split("=") for part in name.split("/")[2:])
        height, width = (int(levels.get(n, {"H": 5, "N": 7}[n])) for n in "HN")
        assert height == width, name
        sizes.add(height)
    assert len(sizes) > 3


def test_a_shrunk_case_keeps_what_the_declaration_requires(folder):
    done = check(folder, "aclnnSlowProduct", "--golden", "wide.py", "--case",
                 "aclnnSlowProduct/functional/H=4/N=7/dtype=float32")  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    assert "the declaration requires H == N" in done.stdout


def test_what_was_assumed_of_a_bare_function_is_said(folder):
    (folder / "bare.py").write_text("def aclnnSlowProduct(x, y):\n    return x * y\n")
    done = check(folder, "aclnnSlowProduct", "--golden", "bare.py")
    assert "Assumed of aclnnSlowProduct, whose reference declares nothing" in done.stdout
    assert "  x: shape [*#S] float32" in done.stdout
    declared = check(folder, "aclnnSmallProduct")
    assert "Assumed" not in declared.stdout


def test_a_crash_is_shrunk_and_saved_and_replays(folder, tmp_path):
    done = check(folder, "aclnnBrittleProduct", "--save", str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    cause = re.search(r"aclnnBrittleProduct: crashes for row H > (\d+), float32", done.stdout)
    assert cause is not None, done.stdout
    assert 5 <= int(cause[1]) <= 100  # 100 where there was time for all of the search
    (saved,) = tmp_path.glob("*.json")
    command = [sys.executable, "-m", "mindtorch_npu", "check", "replay", str(saved), "--simulator",
               "--golden", "task.py"]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / "mine")}
    again = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                           check=False)  # fmt: skip
    assert again.returncode not in (0, 2), again.stdout + again.stderr
