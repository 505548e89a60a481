"""Derivatives against finite differences: at ties a step aside, and for results that have none."""

import pytest
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.run import gradients, laws
from mindtorch_npu.conformance.run.rows import TorchRow

from mindtorch.ops import OPS


def judged(name):
    case = parse(name)
    return laws.run(TorchRow(OPS[case.op]), case, "cpu", 0)[0]


@pytest.mark.parametrize(
    "case",
    [
        "amax/grad/s0/expanded",  # every row is the same
        "amin/grad/s0/expanded",
        "amax/grad/s0/middle",  # stride 0 where two dimensions have no middle
        "ceil/grad/s0",  # jumps
        "linalg_lu/grad/s0",  # P has no derivative, L and U have
    ],
)
def test_right_formulas_pass(case):
    result = judged(case)
    assert result.verdict == "PASS", result.reason


@pytest.mark.parametrize("case", ["amax/grad/s0/expanded", "mul/grad/s0"])
def test_wrong_formulas_are_objected_to(monkeypatch, case):
    right = gradients._backward
    monkeypatch.setattr(gradients, "_backward", lambda *a: [g * 1.5 for g in right(*a)])
    result = judged(case)
    assert result.verdict == "FAIL"
    assert "finite differences" in result.reason
