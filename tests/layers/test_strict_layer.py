"""The strict layer names planted misuse and races on an install that checks nothing itself."""

import re
import signal
from pathlib import Path

import compiled
import layered
import pytest

FAULTS, LEAKS = layered.planted()
RACES = (
    "read-after-write", "write-after-read", "write-after-write", "part-of-a-tensor",
    "strided-columns-that-meet", "event-recorded-too-early", "wait-after-the-launch",
    "copy-before-the-kernel-ends", "asynchronous-copies", "fill-beside-a-kernel", "two-threads",
)  # fmt: skip
NO_RACES = (
    "none: two readers", "none: halves", "none: strided columns", "none: polled",
    "none: through a third stream",
)  # fmt: skip


def strict(program: str, *arguments: str, options: tuple[str, ...] = ()) -> layered.Outcome:
    """With the layer's checks alone, as on an install that has none of its own."""
    mode = () if any(o.startswith("--strict") for o in options) else ("--strict",)
    return layered.run(*mode, *options, "--", program, *arguments, ACLSIM_STRICT="off")


def on_simulator(program: str, *arguments: str) -> layered.Outcome:
    """With the simulator's own checks, and the layer's for races."""
    return layered.run("--strict", "--", program, *arguments)


def found(outcome: layered.Outcome) -> list[str]:
    return re.findall(r"^ *\d+\. ([\w-]+) in ", outcome.err, re.MULTILINE)


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = (Path(__file__).parent / "programs" / "races.cpp").read_text()
    return layered.program(source, tmp_path_factory.mktemp("races"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("race", RACES)
def test_a_race_is_named_and_its_ordered_twin_is_not(race: str, races: str) -> None:
    outcome = strict(races, race)
    assert outcome.code == 1
    assert set(found(outcome)) == {"race"}, outcome.err
    assert "before: " in outcome.err
    clean = strict(races, race, "ordered")
    assert (clean.code, found(clean)) == (0, []), clean.err


def test_races_are_told_beside_what_the_simulator_finds(races: str) -> None:
    assert found(on_simulator(races, "read-after-write")) == ["race"]
    assert found(on_simulator(races, "read-after-write", "ordered")) == []
    faults = str(compiled.build("faults"))
    assert found(on_simulator(faults, "scalar-double-destroy")) == ["double-destroy"]


@pytest.mark.parametrize(
    "fault",
    ["tensor-use-after-destroy", "scalar-double-destroy", "executor-used-twice",
     "workspace-too-small", "freed-pointer", "double-free"],
)  # fmt: skip
def test_a_faulty_call_fails_when_asked(fault: str) -> None:
    outcome = strict(str(compiled.build("faults")), fault, options=("--strict=error",))
    assert (outcome.code, found(outcome)[0]) == (1, FAULTS[fault]), outcome.err
    assert "code " in outcome.out
    assert "code 0" not in outcome.out


def test_a_fault_ends_the_program_when_asked() -> None:
    program = str(compiled.build("faults"))
    outcome = strict(program, "double-free", options=("--strict=abort",))
    assert outcome.code == 128 + signal.SIGABRT
    assert found(outcome) == ["free-of-unknown-memory"]


def test_known_findings_fail_no_call(tmp_path: Path, races: str) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[allow]]\nfinding = "race"\ncall = "aclnn*"\nreason = "planted"\n')
    options = ("--strict=abort", "--allow", str(known))
    outcome = strict(races, "read-after-write", options=options)
    assert (outcome.code, found(outcome)) == (0, []), outcome.err
    assert "(1 allowed)" in outcome.err


@pytest.mark.parametrize("case", NO_RACES)
def test_what_shares_no_written_byte_is_no_race(case: str, races: str) -> None:
    outcome = strict(races, case)
    assert (outcome.code, found(outcome)) == (0, []), outcome.err


@pytest.mark.parametrize("fault", FAULTS)
def test_misuse_is_named(fault: str) -> None:
    outcome = strict(str(compiled.build("faults")), fault)
    assert found(outcome)[0] == FAULTS[fault], outcome.err
    assert "remedy: " in outcome.err
    assert "faults(" in outcome.err


@pytest.mark.parametrize("fault", LEAKS)
def test_leaks_are_named_with_their_origin(fault: str) -> None:
    outcome = strict(str(compiled.build("faults")), fault)
    assert f"leak in aclFinalize: {LEAKS[fault]}" in outcome.err
    assert "created: faults(" in outcome.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sample", layered.SAMPLES)
def test_a_clean_program_reports_nothing_and_runs_as_without(sample: str) -> None:
    alone = compiled.run(f"samples/{sample}")
    outcome = strict(str(compiled.build(f"samples/{sample}")))
    assert "strict: no misuse found" in outcome.err, outcome.err
    assert (outcome.code, outcome.out) == (alone.code, alone.out)


def test_known_findings_are_allowed_with_a_reason(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text(
        '[[allow]]\nfinding = "leak"\nobject = "aclrtEvent*"\nreason = "a client\'s"\n'
    )
    faults = str(compiled.build("faults"))
    outcome = strict(faults, "leak-event", options=("--allow", str(known)))
    assert outcome.code == 0
    assert "no misuse found (1 allowed)" in outcome.err
    other = strict(faults, "leak-tensor", options=("--allow", str(known)))
    assert other.code == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[allow]]\nfinding = "leak"\n', "no reason"),
        ('[[allow]]\nwhat = "leak"\nreason = "x"\n', "unknown key 'what'"),
        ("[[allow", "known.toml"),
    ],
)
def test_a_file_that_allows_without_reason_is_refused(
    text: str, problem: str, tmp_path: Path
) -> None:
    known = tmp_path / "known.toml"
    known.write_text(text)
    outcome = strict("/bin/true", options=("--allow", str(known)))
    assert outcome.code == 2
    assert problem in outcome.err
