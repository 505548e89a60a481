"""Owns building and running small C++ programs against the simulator's install.

ACLSIM_TEST_INSTALL names another install to test, such as one built with a sanitizer, and
ACLSIM_TEST_FLAGS compiler options to go with it (`-fsanitize=thread`).
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import aclnn_bindings

PROGRAMS = Path(__file__).parent / "programs"
STRICTEST = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic")  # samples are for everybody


@dataclass(frozen=True)
class Outcome:
    """What one run left: exit status, output, and strict mode's findings."""

    code: int
    out: str
    err: str
    findings: list[dict[str, Any]] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [f["finding"] for f in self.findings]


@functools.cache
def install() -> Path:
    """The simulator's install root."""
    if named := os.environ.get("ACLSIM_TEST_INSTALL"):
        return Path(named)
    for package in aclnn_bindings.__path__:
        root = Path(package) / "simulator" / "cann"
        if (root / "lib64" / "libascendcl.so").exists():
            return root
    pytest.skip("the simulator is not built")


@functools.cache
def compiler(language: str = "c++") -> str:
    found = shutil.which("g++" if language == "c++" else "gcc")
    if found is None:
        pytest.skip(f"no GNU compiler for {language} to build the programs with")
    return found


@functools.cache
def scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="aclsim-programs-"))


@functools.cache
def build(name: str, *options: str) -> Path:
    """Compile `programs/<name>.cpp` as a user would, and return the executable."""
    root = install()
    if name.startswith("samples/"):
        options = (*STRICTEST, *options)
    command = [
        compiler(), "-O1", "-g", "-rdynamic", "-pthread", *options,
        *os.environ.get("ACLSIM_TEST_FLAGS", "").split(),
        str(PROGRAMS / f"{name}.cpp"), f"-I{root / 'include'}", f"-L{root / 'lib64'}",
        "-lascendcl", "-lnnopbase", "-lopapi", "-lhccl", "-lacl_op_compiler",
        f"-Wl,-rpath,{root / 'lib64'}",
    ]  # fmt: skip
    digest = hashlib.sha256("\0".join(command).encode()).hexdigest()[:12]
    binary = _executables() / digest / name.replace("/", "-")
    if not binary.exists():
        binary.parent.mkdir(exist_ok=True)
        program_path = scratch() / f"{digest}-{binary.name}"
        done = subprocess.run([*command, "-o", str(program_path)], capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        program_path.replace(binary)
    return binary


def _executables() -> Path:
    """Where executables lie: one folder for all processes of a run of pytest-xdist."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return scratch()
    folder = Path(tempfile.gettempdir()) / f"aclsim-programs-{run}"
    folder.mkdir(exist_ok=True)
    return folder


def run(
    name: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    timeout: float = 60,
    **environment: str,
) -> Outcome:
    """Build and run a program; other keyword arguments are environment variables."""
    binary = build(name, *options)
    report = Path(tempfile.mkstemp(prefix="findings-", suffix=".jsonl", dir=scratch())[1])
    private = ("ACLSIM_", "ASCEND_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(private)}
    done = subprocess.run(
        [str(binary), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**clean, "ACLSIM_REPORT": str(report), **environment},
    )
    findings = [json.loads(line) for line in report.read_text().splitlines()]
    return Outcome(done.returncode, done.stdout, done.stderr, findings)
