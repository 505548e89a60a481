"""What a fleet costs: dealing to many devices, and merging what they judged.

    python benchmarks/fleet.py deal HOSTS CASES     a Ray cluster's driver over made-up nodes
    python benchmarks/fleet.py merge HOSTS CASES    journals of a comparison, read, merged, rendered
    python benchmarks/fleet.py scale JOURNAL HOSTS DEVICES [K]  as if each had written JOURNAL,
                                                               or every K-th case of it; K below 0:
                                                               each case under -K names

Every host has eight devices (or DEVICES), which are given every case; times are CPU seconds of this
process. `scale` compresses the journals, by zstd.
"""

import io
import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
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
        return merged(paths)


def merged(paths: list[Path]) -> str:
    """What reading, merging and rendering of journals costs a process of its own."""
    command = [sys.executable, __file__, "read", *map(str, paths)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def read(paths: list[Path]) -> str:
    size = sum(path.stat().st_size for path in paths)
    started = time.monotonic()
    fleet = merge.merge(paths)
    html, data, metrics = (len(f(fleet)) for f in (page.html, files.as_json, prometheus.text))
    wall, results = time.monotonic() - started, fleet.counts().total
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = sum(one.ru_utime + one.ru_stime for one in used)
    own, reader = (one.ru_maxrss / 1e3 for one in used)
    return (f"{len(paths)} hosts, {results:,} results, {size / 1e6:,.1f} MB: {wall:,.1f} s, "
            f"{spent:,.1f} s of CPU, {spent / results * 1e6:.1f} µs a result, page "
            f"{html / 1e3:,.0f} kB, JSON {data / 1e3:,.0f} kB, metrics {metrics / 1e3:,.0f} kB, "
            f"{own:,.0f} MB of memory and {reader:,.0f} MB for each reader, "
            f"{len(fleet.deviations)} deviations")  # fmt: skip


def scaled(source: str, hosts: int, devices: int, every: int = 1) -> str:
    """Journals of a fleet whose every device wrote `source`; the last one differs in one case. What
    hosts have in common is compressed once: a journal may have several frames."""
    from zstandard import ZstdCompressor

    lines = [json.loads(line) for line in Path(source).read_text().splitlines()]
    if every > 0:
        lines = [one for line in lines if (one := _part(line, every))]
    else:
        lines = [one for line in lines for one in _renamed(line, -every)]
    head = next(line for line in lines if line["kind"] == "run")
    results = sum(line["kind"] == "result" for line in lines)
    head |= {"cases": results * devices, "options": {**head["options"], "compare": True}}
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        body = Path(folder) / "body.zst"
        with body.open("wb") as file, ZstdCompressor(3).stream_writer(file) as writer:
            for device in range(devices):
                for line in lines:
                    if text := _on(line, device):
                        writer.write(text)
        paths = []
        for n in range(hosts):
            first = {**head, "node": f"node{n}", "run": f"{n:012x}"}
            odd = next(line for line in lines if line["kind"] == "result")
            tail = _on({**odd, "digest": "bad"}, 0) if n == hosts - 1 else b""
            paths.append(Path(folder) / f"{n}.jsonl.zst")
            with paths[-1].open("wb") as file:
                file.write(ZstdCompressor().compress(json.dumps(first).encode() + b"\n"))
                file.write(body.read_bytes())
                end = json.dumps({"kind": "end", "seconds": 1.0, "interrupted": False}).encode()
                file.write(ZstdCompressor().compress(tail + end + b"\n"))
        body.unlink()
        return merged(paths)


def _part(line: dict[str, Any], every: int) -> dict[str, Any] | None:
    """A line with one case of `every`; None where nothing of it is left."""
    if line["kind"] == "plan":
        line["cases"] = [case for case in line["cases"] if not zlib.crc32(case.encode()) % every]
    chosen = "case" not in line or not zlib.crc32(line["case"].encode()) % every
    return line if chosen else None


def _renamed(line: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """A line for each of the names of its case; of other lines one."""
    if line["kind"] == "plan":
        names = [f"{case}/copy{i}" for i in range(count) for case in line["cases"]]
        yield {**line, "cases": names}
    elif "case" in line:
        yield from ({**line, "case": f"{line['case']}/copy{i}"} for i in range(count))
    else:
        yield line


def _on(line: dict[str, Any], device: int) -> bytes:
    """A line of a case as this device would write it; of other lines nothing."""
    if line["kind"] not in ("plan", "start", "result"):
        return b""
    own = {k: v for k, v in line.items() if k not in ("run", "node")} | {"device": f"npu:{device}"}
    if line["kind"] == "result":
        own.setdefault("digest", f"{zlib.crc32(line['case'].encode()):016x}")
    return json.dumps(own, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    if name == "read":
        print(read([Path(word) for word in words]))
    elif name == "scale":
        print(scaled(words[0], *map(int, words[1:])))
    else:
        print({"deal": deal, "merge": merging}[name](int(words[0]), int(words[1])))
