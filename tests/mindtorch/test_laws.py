"""Every row, every sample, every law that concerns it."""

import pytest
from every_sample import apply, rows_of
from mindtorch_npu import laws
from mindtorch_npu.laws.compare import LawBroken

import mindtorch


@pytest.mark.parametrize(("op", "cases"), list(rows_of(laws.LAWS)))
def test_laws_hold(op, cases):
    apply(laws.LAWS, op, cases)


@pytest.mark.parametrize(("op", "cases"), list(rows_of(laws.ORACLE_LAWS)))
def test_laws_hold_against_torch(op, cases):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    apply(laws.ORACLE_LAWS, op, cases, torch)


@pytest.mark.parametrize(("op", "cases"), list(rows_of(laws.DEVICE_LAWS)))
def test_laws_hold_on_the_npu(op, cases):
    if not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    apply(laws.DEVICE_LAWS, op, cases, "npu")


@pytest.fixture
def row():
    """A row with the samples of one law, of which there are several."""
    return next(p.values for p in rows_of(["meta = cpu"]) if len(p.values[1]) > 2)


def test_a_failure_names_every_sample_that_fails(row):
    op, cases = row

    def broken(op, sample):
        if sample is not cases[0][2]:
            raise LawBroken(f"{op.name}: planted")

    with pytest.raises(AssertionError) as failure:
        apply({"meta = cpu": broken}, op, cases)
    lines = str(failure.value).splitlines()
    assert [line.split(", ")[:2] for line in lines] == [
        ["meta = cpu", f"sample {i}"] for _, i, _ in cases[1:]
    ]
    assert all(f"{op.name}: planted" in line for line in lines)
    assert isinstance(failure.value.__cause__, LawBroken)


def test_a_row_is_skipped_only_where_no_sample_is_applicable(row):
    op, cases = row

    def inapplicable(op, sample):
        raise laws.NotApplicable("planted")

    with pytest.raises(pytest.skip.Exception, match=r"sample 0: planted; meta = cpu, sample 1: "):
        apply({"meta = cpu": inapplicable}, op, cases)
    first = cases[0][2]
    apply({"meta = cpu": lambda op, s: s is first or inapplicable(op, s)}, op, cases)
