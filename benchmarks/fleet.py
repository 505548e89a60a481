"""What a fleet costs: dealing to many devices, and merging what they judged.

    python benchmarks/fleet.py deal HOSTS CASES     a Ray cluster's driver over made-up nodes
    python benchmarks/fleet.py merge HOSTS CASES    journals of a comparison, read, merged, rendered

Every host has eight devices, which are given every case; times are CPU seconds of this process.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.fleet import files, merge, page, prometheus
from mindtorch_npu.fleet.ray_driver import Driver

NPUS, BATCH = 8, 8


def judged(case: str, node: str, device: int, digest: str = "0123456789abcdef") -> Result:
    return Result(case, "add", "functional", "PASS", "float32", "T1", seconds=1e-3, node=node,
                  device=f"npu:{device}", inputs=("float32[2, 3]",) * 2, digest=digest)  # fmt: skip


class Ref:
    """The answer to a call of an actor."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class Nodes:
    """What the driver needs of Ray; counts calls and the bytes that go between nodes."""

    def __init__(self, hosts: int) -> None:
        self.hosts, self.calls, self.size = hosts, 0, 0
        self.actors: dict[str, int] = {}

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeID": f"{i:06x}", "NodeManagerHostname": f"node{i}",
                 "Resources": {"NPU": NPUS}} for i in range(self.hosts)]  # fmt: skip

    def remote(self, _class: type) -> SimpleNamespace:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.actor))

    def actor(self, _setup: object, node: str, _recording: bytes) -> SimpleNamespace:
        number = self.actors[node] = self.actors.get(node, -1) + 1
        hello = {"label": f"npu:{number}", "hello": {"kind": "cann"}, "clock": time.time()}

        def run(batch: dict[str, Any]) -> Ref:
            answer = [{"result": judged(c, node, number).as_json()} for c in batch["cases"]]
            self.calls += 1
            self.size += len(json.dumps(batch)) + len(json.dumps(answer))
            return Ref(answer)

        return SimpleNamespace(open=SimpleNamespace(remote=lambda: Ref(hello)),
                               run=SimpleNamespace(remote=run))  # fmt: skip

    def get(self, ref: Ref, timeout: float | None = None) -> Any:  # noqa: ARG002
        return ref.answer

    def wait(
        self, refs: list[Any], num_returns: int = 1, timeout: float | None = None  # noqa: ARG002
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        return refs[:num_returns], refs[num_returns:]


def deal(hosts: int, cases: int) -> str:
    strategies: Any = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None
    sys.modules |= {"ray": ModuleType("ray"), "ray.util": ModuleType("ray.util"),
                    strategies.__name__: strategies}  # fmt: skip
    names = [f"add/functional/s0/float32/case{i}" for i in range(cases)]
    batches = [
        {"cases": names[i : i + BATCH], "seed": 0, "options": {}, "device": f"node{n} npu:{d}"}
        for n in range(hosts) for d in range(NPUS) for i in range(0, cases, BATCH)
    ]  # fmt: skip
    nodes = Nodes(hosts)
    driver = Driver(nodes, io.StringIO(), {"device": "npu:0"})
    driver.look()
    driver.poll()
    started = time.process_time()
    driver.add(batches)
    driver.serve()
    spent, results = time.process_time() - started, hosts * NPUS * cases
    each = f"{nodes.size / results:.0f} bytes and {spent / results * 1e6:.0f} µs each"
    return f"{hosts} hosts, {results} results: {2 * nodes.calls} messages, {each}"


def merging(hosts: int, cases: int) -> str:
    environment = {"device": "npu:0", "mindtorch_npu": "0", "kind": "cann", "cann": "9.1.0"}
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for n in range(hosts):
            book = journal.Journal(Path(folder) / f"{n}.jsonl", journal.new_run())
            head = journal.header(environment, {"compare": True}, cases * NPUS)
            book.write("run", {**head, "node": f"node{n}"})
            for i in range(cases):
                for d in range(NPUS):
                    odd = "bad" if (n, d, i) == (3, 2, 1) else "0123456789abcdef"
                    book.result(judged(f"add/functional/s0/float32/case{i}", f"node{n}", d, odd))
            book.write("end", {"seconds": 1.0, "interrupted": False})
            book.close()
            paths.append(book.path)
        size = sum(path.stat().st_size for path in paths)
        started = time.process_time()
        fleet = merge.merge(paths)
        hello = [len(make(fleet)) for make in (page.html, files.as_json, prometheus.text)]
        spent = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return (f"{hosts} hosts, {fleet.counts().total} results, {size / 1e6:.1f} MB: {spent:.1f} s, "
            f"page {hello[0] / 1e3:.0f} kB, JSON {hello[1] / 1e3:.0f} kB, metrics "
            f"{hello[2] / 1e3:.0f} kB, {memory:.0f} MB of memory")  # fmt: skip


if __name__ == "__main__":
    print({"deal": deal, "merge": merging}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3])))
