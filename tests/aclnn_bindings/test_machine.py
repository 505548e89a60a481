"""Whether this machine can run a library is told from the file, without loading it."""

from pathlib import Path

import pytest

from aclnn_bindings.install import machine
from aclnn_bindings.install.describe import arch
from aclnn_bindings.install.elf import Elf


def library(machine_name: str = "", *versions: str) -> Elf:
    return Elf(Path("libx.so"), 1, machine_name or arch(), versions=versions)


def test_a_library_of_this_machine_fits() -> None:
    assert machine.misfit(library("", "GLIBC_2.2.5", "GLIBCXX_3.4")) is None


def test_another_processor_is_named_with_a_fix() -> None:
    other = "aarch64" if arch() != "aarch64" else "x86_64"
    found = machine.misfit(library(other))
    assert found is not None
    assert found.reason == f"is built for {other}, this machine is {arch()}"
    assert arch() in found.fix


def test_a_newer_c_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "glibc", lambda: (2, 9))
    found = machine.misfit(library("", "GLIBC_2.2.5", "GLIBC_2.34"))
    assert found is not None
    assert found.reason == "needs glibc 2.34, this system has 2.9"


def test_another_c_library_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "glibc", lambda: None)
    assert machine.misfit(library("", "GLIBC_2.99")) is None
