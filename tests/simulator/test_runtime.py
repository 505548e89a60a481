"""The simulated runtime behaves as CANN's documents say, one part per program run."""

import pytest
from compiled import install, run

# Parts of programs/runtime.cpp and what they need from the environment.
PARTS: dict[str, dict[str, str]] = {
    "initialise": {},
    "configuration": {},
    "devices": {},
    "asynchronous": {},
    "events_order_streams": {},
    "old_events": {},
    "destroyed_events_still_order": {},
    "callbacks": {},
    "memory": {"ACLSIM_MEMORY": "64M"},
    "copies": {},
    "messages": {},
    "executors": {},
    "descriptors": {},
    "failure_modes": {},
    "abort_drops_queued_work": {},
    "stream_limit": {},
    "fork_is_refused_in_the_child": {},
    "physical_memory": {},
    "signals": {},
    "exit_while_busy": {},
    "many_threads": {},
    "ends_while_others_wait": {},
    "large_work": {"ACLSIM_THREADS": "4"},
    "deep_queue": {},
}


@pytest.mark.parametrize("part", PARTS)
def test_runtime_part_behaves_as_documented(part: str) -> None:
    outcome = run("runtime", part, **PARTS[part])
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


@pytest.mark.parametrize(
    ("given", "name"), [("", "Ascend910B2"), ("310P", "Ascend310P3"), ("Ascend910A", "Ascend910A")]
)
def test_options_and_products_answer(given: str, name: str) -> None:
    outcome = run("runtime", "options", ACLSIM_SOC=given, EXPECT_SOC=name)
    assert outcome.code == 0, outcome.out + outcome.err


def test_versions_are_read_below_the_ascend_home() -> None:
    outcome = run("runtime", "options", EXPECT_SOC="Ascend910B2", ASCEND_HOME_PATH=str(install()))
    assert outcome.code == 0, outcome.out + outcome.err


def test_a_wait_for_a_destroyed_event_is_refused_and_named_under_strict_mode() -> None:
    outcome = run("runtime", "destroyed_events_still_order", ACLSIM_STRICT="report")
    assert outcome.code != 0
    assert "use-after-destroy" in outcome.kinds()


@pytest.mark.parametrize("part", ["copies", "executors", "many_threads", "descriptors"])
def test_clean_programs_stay_clean_under_strict_mode(part: str) -> None:
    outcome = run("runtime", part, ACLSIM_STRICT="report")
    expected = {"executors": {"use-after-destroy", "not-a-handle", "double-destroy"}}
    assert set(outcome.kinds()) <= expected.get(part, set()), outcome.findings


BF16, FLOAT = "27", "0"


@pytest.mark.parametrize("product", ["Ascend910B2", "910_93", "950"])
def test_products_with_bfloat16_take_it(product: str) -> None:
    assert run("runtime", "product_rules", BF16, ACLSIM_SOC=product).out.startswith("0 ")


def test_a_product_refuses_operators_that_are_not_documented_for_it() -> None:
    outcome = run("runtime", "product_rules", FLOAT, ACLSIM_SOC="310P")
    assert outcome.out.startswith("0 ")  # aclnnAdd: clients run it there
    assert "\n361001 " in outcome.out
    assert "aclnnAddcmul is not documented for Ascend310P3" in outcome.out


def test_a_product_without_bfloat16_refuses_it_and_names_what_it_takes() -> None:
    product = "Ascend910A"
    outcome = run("runtime", "product_rules", BF16, ACLSIM_SOC=product)
    assert outcome.out.startswith("161002 ")
    assert "self not implemented for DT_BFLOAT16, should be in dtype support list [" in outcome.out
    assert "DT_FLOAT," in outcome.out
    assert run("runtime", "product_rules", FLOAT, ACLSIM_SOC=product).out.startswith("0 ")
