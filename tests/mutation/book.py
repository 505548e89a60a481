"""Owns verdicts on disk: one JSON line for each mutant, and which survivors are equivalent."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import tomllib

from . import tree
from .hunt import Verdict

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def where(name: str) -> Path:
    """The file of a run's verdicts in the build folder."""
    return tree.work() / f"verdicts-{name}.jsonl"


def write(path: Path, verdict: Verdict) -> None:
    """Append one verdict."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(verdict)) + "\n")


def read(path: Path) -> dict[str, Verdict]:
    """The latest verdict of each mutant by key; a torn last line is left out."""
    found: dict[str, Verdict] = {}
    for data in _lines(path):
        found[data["key"]] = Verdict(**{**data, "ops": tuple(data["ops"])})
    return found


def _lines(path: Path) -> Iterator[dict[str, object]]:
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def equivalents(path: Path = EQUIVALENT) -> list[tuple[str, str]]:
    """(pattern of keys, reason), as written down by people."""
    return list(tomllib.loads(path.read_text("utf-8")).items())


def judged(verdicts: Iterable[Verdict], known: list[tuple[str, str]]) -> Iterator[Verdict]:
    """Verdicts with survivors that are written down as equivalent marked so, with the reason."""
    from dataclasses import replace

    for verdict in verdicts:
        reason = next((r for k, r in known if _names(k, verdict.key)), "")
        if reason and verdict.state == "survived":
            verdict = replace(verdict, state="equivalent", reason=reason)
        yield verdict


def _names(pattern: str, key: str) -> bool:
    """`*` stands for anything; every other character for itself."""
    plain = pattern.replace("[", "[[]").replace("?", "[?]")
    return fnmatchcase(key, plain)
