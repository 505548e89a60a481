"""Every row, every sample, every law that concerns it."""

import pytest
from mindtorch_npu import laws

import mindtorch


def concerned(names):
    return [
        pytest.param(law, op, sample, id=f"{law}-{op.name}-{i}")
        for law in names
        for op, i, sample in laws.cases()
        if laws.concerns(law, op, sample)
    ]


def apply(law, *args):
    try:
        law(*args)
    except laws.NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("law", "op", "sample"), concerned(laws.LAWS))
def test_law_holds(law, op, sample):
    apply(laws.LAWS[law], op, sample)


@pytest.mark.parametrize(("law", "op", "sample"), concerned(laws.ORACLE_LAWS))
def test_law_holds_against_torch(law, op, sample):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    apply(laws.ORACLE_LAWS[law], op, sample, torch)


@pytest.mark.parametrize(("law", "op", "sample"), concerned(laws.DEVICE_LAWS))
def test_law_holds_on_the_npu(law, op, sample):
    if not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    apply(laws.DEVICE_LAWS[law], op, sample, "npu")
