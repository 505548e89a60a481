"""Gives every environment variable that the code reads values that nobody meant.

`python tests/cli/environment_sweep.py [NAME …] [--every N]`: the names are found in the sources, so
that a new one is tried too. Each value goes to programs in children under a limit of time and
memory; they may work, or end with one named error that says the variable or its value. Tracebacks
of commands, exit status 70, signals and endless waits are failures.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(
    r"""(?:environ(?:\.get|\.pop|\.setdefault)?[(\[]|getenv\(|number\(|flag\()\s*["']([A-Z_]{4,})["']"""
)
QUOTED = re.compile(r"""["']((?:MINDTORCH|ACLSIM|ASCEND|XDG|PYTORCH)_[A-Z_]+|TORCH_HOME)["']""")
OTHERS = ("HOME", "TMPDIR", "LD_LIBRARY_PATH", "PATH", "LANG", "COLUMNS", "NO_COLOR", "TERM")
# ResultSlot by commands for their children and by nobody else, or read by what runs Python itself.
PRIVATE = ("MINDTORCH_LAYERS", "MINDTORCH_CHILD_LINES", "PYTHONPATH", "LD_PRELOAD")
SECONDS, MEMORY = 90, 8 << 30

USE = """
import mindtorch as torch
x = torch.ones(3, 4, device="npu")
(x @ x.t() + torch.randn(3, 3).npu()).sum().item()
"""
PROGRAMS = {
    "use": [sys.executable, "-c", USE],
    "probe": [sys.executable, "-m", "mindtorch_npu", "probe", "--simulator"],
    "run": [sys.executable, "-m", "mindtorch_npu", "run", "--simulator", "--summary", "--",
            sys.executable, "-c", USE],
    "check": [sys.executable, "-m", "mindtorch_npu", "check", "relu", "--simulator", "--form",
              "functional", "--dtype", "float32", "--layout", "contiguous", "--jobs", "1"],
}  # fmt: skip


def names() -> list[str]:
    """Every variable that a source reads."""
    found = set(OTHERS)
    for folder in ("aclnn_bindings", "mindtorch", "cli"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".h", ".c") and "/cann/" not in str(path):
                text = path.read_text(errors="replace")
                found.update(READ.findall(text), QUOTED.findall(text))
    return sorted(found - set(PRIVATE))


def values(folder: Path) -> dict[str, bytes]:
    """What each variable is set to."""
    os.mkfifo(folder / "pipe")
    (folder / "file").write_text("no folder")
    (folder / "circle").symlink_to(folder / "circle")
    return {
        "empty": b"", "space": b" ", "word": b"\xc3\xa4", "no encoding": b"\xff\xfe\x80",
        "negative": b"-1", "huge number": b"9" * 40,
        "not a number": b"nan", "long": b"x" * 100_000,
        "lines": b"1\n2\n\x1b[2J", "folder": bytes(folder), "root": b"/", "zeros": b"/dev/zero",
        "no device": b"/dev/null", "file": bytes(folder / "file"), "pipe": bytes(folder / "pipe"),
        "circle": bytes(folder / "circle"), "nowhere": b"/proc/nowhere/x", "list": b":::,,;;==",
    }  # fmt: skip


def outcome(program: str, name: str, value: bytes, folder: Path) -> str:
    """ "" where the program worked or said what is wrong with the variable."""
    environ = {os.fsencode(k): os.fsencode(v) for k, v in os.environ.items()}
    environ[b"PYTHONPATH"] = os.fsencode(f"{ROOT}{os.pathsep}{ROOT / 'build_backend'}")
    environ[os.fsencode(name)] = value
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
    try:
        ran = subprocess.run(PROGRAMS[program], env=environ, capture_output=True, timeout=SECONDS,
                             stdin=subprocess.DEVNULL, preexec_fn=limit, check=False,
                             cwd=folder)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    told = (ran.stderr + ran.stdout).decode(errors="replace")
    last = (told.strip().splitlines() or ["nothing was said"])[-1][:300]
    if ran.returncode < 0 or ran.returncode in (70, 126, 127, 134, 137, 139):
        return f"ended with {ran.returncode}: {last}"
    if program in ("probe", "check") and "Traceback (most recent call last)" in told:
        return f"a traceback: {last}"
    if ran.returncode and not _named(told, name, value):
        return f"ended with {ran.returncode}, and says neither variable nor value: {last}"
    return ""


def _named(told: str, name: str, value: bytes) -> bool:
    text = value.decode(errors="replace").strip()
    # A worker that does not start leads to `probe`, which says more.
    probe = "`mindtorch-npu probe` says what is missing" in told
    return probe or name in told or (len(text) > 1 and text[:40] in told)


def attacks(wanted: list[str], folder: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """(program, variable, what the value is, value)."""
    for name in wanted:
        for what, value in values_of(name, folder).items():
            for program in PROGRAMS:
                yield program, name, what, value


_made: dict[Path, dict[str, bytes]] = {}


def values_of(name: str, folder: Path) -> dict[str, bytes]:
    if folder not in _made:
        _made[folder] = values(folder)
    if name in ("PATH", "LD_LIBRARY_PATH"):  # the interpreter itself is found by them
        return {k: v for k, v in _made[folder].items() if k != "pipe"}
    return _made[folder]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--program", choices=PROGRAMS, action="append")
    parser.add_argument("--value", help="only this one, by what it is called")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tried = [a for a in attacks(options.names or names(), Path(folder))
                 if a[0] in (options.program or PROGRAMS)
                 and options.value in (None, a[2])][options.start :: options.every]  # fmt: skip
        bad = 0
        for program, name, what, value in tried:
            if wrong := outcome(program, name, value, Path(folder)):
                bad += 1
                print(f"{program} {name} = {what}: {wrong}", flush=True)
    print(f"{len(tried)} programs, {bad} badly")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
