"""`mindtorch-npu preflight`: what it finds in seconds, and what it leaves with."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from journals import result
from mindtorch_npu import exits
from mindtorch_npu.commands.preflight import ring, runner
from mindtorch_npu.commands.preflight.links import Ring
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

CASE = "add/functional/s0"
FLAKY = votes.Deviation(CASE, "add", 0, "npu:1", votes.FLAKY)


@pytest.mark.parametrize(
    ("verdict", "found", "linked", "soaked", "code"),
    [
        ("PASS", [], Ring(), True, exits.OK),
        ("FAIL", [], Ring(), True, exits.PROBLEMS),
        ("PASS", [FLAKY], Ring(), True, exits.PROBLEMS),
        ("PASS", [], Ring(("link npu:0",)), True, exits.PROBLEMS),
        ("PASS", [], Ring(unjudged="no answer"), True, exits.NOT_JUDGED),
        ("PASS", [], Ring(), False, exits.NOT_JUDGED),
        ("SKIP", [], Ring(), True, exits.NOT_JUDGED),
    ],
)
def test_only_what_was_judged_and_is_right_leaves_with_0(verdict, found, linked, soaked, code):
    run = SimpleNamespace(deviations=found, lost=[])
    assert runner._code(run, [result(CASE, verdict)], linked, soaked) == code


def test_cases_of_a_preflight_have_names_that_there_are():
    assert [parse(case).id for case in runner.CASES] == list(runner.CASES)


def test_every_bit_of_a_link_carries_both_values():
    words = ring.pattern(0).view("uint32")
    for bit in range(32):
        assert 0.4 < (words >> bit & 1).mean() < 0.6
    assert (ring.pattern(0) != ring.pattern(1)).mean() > 0.99


@pytest.mark.slow
@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
@pytest.mark.parametrize(
    ("fault", "code"),
    [("", exits.OK), ("npu1/matmul:stuck@12", exits.PROBLEMS), ("npu1/*:flip@50", exits.PROBLEMS)],
)
def test_planted_faults_are_found_and_healthy_chips_pass(tmp_path, monkeypatch, fault, code):
    monkeypatch.setenv("ACLSIM_DEVICES", "3")
    monkeypatch.setenv("ACLSIM_FAULTS", fault)
    words = ["preflight", "--simulator", "--seconds", "120", "--journal", str(tmp_path / "p.jsonl")]
    assert group.main(words, standalone_mode=False) == code
