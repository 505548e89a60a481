"""The driver of a Ray cluster over made-up nodes: it deals all, and its cost does not grow with the
cluster."""

from __future__ import annotations

import io
import json
import sys
import time
from collections import Counter
from types import ModuleType, SimpleNamespace

import pytest
from journals import result
from mindtorch_npu.fleet.ray_driver import Driver

NPUS = 8


class Ref:
    """The answer to a call of an actor, or the error that getting it raises."""

    def __init__(self, answer):
        self.answer = answer


class Actor:
    """A seat that judges every case at once."""

    def __init__(self, cluster, node, number):
        self.open = SimpleNamespace(remote=lambda: Ref({
            "label": f"npu:{number}", "hello": {"kind": "cann"}, "clock": time.time()
        }))  # fmt: skip
        self.run = SimpleNamespace(remote=lambda batch: cluster.judge(node, number, batch))


class Cluster:
    """What the driver needs of Ray, with `hosts` nodes; the seats of `dying` die of a batch."""

    def __init__(self, hosts, dying=()):
        self.hosts, self.dying = hosts, set(dying)
        self.seats = Counter()

    def nodes(self):
        return [{"Alive": True, "NodeID": f"{i:06x}", "NodeManagerHostname": f"node{i}",
                 "Resources": {"NPU": NPUS}} for i in range(self.hosts)]  # fmt: skip

    def remote(self, _class):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.seat))

    def seat(self, _setup, node, _recording):
        self.seats[node] += 1
        return Actor(self, node, self.seats[node] - 1)

    def judge(self, node, number, batch):
        if f"{node} npu:{number}" in self.dying:
            return Ref(RuntimeError("the actor died"))
        return Ref([{"result": result(c, node=node, device=f"npu:{number}").as_json()}
                    for c in batch["cases"]])  # fmt: skip

    def get(self, ref, timeout=None):
        if isinstance(ref.answer, Exception):
            raise ref.answer
        return ref.answer

    def wait(self, refs, num_returns=1, timeout=None):
        return refs[:num_returns], refs[num_returns:]

    def kill(self, actor):
        pass


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """The one thing that the driver imports of Ray."""
    strategies = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None
    for name, module in {"ray": ModuleType("ray"), "ray.util": ModuleType("ray.util"),
                         "ray.util.scheduling_strategies": strategies}.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)


def served(cluster, batches):
    """(what the driver said, CPU seconds)."""
    out = io.StringIO()
    driver = Driver(cluster, out, {"device": "npu:0"})
    driver.look()
    driver.add(batches)
    started = time.process_time()
    driver.serve()
    spent = time.process_time() - started
    return [json.loads(line) for line in out.getvalue().splitlines()], spent


def batch(*cases, device=""):
    return {"cases": list(cases), "seed": 0, "options": {}, "device": device}


def judged(said):
    return Counter(m["event"]["result"]["case"] for m in said if "event" in m)


def test_every_batch_is_dealt_once():
    cases = [f"add/functional/s{i}" for i in range(500)]
    said, _ = served(Cluster(3), [batch(c) for c in cases])
    assert judged(said) == Counter(cases)
    assert said[-1] == {"done": True}


def test_batches_of_a_place_go_there():
    own = [batch(f"add/functional/s{i}", device=f"node{i % 2} npu:{i % 8}") for i in range(64)]
    said, _ = served(Cluster(2), own)
    places = {m["event"]["result"]["case"]: m["event"]["result"] for m in said if "event" in m}
    for one in own:
        there = places[one["cases"][0]]
        assert f"{there['node']} {there['device']}" == one["device"]


def test_what_a_seat_loses_runs_elsewhere():
    cases = [f"add/functional/s{i}" for i in range(100)]
    said, _ = served(Cluster(2, dying=["node0 npu:3", "node1 npu:0"]), [batch(c) for c in cases])
    assert judged(said) == Counter(cases)
    assert sorted(m["lost"]["place"] for m in said if "lost" in m) == ["node0 npu:3", "node1 npu:0"]


def test_batches_of_a_place_that_is_gone_are_told_as_lost(monkeypatch):
    monkeypatch.setattr("mindtorch_npu.fleet.ray_driver._LOOK_SECONDS", 0.0)
    own = [batch(f"add/functional/s{i}", device="node0 npu:3") for i in range(3)]
    said, _ = served(Cluster(1, dying=["node0 npu:3"]), own)
    lost = [case for m in said if "lost" in m for case in m["lost"]["cases"]]
    assert Counter(lost) == Counter(c for one in own for c in one["cases"])
    assert said[-1] == {"done": True}


def test_dealing_costs_a_result_as_much_on_800_devices_as_on_80():
    spent = {}
    for hosts in (10, 100):
        own = [batch(*(f"add/functional/s{8 * k + i}" for i in range(8)), device=f"node{n} npu:{d}")
               for n in range(hosts) for d in range(NPUS) for k in range(4)]  # fmt: skip
        said, seconds = served(Cluster(hosts), own)
        assert judged(said).total() == hosts * NPUS * 32
        spent[hosts] = seconds / (hosts * NPUS * 32)
    assert spent[100] < 2 * spent[10] + 5e-6
