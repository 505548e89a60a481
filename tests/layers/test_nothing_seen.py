"""Whoever asks for a layer and gets less learns so: a missing verdict is no pass."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import compiled
import layered
import pytest
from mindtorch_npu.commands.run import unjudged
from mindtorch_npu.commands.run.options import RunOptions

import aclnn_bindings
from aclnn_bindings.layers import sealed
from aclnn_bindings.layers.interposed import Interposed, LayersUnavailableError, interpose
from aclnn_bindings.layers.session import Ended
from aclnn_bindings.layers.status import StatusFile

INJECTED = ("--fault", "aclrtMalloc@1=207001")


def add() -> str:
    return str(compiled.build("samples/add"))


def layers_of(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Interposed:
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(cache))
    return interpose(aclnn_bindings.open(simulator=True).install)


def a_link(made: Interposed) -> Path:
    return next(p for p in (made.root / "lib64").iterdir() if p.is_symlink())


DAMAGE: dict[str, Callable[[Interposed], object]] = {
    "an empty table": lambda made: made.table.write_bytes(b""),
    "a table cut in half": lambda made: os.truncate(made.table, made.table.stat().st_size // 2),
    "a table with one other byte": lambda made: _flip(made.table),
    "a cut shim": lambda made: os.truncate(_shim(made), 8192),
    "a shim that is gone": lambda made: _shim(made).unlink(),
    "a cut core": lambda made: os.truncate(made.core, 4096),
    "a link that is gone": lambda made: a_link(made).unlink(),
    "a link that leads elsewhere": lambda made: _relink(a_link(made)),
    "a folder in place of the table": lambda made: (made.table.unlink(), made.table.mkdir()),
    "an empty seal": lambda made: (made.table.parent / "seal").write_bytes(b""),
    "no seal": lambda made: (made.table.parent / "seal").unlink(),
    "an empty root": lambda made: shutil.rmtree(made.root),
}


def _shim(made: Interposed) -> Path:
    return next(iter(made.table.parent.glob("shims/*/libascendcl.so")))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


def test_a_damaged_cache_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = layers_of(tmp_path, monkeypatch).table.parent
    for what, damage in DAMAGE.items():
        damage(layers_of(tmp_path, monkeypatch))
        assert not sealed.is_whole(folder), what
        assert layers_of(tmp_path, monkeypatch).table.parent == folder
        assert sealed.is_whole(folder), what
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("name", ["one:two", "one\ntwo", "one two", "$ORIGIN"])
def test_a_cache_of_any_name_serves(name: str, tmp_path: Path) -> None:
    place = {"MINDTORCH_CACHE_DIR": str(tmp_path / name), "TMPDIR": str(tmp_path)}
    outcome = layered.run(*INJECTED, "--", add(), **place)
    assert "207001" in outcome.out + outcome.err
    assert outcome.code not in (0, 5), outcome.err


def test_a_temporary_folder_of_any_name_serves(tmp_path: Path) -> None:
    place = tmp_path / "one:two\nthree"
    place.mkdir()
    outcome = layered.run("--verify", "--", add(), TMPDIR=str(place))
    assert outcome.code == 0, outcome.err
    assert not list(place.glob("mindtorch-run-*"))


def test_an_install_whose_name_the_loader_cannot_spell_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "one:two"
    shutil.copytree(compiled.install(), root, symlinks=True)
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(LayersUnavailableError, match="a colon"):
        interpose(aclnn_bindings.open(root).install)


def _can(*command: str) -> bool:
    try:
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")
OTHER_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.mark.skipif(not _can(*UNSHARE), reason="no PID namespaces here")
@pytest.mark.parametrize("layers", [("--verify",), ("--verify", "--strict")])
def test_a_program_in_its_own_pid_namespace_is_judged(layers: tuple[str, ...]) -> None:
    outcome = layered.run(*layers, "--", *UNSHARE, add())
    assert outcome.code == 0, outcome.err
    assert "verify: 1 launch right, 0 wrong, 0 not judged" in outcome.err


@pytest.mark.skipif(not _can(*OTHER_USER), reason="only the superuser may change users")
def test_a_program_that_changes_its_user_is_seen_or_is_said_to_be_unseen(tmp_path: Path) -> None:
    place = {"MINDTORCH_CACHE_DIR": str(tmp_path)}
    outcome = layered.run(*INJECTED, "--", *OTHER_USER, "true", **place)
    assert outcome.code == 5
    tmp_path.chmod(0o700)  # that user enters no folder of pytest's either
    bare = layered.run("--", *OTHER_USER, add())
    outcome = layered.run(*INJECTED, "--", *OTHER_USER, add(), **place)
    assert outcome.code == (5 if bare.code == 0 else bare.code), outcome.err


OPTIONS = ("strict", "verify", "faults", "record", "summarize", "data", "html", "perfetto")
SEEN = Ended(0)


@pytest.mark.parametrize(
    ("asked", "ended", "reason"),
    [
        ({}, Ended(0, loaded=False), None),
        *(({name: "x"}, Ended(0, loaded=False), "saw nothing") for name in OPTIONS),
        ({"strict": "report"}, SEEN, None),
        ({"strict": "report"}, Ended(0, unable="process 7: no table"), "process 7: no table"),
        ({"record": "x"}, Ended(0, failure="No space left"), "No space left"),
        ({"record": "x"}, Ended(0, lost=3), "3 records"),
        ({"faults": ("aclrtMalloc",)}, Ended(0, matches=(1,)), None),
        ({"faults": ("a", "b@2")}, Ended(0, matches=(1, 0)), "--fault b@2 matched no call"),
        ({"strict": "report"}, Ended(0, running=(7, 8)), "still run, and are no longer seen: 7, 8"),
    ],
)
def test_each_thing_that_was_not_done_is_a_reason(
    asked: dict[str, object], ended: Ended, reason: str | None
) -> None:
    options = RunOptions.of({"faults": (), "command": ("true",), **asked})
    reasons = unjudged.reasons(options, ended, None, {})
    assert len(reasons) == (reason is not None)
    assert reason is None or reason in reasons[0]


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (("--fault", "aclnnMul"), "--fault aclnnMul matched no call"),
        (("--fault", "aclnnAdd@99"), "--fault aclnnAdd@99 matched no call"),
        (("--fault", "sweep:aclnnMul"), "--fault sweep:aclnnMul matched no call"),
        (("--verify", "op=aclnnMul"), "found no launch to judge"),
        (("--verify", "--data-limit", "8"), "1 of 1 launches"),
    ],
)
def test_less_than_was_asked_is_5_unless_that_is_allowed(layer: tuple[str, ...], why: str) -> None:
    outcome = layered.run(*layer, "--", add())
    assert (outcome.code, why in outcome.err) == (5, True), outcome.err
    allowed = layered.run("--allow-unjudged", *layer, "--", add())
    assert (allowed.code, why in allowed.err) == (0, True), allowed.err


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"save": Path("x")}, "--save adds to --verify"),
        ({"allow": ("torch_npu",)}, "--allow adds to --strict"),
        ({"data_limit": 8}, "--data-limit adds to --data or --verify"),
        ({"data": ("all",)}, "--data adds to a recording"),
        ({"stacks": True, "strict": "report"}, "--stacks adds to a recording"),
        ({"faults": ("sweep", "aclnnAdd")}, "no other fault"),
        ({"faults": ("sweep:aclnn*@2",), "verify": "all"}, "no other fault"),
        ({"faults": ("sweep",), "strict": "report"}, "no other fault"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(asked: dict[str, object], why: str) -> None:
    options = RunOptions.of({"faults": (), "command": ("true",), **asked})
    with pytest.raises(click.UsageError, match=re.escape(why)):
        options.require_agreement()


def test_planted_faults_that_change_nothing_are_not_judged() -> None:
    idle = ("mul:zeros", "npu1/add:zeros", "add:long@1000")
    outcome = layered.run("--", add(), ACLSIM_FAULTS=",".join(idle))
    assert outcome.code == 5, outcome.err
    assert all(f"ACLSIM_FAULTS: '{fault}' changed no launch" in outcome.err for fault in idle)


def test_a_process_without_the_variable_of_the_layers_is_not_judged() -> None:
    outcome = layered.run("--verify", "--", "sh", "-c", f"{add()}; unset MINDTORCH_LAYERS; {add()}")
    assert outcome.code == 5
    assert "MINDTORCH_LAYERS was removed from the environment of process" in outcome.err


def test_processes_that_go_on_are_known(tmp_path: Path) -> None:
    path = tmp_path / "status"
    path.touch()
    status = StatusFile(path, 0)
    hold = "import mmap, sys; m = mmap.mmap(int(sys.argv[1]), 0); input(print())"
    file = os.open(path, os.O_RDWR)
    command = [sys.executable, "-c", hold, str(file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, pass_fds=[file], **pipes) as process:
        os.close(file)
        assert process.stdout is not None
        process.stdout.readline()
        assert status.running() == (process.pid,)
        process.communicate(b"\n")
    assert status.running() == ()
    status.close()


def test_what_is_wrong_comes_before_what_is_not_judged() -> None:
    words = ("--verify", "--fault", "aclnnMul", "--allow-unjudged", "--", add())
    outcome = layered.run(*words, ACLSIM_FAULTS="add:zeros")
    assert outcome.code == 1, outcome.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_a_cache_that_somebody_else_may_change_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    first = layers_of(folder, monkeypatch)
    assert first.root.is_relative_to(folder)
    os.chown(first.table, 65534, 65534)
    assert layers_of(folder, monkeypatch).table.stat().st_uid == 0
    for spoil in (lambda: folder.chmod(0o777), lambda: os.chown(folder, 65534, 65534)):
        folder.chmod(0o755)
        spoil()
        assert not layers_of(folder, monkeypatch).root.is_relative_to(folder)


def test_layers_are_closed_to_others_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0)
    try:
        made = layers_of(tmp_path / "a" / "cache", monkeypatch)
    finally:
        os.umask(before)
    places = [made.table, made.core, *made.root.parents[:4]]
    assert [p for p in places if p.stat().st_mode & 0o022] == []
