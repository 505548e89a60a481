"""Programs of the usual ACLNN shape build with one command, print what they should, end clean."""

import subprocess
from pathlib import Path

import pytest
from compiled import PROGRAMS, compiler, install, run
from mindtorch_npu.main import main

SAMPLES = sorted(p.stem for p in (PROGRAMS / "samples").glob("*.cpp"))


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_prints_its_expected_line_and_is_clean_in_strict_mode(name: str) -> None:
    first_line = (PROGRAMS / "samples" / f"{name}.cpp").read_text().splitlines()[0]
    outcome = run(f"samples/{name}", ACLSIM_STRICT="error")
    assert outcome.code == 0, outcome.out + outcome.err
    assert outcome.out.split() == first_line.removeprefix("// prints:").split()
    assert outcome.findings == []


def test_the_documented_command_builds_a_program_that_runs_on_the_simulator(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root, binary = install(), tmp_path / "program"
    line = (
        f"g++ {PROGRAMS}/samples/chain.cpp -I{root}/include -L{root}/lib64 "
        f"-lascendcl -lnnopbase -lopapi -o {binary}"
    )
    compiler()
    subprocess.run(line.split(), check=True)
    with pytest.raises(SystemExit) as ended:
        main(["run", "--simulator", "--strict", "error", "--", str(binary)])
    output, errors = capfd.readouterr()
    assert (ended.value.code, output.strip()) == (0, "53")
    assert "no misuse found" in errors


def test_there_are_at_least_twelve_samples() -> None:
    assert len(SAMPLES) >= 12
