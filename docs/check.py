"""Checks the documents: links resolve, Python blocks run, generated pages match their generators.

Usage: docs/check.py          check; exit 1 names what is wrong
       docs/check.py --write  write the generated pages again
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import pages  # noqa: E402  (docs/ is no package)

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    """README and every page of docs/, in a fixed order."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
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
    for path in documents():
        problems += broken_links(path) + failing_code(path)
    print(
        "\n".join(problems) or f"{len(documents())} documents: links, code and generated pages hold"
    )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
