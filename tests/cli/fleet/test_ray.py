"""A Ray cluster of this machine with simulated NPUs: nodes, workers and the head die, no case is
lost or counted twice.

`pip install ray`, then `pytest -m slow tests/cli/fleet/test_ray.py`; two minutes.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mindtorch_npu.commands.bench import item
from mindtorch_npu.commands.bench.workloads import small
from mindtorch_npu.commands.probe.item import CASE as PROBE
from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.operators.families import in_family, operator_families
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.pool import EnvironmentFailedError, Setup
from mindtorch_npu.fleet import host_faults, items, merge, ray_pool, work

from mindtorch.ops import OPS

pytestmark = pytest.mark.slow
MEMORY = {"num_cpus": 1, "object_store_memory": 80_000_000}
NODES, NPUS = 2, 2


def start(port=None):
    """A head without NPUs, and nodes with two each."""
    from ray.cluster_utils import Cluster

    head = MEMORY if port is None else {**MEMORY, "gcs_server_port": port}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    nodes.npus = [nodes.add_node(resources={"NPU": NPUS}, **MEMORY) for _ in range(NODES)]
    nodes.wait_for_nodes()
    return nodes


@pytest.fixture
def environment(monkeypatch):
    pytest.importorskip("ray.cluster_utils", reason="Ray is an extra: [cluster]")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("ACLSIM_DEVICES", str(NPUS))
    monkeypatch.setenv("RAY_worker_niceness", "0")


@pytest.fixture
def cluster(environment):
    nodes = start()
    yield nodes
    nodes.shutdown()


def begin(address, path):
    setup = Setup("npu:0", None, True, str(path), 60.0)
    request = engine.RunRequest(
        ("add", "mul"), CaseFilter(forms=("functional",)), setup, run=journal.new_run(),
        scheduler=ray_pool.maker(address),
    )  # fmt: skip
    return engine.begin(request, path)


def consumed(run, at, strike):
    """All results of a run; `strike` is called when there are `at` of them."""
    results = []
    for result in run.results():
        results.append(result)
        if len(results) == at:
            strike()
    return results


def require_each_once(run, results, path):
    """Every planned case has one result, here and in the journal; the fleet that it makes."""
    assert len(results) == run.total
    assert set(Counter(r.case for r in results).values()) == {1}
    fleet = merge.merge([path])
    assert fleet.counts().by_verdict == {"PASS": run.total}
    assert not fleet.lost
    return fleet


def test_a_node_that_dies_loses_no_case_and_none_counts_twice(cluster, tmp_path):
    path = tmp_path / "run.jsonl"
    run = begin(cluster.address, path)
    results = consumed(
        run, 20, lambda: cluster.remove_node(cluster.npus.pop(), allow_graceful=False)
    )
    fleet = require_each_once(run, results, path)
    assert {row.name for row in host_faults.rows(fleet)} == {"node lost"}


def workers():
    """Process ids of the workers that run cases."""
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"conformance.run.worker" in status.read_bytes():
                yield int(status.parent.name)


def test_a_worker_that_is_killed_loses_no_case(cluster, tmp_path):
    before = set(workers())
    path = tmp_path / "run.jsonl"
    run = begin(cluster.address, path)

    def strike():
        for pid in sorted(set(workers()) - before)[:2]:
            os.kill(pid, signal.SIGKILL)

    results = consumed(run, 20, strike)
    fleet = require_each_once(run, results, path)
    assert {row.name for row in host_faults.rows(fleet)} <= {"worker killed"}


def test_a_head_that_restarts_costs_only_what_was_in_flight(environment, tmp_path):
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    clusters = [start(port)]
    path = tmp_path / "run.jsonl"
    run = begin(clusters[0].address, path)

    def strike():
        first = clusters.pop()
        first.remove_node(first.head_node, allow_graceful=False)
        for node in first.npus:
            first.remove_node(node, allow_graceful=False)
        clusters.append(start(port))

    try:
        results = consumed(run, 20, strike)
    finally:
        clusters[0].shutdown()
    fleet = require_each_once(run, results, path)
    names = {row.name for row in host_faults.rows(fleet)}
    assert "head restarted" in names
    assert names <= {"head restarted", "node lost"}


def test_probes_run_once_a_node_and_workloads_on_every_npu(cluster, tmp_path, capsys):
    setup = Setup("cpu", None, True, timeout=300.0)
    path = tmp_path / "probe.jsonl"
    fleet, _ = items.run(items.WorkItems("probe", (PROBE,), setup, ray=cluster.address), path, {})
    assert len(work.probed(fleet)) == NODES + 1  # the head is a host as well
    cases = [item.name_of(small(OPS["add"], "")), item.name_of(small(OPS["mul"], ""))]
    setup = Setup("npu:0", None, True, timeout=300.0)
    bench = items.WorkItems("bench", cases, setup, 2, {"seconds": 0.02}, cluster.address)
    fleet, code = items.run(bench, tmp_path / "bench.jsonl", {})
    assert code == 0
    assert fleet.counts().by_verdict == {"PASS": 2 * 2 * NODES * NPUS}
    assert {t.devices for t in work.timings(fleet)} == {NODES * NPUS}


def test_a_recording_travels_to_the_nodes(cluster, tmp_path):
    recording, book = tmp_path / "calls.rec", tmp_path / "run.jsonl"
    command = [sys.executable, "-m", "mindtorch_npu"]
    program = "import mindtorch as t; a = t.ones(4, 4).to('npu'); (a + a).cpu(); (a @ a).cpu()"
    subprocess.run([*command, "run", "--simulator", "--record", str(recording), "--",
                    sys.executable, "-c", program], check=True)  # fmt: skip
    done = subprocess.run([*command, "check", "--simulator", "--from", str(recording), "--ray",
                           cluster.address, "--journal", str(book)])  # fmt: skip
    assert done.returncode == 0
    lines = [json.loads(line) for line in book.read_text().splitlines()]
    judged = {line["op"].partition("#")[0] for line in lines if line["kind"] == "result"}
    assert {"aclnnAdd", "aclnnMatmul"} <= judged


def test_every_family_has_the_same_verdicts_by_ray_and_here(environment, tmp_path):
    """One operator of each family, as `check` deals it: products, settings and all."""
    names = sorted({in_family(family)[0] for family in operator_families()} | {"aclnnAddV3"})
    command = [sys.executable, "-m", "mindtorch_npu", "check", "--simulator", "--alone",
               "--form", "functional", "--dtype", "float32", *names]  # fmt: skip
    verdicts = {}
    cluster = start()
    try:
        for where, words in (("here", []), ("ray", ["--ray", cluster.address])):
            book = tmp_path / f"{where}.jsonl"
            subprocess.run([*command, *words, "--journal", str(book)], check=False)
            lines = [json.loads(line) for line in book.read_text().splitlines()]
            verdicts[where] = {x["case"]: x["verdict"] for x in lines if x["kind"] == "result"}
    finally:
        cluster.shutdown()
    assert verdicts["ray"] == verdicts["here"]
    judged = {case.partition("/")[0] for case, v in verdicts["ray"].items() if v == "PASS"}
    assert {"aclnnAddV3"} <= judged
    assert len(judged) > len(names) / 2


def test_a_cluster_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("ray", reason="Ray is an extra: [cluster]")
    with pytest.raises(EnvironmentFailedError, match=r"cluster 127\.0\.0\.1:1"):
        ray_pool.RayPool(Setup("npu:0", None, True), "127.0.0.1:1").open()
