"""Tests of the source documents on in-place autograd, as printed.

`test_saved_tensor_version_mismatch_raises` is printed with a leaf that requires grad, which
`test_inplace_on_leaf_raises` forbids to write to; its intent is kept with a non-leaf.
"""

import pytest

import mindtorch as torch


def test_view_shares_version_counter():
    base = torch.tensor([1.0, 2.0], requires_grad=True)
    view = base.view((2,))
    assert base._version_counter is view._version_counter


def test_inplace_on_leaf_raises():
    t = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError):
        t.add_(1.0)


def test_inplace_on_view_of_leaf_raises():
    t = torch.tensor([1.0, 2.0], requires_grad=True)
    v = t.view((2,))
    with pytest.raises(RuntimeError):
        v.relu_()


def test_inplace_increments_version():
    t = torch.tensor([1.0])
    v0 = t._version_counter.value
    t.add_(1.0)
    assert t._version_counter.value == v0 + 1


def test_saved_tensor_version_mismatch_raises():
    a = torch.tensor([1.0, 2.0], requires_grad=True) * 1.0
    b = a * a
    a.add_(1.0)
    with pytest.raises(RuntimeError):
        b.sum().backward()


def test_inplace_npu_versioning():
    if not torch.npu.is_available():
        pytest.skip("NPU not available")
    t = torch.tensor([1.0, 2.0], device="npu")
    v0 = t._version_counter.value
    t.relu_()
    assert t._version_counter.value == v0 + 1
