"""What the build says before it starts, on machines where it cannot end well."""

import importlib
import sys
import sysconfig
from types import ModuleType

import pytest


@pytest.fixture
def backend() -> ModuleType:
    pytest.importorskip("scikit_build_core", reason="the build's own packages are not installed")
    return importlib.import_module("mindtorch_build")


def test_a_free_threaded_python_without_cffi_is_refused_by_name(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = sysconfig.get_config_var
    free = {"Py_GIL_DISABLED": 1}
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: free.get(name, variables(name)))
    monkeypatch.setattr(sys, "version_info", (3, 13, 1))
    with pytest.raises(SystemExit, match=r"cffi, which does not support.*3\.13"):
        backend._require_toolchain()
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    backend._require_toolchain()


def test_a_missing_compiler_is_named(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match=r"no compiler for CC and CXX.*\n.*apt-get install g\+\+"):
        backend._require_toolchain()
