"""What `preflight` catches in how many seconds: faults planted on one of several simulated devices.

    python benchmarks/preflight.py --sample 30 --seed 0             20 s each, within 12 minutes
    python benchmarks/preflight.py --seconds 20,60 [--fault NAME]…
    python benchmarks/preflight.py --order                          which case finds most per second

The faults are those that a chip or a link may have: every kind that the simulator can plant into
one device, at several rates and bits, for any operator; bad memory; links; and faults of operators,
drawn by the seed from all that the install exports. `--sample` draws so many of all these. A
fault that a shorter run catches is not run again. Caught means that preflight names the device or
the link and nothing else, with exit code 1, or with 5 as the device that a case held up for a third
of the time. Some hosts have no fault. Exit code 1 where anything healthy is accused.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindtorch_npu import exits
from mindtorch_npu.commands.preflight.runner import CASES

BAD = 1
KINDS = (
    *(f"flip@{n}" for n in (1, 5, 20, 100, 500, 2000, 10_000, 50_000)),
    *(f"stuck@{bit}" for bit in (0, 3, 7, 12, 15, 16, 23, 30, 31)),
    *(f"long@{n}" for n in (16, 256, 1024)), *(f"slow@{n}" for n in (50, 100, 300)),
    "tail", "zeros", "nan", "random", "minuszero", "cutoff", "hf32", "lowacc", "past", "ends",
    "ahead", "race", "batch", "split", "crash", "hang", "trap",
)  # fmt: skip
HARDWARE = (
    *(f"npu{BAD}/memory:stuck@{mib}" for mib in (16, 64, 128)),
    *(f"npu0-npu{BAD}/link:{kind}" for kind in ("dead", "silent", "corrupt@1", "corrupt@10")),
)
OF_OPERATORS = ("zeros", "tail", "flip@1", "random", "trap")
DRAWS = 10
HEALTHY_SHARE = 8  # one host without a fault for so many with one, three at least
# How the report names what is wrong, and a device that a case held up for so many seconds.
_WRONG = re.compile(r"^ *\d+\. (npu:\d+|links? .+)$", re.MULTILINE)
_HELD = re.compile(r"(npu:\d+): .*(?:had run for|no answer within) ([\d.]+) s")
# Faults that stop a worker tell nothing of the cases behind the first.
_ENDING = ("crash", "hang", "trap", "race")


@dataclass
class Catch:
    """What one preflight says of a host with a fault ("" for none)."""

    fault: str
    code: int
    seconds: float
    accused: set[str] = field(default_factory=set)

    @property
    def named(self) -> set[str]:
        """What should be named."""
        if not self.fault:
            return set()
        return {f"link npu:0 → npu:{BAD}" if "/link:" in self.fault else f"npu:{BAD}"}

    @property
    def right(self) -> bool:
        return self.code in (exits.PROBLEMS, exits.NOT_JUDGED) and self.accused == self.named

    @property
    def healthy_accused(self) -> int:
        """How many devices and links it accuses that are healthy."""
        return len(self.accused - self.named)


def preflight(fault: str, seconds: float, devices: int) -> Catch:
    """Run it on a host with a fault, and read what it says."""
    environ = {**os.environ, "ACLSIM_DEVICES": str(devices), "ACLSIM_FAULTS": fault}
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "mindtorch_npu", "preflight", "--simulator", "--seconds",
             str(seconds), "--journal", f"{folder}/p.jsonl"],
            env=environ, capture_output=True, text=True,
        )  # fmt: skip
    caught = Catch(fault, done.returncode, time.monotonic() - begun)
    wrong = done.stdout.partition("\nWrong\n")[2]
    held = {device for device, held in _HELD.findall(done.stdout) if float(held) > seconds / 3}
    caught.accused = {*_WRONG.findall(wrong), *held}
    return caught


def faults(seed: int) -> Iterator[str]:
    """Every kind for any operator, of memory and links, then some of operators that are drawn."""
    import aclnn_bindings

    yield from (f"npu{BAD}/*:{kind}" for kind in KINDS)
    yield from HARDWARE
    names = sorted(aclnn_bindings.open(simulator=True).declarations.ops)
    draw = random.Random(seed)
    for i, name in enumerate(draw.sample(names, DRAWS)):
        what = f"{name.removeprefix('aclnn').lower()}:{OF_OPERATORS[i % len(OF_OPERATORS)]}"
        yield f"npu{BAD}/{what}"


def run_all(planted: Sequence[str], seconds: float, devices: int) -> list[Catch]:
    """A host for each fault, and some without, between them."""
    every = max(1, min(HEALTHY_SHARE, len(planted) // 3))
    hosts = [f for i, fault in enumerate(planted) for f in ([""] * (i % every == 0) + [fault])]
    catches = []
    for fault in hosts:
        one = preflight(fault, seconds, devices)
        catches.append(one)
        verdict = ("caught; " if one.right else "missed; ") if fault else ""
        print(f"{seconds:g} s, {fault or 'no fault'}: exit {one.code} in {one.seconds:.1f} s, "
              f"{verdict}names {sorted(one.accused) or 'nothing'}", flush=True)  # fmt: skip
    return catches


def table(rows: Mapping[float, Sequence[Catch]], planted: int, devices: int) -> Iterator[str]:
    """Seconds against what was caught, and what was accused wrongly."""
    yield "| seconds | kinds caught / planted | healthy devices accused | healthy hosts failed |"
    yield "|---:|---:|---:|---:|"
    caught = 0
    for seconds, catches in rows.items():
        caught += sum(one.right for one in catches if one.fault)
        healthy = [one for one in catches if not one.fault]
        accused = sum(one.healthy_accused for one in catches)
        seen = sum(devices - bool(one.fault) for one in catches)
        failed = sum(one.code != exits.OK for one in healthy)
        yield (f"| {seconds:g} | {caught} / {planted} | {accused} of {seen} | "
               f"{failed} of {len(healthy)} |")  # fmt: skip


def outcomes(fault: str) -> dict[str, tuple[str, float]]:
    """(digest of the verdict, seconds) of each of preflight's cases on one device with a fault."""
    environ = {**os.environ, "ACLSIM_FAULTS": fault}
    chosen = [word for case in CASES for word in ("--case", case)]
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "c.jsonl"
        subprocess.run(
            [sys.executable, "-m", "mindtorch_npu", "check", *chosen, "--simulator", "--jobs",
             "1", "--journal", str(book)],
            env=environ, capture_output=True,
        )  # fmt: skip
        lines = map(json.loads, book.read_text().splitlines())
        return {line["case"]: (line["verdict"], float(line.get("seconds", 0)))
                for line in lines if line["kind"] == "result"}  # fmt: skip


def order(kinds: Iterable[str]) -> Iterator[str]:
    """Cases in the order in which each finds most kinds per second that none before it finds."""
    healthy = outcomes("")
    finds: dict[str, set[str]] = {case: set() for case in healthy}
    for kind in kinds:
        for case, (verdict, _) in outcomes(f"*:{kind}").items():
            if verdict != healthy[case][0]:
                finds[case].add(kind)
    known: set[str] = set()
    while finds:
        rate = {case: len(found - known) / max(healthy[case][1], 1e-3)
                for case, found in finds.items()}  # fmt: skip
        best = max(rate, key=rate.__getitem__)
        fresh = finds.pop(best) - known
        known |= fresh
        milliseconds = healthy[best][1] * 1e3
        yield f"{best}: {milliseconds:.0f} ms, {len(fresh)} more: {', '.join(sorted(fresh))}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="20", help="budgets, ascending, such as 20,60")
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--sample", type=int, default=0, help="draw so many faults (0: all)")
    parser.add_argument("--seed", type=int, default=0, help="draws faults")
    parser.add_argument("--fault", action="append", help="only these, as ACLSIM_FAULTS has them")
    parser.add_argument("--order", action="store_true", help="rank preflight's cases, run none")
    options = parser.parse_args()
    if options.order:
        for line in order(kind for kind in KINDS if kind not in _ENDING):
            print(line, flush=True)
        return 0
    planted = options.fault or list(faults(options.seed))
    if options.sample:
        planted = random.Random(options.seed).sample(planted, min(options.sample, len(planted)))
    rows: dict[float, list[Catch]] = {}
    left = planted
    for seconds in (float(word) for word in options.seconds.split(",")):
        rows[seconds] = run_all(left, seconds, options.devices)
        left = [one.fault for one in rows[seconds] if one.fault and not one.right]
    print(f"not caught: {', '.join(left) or 'none'}\n")
    print("\n".join(table(rows, len(planted), options.devices)))
    return 1 if any(one.healthy_accused for catches in rows.values() for one in catches) else 0


if __name__ == "__main__":
    sys.exit(main())
