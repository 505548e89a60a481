"""Results that depend on a repeated launch, on another process or on other rows are seen."""

import pytest
from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.pool import Setup

from aclnn_bindings.install.library import bundled_simulator
from aclnn_bindings.install.products import nondeterministic

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def checked(tmp_path, *only: str, fault: str = "") -> list[Result]:
    """The results of these cases on a simulator with a fault."""
    environ = {"ACLSIM_FAULTS": fault} if fault else {}
    path = tmp_path / "run.jsonl"
    setup = Setup("npu:0", None, True, str(path), 120.0, environ, second_oracle=False)
    run = engine.begin(engine.RunRequest((), CaseFilter(), setup, jobs=1, only=only), path)
    return list(run.results())


ROWS = [
    ("aclnnRmsNorm", "plain", "rmsnorm", (3, 2)),
    ("aclnnRmsNorm", "*B=65/dtype=float16", "rmsnorm", (65, 2)),
    ("softmax", "s0", "softmax", (2, 2)),
    ("matmul", "s0/tall", "matmul", (132, 2)),
]


def test_nothing_depends_on_what_it_may_not(tmp_path):
    cases = [f"{op}/{form}/{rest}" for op, rest, *_ in ROWS
             for form in ("repeat", "process", "batch")]  # fmt: skip
    assert {r.verdict for r in checked(tmp_path, *cases)} == {"PASS"}


@pytest.mark.parametrize(("op", "rest", "fault", "rows"), ROWS)
def test_a_row_that_changes_with_the_number_of_rows_is_named_with_the_smallest_number(
    tmp_path, op, rest, fault, rows
):
    (result,) = checked(tmp_path, f"{op}/batch/{rest}", fault=f"{fault}:batch")
    assert result.verdict == ("XFAIL" if op == "matmul" else "FAIL"), result.reason
    assert "result of row 0 changes with the number of rows" in result.reason
    assert f"alone and among {rows[1]} rows 1 of its" in result.reason


def test_a_failure_of_rows_is_shrunk_as_a_failure_of_rows(tmp_path):
    case = "aclnnRmsNorm/batch/*B=65/dtype=float16/epsilon=0.25"
    (result,) = checked(tmp_path, case, fault="rmsnorm:batch")
    assert result.cause is not None
    assert result.cause["case"].startswith("aclnnRmsNorm/batch/")
    assert "epsilon" not in result.cause["text"]


def test_rows_that_the_reference_couples_are_not_judged(tmp_path):
    (result,) = checked(tmp_path, "aclnnBatchNorm/batch/plain")
    assert (result.verdict, result.reason[:7]) == ("SKIP", "no axis")


@pytest.mark.parametrize("case", ["aclnnRmsNorm/repeat/plain", "softmax/repeat/s0"])
def test_a_launch_that_differs_when_it_is_repeated_fails(tmp_path, case):
    fault = "rmsnorm:random,softmax:random"
    (result,) = checked(tmp_path, case, fault=fault)
    assert result.verdict == "FAIL"
    assert "launch 2 of the same inputs differs" in result.reason


@pytest.mark.parametrize("case", ["aclnnRmsNorm/process/plain", "softmax/process/s0"])
def test_work_that_more_threads_share_otherwise_fails_in_another_process(tmp_path, case):
    (result,) = checked(tmp_path, case, fault="rmsnorm:split,softmax:split")
    assert result.verdict == "FAIL"
    assert "another process with work split over 3 threads gives other bits: at [0" in result.reason


def test_what_documents_call_nondeterministic_is_no_failure(tmp_path):
    assert nondeterministic("aclnnMatmul")
    assert not nondeterministic("aclnnRmsNorm")
    (result,) = checked(tmp_path, "matmul/repeat/s0", fault="matmul:random")
    assert result.verdict == "XFAIL"
    assert "ACL_OPT_DETERMINISTIC" in result.issue


def test_every_operator_gets_cases_of_each_kind():
    from mindtorch_npu.conformance.cases.cases import cases
    from mindtorch_npu.conformance.operators.find import subject

    import aclnn_bindings

    declared = aclnn_bindings.open(simulator=True).declarations
    for name in ("aclnnRmsNorm", "aclnnAdd", "softmax", "matmul"):
        selection = cases(subject(name, declared), ("float32",), CaseFilter(deterministic=True))
        assert {c.form for c in selection} == {"repeat", "process", "batch"}, name
