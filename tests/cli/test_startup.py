"""Commands start quickly: help and diagnosis import no tensor library, and few modules at all."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from mindtorch_npu import main

from aclnn_bindings.install.library import bundled_simulator

ROOT = Path(main.__file__).resolve().parent.parent
HEAVY = ("mindtorch", "numpy", "scipy", "ml_dtypes")
JOURNAL = (
    '{"kind": "run", "schema": "mindtorch-npu/check/1", "started": "2026-01-01T00:00:00", '
    '"environment": {"device": "cpu"}, "options": {"what": "add", "level": "quick", "seed": 0}, '
    '"cases": 1}\n'
    '{"kind": "result", "case": "add/functional", "op": "add", "form": "functional", '
    '"verdict": "PASS", "seed": 0}\n'
    '{"kind": "end", "seconds": 1.0, "interrupted": false}\n'
)


def imported(*arguments: str, heavy: tuple[str, ...] = HEAVY) -> tuple[int, list[str]]:
    """How many modules a command imports, the standard library included, and which heavy ones."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c",
         "import sys; sys.path.insert(0, sys.argv.pop(1)); import conftest\n"
         "from mindtorch_npu.main import main; main(sys.argv[1:])",
         str(ROOT / "tests"), *arguments],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    names = [line.rpartition("|")[2].strip() for line in lines[1:]]
    # conftest alone imports pytest.
    own = names[names.index("conftest") + 1 :]
    return len(own), sorted({n.partition(".")[0] for n in own} & set(heavy))


def test_the_groups_help_imports_no_command() -> None:
    count, heavy = imported("--help")
    assert heavy == []
    assert count <= 110


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_of_a_command_imports_no_tensor_library(name: str) -> None:
    count, heavy = imported(name, "--help", heavy=("mindtorch",))
    assert heavy == []
    assert count <= 400


def test_what_the_groups_help_says_of_a_command_is_its_first_sentence() -> None:
    context = click.Context(main.group)
    for name, text in main.COMMANDS.items():
        command = main.group.get_command(context, name)
        assert command is not None
        assert command.help is not None
        first = " ".join(command.help.partition("\n\n")[0].split())
        assert first.startswith(text), name


@pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")
def test_a_diagnosis_of_files_imports_no_tensor_library() -> None:
    count, heavy = imported("probe", "--simulator", "--no-run")
    assert heavy == []
    assert count <= 300


@pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")
def test_a_recording_is_made_without_a_tensor_library(tmp_path: Path) -> None:
    words = ("run", "--simulator", "--allow-unjudged", "--strict", "--summary", "--record")
    count, heavy = imported(*words, str(tmp_path / "calls.rec"), "--", "true", heavy=("mindtorch",))
    assert heavy == []
    assert count <= 450


def test_a_report_imports_no_tensor_library(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    journal.write_text(JOURNAL)
    count, heavy = imported("report", str(journal))
    assert heavy == []
    assert count <= 300


@pytest.mark.parametrize("arguments", [("catalog", "list"), ("sim", "info")])
def test_lists_of_interfaces_import_no_tensor_library(arguments: tuple[str, ...]) -> None:
    if arguments[0] == "sim" and bundled_simulator() is None:
        pytest.skip("simulator is not built")
    assert imported(*arguments)[1] == []
