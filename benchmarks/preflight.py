"""What `preflight` catches in how many seconds: faults planted on one of several simulated devices.

    python benchmarks/preflight.py [--seconds 10,30,60] [--devices 3] [--seed 0] [--fault NAME]…

The faults are those that a chip may have: every kind that the simulator can plant into one device,
at several rates and bits, for any operator; and faults of operators, drawn by the seed from all
that the install exports. A fault that a shorter run catches is not run again. Caught means that
preflight names the device and no other, with exit code 1, or with 5 as the one that a case held up
for a third of the time. Exit code 1 where the host without a fault is accused.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindtorch_npu import exits
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.fleet import merge

BAD = 1
KINDS = (
    *(f"flip@{n}" for n in (1, 5, 20, 100, 500, 2000, 10_000, 50_000)),
    *(f"stuck@{bit}" for bit in (0, 3, 7, 12, 15, 16, 23, 30, 31)),
    *(f"long@{n}" for n in (16, 256, 1024)), *(f"slow@{n}" for n in (50, 100, 300)),
    "tail", "zeros", "nan", "random", "minuszero", "cutoff", "hf32", "lowacc", "past", "ends",
    "ahead", "race", "batch", "split", "crash", "hang", "trap",
)  # fmt: skip
OF_OPERATORS = ("zeros", "tail", "flip@1", "random", "trap")
DRAWS = 10
# How the report names a device that is gone or slow, or that a case held up for so many seconds.
_NAMED = re.compile(r"\d+\. (npu:\d+)(?: is slow:|$)", re.MULTILINE)
_HELD = re.compile(r"not judged: (npu:\d+): .*had run for ([\d.]+) s")


@dataclass
class Catch:
    """What one preflight catches of a fault."""

    fault: str
    code: int
    seconds: float
    cases: set[str] = field(default_factory=set)
    accused: set[str] = field(default_factory=set)

    @property
    def right(self) -> bool:
        return self.code in (exits.PROBLEMS, exits.NOT_JUDGED) and self.accused == {f"npu:{BAD}"}

    def read(self, report: str, seconds: float) -> None:
        """Add whom the report names."""
        self.accused |= set(_NAMED.findall(report))
        held = ((device, float(time)) for device, time in _HELD.findall(report))
        self.accused |= {device for device, time in held if time > seconds / 3}

    @property
    def by(self) -> str:
        cases = {case.partition("/")[0] for case in self.cases if "/soak/" not in case}
        soak = ["soak"] if any("/soak/" in case for case in self.cases) else []
        named = sorted(cases)[:3] + ([f"{len(cases) - 3} more"] if len(cases) > 3 else []) + soak
        return ", ".join(named) or "time"


def preflight(fault: str, seconds: float, devices: int) -> Catch:
    """Run it on a host with a fault ("" for none), and read what it says."""
    planted = f"npu{BAD}/{fault}" if fault else ""
    environ = {**os.environ, "ACLSIM_DEVICES": str(devices), "ACLSIM_FAULTS": planted}
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "p.jsonl"
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "mindtorch_npu", "preflight", "--simulator", "--seconds",
             str(seconds), "--journal", str(book)],
            env=environ, capture_output=True, text=True,
        )  # fmt: skip
        caught = Catch(fault, done.returncode, time.monotonic() - begun)
        caught.read(done.stdout, seconds)
        if book.exists():
            take(book, caught)
    return caught


def take(book: Path, caught: Catch) -> None:
    """The cases that fail, or in which devices differ."""
    for text in book.read_text().splitlines():
        line = json.loads(text)
        if line["kind"] == "result" and line["verdict"] not in ("PASS", "UNSUPPORTED", "SKIP"):
            caught.cases.add(line["case"])
            caught.accused.add(line["device"])
    for one in merge.merge([book]).deviations:
        if one.kind in votes.ABOUT_DEVICES:
            caught.cases.add(one.case)
            caught.accused.add(one.place.rpartition(" ")[2])


def faults(seed: int) -> Iterator[str]:
    """Every kind for any operator, then some of operators that the seed draws."""
    import aclnn_bindings

    yield from (f"*:{kind}" for kind in KINDS)
    names = sorted(aclnn_bindings.open(simulator=True).declarations.ops)
    draw = random.Random(seed)
    for i, name in enumerate(draw.sample(names, DRAWS)):
        yield f"{name.removeprefix('aclnn').lower()}:{OF_OPERATORS[i % len(OF_OPERATORS)]}"


def rates(caught: Counter[float], every: int, budgets: Sequence[float]) -> Iterator[str]:
    """How many were caught within each budget."""
    total = 0
    for seconds in budgets:
        total += caught[seconds]
        yield f"{seconds:g} s: {total} of {every} faults caught ({total / seconds:.2f} a second)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="10,30,60", help="budgets, ascending")
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="draws faults of operators")
    parser.add_argument("--fault", action="append", help="only these")
    options = parser.parse_args()
    budgets = [float(word) for word in options.seconds.split(",")]
    left = options.fault or list(faults(options.seed))
    every, caught = len(left), Counter[float]()
    wrong = False
    for seconds in budgets:
        healthy = preflight("", seconds, options.devices)
        wrong |= healthy.code == exits.PROBLEMS
        print(
            f"{seconds:g} s, no fault: exit {healthy.code} in {healthy.seconds:.1f} s", flush=True
        )
        catches = []
        for fault in left:
            one = preflight(fault, seconds, options.devices)
            catches.append(one)
            how = f"caught by {one.by}" if one.right else f"accused {sorted(one.accused)}"
            print(
                f"{seconds:g} s, {fault}: exit {one.code} in {one.seconds:.1f} s, {how}", flush=True
            )
        caught[seconds] = sum(one.right for one in catches)
        left = [one.fault for one in catches if not one.right]
    print("\n".join(rates(caught, every, budgets)))
    print(f"not caught: {', '.join(left) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
