"""What type checkers see: the share of public names with a type, and mistakes that are errors."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Shares of public names whose type is known; raise them when they rise.
LEAST = {"aclnn_bindings": 0.97, "mindtorch_npu.api": 0.99, "mindtorch": 0.87}
MISTAKES = """\
import mindtorch as torch

x = torch.ones(2, 2)
y: int = torch.add(x, x)
x.reshape("a")
x.bacward()
"""

pytestmark = pytest.mark.skipif(
    shutil.which("pyright") is None, reason="pyright is not installed: pip install pyright"
)


def pyright(folder: Path, *words: str) -> Any:
    paths = [str(ROOT), str(ROOT / "build_backend")]
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": programs, "PYTHONPATH": ":".join(paths)}
    done = subprocess.run(["pyright", "--outputjson", *words], cwd=folder, env=environ,
                          capture_output=True, text=True, timeout=280)  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("package", LEAST)
def test_public_names_have_types(package: str, tmp_path: Path) -> None:
    report = pyright(tmp_path, "--verifytypes", package, "--ignoreexternal")
    assert report["typeCompleteness"]["completenessScore"] >= LEAST[package]


def test_mistakes_are_errors_and_the_rest_is_not(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MISTAKES)
    report = pyright(tmp_path, "program.py")
    lines = {one["range"]["start"]["line"] + 1 for one in report["generalDiagnostics"]}
    assert lines == {4, 5, 6}
