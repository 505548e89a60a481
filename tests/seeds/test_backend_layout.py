"""Test of the source documents on the backend layout, as printed."""

import mindtorch._backends.ascend as ascend
import mindtorch._backends.npu as npu


def test_backend_shim_imports():
    assert ascend.is_available is npu.is_available
