"""The driver of a Ray cluster over made-up nodes: it deals all, and its cost does not grow with the
cluster."""

import dataclasses
import io
import itertools
import json
import sys
import time
from collections import Counter
from types import ModuleType, SimpleNamespace

import pytest
from journals import result, write
from mindtorch_npu.conformance.operators.families import in_family, operator_families
from mindtorch_npu.conformance.record.result import from_json
from mindtorch_npu.conformance.run.lane import Lane
from mindtorch_npu.conformance.run.process import Batch, Setup
from mindtorch_npu.conformance.run.products import Products
from mindtorch_npu.fleet import advice, merge, ray_pool
from mindtorch_npu.fleet.ray_driver import DeviceActor, Driver

from aclnn_bindings.install.library import bundled_simulator

NPUS = 8


class Ref:
    """The answer to a call of an actor, or the error that getting it raises."""

    def __init__(self, answer):
        self.answer = answer


class Actor:
    """A device's actor that judges every case at once."""

    def __init__(self, cluster, node, number):
        self.node, self.number = node, number
        environment = {"kind": "cann", "chips": cluster.chips(node, number)}
        environment = {k: v for k, v in environment.items() if v}
        hello = {"label": f"npu:{number}", "hello": environment, "clock": time.time()}
        self.open = SimpleNamespace(remote=lambda: Ref(hello))
        self.run = SimpleNamespace(remote=lambda batch: cluster.judge(node, number, batch))
        after = {"health": {"hbm double bit error count": int(number == 1)}}
        self.health = SimpleNamespace(remote=lambda: Ref(after))


class Cluster:
    """What the driver needs of Ray, with `hosts` nodes. Actors of `dying` die of their first
    batch, and whoever runs a case of `deadly` dies; nodes of `leaving` are gone by then; devices
    of `hanging` never answer."""

    def __init__(self, hosts, dying=(), leaving=(), deadly=(), hanging=(), serials=False):
        self.hosts, self.dying, self.leaving = hosts, set(dying), set(leaving)
        self.deadly, self.hanging = set(deadly), set(hanging)
        self.taken, self.gone, self.started, self.serials = {}, set(), 0, serials

    def chips(self, node, number):
        if not self.serials:
            return {}
        chip = {"serial": f"{node}-{number}", "health": {"hbm double bit error count": 0}}
        return {f"npu:{number}": chip}

    def nodes(self):
        return [{"Alive": f"node{i}" not in self.gone, "NodeID": f"{i:06x}",
                 "NodeManagerHostname": f"node{i}", "Resources": {"NPU": NPUS}}
                for i in range(self.hosts)]  # fmt: skip

    def remote(self, _class):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.actor))

    def actor(self, _setup, node, _recording):
        own = self.taken.setdefault(node, set())
        number = min(set(range(NPUS + 1)) - own)
        own.add(number)
        self.started += 1
        return Actor(self, node, number)

    def judge(self, node, number, batch):
        place = f"{node} npu:{number}"
        if place in self.hanging:
            return Ref(None)
        if place in self.dying or self.deadly & set(batch["cases"]):
            self.dying.discard(place)
            if node in self.leaving:
                self.gone.add(node)
            return Ref(RuntimeError("the actor died"))
        return Ref([{"result": result(c, node=node, device=f"npu:{number}").as_json()}
                    for c in batch["cases"]])  # fmt: skip

    def get(self, ref, timeout=None):
        if isinstance(ref.answer, Exception):
            raise ref.answer
        return ref.answer

    def wait(self, refs, num_returns=1, timeout=None):
        ready = [ref for ref in refs if ref.answer is not None]
        return ready[:num_returns], ready[num_returns:]

    def kill(self, actor):
        self.taken[actor.node].discard(actor.number)


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """The one thing that the driver imports of Ray."""
    strategies = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None
    for name, module in {"ray": ModuleType("ray"), "ray.util": ModuleType("ray.util"),
                         "ray.util.scheduling_strategies": strategies}.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)


def served(cluster, batches, timeout=60.0):
    """(what the driver said, CPU seconds)."""
    out = io.StringIO()
    driver = Driver(cluster, out, {"device": "npu:0", "timeout": timeout})
    driver.look()
    driver.poll()
    driver.add(batches)
    started = time.process_time()
    driver.serve()
    spent = time.process_time() - started
    return [json.loads(line) for line in out.getvalue().splitlines()], spent


def batch(*cases, device=""):
    return {"cases": list(cases), "seed": 0, "options": {}, "device": device}


def judged(said):
    return Counter(r["case"] for r in results(said))


def results(said):
    return [m["event"]["result"] for m in said if "result" in m.get("event", ())]


def lost(said):
    return [(m["lost"]["what"], m["lost"]["place"]) for m in said if "lost" in m]


def test_every_batch_is_dealt_once():
    cases = [f"add/functional/s{i}" for i in range(500)]
    said, _ = served(Cluster(3), [batch(c) for c in cases])
    assert judged(said) == Counter(cases)
    assert said[-1] == {"done": True}


def test_batches_of_a_place_go_there():
    own = [batch(f"add/functional/s{i}", device=f"node{i % 2} npu:{i % 8}") for i in range(64)]
    said, _ = served(Cluster(2), own)
    places = {r["case"]: r for r in results(said)}
    for one in own:
        there = places[one["cases"][0]]
        assert f"{there['node']} {there['device']}" == one["device"]


def test_a_killed_actor_is_replaced_and_loses_no_case():
    cases = [f"add/functional/s{i}" for i in range(100)]
    cluster = Cluster(1, dying=["node0 npu:0", "node0 npu:3"])
    said, _ = served(cluster, [batch(*cases[i : i + 5]) for i in range(0, 100, 5)])
    assert judged(said) == Counter(cases)
    assert lost(said) == []
    killed = [m["event"]["data"] for m in said if m.get("event", {}).get("note") == "killed"]
    assert sorted(k["device"] for k in killed) == ["npu:0", "npu:3"]
    assert cluster.started == NPUS + 2


def test_an_only_device_whose_actor_is_killed_goes_on():
    """It was given up, and the run ended five minutes later for want of an NPU."""
    own = [batch(f"add/functional/s{i}", device="node0 npu:3") for i in range(3)]
    said, _ = served(Cluster(1, dying=["node0 npu:3"]), own)
    assert judged(said).total() == 3
    assert lost(said) == []


def test_a_case_that_kills_its_worker_twice_is_a_crash_of_that_case():
    cases = [f"add/functional/s{i}" for i in range(8)]
    said, _ = served(Cluster(1, deadly=[cases[3]]), [batch(*cases)])
    assert judged(said) == Counter(cases)
    assert {r["case"]: r["verdict"] for r in results(said) if r["verdict"] != "PASS"} == {
        cases[3]: "CRASH"
    }


def test_what_a_node_loses_runs_elsewhere():
    cases = [f"add/functional/s{i}" for i in range(100)]
    cluster = Cluster(2, dying=["node0 npu:3"], leaving=["node0"])
    said, _ = served(cluster, [batch(c) for c in cases])
    assert judged(said) == Counter(cases)
    assert lost(said) == [("node lost", "node0 npu:3")]


def test_batches_of_a_place_that_is_gone_are_lost_by_name(monkeypatch):
    monkeypatch.setattr("mindtorch_npu.fleet.ray_driver._LOOK_SECONDS", 0.0)
    own = [batch(f"add/functional/s{i}", device="node0 npu:3") for i in range(3)]
    said, _ = served(Cluster(1, dying=["node0 npu:3"], leaving=["node0"]), own)
    cases = [case for m in said if "lost" in m for case in m["lost"]["cases"]]
    assert Counter(cases) == Counter(c for one in own for c in one["cases"])
    assert said[-1] == {"done": True}


def test_a_device_that_hangs_is_fenced_and_the_others_run_its_cases(monkeypatch):
    monkeypatch.setattr("mindtorch_npu.fleet.ray_driver._LOOK_SECONDS", 0.0)
    monkeypatch.setattr("mindtorch_npu.fleet.ray_driver._GRACE_SECONDS", 0.2)
    cases = [f"add/functional/s{i}" for i in range(30)]
    said, _ = served(Cluster(1, hanging=["node0 npu:2"]), [batch(c) for c in cases], timeout=0.1)
    assert judged(said) == Counter(cases)
    assert lost(said) == [("device hung", "node0 npu:2")]


def test_every_result_of_a_cluster_belongs_to_a_chip_that_is_known(tmp_path):
    """Its serial number, and its counters before and after, as its own node reads them."""
    cases = [f"add/functional/s{i}" for i in range(40)]
    said, _ = served(Cluster(2, serials=True), [batch(c) for c in cases])
    events = [event for message in said for event in ray_pool._events(message)]
    notes = [(e.kind, e.data) for e in events if isinstance(e, ray_pool.Note)]
    judged_ = [from_json(r) for r in results(said)]
    fleet = merge.merge([write(tmp_path / "a.jsonl", "head", judged_, cases, notes=notes)])
    assert fleet.counts().by_verdict == {"PASS": 40}
    assert {s.name: s.chip["serial"] for s in fleet.devices} == {
        f"node{n} npu:{d}": f"node{n}-{d}" for n in range(2) for d in range(NPUS)
    }
    accused = [(a.name, a.evidence[0][0]) for a in advice.advice(fleet)]
    assert accused == [(f"node{n} npu:1 (serial node{n}-1)", "hbm double bit error count")
                       for n in range(2)]  # fmt: skip


@pytest.mark.parametrize(("options", "least"), [({"repeat": 20}, 100.0), ({"seconds": 600}, 600.0)])
def test_what_takes_long_by_request_is_waited_for(options, least):
    driver = Driver(None, io.StringIO(), {"device": "npu:0", "timeout": 5.0})
    assert driver._seconds({"cases": ["add/functional/s0"], "options": options}) > least


def test_every_field_of_a_batch_arrives_at_the_worker():
    """A product was dropped on the way: operators of other products were UNSUPPORTED by Ray."""
    values = {"cases": ("add/functional/s0",), "seed": 7, "options": {"save": "x"},
              "device": "node0 npu:1", "soc": "Ascend310P3", "required": True}  # fmt: skip
    assert set(values) == {f.name for f in dataclasses.fields(Batch)}
    sent = json.loads(json.dumps(Batch(**values).as_json()))
    actor = DeviceActor({**dataclasses.asdict(Setup("cpu"))}, "node0")
    assert actor._batch(sent) == Batch(**values)


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_family_has_the_same_verdicts_by_a_cluster_and_here(every):
    """One operator of each, as the product that it is documented for; without `-m slow` of one
    family for each product."""
    here = Lane(Setup("npu:0", None, True))
    products = Products(here.setup, here.open(), compare=False)
    own = {in_family(family)[0]: family for family in operator_families()} | {"aclnnAddV3": "v3"}
    names = sorted(own, key=products.soc)
    if not every:
        names = list({products.soc(name): name for name in names}.values())
    batches = [
        Batch(tuple(f"{name}/functional/s0" for name in alike), 0, soc=soc)
        for soc, alike in itertools.groupby(names, products.soc)
    ]
    assert len({b.soc for b in batches}) > 1
    there = DeviceActor(dataclasses.asdict(Setup("cpu")), "node0")
    there.lane = Lane(here.setup, "node0", "npu:0")
    for one in batches:
        sent = json.loads(json.dumps(one.as_json()))
        remote = {e["result"]["case"]: e["result"]["verdict"] for e in there.run(sent)}
        assert remote == {r.case: r.verdict for r in here.run(one)}
        assert "PASS" in remote.values()
    there.lane.close()
    here.close()


def test_dealing_costs_a_result_as_much_on_800_devices_as_on_80():
    spent = {}
    for hosts in (10, 100):
        own = [batch(*(f"add/functional/s{8 * k + i}" for i in range(8)), device=f"node{n} npu:{d}")
               for n in range(hosts) for d in range(NPUS) for k in range(4)]  # fmt: skip
        said, seconds = served(Cluster(hosts), own)
        assert judged(said).total() == hosts * NPUS * 32
        spent[hosts] = seconds / (hosts * NPUS * 32)
    assert spent[100] < 2 * spent[10] + 5e-6
