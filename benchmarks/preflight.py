"""What `preflight` catches per second: faults planted on one of several simulated devices.

    python benchmarks/preflight.py [--seconds 40] [--devices 3] [--fault NAME]…

Told of each fault: whether preflight left with 1 and named the device, by which cases, by the soak;
at the end each case's seconds on a device and the faults that it catches in one of them. Exit code
1 where the healthy host is accused.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mindtorch_npu import exits
from mindtorch_npu.commands.preflight.runner import CASES
from mindtorch_npu.fleet import merge

# Of units, and of chips: from faults in every launch to one in 5,000.
FAULTS = (
    "matmul:stuck@12", "*:flip@20", "*:flip@200", "*:flip@1000", "add:stuck@30",
    "indexselect:zeros", "exp:flip@1", "reducesum:stuck@30", "*:flip@5000", "matmul:tail",
    "softmax:tail",
)  # fmt: skip
BAD = 1


@dataclass
class Catch:
    """What one preflight found of a fault."""

    fault: str
    code: int
    seconds: float
    cases: set[str] = field(default_factory=set)
    accused: set[str] = field(default_factory=set)

    @property
    def right(self) -> bool:
        return self.code == exits.PROBLEMS and self.accused == {f"npu:{BAD}"}


def preflight(fault: str, options: argparse.Namespace, times: dict[str, list[float]]) -> Catch:
    """Run it on a host with a fault ("" for none), and read its journals."""
    planted = f"npu{BAD}/{fault}" if fault else ""
    environ = {**os.environ, "ACLSIM_DEVICES": str(options.devices), "ACLSIM_FAULTS": planted}
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "p.jsonl"
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "mindtorch_npu", "preflight", "--simulator", "--seconds",
             str(options.seconds), "--journal", str(book)],
            env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        caught = Catch(fault, done.returncode, time.monotonic() - begun)
        for path in sorted(Path(folder).glob("*.jsonl")):
            for one in merge.merge([path]).deviations:
                caught.cases.add(one.case)
                caught.accused.add(one.place.rpartition(" ")[2])
            take(path, caught, times)
    return caught


def take(path: Path, caught: Catch, times: dict[str, list[float]]) -> None:
    """The cases that fail, and how long each took."""
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if line["kind"] != "result":
            continue
        if line["verdict"] != "PASS":
            caught.cases.add(line["case"])
            caught.accused.add(line["device"])
        elif "/soak/" not in line["case"]:
            times[line["case"]].append(line["seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--fault", action="append", help="only these")
    options = parser.parse_args()
    times: dict[str, list[float]] = defaultdict(list)
    healthy = preflight("", options, times)
    accused = ", ".join(sorted(healthy.accused)) or "nobody"
    print(
        f"no fault: exit {healthy.code} in {healthy.seconds:.0f} s, accused {accused}", flush=True
    )
    found = [preflight(fault, options, times) for fault in options.fault or FAULTS]
    for one in found:
        cases = {c.partition("/")[0] for c in one.cases if "/soak/" not in c}
        soak = ", soak" if any("/soak/" in c for c in one.cases) else ""
        named = "caught" if one.right else f"exit {one.code}, accused {sorted(one.accused)}"
        print(f"{one.fault}: {named} in {one.seconds:.0f} s by {', '.join(sorted(cases))}{soak}")
    spent = sum(one.seconds for one in found)
    right = sum(one.right for one in found)
    print(f"{right} of {len(found)} faults caught: {right / spent:.3f} per second of preflight")
    for case in CASES:
        median = statistics.median(times[case])
        caught = sum(case in one.cases for one in found)
        print(f"{case}: {median * 1e3:.0f} ms, {caught} faults, {caught / median:.0f} per second")
    return 1 if healthy.accused else 0


if __name__ == "__main__":
    sys.exit(main())
