"""Finds operators that crash, hang or touch memory that is not theirs, by calling all at random.

    python tests/simulator/fuzz_kernels.py [--seeds 1 2] [--rounds 40] [--corpus FILE] [--home DIR]

What once failed stands in the corpus (operator, seed and rounds a line) and is tried first. The run
goes on behind each death of the child. PYTORCH_NO_NPU_MEMORY_CACHING=1 makes each device block an
allocation of its own; with it ACLSIM_GUARD=end (or start), or a build with AddressSanitizer
(run_sanitized.sh), makes deaths of reads and writes outside of a block.
"""

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHILD = Path(__file__).with_name("fuzz_child.py")
CORPUS = Path(__file__).with_name("fuzz_corpus.txt")
SECONDS = 120  # of one operator
_TELLING = re.compile(r"ERROR: AddressSanitizer|runtime error|^ +#[0-4] |Segmentation|Error:", re.M)


@dataclass(frozen=True)
class Death:
    """How one operator ended the child."""

    operator: str
    seed: int
    rounds: int
    words: str

    def __str__(self) -> str:
        return f"{self.operator} {self.seed} {self.rounds}\n{self.words}"


def _child(*arguments: str) -> tuple[int, list[str], str]:
    """Exit status, lines and errors of one child; 124 when an operator takes too long."""
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, str(CHILD), *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert child.stdout is not None
        lines, late = [], []
        while True:
            timer = threading.Timer(SECONDS, lambda: (late.append(True), child.kill()))
            timer.start()
            line = child.stdout.readline()
            timer.cancel()
            if not line:
                break
            lines.append(line.rstrip())
        code = child.wait()
        errors.seek(0)
        return (124, lines, f"no end after {SECONDS} s") if late else (code, lines, errors.read())


def _words(text: str) -> str:
    lines = [line for line in text.splitlines() if _TELLING.search(line)] or text.splitlines()[-3:]
    return "\n".join(f"    {line.strip()[:200]}" for line in lines[:8])


def sweep(seed: int, rounds: int, *options: str) -> Iterator[Death]:
    """The deaths of one seed, from the first operator to the last."""
    first = ""
    while True:
        code, lines, text = _child(str(seed), str(rounds), "--first", first, *options)
        if code == 0:
            print(f"seed {seed}: {lines[-1]}", flush=True)
            return
        if not lines:
            raise SystemExit(f"the child died before its first call:\n{text[-2000:]}")
        yield Death(lines[-1], seed, rounds, _words(text))
        first = lines[-1] + " "  # sorts behind it and before every other name


def replay(corpus: Path, *options: str) -> Iterator[Death]:
    """The deaths of what the corpus names."""
    for line in corpus.read_text(encoding="utf-8").splitlines():
        name, seed, rounds = line.split()
        code, _, text = _child(seed, rounds, "--only", name, *options)
        if code:
            yield Death(name, int(seed), int(rounds), _words(text))


def main() -> None:
    """Try the corpus, then each seed; exit status 1 when anything died."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--home", default=None)
    asked = parser.parse_args()
    options = ["--home", asked.home] if asked.home else []
    deaths = 0
    runs = [replay(asked.corpus, *options)]
    runs += [sweep(seed, asked.rounds, *options) for seed in asked.seeds]
    for death in itertools.chain(*runs):
        deaths += 1
        print(death, flush=True)
    print(f"{deaths} deaths")
    sys.exit(deaths > 0)


if __name__ == "__main__":
    main()
