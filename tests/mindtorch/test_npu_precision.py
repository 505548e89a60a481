"""torch.npu.matmul.allow_hf32 and torch.npu.conv.allow_hf32 reach the operators."""

import pytest

import mindtorch
from aclnn_bindings import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="no simulator was built")
FINE = 1 + 2.0**-13


def product():
    a = mindtorch.full((1, 1), FINE, device="npu")
    return float(a @ mindtorch.ones((1, 1), device="npu"))


def convolution():
    a = mindtorch.full((1, 1, 1, 1), FINE, device="npu")
    one = mindtorch.ones((1, 1, 1, 1), device="npu")
    return float(mindtorch.nn.functional.conv2d(a, one))


@pytest.mark.parametrize(("switch", "run"), [("matmul", product), ("conv", convolution)])
def test_float32_keeps_its_digits_unless_hf32_is_allowed(switch, run, monkeypatch):
    precision = getattr(mindtorch.npu, switch)
    assert precision.allow_hf32 is False
    assert run() == FINE
    monkeypatch.setattr(precision, "allow_hf32", True)
    assert run() == 1.0
    monkeypatch.setattr(precision, "allow_hf32", False)
    assert run() == FINE


def test_a_switch_takes_a_bool():
    with pytest.raises(TypeError, match="expected a bool, got int"):
        mindtorch.npu.matmul.allow_hf32 = 1
