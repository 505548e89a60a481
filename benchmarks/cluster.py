"""Runs `check` on a Ray cluster of this machine with simulated NPUs, and on one worker.

    pip install 'mindtorch-npu[cluster]'
    python benchmarks/cluster.py --all                                whole, on 4 nodes of 2 NPUs
    python benchmarks/cluster.py --all --form functional --shard 1/48 a slice
    python benchmarks/cluster.py --kill 300 --alone 0 add mul matmul  a node dies after 300 results

Other words go to `check`. Told of each run: seconds, cases, results, cases without a result and
cases with two; other than 0 of these is exit code 1. Journals and logs stay in --folder.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ray.cluster_utils import Cluster

COMMAND = (sys.executable, "-m", "mindtorch_npu", "check", "--simulator")
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
PAUSE = 0.5


@dataclass(frozen=True)
class Told:
    """What a journal says of a run that took `seconds`, ended with `code`."""

    seconds: float
    code: int
    planned: int
    results: int
    lost: int
    twice: int
    verdicts: Counter[str]


def lines(journal: Path) -> list[dict[str, object]]:
    """The whole lines of a journal that somebody may be writing."""
    text = journal.read_text() if journal.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def results(journal: Path) -> int:
    """How many there are by now; asked often, so that nothing is parsed."""
    return journal.read_text().count('"kind":"result"') if journal.exists() else 0


def run(name: str, words: Sequence[str], folder: Path, watch: Callable[[Path], None]) -> Told:
    """One `check`; `watch` is given its journal twice a second."""
    journal = folder / f"{name}.jsonl"
    command = [*COMMAND, *words, "--journal", str(journal)]
    print(f"{name}: {' '.join(command[2:])}", flush=True)
    begun = time.monotonic()
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        while process.poll() is None:
            watch(journal)
            time.sleep(PAUSE)
    return told(journal, time.monotonic() - begun, process.returncode)


def told(journal: Path, seconds: float, code: int) -> Told:
    read = lines(journal)
    judged = [line for line in read if line["kind"] == "result"]
    counts = Counter((line["case"], line.get("seed")) for line in judged)
    planned = sum(int(str(line["cases"])) for line in read if line["kind"] == "run")
    twice = sum(n - 1 for n in counts.values())
    verdicts = Counter(str(line["verdict"]) for line in judged)
    lost = max(0, planned - len(counts))
    return Told(seconds, code, planned, len(judged), lost, twice, verdicts)


def show(name: str, one: Told) -> bool:
    """Print a run; whether every planned case has one result."""
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in one.verdicts.most_common())
    print(
        f"{name}: {one.seconds:.1f} s, exit {one.code}, {one.planned} cases, {one.results} "
        f"results ({verdicts}), {one.lost} lost, {one.twice} twice",
        flush=True,
    )
    return one.results > 0 and not one.lost and not one.twice


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--npus", type=int, default=2, help="of each node")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="a node after N results")
    parser.add_argument("--alone", type=int, default=1, help="0: not on one worker too")
    parser.add_argument("--folder", type=Path, help="default: a new temporary one")
    options, words = parser.parse_known_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="cluster-"))
    folder.mkdir(parents=True, exist_ok=True)
    # Ray's workers are started by its nodes, which are started by this process.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    os.environ["ACLSIM_DEVICES"] = str(options.npus)
    os.environ.setdefault("RAY_worker_niceness", "0")
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # it looks for CANN's own Python modules
    whole = True
    if options.alone:
        whole &= show("alone", run("alone", [*words, "--jobs", "1"], folder, lambda _: None))
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    nodes = [cluster.add_node(resources={"NPU": options.npus}, **NODE)
             for _ in range(options.nodes)]  # fmt: skip
    cluster.wait_for_nodes()

    def strike(journal: Path) -> None:
        if options.kill and len(nodes) == options.nodes and results(journal) >= options.kill:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    try:
        one = run("ray", [*words, "--ray", cluster.address], folder, strike)
    finally:
        cluster.shutdown()
    whole &= show("ray", one)
    if options.kill and len(nodes) == options.nodes:
        print(f"no node was killed: there were not {options.kill} results")
        whole = False
    print(f"journals: {folder}")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
