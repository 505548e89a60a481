"""`mindtorch-npu preflight`: what it finds in seconds, and what it leaves with."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from journals import result
from mindtorch_npu import exits
from mindtorch_npu.commands.preflight import breadth, ring, runner
from mindtorch_npu.commands.preflight.links import Rank, Ring, judge
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.conformance.run.lane import Note
from mindtorch_npu.conformance.run.process import Batch
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

CASE = "add/functional/s0"
FLAKY = votes.Deviation(CASE, "add", 0, "npu:1", votes.FLAKY)
DEVICES = ("npu:0", "npu:1", "npu:2")
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def run_of(deviations=(), notes=(), batches=()):
    return SimpleNamespace(deviations=deviations, lost=[], notes=notes, batches=batches,
                           pool=SimpleNamespace(devices=DEVICES))  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "deviations", "linked", "slow", "unjudged", "code"),
    [
        ("PASS", [], Ring(), {}, (), exits.OK),
        ("FAIL", [], Ring(), {}, (), exits.PROBLEMS),
        ("PASS", [FLAKY], Ring(), {}, (), exits.PROBLEMS),
        ("PASS", [], Ring(("link npu:0",)), {}, (), exits.PROBLEMS),
        ("PASS", [], Ring(), {"npu:1": 4.0}, (), exits.PROBLEMS),
        ("PASS", [], Ring(unjudged="no answer"), {}, (), exits.NOT_JUDGED),
        ("PASS", [], Ring(), {}, ("npu:1: 3 of 15 cases",), exits.NOT_JUDGED),
    ],
)
def test_only_what_was_judged_and_is_right_leaves_with_0(
    verdict, deviations, linked, slow, unjudged, code
):
    results = [result(CASE, verdict)]
    assert runner.Findings(run_of(deviations), results, linked, slow, unjudged).code == code


def test_cases_of_a_preflight_have_names_that_there_are():
    extra = list(breadth.one_of_each(frozenset(runner.CASES)))
    every = [*runner.CASES, *extra]
    assert [parse(case).id for case in every] == every
    assert len(extra) > 700
    assert len({case.partition("/")[0] for case in extra[:40]}) == 40


def test_every_bit_of_a_link_carries_both_values():
    words = ring.pattern(0).view("uint32")
    for bit in range(32):
        assert 0.4 < (words >> bit & 1).mean() < 0.6
    assert (ring.pattern(0) != ring.pattern(1)).mean() > 0.99


def ranks(*steps, error=""):
    return [Rank(device, [{"step": step, "wrong": []} for step in done.split()], error)
            for device, done in zip(DEVICES, steps, strict=True)]  # fmt: skip


def test_a_link_over_which_nothing_comes_is_named():
    (text,) = judge(ranks("ready link", "ready", "ready link")).wrong
    assert text == "links npu:0 → npu:1 → npu:2: nothing comes through"


@pytest.mark.parametrize(
    ("steps", "unjudged"),
    [
        (("ready link sum",) * 3, ""),
        (("ready", "ready", "ready"), "npu:0: no answer in time"),
        (("ready link", "", "ready link"), "npu:0: no answer in time"),
        (("ready link sum", "ready link sum", "ready link"), "npu:2: no answer in time"),
    ],
)
def test_of_a_ring_that_nobody_went_through_nothing_is_known(steps, unjudged):
    assert judge(ranks(*steps)) == Ring((), unjudged)


def test_a_chip_whose_launches_take_longer_is_slow_and_it_alone():
    times = {"npu:0": 1.0, "npu:1": 1.1, "npu:2": 4.0}
    notes = [Note("soak", {"case": case, "device": device, "fastest": seconds, "timed": 100})
             for case in ("add", "mul") for device, seconds in times.items()]  # fmt: skip
    assert list(runner.slow_devices(run_of(notes=notes))) == ["npu:2"]
    two = [note for note in notes if note.data["device"] != "npu:1"]
    assert runner.slow_devices(run_of(notes=two)) == {}


def test_what_a_device_did_not_judge_in_time_is_named_with_the_case_under_way():
    batches = [Batch((CASE, "mul/functional/s0"), 0, {}, device, required=True)
               for device in DEVICES[:2]]  # fmt: skip
    notes = [Note("cut", {"case": CASE, "device": "npu:1", "seconds": 4.0})]
    results = [result(case, "PASS", device="npu:0") for case in batches[0].cases]
    (text,) = runner._unjudged(run_of(notes=notes, batches=batches), results)
    assert text == (
        f"npu:1: 2 of 2 cases had no verdict when time was up; {CASE} had run for 4.0 s"
    )


@simulated
def test_a_preflight_ends_in_its_time_whatever_devices_do(tmp_path, monkeypatch, capsys):
    """A device that hangs; where the host is so loaded that no worker starts, the same holds."""
    monkeypatch.setenv("ACLSIM_DEVICES", "2")
    monkeypatch.setenv("ACLSIM_FAULTS", "npu1/*:hang")
    started = time.monotonic()
    code = runner.run(3.0, "all", None, True, tmp_path / "p.jsonl", started)
    assert time.monotonic() - started < 3.0 + 2.0
    assert code == exits.NOT_JUDGED
    assert "not judged: " in "".join(capsys.readouterr())


@pytest.mark.slow
@simulated
@pytest.mark.parametrize(
    ("fault", "code"),
    [("", exits.OK), ("npu1/matmul:stuck@12", exits.PROBLEMS), ("npu1/*:flip@50", exits.PROBLEMS)],
)
def test_planted_faults_are_found_and_healthy_chips_pass(tmp_path, monkeypatch, fault, code):
    monkeypatch.setenv("ACLSIM_DEVICES", "3")
    monkeypatch.setenv("ACLSIM_FAULTS", fault)
    words = ["preflight", "--simulator", "--seconds", "60", "--journal", str(tmp_path / "p.jsonl")]
    assert group.main(words, standalone_mode=False) == code
