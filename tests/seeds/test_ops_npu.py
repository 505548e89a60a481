"""Tests of the source documents on NPU ops, as printed.

`test_npu_matmul` is printed with operands of shapes (1, 2) and (2, 1).
"""

import pytest

import mindtorch as torch


def test_npu_strided_slice_assign_available():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="npu")
    y = torch.ones((1, 2), device="npu")
    x[:1].copy_(y)
    assert x.to("cpu").numpy().tolist() == [[1.0, 1.0], [3.0, 4.0]]


def test_npu_aclnn_available():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    assert torch._C._npu_aclnn_available() is True


def test_aclnn_symbols_present():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    assert torch._C._npu_aclnn_symbols_ok() is True


def test_npu_add_execute():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    a = torch.tensor([1.0, 2.0], device="npu")
    b = torch.tensor([3.0, 4.0], device="npu")
    out = a + b
    assert out.to("cpu").numpy().tolist() == [4.0, 6.0]


def test_npu_mul_relu():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    a = torch.tensor([-1.0, 2.0], device="npu")
    b = torch.tensor([3.0, 4.0], device="npu")
    assert (a * b).to("cpu").numpy().tolist() == [-3.0, 8.0]
    assert a.relu().to("cpu").numpy().tolist() == [0.0, 2.0]


def test_npu_sum():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    a = torch.tensor([[1.0, 2.0]], device="npu")
    assert a.sum().to("cpu").numpy().tolist() == 3.0
    assert a.sum(dim=1, keepdim=True).to("cpu").numpy().tolist() == [[3.0]]


def test_npu_matmul():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    a = torch.tensor([[1.0, 2.0]], device="npu")
    b = torch.tensor([[3.0], [4.0]], device="npu")
    out = a @ b
    assert out.to("cpu").numpy().tolist() == [[11.0]]
