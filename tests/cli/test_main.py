"""The command group: one error boundary, exit codes, a table of commands."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest
from mindtorch_npu import choices, exits, main

from aclnn_bindings.errors import BindingError

ROOT = Path(main.__file__).resolve().parent.parent


def leave(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def probe() -> None:
        raise error

    monkeypatch.setattr("mindtorch_npu.commands.probe.command.probe", probe)


def test_an_error_made_on_purpose_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(BindingError("install at /x: it has no headers"), monkeypatch)
    assert leave(["probe"]) == exits.PROBLEMS
    assert capsys.readouterr().err == "error: install at /x: it has no headers\n"


def test_a_defect_is_told_apart_and_points_to_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(ZeroDivisionError("division by zero"), monkeypatch)
    assert leave(["probe"]) == exits.DEFECT
    assert "--debug" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "no memory is left: raise the limit on memory"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "'/x': that file system is mounted"),
        (BlockingIOError(errno.EAGAIN, "no process"), "--pids-limit"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), "TMPDIR"),
    ],
)
def test_what_this_systems_limits_made_is_no_defect(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    fail_with(error, monkeypatch)
    assert leave(["probe"]) == exits.NOTHING
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(FileNotFoundError(2, "No such file", "/x"), monkeypatch)
    assert leave(["probe"]) == exits.DEFECT


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError("division by zero"), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        main.main(["--debug", "probe"])


def test_an_interrupt_leaves_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert leave(["probe"]) == exits.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(["nothing"]) == exits.USAGE
    assert "No such command" in capsys.readouterr().err


def test_every_command_of_the_table_exists() -> None:
    context = click.Context(main.group)
    for name in main.group.list_commands(context):
        command = main.group.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_an_early_interrupt_ends_the_command_as_it_ends_any_program() -> None:
    words = [sys.executable, "-m", "mindtorch_npu", "check", "list", "add"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    for delay in (0.03, 0.06, 0.1, 0.2):
        child = subprocess.Popen(words, **pipes)
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        started = "mindtorch_npu" in errors and "import_site" not in errors  # Python's own start
        assert not started, errors
        assert errors or child.returncode in (-signal.SIGINT, exits.INTERRUPTED)


def test_a_terminal_without_a_character_gets_a_question_mark() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import conftest\n"
        "from mindtorch_npu.main import main; main(['probe', '--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "tests")],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"NAME?" in done.stdout


def _command(line: str) -> subprocess.CompletedProcess[str]:
    """`line`, in which `$M` is the command, as a shell with `pipefail` runs it."""
    command = f"{sys.executable} -m mindtorch_npu"
    script = f"set -o pipefail; {line}"
    environ = {**os.environ, "M": command}
    return subprocess.run(
        ["bash", "-c", script], env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("line", ["$M ops", "$M probe --simulator --no-run"])
def test_a_full_disk_is_told_and_a_reader_that_leaves_is_no_failure(line: str) -> None:
    full = _command(f"{line} > /dev/full")
    assert (full.returncode, full.stderr.count("\n")) == (exits.NOTHING, 1), full.stderr
    assert full.stderr.startswith("error: [Errno 28]")
    for reader in ("head -1", "(exec 0<&-; sleep 3)"):
        left = _command(f"{line} | {reader}")
        assert (left.returncode, left.stderr) == (exits.OK, "")
    closed = _command(f"{line} >&-")
    assert (closed.returncode, closed.stderr) == (exits.OK, "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_verdict_survives_a_reader_that_leaves(unbuffered: str) -> None:
    planted = f"PYTHONUNBUFFERED={unbuffered} ACLSIM_FAULTS=relu:zeros"
    few = "--alone --form functional --dtype float32 --layout contiguous"
    left = _command(f"{planted} $M check relu {few} --jobs 1 | head -1")
    assert left.returncode == exits.PROBLEMS


def test_a_misspelt_mode_of_check_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(["check", "soka"]) == exits.USAGE
    assert "soka: no such mode or operator; did you mean soak?" in capsys.readouterr().err


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(["chek", "add"]) == exits.USAGE
    assert "No such command 'chek'. Did you mean 'check'?" in capsys.readouterr().err
    assert leave(["xyzzy"]) == exits.USAGE
    assert "Did you mean" not in capsys.readouterr().err


def _parameters(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    modes = getattr(command, "modes", {}) or getattr(command, "commands", {})
    for mode in modes.values():
        yield from _parameters(mode)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_option_of_words_names_the_nearest_to_a_mistaken_one(name: str) -> None:
    command = main.group.get_command(click.Context(main.group), name)
    assert command is not None
    kinds = {type(p.type) for p in _parameters(command) if isinstance(p.type, click.Choice)}
    plain = kinds - {choices.Word}
    assert not plain
    assert choices.one_of("fp32", ["bfloat16", "float32"]).startswith("did you mean float32? ")


@pytest.mark.parametrize("words", ["run --falt x -- true", "exec --nup true"])
def test_a_misspelt_option_is_not_the_program_to_start(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave(words.split()) == exits.USAGE
    assert "No such option" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_this_program(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave(["completion", shell]) == exits.OK
    script = capsys.readouterr().out
    assert f"_MINDTORCH_NPU_COMPLETE={shell}_complete" in script


def test_a_tree_that_is_not_installed_has_an_unknown_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert leave(["--version"]) == exits.OK
    assert capsys.readouterr().out == "mindtorch-npu, version 0+unknown\n"


@pytest.mark.parametrize("command", ["check add", "bench add", "preflight", "grade aclnnAdd"])
@pytest.mark.parametrize("device", ["gpu:0", "cuda", "npu:x", "npu:0,", "meta", ""])
def test_a_device_that_is_none_is_refused_before_work(command, device, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([*command.split(), "--device", device])
    assert ended.value.code == exits.USAGE
    assert "a list npu:0,2-3, all, or cpu" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", [["run", "--simulator"], ["exec"]])
def test_a_script_without_its_interpreter_is_suggested(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text("")
    code = 0
    try:
        code = main.main([*command, "program.py"]) or 0
    except SystemExit as ended:
        code = ended.code
    assert code == exits.USAGE
    assert "did you mean python program.py?" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "words",
    [["check", "contract", "aclnnAddd"], ["new", "aclnnAddd"], ["bench", "aclnnAddd"],
     ["check", "aclnnAddd"], ["explain", "aclnnAddd"]],
)  # fmt: skip
def test_an_operator_that_no_install_declares_has_its_nearest(words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    output = capsys.readouterr()
    assert ended.value.code in (exits.USAGE, exits.NOTHING)
    assert "aclnnAdd," in output.out + output.err
