"""Each family of calls does what its document says, and refuses what it does not take."""

import re
from pathlib import Path

import pytest
from compiled import run

# Families of programs/calls.cpp and what they need from the environment.
FAMILIES: dict[str, dict[str, str]] = {
    "batches": {},
    "batches_refuse": {},
    "words": {},
    "rows": {},
    "allocations": {"ACLSIM_MEMORY": "1G"},
    "reserved": {},
    "stream_facts": {},
    "stream_settings": {},
    "cores": {},
    "timeouts": {},
    "event_waits": {},
    "event_facts": {},
    "init_callbacks": {},
    "exceptions": {},
    "numbering": {"ACLSIM_DEVICES": "4", "ASCEND_RT_VISIBLE_DEVICES": "2,3"},
    "peers": {},
    "capabilities": {},
    "described": {},
    "attributes": {},
    "by_type": {},
    "addresses_of_executors": {},
    "allocators": {},
    "marks": {},
    "without_headers": {},
    "ends_of_models": {},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_calls_keeps_its_documents(family: str) -> None:
    outcome = run("calls", family, **FAMILIES[family])
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_rows_between_places_of_one_device_are_for_products_that_document_them() -> None:
    outcome = run("calls", "rows", ACLSIM_SOC="310P")
    assert outcome.code == 0, outcome.out + outcome.err


TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "aclnn_bindings" / "simulator" / "src"
FUNCTION = re.compile(r"^ACLSIM_API [^;{(]*?\b(\w+)\(", re.MULTILINE)
# Libraries with suites of their own.
ELSEWHERE = {"graph", "dvpp", "mspti"}


def test_every_function_that_is_simulated_is_named_in_a_test() -> None:
    named = {
        word
        for path in TESTS.rglob("*")
        if path.suffix in {".cpp", ".h", ".py"}
        for word in re.findall(r"\w+", path.read_text(errors="replace"))
    }
    simulated = {
        name: path.relative_to(SOURCES)
        for folder in SOURCES.iterdir()
        if folder.name not in ELSEWHERE
        for path in folder.rglob("*.cpp")
        for name in FUNCTION.findall(path.read_text())
    }
    assert len(simulated) > 400
    inner = {"aclsim_knows_type"}  # between two libraries of ours
    assert not {name: str(path) for name, path in simulated.items() if name not in named | inner}
