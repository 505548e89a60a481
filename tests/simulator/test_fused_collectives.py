"""Operators that join products with collectives, each rank a process."""

import pytest
from compiled import run


@pytest.mark.parametrize("count", [1, 2, 4])
def test_products_are_summed_gathered_and_scattered_over_ranks(count: int) -> None:
    outcome = run("fused_collectives", str(count), ACLSIM_DEVICES="8")
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_ranks_of_a_product_with_a_barrier_meet() -> None:
    outcome = run("fused_collectives", "2", ACLSIM_DEVICES="8", ACLSIM_SOC="910_93")
    assert outcome.code == 0, outcome.out + outcome.err
