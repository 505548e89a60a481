"""Runs a client's own test files, unmodified, each as a program, and tells how their cases ended.

mindtorch-npu run --simulator -- PYTHON tests/simulator/own_tests.py FOLDER --seed 1 --files 60

FOLDER holds the client's tests (`test` of torch_npu or of op-plugin, of the version of the wheel);
PYTHON has that wheel, expecttest and what else the tests import. A file that ran over its limit is
late, and counts for the cases that ended. Leaves with 1 where a case failed.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

# `test_name (module.Class.test_name) ... ok`, with what the test prints between.
CASE = re.compile(r"^(test\w*) \((\S+)\)(.*?)(?=^test\w* \(\S+\)|^={5}|^-{5}|\Z)", re.M | re.S)
ENDED = re.compile(r"\b(ok|FAIL|ERROR|skipped|expected failure)\b(?=[^\n]*\n?\s*\Z|\s*\n)")
FAILED = re.compile(r"^(FAIL|ERROR): (\S+) \((\S+)\)", re.M)


@dataclass(frozen=True)
class Outcome:
    """How one file's cases ended, by name; `code` is None where the file ran over its limit."""

    file: str
    code: int | None
    cases: dict[str, str]


def cases(text: str) -> dict[str, str]:
    """The cases of a file by name, as unittest's report tells them; `?` where it was cut off."""
    told = {}
    for name, place, rest in CASE.findall(text):
        ended = ENDED.search(rest)
        told[place if place.endswith(name) else f"{place}.{name}"] = ended[1] if ended else "?"
    for how, name, place in FAILED.findall(text):
        told[place if place.endswith(name) else f"{place}.{name}"] = how
    return told


def ran(folder: Path, file: str, limit: float) -> Outcome:
    """Run one file as a program, in its own folder."""
    path = folder / file
    with tempfile.TemporaryFile("w+", errors="replace") as report:
        child = subprocess.Popen(
            [sys.executable, path, "-v"],
            cwd=path.parent,
            stdout=report,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        report.seek(0)
        return Outcome(file, code, cases(report.read()))


def drawn(folder: Path, seed: int, count: int, without: list[str]) -> list[str]:
    """So many files, drawn at random, without those whose paths begin with one of `without`."""
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py"))
    kept = [file for file in files if not file.startswith(tuple(without) or ("\0",))]
    return random.Random(seed).sample(kept, min(count, len(kept)))


def main() -> int:
    """Run the files, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--without", default="", help="beginnings of paths, separated by commas")
    parser.add_argument("--limit", type=float, default=200, help="seconds for each file")
    parser.add_argument("--json", type=Path, help="each file's cases, an object a line")
    asked = parser.parse_args()
    sums: Counter[str] = Counter()
    without = [part for part in asked.without.split(",") if part]
    for file in drawn(asked.folder.resolve(), asked.seed, asked.files, without):
        outcome = ran(asked.folder.resolve(), file, asked.limit)
        sums.update(outcome.cases.values())
        sums["late files"] += outcome.code is None
        bad = [f"{how} {name}" for name, how in outcome.cases.items() if how in "FAIL ERROR ?"]
        print(file, outcome.code, *bad, sep="\n  ", flush=True)
        if asked.json:
            with asked.json.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(outcome)) + "\n")
    print(dict(sums))
    return 1 if sums["FAIL"] or sums["ERROR"] or sums["?"] else 0


if __name__ == "__main__":
    sys.exit(main())
