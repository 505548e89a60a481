"""The wheel holds the packages' files, and nothing that only a build needs."""

import fnmatch
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"aclnn_bindings": "aclnn_bindings", "mindtorch": "mindtorch", "cli": "mindtorch_npu"}
pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="without git nobody knows which files are the packages'"
)


def _excluded() -> list[str]:
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return list(project["tool"]["scikit-build"]["wheel"]["exclude"])


def _package_files() -> set[str]:
    """What git has of the packages, by its path in the wheel, without what the project excludes."""
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    patterns = _excluded()
    paths = (path.split("/", 1) for path in tracked)
    names = {f"{PACKAGES[package]}/{rest}" for package, rest in paths}
    return {name for name in names if not any(fnmatch.fnmatch(name, p) for p in patterns)}


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a wheel without its native parts."""
    pytest.importorskip("scikit_build_core", reason="the build's own packages are not installed")
    backend = importlib.import_module("scikit_build_core.build")
    folder = tmp_path_factory.mktemp("wheel")
    without_native = {"wheel.cmake": "false", "wheel.py-api": "py3"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        archive = backend.build_wheel(str(folder), without_native)
    with zipfile.ZipFile(folder / archive) as packed:
        return set(packed.namelist())


def test_wheel_holds_every_file_of_the_packages(wheel_files: set[str]) -> None:
    expected = _package_files()
    assert "mindtorch_npu/pages/templates/measured.html" in expected
    assert not sorted(expected - wheel_files)


def test_wheel_holds_nothing_else_but_its_metadata_and_native_parts(wheel_files: set[str]) -> None:
    """Libraries and headers that a build in place leaves in the tree are a wheel's native parts."""
    extra = wheel_files - _package_files()
    native = (".so", "/cann/", ".dist-info/")
    assert not sorted(n for n in extra if not any(part in n for part in native))
