"""Every row, every sample, every law; then each law against a planted fault."""

import pytest

from mindtorch import laws

CASES = [pytest.param(op, s, id=f"{op.name}-{i}") for op, i, s in laws.cases()]


def _apply(law, *args):
    try:
        law(*args)
    except laws.NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("op", "sample"), CASES)
@pytest.mark.parametrize("law", laws.LAWS)
def test_law_holds(law, op, sample):
    _apply(laws.LAWS[law], op, sample)


@pytest.mark.parametrize(("op", "sample"), CASES)
@pytest.mark.parametrize("law", laws.ORACLE_LAWS)
def test_law_holds_against_torch(law, op, sample):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    _apply(laws.ORACLE_LAWS[law], op, sample, torch)
