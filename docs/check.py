"""Checks the documents: links resolve, Python blocks and the tutorial run, generated files are new.

Usage: docs/check.py          check; exit 1 names what is wrong
       docs/check.py --write  write the generated pages again
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import pages  # noqa: E402  (docs/ is no package)

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^```sh\n(.*?)^```(?:\n+```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
TUTORIAL = ROOT / "docs" / "tutorial.md"


def documents() -> list[Path]:
    """README and every page of docs/, in a fixed order."""
    names = ("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md")
    top = [ROOT / name for name in names]
    return [path for path in top if path.exists()] + sorted((ROOT / "docs").glob("*.md"))


def broken_links(path: Path) -> list[str]:
    """Relative links of one document that lead nowhere."""
    return [
        f"{path.relative_to(ROOT)}: the link {target} leads nowhere"
        for target, _ in _LINK.findall(path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    ]


def failing_code(path: Path) -> list[str]:
    """Runs the Python blocks of one document, in order, as one program."""
    code = "\n".join(_BLOCK.findall(path.read_text()))
    if not code:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=scratch, capture_output=True, text=True, timeout=300
        )
    if done.returncode == 0:
        return []
    return [f"{path.relative_to(ROOT)}: its Python blocks fail:\n{done.stderr}"]


def _commands_of_this_tree(folder: Path) -> dict[str, str]:
    """An environment in which `python` and `mindtorch-npu` are this Python and this tree."""
    python = shlex.quote(sys.executable)
    for name, command in (("python", python), ("mindtorch-npu", f"{python} -m mindtorch_npu")):
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "COLUMNS": "160"}


def _missing_lines(text: str, output: str) -> list[str]:
    """Lines of a page's example that the command did not print; … stands for anything."""
    shapes = [".*".join(map(re.escape, line.strip().split("…"))) for line in text.splitlines()]
    return [shape for shape in shapes if not re.search(shape, output)]


def failing_steps(path: Path) -> list[str]:
    """Runs the shell blocks of one document in one shell, and compares what each prints."""
    steps = _STEP.findall(path.read_text())
    mark = "-- end of a step --"
    script = "set -e\n" + f"echo '{mark}'\n".join(block for block, _ in steps)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as commands:
        done = subprocess.run(
            ["bash", "-c", script], cwd=scratch, env=_commands_of_this_tree(Path(commands)),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        )  # fmt: skip
    if done.returncode:
        return [f"{path.relative_to(ROOT)}: a step ends with {done.returncode}:\n{done.stdout}"]
    outputs = done.stdout.split(f"{mark}\n")
    return [
        f"{path.relative_to(ROOT)}: step {number} does not print {line}"
        for number, ((_, text), output) in enumerate(zip(steps, outputs, strict=True), 1)
        for line in _missing_lines(text, output)
    ]


def stale_pages(write: bool) -> list[str]:
    """Generated pages that differ from what their generator makes now."""
    stale = []
    for path, make in pages.GENERATED.items():
        target, text = ROOT / path, make()
        if target.exists() and target.read_text() == text:
            continue
        if write:
            target.write_text(text)
        else:
            stale.append(f"{path} is stale: run docs/check.py --write")
    return stale


def main() -> int:
    problems = stale_pages(write="--write" in sys.argv[1:])
    problems += failing_steps(TUTORIAL)
    for path in documents():
        problems += broken_links(path) + failing_code(path)
    print(
        "\n".join(problems) or f"{len(documents())} documents: links, code and generated pages hold"
    )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
