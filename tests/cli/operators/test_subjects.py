"""ACLNN operators are subjects like torch rows: found by name, judged by the same engine."""

import io
from dataclasses import replace

import pytest
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.cases.cases import CaseFilter, cases
from mindtorch_npu.conformance.operators.coverage import coverage
from mindtorch_npu.conformance.operators.declared import DeclaredOperator
from mindtorch_npu.conformance.operators.families import without_formula
from mindtorch_npu.conformance.operators.find import subject
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run.rows import TorchRow
from mindtorch_npu.conformance.run.subject import UnknownSubjectError
from mindtorch_npu.conformance.run.worker import Worker
from mindtorch_npu.spec import DeclarationError, Rule, out, spec, tensor

from aclnn_bindings.install.library import bundled_simulator

needs_simulator = pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")


@pytest.fixture(scope="module")
def worker():
    if bundled_simulator() is None:
        pytest.skip("simulator is not built")
    made = Worker({"device": "npu:0", "home": None, "simulator": True}, io.StringIO())
    made.hello()
    return made


def verdicts(worker, name, level="quick"):
    what = worker.subject(name)
    dtypes = worker.claims(name).dtypes
    return [worker.run(case, 0)[0] for case in cases(what, dtypes, CaseFilter(level))]


def test_a_row_and_an_operator_have_one_protocol(worker):
    assert isinstance(subject("add"), TorchRow)
    for name in ("add", "aclnnAdd", "aclnnRmsNorm"):
        found = worker.subject(name)
        assert found.samples()
        assert found.requirement("float32").reason
        assert "functional" in found.laws()


def test_an_unknown_operator_names_itself(worker):
    with pytest.raises(UnknownSubjectError, match="aclnnNonsense"):
        worker.subject("aclnnNonsense")


@pytest.mark.parametrize("name", ["aclnnRmsNorm", "aclnnAdd", "aclnnInplaceAdd", "aclnnCat"])
def test_an_operator_is_judged_and_passes_on_the_clean_simulator(worker, name):
    found = verdicts(worker, name)
    assert {"PASS"} <= {r.verdict for r in found} <= {"PASS", "SKIP", "UNSUPPORTED"}
    assert sum(r.verdict == "PASS" for r in found) >= 10


def test_an_operator_that_some_row_calls_exact_may_have_few_results(worker):
    verdict, _ = worker.run(Case("aclnnSign", "functional", 0, shape="odd"), 0)
    assert verdict.verdict == "PASS", verdict.reason


def test_the_main_dtype_walks_over_what_documents_claim(worker):
    assert set(worker.claims("aclnnRmsNorm").dtypes) == {"float16", "bfloat16", "float32"}


def test_an_inplace_operator_writes_its_first_tensor_and_nothing_else(worker):
    found, trial = worker.run(Case("aclnnInplaceAdd", "functional", 0, layout="stepped"), 0)
    assert found.verdict == "PASS", found.reason
    assert len(trial.outputs) == 1


def test_two_rows_for_one_operator_are_refused():
    with pytest.raises(DeclarationError, match="aclnnRmsNorm"):
        spec("aclnnRmsNorm", Rule("exact", "here"), x=tensor("N"), y=out("x"))(lambda x: x)


def test_coverage_counts_every_state():
    def result(op, form, verdict):
        return Result(f"{op}/{form}", op, form, verdict)

    found = coverage([
        result("aclnnA", "functional", "PASS"), result("aclnnA", "contract-call", "PASS"),
        result("aclnnB", "functional", "UNSUPPORTED"), result("aclnnC", "contract-call", "PASS"),
        result("add", "functional", "PASS"),
    ], 5)  # fmt: skip
    assert found.text() == (
        "operators: 1 judged / 1 contract only / 0 unspecified / 1 refused, of 5 exported"
    )


def test_the_header_of_a_journal_says_what_nobody_publishes():
    one = Result("aclnnSleep/contract-call", "aclnnSleep", "contract-call", "PASS")
    assert coverage([one], 1, ["aclnnSleep"]).unspecified == ("aclnnSleep",)
    assert coverage([one], 1).contract == ("aclnnSleep",)
    assert "aclnnSleep" in without_formula()


def test_the_contract_of_an_operator_of_another_product_is_no_failure(worker):
    found, _ = worker.run(Case("aclnnForeachACosInplace", "contract-null", detail="x"), 0)
    assert found.verdict == "SKIP"
    assert "do not list this product" in found.reason


@needs_simulator
def test_values_that_nobody_draws_are_refused_by_name(worker):
    """A word that fell back to plain values would be listed as tried, and try nothing."""
    gelu = worker.subject("aclnnGelu")
    declaration = replace(gelu.row.declaration, fills=("normal", "grded"))
    with pytest.raises(DeclarationError, match=r"no values are called 'grded'.*graded"):
        DeclaredOperator(gelu.signature, replace(gelu.row, declaration=declaration))
