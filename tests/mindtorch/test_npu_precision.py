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


def test_the_names_of_torch_npu_that_training_scripts_call_are_there():
    npu = mindtorch.npu
    npu.set_compile_mode(jit_compile=False)
    with pytest.raises(TypeError, match="jit_compile should be of bool type"):
        npu.set_compile_mode(jit_compile="False")
    npu.seed_all()
    x = mindtorch.ones(2, 2, device="npu")
    with npu.amp.autocast():
        assert (x @ x).dtype is mindtorch.float16
    assert npu.amp.GradScaler(init_scale=2.0).scale(x.sum()).item() == 8.0
    assert npu.Stream(priority=-1).query()
    assert mindtorch.ones(2).untyped_storage().npu(0).device == mindtorch.device("npu:0")
    with pytest.raises(RuntimeError, match="device 99 does not exist"):
        mindtorch.ones(2, device="npu:99")
