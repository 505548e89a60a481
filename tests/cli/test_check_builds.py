"""`check --against vendor:DIR`, on builds of a package of C: one right, one without results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.c_packages import package

GOLDEN = "def aclnnProduct(x, y):\n    return x * y\n"


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    package(folder / "right")
    package(folder / "empty", 0)
    (folder / "golden.py").write_text(GOLDEN)
    return folder


def check(
    folder: Path,
    ours: str,
    against: str,
    *words: str,
    operator: tuple[str, ...] = ("aclnnProduct",),
) -> subprocess.CompletedProcess[str]:
    golden = () if "--golden" in words else ("--golden", "golden.py", "--dtype", "float32")
    command = [sys.executable, "-m", "mindtorch_npu", "check", *operator, "--simulator",
               *golden, "--against", against, *words]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / ours), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_what_only_the_build_at_hand_gets_wrong_is_shown(builds):
    done = check(builds, "empty", "vendor:right", "--json", "empty.json")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "regression (" in done.stdout
    assert json.loads((builds / "empty.json").read_text())["summary"]["failing"]
    assert "PASS" in done.stdout
    assert "right/op_api/lib/libcust_opapi.so sha256 " in done.stdout
    assert "empty/op_api/lib/libcust_opapi.so sha256 " in done.stdout


def test_what_was_wrong_in_the_other_build_is_fixed(builds):
    done = check(builds, "right", "vendor:empty")
    assert done.returncode == 1, done.stdout + done.stderr  # strides are taken by neither
    assert "fixed (" in done.stdout
    assert "0 regressions" in done.stdout


def test_builds_that_do_the_same_differ_in_nothing(builds):
    done = check(builds, "right", "vendor:right")
    assert done.returncode == 1, done.stdout + done.stderr  # strides are taken by neither
    assert "0 regressions, 0 changes, " in done.stdout
    assert "fail with both builds: " in done.stderr


@pytest.mark.parametrize(
    ("against", "more", "says"),
    [
        ("vendor:nowhere", (), "nowhere does not exist"),
        ("aclnnSlowProduct", (), "expected vendor:DIR"),
        ("vendor:right", ("--ray", "auto"), "not supported with"),
    ],
)
def test_what_is_no_other_build_is_a_usage_error(builds, against, more, says):
    done = check(builds, "right", against, *more)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr


CASES = """\
testcase_name,api_name,tensor_view_shapes,tensor_dtypes,input_data_ranges
plain,aclnnProduct,"((4,3),(4,3),(4,3))","('float32','float32','float32')","((1,2),(1,2))"
"""
SPECS = """
__spec__ = {"aclnnProduct": "Product"}
class Product:
    @staticmethod
    def golden(x, y, **kwargs):
        return x * y
"""


@pytest.mark.parametrize("golden", ["golden.py", "specs.py"])
def test_the_rows_of_a_case_file_run_with_both_builds(builds, golden):
    if golden == "specs.py":
        pytest.importorskip("torch")
    (builds / "cases.csv").write_text(CASES)
    (builds / "specs.py").write_text(SPECS)
    words = ("--cases", "cases.csv", "--golden", golden, "--results", "out.csv")
    done = check(builds, "empty", "vendor:right", *words, operator=())
    assert done.returncode == 4, done.stdout + done.stderr
    assert "1 regression" in done.stdout
    assert ",FAIL," in (builds / "out.csv").read_text()


@pytest.mark.parametrize(
    ("ours", "against", "more", "code", "says"),
    [
        ("empty", "vendor:right", (), 1, "git bisect: bad (1): 1 regression: aclnnProduct/"),
        ("right", "vendor:right", (), 0, "git bisect: good (0): "),
        ("empty", "vendor:empty", (), 0, "no regressions; fail with both builds: 1 case"),
        ("nowhere", "vendor:right", (), 125, "declares no such operator"),
        ("right", "vendor:right", ("--budget", "0.001"), 125, "cases were left out"),
        ("right", "vendor:nowhere", (), 125, "nowhere does not exist"),
    ],
)
def test_a_bisect_asks_what_became_wrong(builds, ours, against, more, code, says):
    case = () if more else ("--case", "aclnnProduct/functional/dtype=float32")
    done = check(builds, ours, against, "--git-bisect", *case, *more)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stderr.splitlines()[-1]
