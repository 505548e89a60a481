"""Variables that concern CANN are shown, and no secret with them."""

from __future__ import annotations

import pytest

from aclnn_bindings.install.environment import MASK, masked, shown


@pytest.mark.parametrize(
    "name",
    ["ASCEND_API_TOKEN", "HCCL_SECRET", "NPU_PASSWORD", "MINDTORCH_ACCESS_KEY", "ASCEND_AK",
     "ascend_credential"],
)  # fmt: skip
def test_a_variable_named_like_a_secret_is_masked(name: str) -> None:
    assert masked(name, "hunter2") == MASK


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://me:hunter2@host/x", f"https://{MASK}@host/x"),
        ("https://hunter2@host/x", f"https://{MASK}@host/x"),
        ("obs?token=hunter2&a=1", f"obs?token={MASK}&a=1"),
        ("/usr/local/Ascend/lib64:/opt", "/usr/local/Ascend/lib64:/opt"),
    ],
)
def test_a_secret_inside_a_value_is_masked(value: str, expected: str) -> None:
    assert masked("ASCEND_SOURCE", value) == expected


def test_only_variables_that_concern_cann_are_shown() -> None:
    environ = {
        "ASCEND_HOME_PATH": "/a",
        "LD_LIBRARY_PATH": "/b",
        "HOME": "/root",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "ACL_LAUNCH_BLOCKING": "1",
        "HCCL_TOKEN": "hunter2",
    }
    assert shown(environ) == {
        "ACL_LAUNCH_BLOCKING": "1",
        "ASCEND_HOME_PATH": "/a",
        "HCCL_TOKEN": MASK,
        "LD_LIBRARY_PATH": "/b",
    }
