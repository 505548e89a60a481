"""Operators of other products are judged on a simulator of one of those, and no device is."""

import os
import subprocess
import sys

import pytest
from mindtorch_npu.choices import Product
from mindtorch_npu.conformance.operators.coverage import coverage
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run.pool import EnvironmentFailedError, Setup
from mindtorch_npu.conformance.run.products import Products

from aclnn_bindings import product_of, support
from aclnn_bindings.install import simulated
from aclnn_bindings.install.library import bundled_simulator
from aclnn_bindings.install.products import dtypes_of

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

HERE = {"kind": "simulator", "soc": "Ascend910B2"}
ELSEWHERE = "aclnnSwigluMxQuant"  # its document lists the 950 alone


def check(*words, **environ):
    return subprocess.run(
        [sys.executable, "-m", "mindtorch_npu", "check", "--jobs", "1", *words],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
    )  # fmt: skip


def test_an_operator_gets_a_product_that_documents_list(monkeypatch):
    monkeypatch.delenv("ACLSIM_SOC", raising=False)
    products = Products(Setup(), HERE, compare=False)
    assert products.soc("aclnnAdd") == ""
    soc = products.soc(ELSEWHERE)
    assert product_of(soc) in support(ELSEWHERE).products
    assert soc in simulated.products()


@pytest.mark.parametrize(
    ("setup", "environment", "compare"),
    [(Setup(), {"kind": "toolkit", "soc": "Ascend910B2"}, False), (Setup(), HERE, True),
     (Setup(soc="Ascend910B2"), HERE, False)],
)  # fmt: skip
def test_a_device_a_vote_and_a_choice_keep_their_product(monkeypatch, setup, environment, compare):
    monkeypatch.delenv("ACLSIM_SOC", raising=False)
    assert Products(setup, environment, compare).soc(ELSEWHERE) == ""


def test_a_choice_is_refused_where_it_cannot_be():
    with pytest.raises(EnvironmentFailedError, match="--soc is the simulator's"):
        Products(Setup(soc="Ascend910B2"), {"kind": "toolkit", "soc": "Ascend910B2"}, False)


def test_check_judges_it_and_says_as_what(tmp_path):
    book = tmp_path / "run.jsonl"
    done = check(ELSEWHERE, "aclnnAddRmsNorm", "--journal", str(book))
    assert done.returncode == 0, done.stdout + done.stderr
    ran = {r.op: (r.soc, r.verdict) for r in journal.read(book).results.values()}
    assert ran[ELSEWHERE][0].startswith("Ascend950")
    assert ran[ELSEWHERE][1] == ran["aclnnAddRmsNorm"][1] == "PASS"
    assert ran["aclnnAddRmsNorm"][0] == ""


def test_a_named_product_is_that_of_all():
    done = check(ELSEWHERE, "--form", "functional", "--soc", "Ascend910B2")
    assert done.returncode == 5
    assert "documents do not list this product" in done.stdout


def test_a_product_that_nobody_knows_is_refused():
    done = check("add", "--soc", "Ascend950PR_959")
    assert done.returncode == 2
    assert "did you mean Ascend950PR_9599" in done.stderr
    done = check("add", ACLSIM_SOC="Ascend1")
    assert done.returncode == 3
    assert "knows no product 'Ascend1'" in done.stderr


def test_coverage_counts_what_other_products_judged():
    results = [Result("a/functional/s0", "aclnnA", "functional", "PASS", soc="Ascend950PR_9599"),
               Result("b/functional/s0", "aclnnB", "functional", "FAIL")]  # fmt: skip
    text = coverage(results, 2).text()
    assert text.startswith("operators: 2 judged (1 as Ascend950PR_9599) / 0 contract only")


@pytest.mark.parametrize("soc", ["310P", "310B", "910A"])
def test_what_a_product_lacks_is_unsupported_and_no_error(soc):
    ops = ("max_unpool1d", "binary_cross_entropy", "bilinear", "conv1d", "relu")
    done = check(*ops, "--alone", "--form", "functional", "--soc", soc)
    assert done.returncode in (0, 5), done.stdout  # 5: of some operator nothing was judged
    assert "UNSUPPORTED" in done.stdout


@pytest.mark.parametrize(("word", "name"), [
    ("A2", "Ascend910B2"), ("910b", "Ascend910B2"), ("a3", "Ascend910_9392"), ("310P", "310P"),
    ("310p", "Ascend310P3"), ("Ascend910A", "Ascend910A"),
])  # fmt: skip
def test_products_are_called_as_documents_call_them(word, name):
    assert Product().convert(word, None, None) == name


def test_dtypes_that_a_product_excludes_are_not_claimed_by_the_header():
    declared = ("FLOAT", "BFLOAT16")  # its document lists none, and excludes one there
    assert dtypes_of("aclnnBinaryCrossEntropy", "self", "910b", declared) == declared
    assert dtypes_of("aclnnBinaryCrossEntropy", "self", "310p", declared) == ("FLOAT",)
