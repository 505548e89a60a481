"""The size that an operator reports of a result is held to the reference's."""

import io

import pytest
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.operators import reported
from mindtorch_npu.conformance.run.worker import Worker

from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

SIZED = ("aclnnNonzero", "aclnnNonzeroV2", "aclnnMaskedSelect", "aclnnUnique", "aclnnUnique2",
         "aclnnUniqueDim", "aclnnUniqueConsecutive")  # fmt: skip


@pytest.fixture(scope="module")
def worker():
    return Worker({"device": "npu:0", "home": None, "simulator": True}, io.StringIO())


def shapes_off_by(monkeypatch, change):
    """Every launch reports other shapes than the operator did."""
    launch = reported.launch_dynamic
    monkeypatch.setattr(reported, "launch_dynamic",
                        lambda *args: [change(shape) for shape in launch(*args)])  # fmt: skip


@pytest.mark.parametrize("op", SIZED)
def test_a_reported_size_that_is_right_passes(worker, op):
    assert worker.run(Case(op, "functional", 0), 0)[0].verdict == "PASS"


@pytest.mark.parametrize("op", SIZED)
def test_a_reported_size_that_is_one_too_many_fails(worker, op, monkeypatch):
    shapes_off_by(monkeypatch, lambda shape: (shape[0] + 1, *shape[1:]))
    verdict, _ = worker.run(Case(op, "functional", 0), 0)
    assert verdict.verdict == "FAIL"
    assert "reports the shape" in verdict.reason


def test_a_lost_dimension_of_a_reported_shape_is_named(worker, monkeypatch):
    shapes_off_by(monkeypatch, lambda shape: shape[:1])
    reason = worker.run(Case("aclnnNonzero", "functional", 0), 0)[0].reason
    assert reason.startswith("out: the operator reports the shape [15] where the reference has [15")


def test_a_result_has_more_room_than_it_needs():
    values = {"self": (3, 4), "mask": (4,)}
    assert reported.room_of("aclnnMaskedSelect", values, "out") == (12,)
    assert reported.room_of("aclnnUnique", values, "inverseOut") is None
    assert reported.room_of("aclnnAdd", values, "out") is None


def test_counts_that_the_call_does_not_ask_for_have_no_room():
    values = {"self": (3, 4), "returnCounts": True}
    assert reported.room_of("aclnnUnique2", values, "countsOut") == (12,)
    assert reported.room_of("aclnnUnique2", {**values, "returnCounts": False}, "countsOut") is None
