"""Every row, every sample, every law that concerns it."""

import pytest
from every_sample import apply, rows_of
from mindtorch_npu import laws
from mindtorch_npu.laws.compare import LawBroken

import mindtorch


@pytest.mark.parametrize(("law", "op", "samples"), list(rows_of(laws.LAWS)))
def test_law_holds(law, op, samples):
    apply(laws.LAWS[law], op, samples)


@pytest.mark.parametrize(("law", "op", "samples"), list(rows_of(laws.ORACLE_LAWS)))
def test_law_holds_against_torch(law, op, samples):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    apply(laws.ORACLE_LAWS[law], op, samples, torch)


@pytest.mark.parametrize(("law", "op", "samples"), list(rows_of(laws.DEVICE_LAWS)))
def test_law_holds_on_the_npu(law, op, samples):
    if not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    apply(laws.DEVICE_LAWS[law], op, samples, "npu")


def test_a_failure_names_every_sample_that_fails():
    op, samples = next(row.values[1:] for row in rows_of(["meta = cpu"]) if len(row.values[2]) > 2)

    def broken(op, sample):
        if sample is not samples[0][1]:
            raise LawBroken(f"{op.name}: planted")

    with pytest.raises(AssertionError) as failure:
        apply(broken, op, samples)
    lines = str(failure.value).splitlines()
    assert [line.split(",")[0] for line in lines] == [f"sample {i}" for i, _ in samples[1:]]
    assert all(f"{op.name}: planted" in line for line in lines)
    assert isinstance(failure.value.__cause__, LawBroken)


def test_a_row_is_skipped_only_where_no_sample_is_applicable():
    op, samples = next(row.values[1:] for row in rows_of(["meta = cpu"]) if len(row.values[2]) > 2)

    def inapplicable(op, sample):
        raise laws.NotApplicable("planted")

    with pytest.raises(pytest.skip.Exception, match="sample 0: planted; sample 1: planted"):
        apply(inapplicable, op, samples)
    apply(lambda op, s: s is samples[0][1] or inapplicable(op, s), op, samples)
