"""`check` and `bench` under a real `git bisect run`, over the history of a vendor's library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mindtorch_npu import bisect

from tests import custom_packages
from tests.custom_packages import ADD

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

GOOD = "def add(x, y):\n    return x + y\n"
BAD = "def add(x, y):\n    return x + y if x.size < 64 else x - y\n"
GOLDEN = "def aclnnAddCustom(x, y):\n    return x + y\n"
# What each of six commits does: a subject, the kernel, and whether the library is there.
HISTORY = [
    ("Add the operator", GOOD, True),
    ("Say what it computes", "# x + y\n" + GOOD, True),
    ("Lose the library", GOOD, False),
    ("Build the library again", GOOD, True),
    ("Do 64 elements at once", BAD, True),
    ("Say who wrote it", "# by hand\n" + BAD, True),
]
CHECK = [sys.executable, "-m", "mindtorch_npu", "check", "aclnnAddCustom", "--simulator", "--alone",
         "--golden", "golden.py", "--kernel", "AddCustom=kernels.py:add", "--dtype", "float32",
         "--jobs", "1"]  # fmt: skip


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True,
                          env=environment(folder), check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / "vendors/tiny"),
            "XDG_STATE_HOME": str(folder.parent / "state")}  # fmt: skip


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A repository of the six commits; the newest is checked out."""
    folder = tmp_path / "vendor"
    package = custom_packages.package(folder / "vendors/tiny", ADD)
    library = package / "op_api/lib" / custom_packages.LIBRARY
    built = library.read_bytes()
    (folder / "golden.py").write_text(GOLDEN)
    git(folder, "init", "-q")
    for subject, kernel, present in HISTORY:
        (folder / "kernels.py").write_text(kernel)
        library.unlink(missing_ok=True)
        if present:
            library.write_bytes(built)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", subject)
    return folder


def test_bisect_run_finds_the_commit_and_passes_by_the_one_without_a_library(history, tmp_path):
    page = tmp_path / "bisect.html"
    git(history, "bisect", "start", "HEAD", "HEAD~5")
    said = git(history, "bisect", "run", *CHECK, "--git-bisect", "--html", str(page))
    commit = git(history, "log", "-1", "--format=%H", "HEAD", "--grep", "64 elements", "--all")
    assert f"{commit.strip()} is the first bad commit" in said
    assert "git bisect: bad (1): " in said
    assert "git bisect: skip (125): " in said
    assert "aclnnAddCustom" in said.partition("git bisect: skip (125): ")[2].splitlines()[0]
    text = page.read_text()
    assert "first bad commit: " in text
    assert all(subject in text for subject, _, _ in HISTORY[1:])


def test_mistaken_command_ends_the_bisect(history):
    done = subprocess.run([*CHECK, "--git-bisect", "--levle", "full"], cwd=history, text=True,
                          capture_output=True, env=environment(history), check=False)  # fmt: skip
    assert done.returncode == bisect.STOP
    assert "git bisect: stop (128): No such option" in done.stderr
