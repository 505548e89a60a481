"""Several devices of one host: what `--device` may say, work dealt to all, votes that name one."""

from dataclasses import replace

import pytest
from mindtorch_npu import render
from mindtorch_npu.commands.check import devices as check_devices
from mindtorch_npu.conformance.cases import shard
from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.record import journal, votes
from mindtorch_npu.conformance.run import engine, locality
from mindtorch_npu.conformance.run.devices import DeviceListError, devices
from mindtorch_npu.conformance.run.pool import Batch, BatchQueue, Setup

import aclnn_bindings
from aclnn_bindings.install.library import bundled_simulator

simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("npu:3", ["npu:3"]),
        ("npu:0-2", ["npu:0", "npu:1", "npu:2"]),
        ("npu:0,2-3", ["npu:0", "npu:2", "npu:3"]),
        ("all", ["npu:0", "npu:1"]),
        ("cpu", ["cpu"]),
    ],
)
def test_devices_are_named(text, named):
    assert list(devices(text, lambda: 2)) == named


@pytest.mark.parametrize("text", ["npu:3-1", "npu:0,0", "npu:", "npu:a", "npu:1-"])
def test_texts_that_name_no_devices_are_refused(text):
    with pytest.raises(DeviceListError, match=text):
        devices(text, lambda: 2)


def test_all_of_no_device_is_refused():
    with pytest.raises(DeviceListError, match="sees no device"):
        devices("all", lambda: 0)


def test_every_case_is_in_one_shard():
    cases = [f"op{i}/functional/s0" for i in range(500)]
    counts = [sum(shard.parse(f"{i}/8").has(c) for c in cases) for i in range(1, 9)]
    assert sum(counts) == 500
    assert min(counts) > 30
    assert all(shard.CaseShard().has(c) for c in cases)


def test_an_index_from_0_names_the_same_shards():
    """JOB_COMPLETION_INDEX of a Kubernetes Job begins at 0."""
    assert [shard.parse(f"index:{i}/4") for i in range(4)] == [
        shard.parse(f"{i}/4") for i in range(1, 5)
    ]


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2", "index:4/4", "index:/4"])
def test_no_shard_is_refused(text):
    with pytest.raises(shard.ShardError, match="expected I/N"):
        shard.parse(text)


def test_work_given_back_goes_to_another_lane():
    work = BatchQueue([Batch(("a", "b"), 0), Batch(("c",), 0, {}, "npu:1")])
    batch = work.take("npu:0")
    assert batch is not None
    work.finish(replace(batch, cases=("b",)))
    own, other = work.take("npu:1"), work.take("npu:1")
    assert own is not None
    assert other is not None
    assert (own.cases, other.cases) == (("c",), ("b",))
    work.finish()
    work.finish()
    assert work.take("npu:0") is None


@pytest.fixture
def two_nodes(tmp_path):
    """A /sys with a device on each of two memory nodes, and one whose node nobody states."""
    for name, node, cpus in (("0000:01:00.0", 0, "0-3"), ("0000:c1:00.0", 1, "4-6,9"),
                             ("0000:ff:00.0", -1, "")):  # fmt: skip
        pci = tmp_path / "bus/pci/devices" / name
        pci.mkdir(parents=True)
        (pci / "numa_node").write_text(f"{node}\n")
        if cpus:
            folder = tmp_path / f"devices/system/node/node{node}"
            folder.mkdir(parents=True)
            (folder / "cpulist").write_text(f"{cpus}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("address", "allowed", "listed", "chosen"),
    [
        ("0000:01:00.0", range(12), "0-3", {0, 1, 2, 3}),
        ("0000:c1:00.0", range(12), "4-6,9", {4, 5, 6, 9}),
        ("0000:c1:00.0", range(6), "4-6,9", {4, 5}),  # a container's share of the node
        ("0000:c1:00.0", range(4), "", None),  # a container without any CPU of it
        ("0000:c1:00.0", (4, 5), "", None),  # already there
        ("0000:ff:00.0", range(12), "", None),
        ("", range(12), "", None),
    ],
)
def test_worker_stays_near_its_device(two_nodes, monkeypatch, address, allowed, listed, chosen):
    moved = []
    monkeypatch.setattr(locality, "_SYS", two_nodes)
    monkeypatch.setattr(locality, "pci_address", lambda cann, index: address)
    monkeypatch.setattr(locality.os, "sched_getaffinity", lambda pid: set(allowed))
    monkeypatch.setattr(locality.os, "sched_setaffinity", lambda pid, cpus: moved.append(cpus))
    assert locality.near(None, "npu:1") == listed
    assert moved == ([] if chosen is None else [chosen])


def test_cpus_near_a_device_are_those_of_its_memory_node(tmp_path):
    pci = tmp_path / "bus/pci/devices/0000:c1:00.0"
    node = tmp_path / "devices/system/node/node1"
    for folder in (pci, node):
        folder.mkdir(parents=True)
    (pci / "numa_node").write_text("1\n")
    (node / "cpulist").write_text("24-27,72\n")
    assert locality.cpus_near("0000:c1:00.0", tmp_path) == "24-27,72"
    assert locality.cpu_set("24-27,72") == {24, 25, 26, 27, 72}
    (pci / "numa_node").write_text("-1\n")
    assert locality.cpus_near("0000:c1:00.0", tmp_path) == ""
    assert locality.cpus_near("0000:00:00.0", tmp_path) == ""


def test_a_refused_question_leaves_no_message_for_the_next_failure():
    with aclnn_bindings.open(simulator=True) as cann:
        cann.runtime.device()
        assert locality.pci_address(cann, 0) == ""
        assert not cann.function("aclGetRecentErrMsg")()


FEW = tuple(f"add/functional/s0/{dtype}" for dtype in ("float32", "float16", "int32"))


def checked(tmp_path, where, ops=("add",), fault="", minutes=0.0, **fields):
    environ = {"ACLSIM_DEVICES": "3", "ACLSIM_FAULTS": fault}
    path = tmp_path / "run.jsonl"
    setup = Setup(where, None, True, str(path), 30.0, environ, second_oracle=False)
    plan = CaseFilter(forms=("functional",), dtypes=("float32",), layouts=("contiguous",))
    options = {"compare": True} if fields.get("compare") else {}
    request = engine.RunRequest(ops, plan, setup, jobs=3, run=journal.new_run(), minutes=minutes,
                             options=options, **fields)  # fmt: skip
    run = engine.begin(request, path)
    return run, list(run.results())


@simulated
def test_cases_are_dealt_to_all_devices_and_each_runs_once(tmp_path):
    run, results = checked(tmp_path, "all", only=FEW)
    assert {r.device for r in results} <= {f"npu:{i}" for i in range(3)}
    assert len({r.case for r in results}) == len(results) == run.total
    assert journal.read(tmp_path / "run.jsonl").counts().by_verdict == {"PASS": run.total}


@simulated
def test_a_shard_without_cases_is_a_complete_one(tmp_path):
    """Of few cases in many shards: it left with a usage error and an empty journal."""
    empty = next(
        s for i in range(1, 9) if not any((s := shard.CaseShard(i, 8)).has(c) for c in FEW)
    )
    run, results = checked(tmp_path, "npu:0", only=FEW, shard=empty)
    assert (run.total, results) == (0, [])
    record = journal.read(tmp_path / "run.jsonl")
    assert record.header["cases"] == 0
    assert record.end["interrupted"] is False


@simulated
def test_a_selection_without_cases_is_refused_in_a_shard_too(tmp_path):
    with pytest.raises(engine.NothingSelectedError, match="no case matches"):
        checked(tmp_path, "npu:0", ops=(), shard=shard.CaseShard(1, 8))


def test_shards_of_one_selection_have_its_name_whatever_their_devices():
    plan = CaseFilter(forms=("functional",))
    one = engine.RunRequest(("add",), plan, Setup("npu:0"), shard=shard.CaseShard(1, 2), jobs=1)
    other = replace(one, setup=Setup("npu:3", timeout=9.0), shard=shard.CaseShard(2, 2), jobs=8)
    assert engine.selection(one) == engine.selection(other)
    for change in ({"seed": 1}, {"ops": ("mul",)}, {"plan": CaseFilter()}, {"fresh_seeds": 2}):
        assert engine.selection(replace(one, **change)) != engine.selection(one)


@simulated
def test_one_device_is_not_said_to_agree_with_others(tmp_path, capsys):
    run, results = checked(tmp_path, "npu:0", compare=True, only=FEW[:1])
    render.show(check_devices.document(run.deviations, run.lost, len({r.device for r in results})))
    shown = capsys.readouterr().out
    assert "one device: there is nothing to compare it with" in shown
    assert "same bits" not in shown


@simulated
def test_device_without_a_worker_costs_only_itself(tmp_path):
    run, results = checked(tmp_path, "npu:0,9", only=FEW)
    assert [lost.place for lost in run.lost] == ["npu:9"]
    assert run.lost[0].cases == ()
    assert len(results) == run.total
    assert {r.device for r in results} == {"npu:0"}


@simulated
@pytest.mark.parametrize(
    ("fault", "kind", "bit"),
    [
        ("stuck@30", votes.STUCK, "bit 30, 0 → 1"),
        pytest.param("random", votes.FLAKY, "", marks=pytest.mark.slow),
    ],
)
def test_device_that_differs_is_named(tmp_path, fault, kind, bit):
    run, _ = checked(tmp_path, "npu:0-2", fault=f"npu1/add:{fault}", compare=True, only=FEW)
    at_fault = votes.suspects(run.deviations)
    assert [place for place, _ in at_fault] == ["npu:1"]
    kinds = {d.kind for d in at_fault[0][1]}
    assert kind in kinds, at_fault
    firsts = [d.first for d in at_fault[0][1] if d.kind == kind]
    assert any("got 0x" in first for first in firsts)
    assert any(bit in first for first in firsts) or kind == votes.STUCK
    assert (tmp_path / "run.jsonl.bits").is_dir()


@simulated
@pytest.mark.slow
def test_devices_that_agree_leave_no_outputs_behind(tmp_path):
    run, results = checked(tmp_path, "npu:0-1", compare=True, only=FEW)
    assert run.deviations == []
    assert {r.verdict for r in results} == {"PASS"}
    assert not (tmp_path / "run.jsonl.bits").exists()


@simulated
def test_soak_names_the_device_that_flips_a_bit(tmp_path):
    run, results = checked(tmp_path, "npu:0-2", (), "npu2/*:flip@500", 0.02, compare=True)
    assert {r.form for r in results} == {"soak"}
    assert [place for place, _ in votes.suspects(run.deviations)] == ["npu:2"]
    assert {d.kind for d in run.deviations} == {votes.FLAKY}
    assert all(0 < d.wrong < d.launches / 50 for d in run.deviations)


@simulated
@pytest.mark.slow
def test_one_flip_in_100000_launches_on_one_device_of_eight_is_named(tmp_path):
    """About two minutes: `pytest -m slow tests/cli/conformance/test_devices.py`."""
    environ = {"ACLSIM_DEVICES": "8", "ACLSIM_FAULTS": "npu5/*:flip@100000"}
    path = tmp_path / "run.jsonl"
    setup = Setup("all", None, True, str(path), 60.0, environ)
    request = engine.RunRequest((), CaseFilter(), setup, jobs=8, run=journal.new_run(), minutes=2.0,
                             compare=True, options={"compare": True})  # fmt: skip
    run = engine.begin(request, path)
    list(run.results())
    assert [place for place, _ in votes.suspects(run.deviations)] == ["npu:5"]
