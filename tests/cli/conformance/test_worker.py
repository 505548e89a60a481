"""The worker's own decisions: lost devices, memory, flakiness, defects of the check itself."""

import io
import json

import pytest
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.cases.claims import Claims, excluded_on
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run.cann_words import verdict_of
from mindtorch_npu.conformance.run.worker import Worker

from aclnn_bindings.runtime.status import (
    AclDeviceError,
    AclError,
    AclOutOfMemoryError,
    AclParameterError,
    AclUnsupportedError,
)

CASE = Case("add", "method")
DEVICE_LOST = "AclDeviceError: aclrtSynchronizeStream answered 507015"


@pytest.fixture
def worker():
    return Worker({"device": "cpu"}, io.StringIO())


def says(worker):
    return [json.loads(line) for line in worker.out.getvalue().splitlines()]


def outcomes(worker, *verdicts, reason="x"):
    """Make the next runs give these verdicts, whatever the case."""
    left = list(verdicts)

    def run(case, seed, arrays=None):
        return Result(case.id, case.op, case.form, left.pop(0), reason=reason, seed=seed), None

    worker.run = run


def test_case_runs_and_is_announced_before(worker):
    assert worker.batch({"cases": [CASE.id], "seed": 0})
    kinds = [next(iter(m)) for m in says(worker)]
    assert kinds == ["start", "result", "done"]
    assert says(worker)[1]["result"]["verdict"] == "PASS"


def test_device_that_cannot_copy_any_more_is_poisoned_and_ends_the_batch(worker, monkeypatch):
    outcomes(worker, "ERROR", reason=DEVICE_LOST)
    monkeypatch.setattr(worker, "health", lambda: (_ for _ in ()).throw(RuntimeError("gone")))
    assert not worker.batch({"cases": [CASE.id, "add/meta/s0"], "seed": 0})
    assert [m["result"]["verdict"] for m in says(worker) if "result" in m] == ["POISONED"]


def test_device_that_recovers_is_not_poisoned(worker):
    outcomes(worker, *["ERROR"] * 5, reason=DEVICE_LOST)
    assert worker.batch({"cases": [CASE.id], "seed": 0})
    assert says(worker)[1]["result"]["verdict"] == "ERROR"


def test_failure_that_no_seed_repeats_is_flaky(worker):
    outcomes(worker, "FAIL", "PASS", "PASS", "PASS", "PASS")
    assert worker.case(CASE, 7, {}).verdict == "FLAKY"


def test_failure_that_the_same_seed_repeats_stays_one(worker):
    outcomes(worker, "FAIL", "FAIL", "PASS", "PASS", "PASS")
    found = worker.case(CASE, 7, {})
    assert found.verdict == "FAIL"
    assert found.rechecks[:2] == ("seed 7: FAIL", "seed 1007: PASS")


def test_defect_of_the_check_is_an_error_and_names_itself(worker, monkeypatch):
    def broken(*_args, **_options):
        raise TypeError("a defect")

    monkeypatch.setattr("mindtorch_npu.conformance.operators.find.subject", broken)
    monkeypatch.setattr("mindtorch_npu.conformance.run.worker.subject", broken, raising=False)
    found, _ = worker.run(Case("add", "method"), 0)
    assert found.verdict == "ERROR"
    assert found.reason == "defect of the check itself: TypeError: a defect"


def test_a_case_of_what_nobody_can_judge_is_skipped_and_says_why(worker):
    found, _ = worker.run(Case("no_such_op", "method"), 0)
    assert found.verdict == "SKIP"
    assert "no_such_op" in found.reason


@pytest.mark.parametrize(
    ("error", "dtype", "verdict"),
    [
        (AclOutOfMemoryError("aclrtMalloc", 207001), "float32", "OOM"),
        (MemoryError("no room"), "float32", "OOM"),
        (AclDeviceError("aclrtSynchronizeStream", 507015), "float32", "ERROR"),
        (RuntimeError("aten::x is not implemented for NPU"), "float32", "UNSUPPORTED"),
    ],
)
def test_exceptions_have_verdicts(error, dtype, verdict):
    assert verdict_of(error, ("aclnnAdd",), dtype, Claims(("float32",)))[0] == verdict


def refusal(*dtypes):
    return AclParameterError("aclnnAddGetWorkspaceSize", 161002, name="ACLNN_ERR_PARAM_INVALID",
                             op="aclnnAdd", dtypes=dtypes)  # fmt: skip


def test_refusing_a_claimed_dtype_is_an_error_and_an_unclaimed_one_is_not():
    claims = Claims(("float32",))
    assert verdict_of(refusal("FLOAT"), ("aclnnAdd",), "float32", claims)[0] == "ERROR"
    assert verdict_of(refusal("DOUBLE"), ("aclnnAdd",), "float64", claims)[0] == "UNSUPPORTED"


def test_refusing_a_result_dtype_that_documents_exclude_is_no_error():
    claims = Claims(("float32",), lambda _name: (("FLOAT",), ("BOOL",)))
    assert (
        verdict_of(refusal("FLOAT", "UINT8"), ("aclnnAdd",), "float32", claims)[0] == "UNSUPPORTED"
    )
    assert verdict_of(refusal("FLOAT", "BOOL"), ("aclnnAdd",), "float32", claims)[0] == "ERROR"


@pytest.mark.parametrize(
    ("soc", "person", "verdict"),
    [
        ("Ascend310P3", False, "UNSUPPORTED"),
        ("Ascend310P3", True, "ERROR"),
        ("Ascend910B2", False, "ERROR"),
        ("", False, "ERROR"),
    ],
)
def test_refusing_what_documents_list_for_other_products_is_no_error(soc, person, verdict):
    claims = Claims(("float32",), person=person, excluded=excluded_on(soc))
    error = AclError("aclnnReluGetWorkspaceSize", 361001, op="aclnnRelu")
    assert verdict_of(error, ("aclnnRelu",), "float32", claims)[0] == verdict


def test_what_a_person_claims_has_a_kernel_whatever_documents_say():
    listed = {"float32": (("FLOAT",), ("BOOL",))}
    claims = Claims(("float32",), lambda _name: listed["float32"], "its reference", person=True)
    missing = AclUnsupportedError("aclnnAddGetWorkspaceSize", 561003, op="aclnnAdd")
    verdict, reason = verdict_of(missing, ("aclnnAdd",), "float32", claims)
    assert (verdict, reason[:44]) == ("ERROR", "no kernel for what its reference declares: a")
    verdict, reason = verdict_of(refusal("FLOAT", "UINT8"), ("aclnnAdd",), "float32", claims)
    assert verdict == "ERROR"
    assert reason.startswith("float32 is declared by its reference, and refused by CANN: ")
    assert verdict_of(missing, ("aclnnAdd",), "float32", Claims(("float32",)))[0] == "UNSUPPORTED"
