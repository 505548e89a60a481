"""A Ray cluster of this machine with simulated NPUs: nodes die, no case is lost or counted twice.

`pip install ray`, then `pytest -m slow tests/cli/fleet/test_ray.py`; a minute.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest
from mindtorch_npu.conformance.cases.cases import Plan
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.pool import EnvironmentFailedError, Setup
from mindtorch_npu.fleet import merge, parts, ray_pool, weather

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(monkeypatch):
    """A head without NPUs, and two nodes with two each."""
    utils = pytest.importorskip("ray.cluster_utils", reason="Ray is an extra: [cluster]")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("ACLSIM_DEVICES", "2")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    memory = {"num_cpus": 1, "object_store_memory": 80_000_000}
    nodes = utils.Cluster(initialize_head=True, head_node_args=memory)
    nodes.npus = [nodes.add_node(resources={"NPU": 2}, **memory) for _ in range(2)]
    nodes.wait_for_nodes()
    yield nodes
    nodes.shutdown()


def begin(cluster, path):
    setup = Setup("npu:0", None, True, str(path), 60.0)
    request = engine.Request(
        ("add", "mul"), Plan(forms=("functional",)), setup, run=journal.new_run(),
        scheduler=lambda own, _jobs: ray_pool.RayPool(own, cluster.address),
    )  # fmt: skip
    return engine.begin(request, path)


def test_a_node_that_dies_loses_no_case_and_none_counts_twice(cluster, tmp_path):
    run = begin(cluster, tmp_path / "run.jsonl")
    results = []
    for result in run.results():
        results.append(result)
        if len(results) == 20:
            cluster.remove_node(cluster.npus.pop(), allow_graceful=False)
    assert len(results) == run.total
    assert set(Counter(r.case for r in results).values()) == {1}
    fleet = merge.merge(parts.read([tmp_path / "run.jsonl"]))
    assert fleet.counts().by_verdict == {"PASS": run.total}
    assert not fleet.lost
    assert {row.name for row in weather.rows(fleet)} == {"node lost"}


def test_a_cluster_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("ray", reason="Ray is an extra: [cluster]")
    with pytest.raises(EnvironmentFailedError, match=r"cluster 127\.0\.0\.1:1"):
        ray_pool.RayPool(Setup("npu:0", None, True), "127.0.0.1:1").open()
