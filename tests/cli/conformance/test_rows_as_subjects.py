"""A row of mindtorch as a subject of `check`."""

import pytest
from mindtorch_npu.conformance.cases.cases import CaseFilter, cases
from mindtorch_npu.conformance.cases.supported_dtypes import takes
from mindtorch_npu.conformance.run.rows import TorchRow

import mindtorch as torch
from mindtorch.ops import OPS


def test_a_row_without_a_derivative_is_not_asked_for_gradients():
    torch.Tensor.add  # noqa: B018 - loads the rows
    assert not TorchRow(OPS["heaviside"]).differentiable
    assert not TorchRow(OPS["gcd"]).differentiable
    assert TorchRow(OPS["logaddexp2"]).differentiable


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64"])
def test_a_rule_refuses_other_dtypes_in_torch_s_words(dtype):
    oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    messages = []
    for library in (torch, oracle):
        value = library.ones(2, dtype=getattr(library, dtype))
        with pytest.raises(NotImplementedError) as caught:
            library.gcd(value, value)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_row_s_design_has_cases_of_the_dtypes_that_its_reference_takes():
    torch.Tensor.add  # noqa: B018 - loads the rows
    assert takes(OPS["add"], ("float32", "int64")) == ("float32", "int64")
    planned = cases(TorchRow(OPS["add"]), ("float32", "int64"), CaseFilter("quick"))
    assert sum(case.designed for case in planned) > 100
