"""Memory, events and notifies that several processes, devices or mappings share."""

import pytest
from compiled import run

# Parts of programs/sharing.cpp.
PARTS = (
    "addresses",
    "stale_notices",
    "adjacent_mappings",
    "memory_of_another_process",
    "physical_memory_of_another_process",
    "events_of_another_process",
    "notifies_between_devices",
    "reset_notifies",
    "reductions",
    "usage_and_repair",
    "registered_host_memory",
    "pinned_memory_seen_by_the_device",
)


@pytest.mark.parametrize("part", PARTS)
def test_part_behaves_as_documented(part: str) -> None:
    outcome = run("sharing", part)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_streams_count_and_wait_for_counts_on_products_that_can() -> None:
    outcome = run("sharing", "counting_notifies", ACLSIM_SOC="Ascend950PR_9599")
    assert outcome.code == 0, outcome.out + outcome.err


def test_strict_mode_takes_adjacent_mappings_for_one_range() -> None:
    outcome = run("sharing", "adjacent_mappings", ACLSIM_STRICT="report")
    assert outcome.code == 0, outcome.out + outcome.err
    # The program asks for one byte too many on purpose.
    assert outcome.kinds() == ["copy-past-allocation"], outcome.findings
