"""A program that layers cannot get in front of is said to be unseen, and passes no check."""

import subprocess
from pathlib import Path

import compiled
import layered
import pytest

STATIC = "is statically linked"
NOTHING = "it loaded no library of CANN"


@pytest.fixture(scope="module", params=["-static", "-static-pie"])
def static(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("static")
    (folder / "program.cpp").write_text("int main() { return 0; }\n")
    words = [compiled.compiler(), request.param, str(folder / "program.cpp"), "-o"]
    built = subprocess.run([*words, str(folder / "program")], capture_output=True, check=False)
    if built.returncode:
        pytest.skip(f"this compiler links nothing with {request.param}")
    return str(folder / "program")


@pytest.mark.parametrize("layer", [("--strict",), ("--verify",), ("--fault", "aclrtMalloc@1")])
def test_no_check_passes_what_it_did_not_see(layer: tuple[str, ...], static: str) -> None:
    outcome = layered.run(*layer, "--", static)
    assert outcome.code == 5
    assert STATIC in outcome.err
    assert "no misuse" not in outcome.err


def test_a_recording_of_nothing_says_so(tmp_path: Path) -> None:
    outcome = layered.record(tmp_path / "calls.rec", "true")
    assert outcome.code == 5
    assert NOTHING in outcome.err


def test_its_own_failure_stays_its_own(tmp_path: Path) -> None:
    outcome = layered.run("--strict", "--", "sh", "-c", "exit 7")
    assert outcome.code == 7
    assert NOTHING in outcome.err


def test_a_program_that_is_seen_gets_no_notice(tmp_path: Path) -> None:
    sample = compiled.build(f"samples/{layered.SAMPLES[0]}")
    outcome = layered.run("--strict", "--", str(sample))
    assert outcome.code == 0, outcome.err
    assert "saw nothing" not in outcome.err
