"""Tests of the source documents on functionalize, as printed."""

import pytest

import mindtorch as torch


def test_functionalize_writeback_respects_noncontig_view_npu():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    base = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], device="npu").view((2, 3))
    view = base.transpose(0, 1)
    with torch.functionalize():
        view.add_(torch.ones(view.shape, device="npu"))
    assert base.to("cpu").storage().data.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_functionalize_writeback_respects_view_npu():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    base = torch.tensor([1.0, 2.0, 3.0, 4.0], device="npu")
    view = base.view((2, 2))
    with torch.functionalize():
        view.add_(torch.ones((2, 2), device="npu"))
    assert base.to("cpu").storage().data.tolist() == [2.0, 3.0, 4.0, 5.0]


def test_functionalize_writeback_respects_view_meta():
    base = torch.tensor([1.0, 2.0, 3.0, 4.0], device="meta")
    view = base.view((2, 2))
    with torch.functionalize():
        view.add_(torch.ones((2, 2), device="meta"))
    assert base.device.type == "meta"
    assert base.shape == (4,)
    assert view.shape == (2, 2)
