"""Runs programs under `mindtorch-npu run` on the simulator."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import compiled

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = sorted(p.stem for p in (compiled.PROGRAMS / "samples").glob("*.cpp"))


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run(*arguments: str, **environment: str) -> Outcome:
    """`mindtorch-npu run --simulator ARGUMENTS`."""
    compiled.install()
    return command("run", "--simulator", *arguments, **environment)


def command(*arguments: str, timeout: float = 120, **environment: str) -> Outcome:
    """`mindtorch-npu ARGUMENTS`."""
    words = [sys.executable, "-m", "mindtorch_npu", *arguments]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=timeout, check=False,
        env=variables() | environment,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


def variables() -> dict[str, str]:
    """This process's variables, in which Python finds the tree."""
    places = [str(ROOT), str(ROOT / "build_backend"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def record(path: Path, *command: str, **environment: str) -> Outcome:
    return run("--record", str(path), "--", *command, **environment)


def program(source: str, folder: Path, *options: str) -> str:
    """Build a C++ program against the simulator; its path."""
    root, binary = compiled.install(), folder / "program"
    (folder / "program.cpp").write_text(source)
    subprocess.run(
        [compiled.compiler(), "-O1", "-g", "-rdynamic", "-pthread", str(folder / "program.cpp"),
         f"-I{root / 'include'}", f"-I{compiled.PROGRAMS / 'samples'}", "-o", str(binary),
         *(options or (f"-L{root / 'lib64'}", "-lascendcl", "-lnnopbase", "-lopapi"))],
        check=True,
    )  # fmt: skip
    return str(binary)


def planted() -> tuple[dict[str, str], dict[str, str]]:
    """The faults of `programs/faults.cpp` → their findings, as the simulator's strict mode has
    them: one list serves both."""
    path = compiled.PROGRAMS.parent / "test_strict.py"
    spec = importlib.util.spec_from_file_location("simulator_strict", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FAULTS, module.LEAKS
