"""Probes, workloads and recorded launches as work items: one scheduler, one journal, one report."""

import json

import pytest
from journals import result, write
from mindtorch_npu import exits
from mindtorch_npu.commands.bench import item, workloads
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.fleet import host_faults, merge, page, prometheus, work
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator
from mindtorch.ops import OPS

simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def merged(*paths):
    return merge.merge(paths)


def run(*words):
    return group.main([str(w) for w in words], prog_name="mindtorch-npu", standalone_mode=False)


@pytest.mark.parametrize("size", [workloads.small, workloads.default])
def test_every_workload_is_found_again_by_its_name(size):
    for op in OPS.values():
        if not op.testing.samples:
            continue
        own = size(op, "")
        name = item.name_of(own)
        assert parse(name).id == name
        again = item.workload(parse(name), "", None)
        assert (again.op, again.dtype, again.shapes) == (own.op, own.dtype, own.shapes)


def finding(severity, what):
    return {"severity": severity, "what": what, "fix": f"mend {what}", "evidence": ""}


def probe_of(tmp_path, node, *causes, versions=()):
    stated = {"cann": "9.1.0", "driver": "25.2", "firmware": "7.7", "kernels": "9.1.0",
              "soc": "Ascend910B2", "kind": "cann", **dict(versions)}  # fmt: skip
    wrong = any(c["severity"] == "error" for c in causes)
    one = Result("install/probe", "install", "probe", "FAIL" if wrong else "PASS", node=node,
                 device="cpu", reason=causes[0]["what"] if wrong else "",
                 measure={"causes": list(causes), "versions": stated})  # fmt: skip
    return write(tmp_path / f"{node}-probe.jsonl", node, [one], items=True, compare=True,
                 environment={"kind": "cpu", "cann": "", "device": "cpu"})  # fmt: skip


def test_findings_of_probes_are_told_once_with_their_hosts(tmp_path):
    old = finding("warning", "the driver is older than CANN")
    fleet = merged(
        probe_of(tmp_path, "host1", old), probe_of(tmp_path, "host2", old),
        probe_of(tmp_path, "host3", finding("error", "libascendcl.so is not there"), old),
    )  # fmt: skip
    assert [(f.severity, f.nodes) for f in work.findings(fleet)] == [
        ("error", ("host3",)), ("warning", ("host1", "host2", "host3"))
    ]  # fmt: skip
    assert fleet.failing
    text = page.html(fleet)
    assert "Probes (3 hosts)" in text
    assert "mend libascendcl.so is not there" in text
    metrics = prometheus.text(fleet)
    assert 'mindtorch_npu_host_findings{node="host3",severity="error"} 1.0' in metrics
    assert not fleet.devices


def test_versions_of_probed_hosts_are_compared_with_those_that_checked(tmp_path):
    checked = [write(tmp_path / f"{i}.jsonl", f"host{i}", [result(f"add/functional/s{i}")])
               for i in range(2)]  # fmt: skip
    odd = probe_of(tmp_path, "host9", versions={"driver": "24.1"})
    rows = host_faults.rows(merged(*checked, odd))
    assert [(r.name, r.place, r.text) for r in rows] == [
        ("other version", "host9", "driver 24.1, most have 25.2")
    ]


def test_host_that_fell_back_on_the_simulator_has_no_npu(tmp_path):
    paths = [write(tmp_path / f"{i}.jsonl", f"host{i}", [result(f"add/functional/s{i}")],
                   environment={"kind": "simulator" if i == 2 else "cann"})
             for i in range(3)]  # fmt: skip
    rows = host_faults.rows(merged(*paths))
    assert [(r.name, r.place) for r in rows] == [("no NPU", "host2")]


def test_comparisons_merge_with_parts_that_were_dealt(tmp_path):
    """A case that a shard ran once is not lost because another run compares devices."""
    cases = ["add/functional/s0", "add/functional/s1"]
    dealt = write(tmp_path / "a.jsonl", "host1", map(result, cases), cases, shard="1/1")
    compared = write(
        tmp_path / "b.jsonl", "host2",
        [result(cases[0], device=f"npu:{i}", digest="aa") for i in range(2)], compare=True,
    )  # fmt: skip
    fleet = merged(dealt, compared)
    assert not fleet.lost
    assert fleet.counts().by_verdict == {"PASS": 4}


@simulated
def test_probe_writes_a_journal_that_merges(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINDTORCH_NODE", "host7")
    book = tmp_path / "probe.jsonl"
    assert run("probe", "--simulator", "--journal", book) == exits.OK
    assert "no host has an error" in capsys.readouterr().out
    fleet = merged(book)
    assert work.probed(fleet) == {"host7"}
    assert fleet.environments()[0][1]["cann"]


def test_probe_of_a_host_without_an_install_fails_with_its_cause(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    book = tmp_path / "probe.jsonl"
    assert run("probe", "--home", tmp_path / "empty", "--journal", book) == exits.PROBLEMS
    assert work.findings(merged(book))[0].severity == "error"


@simulated
def test_workloads_run_on_every_device_and_a_wrong_result_has_no_time(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("ACLSIM_DEVICES", "2")
    monkeypatch.setenv("ACLSIM_FAULTS", "npu1/mul:zeros")
    book, told = tmp_path / "bench.jsonl", tmp_path / "told.json"
    words = ("--shapes", "8x8", "--seconds", "0.02", "--rounds", "2", "--json", told)
    code = run("bench", "add", "mul", "--simulator", "--device", "all", "--journal", book, *words)
    assert code == exits.PROBLEMS
    data = json.loads(told.read_text())
    assert data["counts"] == {"PASS": 6, "FAIL": 2}
    devices = {t["workload"].split()[0]: t["devices"] for t in data["workloads"]}
    assert devices == {"add": 2, "mul": 1}
    assert [w["op"] for w in data["worst"]] == ["mul"]
    assert data["deviations"] == []


@simulated
@pytest.mark.slow
def test_planted_slow_device_is_named(tmp_path, monkeypatch, capsys):
    """Half a minute, on a crowded machine three: `pytest -m slow tests/cli/fleet/test_items.py`.

    Every round times all devices beside each other, and a round's times count against its own
    median; so many rounds that what else runs here hides none.
    """
    monkeypatch.setenv("ACLSIM_DEVICES", "4")
    monkeypatch.setenv("ACLSIM_FAULTS", "npu2/*:slow@300")
    words = ("--shapes", "64x64", "--seconds", "0.05", "--rounds", "24", "--fail-on", "slower",
             "--journal", tmp_path / "bench.jsonl")  # fmt: skip
    code = run("bench", "add", "mul", "--simulator", "--device", "npu:0-3", *words)
    assert code == exits.REGRESSIONS
    slow = [p for p in merged(tmp_path / "bench.jsonl").devices if p.speed.slow]
    assert [p.device for p in slow] == ["npu:2"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bench", "add", "--device", "all", "--against", "torch"), "--against: of one device"),
        (("bench", "add", "--prometheus", "x.prom"), "add --device all"),
        (("probe", "--html", "x.html"), "add --ray or --journal"),
        (("probe", "--journal", "x.jsonl", "--json"), "--json: of this host alone"),
    ],
)
def test_options_that_need_each_other_are_named(words, says, tmp_path, monkeypatch):
    import click

    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.UsageError, match=says):
        run(*words)
