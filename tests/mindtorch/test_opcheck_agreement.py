"""Holds opcheck to torch's answers about custom operators that are registered well and badly."""

import inspect
import warnings

import pytest

import mindtorch
from mindtorch import library
from mindtorch.testing._internal.optests import OpCheckError
from tests.mindtorch.opcheck_programs import PROGRAMS, VERDICTS, verdict

ANSWERS = dict(
    line.split() for line in VERDICTS.read_text().splitlines() if not line.startswith("#")
)
# A static trace takes a size that is not known, which torch refuses; nonzero has none here.
OTHERWISE = {"fake_of_an_unknown_size": ".....", "fake_of_nonzero": "..FFF"}


def test_verdicts_are_those_of_torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = {name: verdict(mindtorch, name) for name in PROGRAMS}
    assert answers == ANSWERS | OTHERWISE


@pytest.mark.slow
def test_torch_answers_what_the_file_says():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the file holds the answers of torch 2.13")
    assert {name: verdict(torch, name) for name in PROGRAMS} == ANSWERS


def _twice():
    library.define("opcheck_own::twice", "(Tensor x) -> Tensor")
    library.impl("opcheck_own::twice", "CPU", lambda x: x * 2)
    library.register_fake("opcheck_own::twice", mindtorch.empty_like)
    return mindtorch.ops.opcheck_own.twice.default


@pytest.fixture
def twice():
    yield _twice()
    library.custom._DEFINITIONS.pop("opcheck_own::twice")


def test_signature_is_that_of_torch():
    torch = pytest.importorskip("torch")
    ours, theirs = (inspect.signature(m.library.opcheck) for m in (mindtorch, torch))
    assert list(ours.parameters) == list(theirs.parameters)
    defaults = [{n: p.default for n, p in s.parameters.items()} for s in (ours, theirs)]
    assert defaults[0] == defaults[1]


def test_failure_raises_with_the_test_and_its_cause():
    op, args = PROGRAMS["undeclared_write"](mindtorch, "opcheck_raises")
    with pytest.raises(
        OpCheckError, match=r"opcheck\(op, ...\): test_schema failed with"
    ) as caught:
        library.opcheck(op, args)
    assert str(caught.value.__cause__) == "Argument x is not defined as mutable but was mutated"


def test_tests_and_tolerances_that_do_not_exist_are_refused(twice):
    x = mindtorch.ones(2)
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        library.opcheck(twice, (x,), test_utils="test_shema")
    with pytest.raises(ValueError, match="you must specify both"):
        library.opcheck(twice, (x,), rtol=1e-3)
    answer = library.opcheck(twice, (x,), test_utils="test_schema")
    assert answer == {"test_schema": "SUCCESS"}


def test_device_is_compared_with_the_cpu_kernel(twice):
    with pytest.raises(OpCheckError, match="no input lies on a device other than cpu"):
        library.opcheck(twice, (mindtorch.ones(2),), test_utils="test_device_reference")
    if not mindtorch.npu.is_available():
        pytest.skip("no NPU and no simulator")
    x = mindtorch.arange(4.0).npu()
    for kernel, verdict_ in ((lambda x: x + x, True), (lambda x: x * 2.01, False)):
        library.impl("opcheck_own::twice", "PrivateUse1", kernel)
        answer = library.opcheck(
            twice, (x,), test_utils="test_device_reference", raise_exception=False
        )
        assert (answer["test_device_reference"] == "SUCCESS") is verdict_


def test_composite_kernel_is_differentiated_through():
    op, (x,) = PROGRAMS["composite_kernel"](mindtorch, "opcheck_composite")
    op(x).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_function_at_the_autograd_key_is_the_derivative():
    op, (x,) = PROGRAMS["function_at_the_autograd_key"](mindtorch, "opcheck_key")
    op(x).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
