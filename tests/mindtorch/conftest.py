"""What tests of mindtorch share."""

import pytest

import mindtorch


@pytest.fixture(params=("cpu", "npu"))
def dev(request):
    """The name of a device, each in turn."""
    if request.param == "npu" and not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    return request.param
