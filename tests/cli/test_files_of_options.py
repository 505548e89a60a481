"""Every option that takes a file, given what is none: it ends soon, named, in bounded memory.

`python tests/cli/test_files_of_options.py [WORD...]` tries all things at all options (those
with the words) and prints each outcome; what does not hold starts with BAD.
"""

import contextlib
import importlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import fuzz_files
import pytest
from mindtorch_npu import foreign, main

from aclnn_bindings.interface import atomic_write

resource = pytest.importorskip("resource", reason="limits of memory are a matter of Unix")

# Options whose argument may name a file, though click takes any text.
WORDS = {"probe --diff", "bench --against", "run --allow", "exec --absent"}
# What stands before an option where the command alone is not enough, or would take long.
BEFORE = {
    "probe": ("--simulator", "--from", "{recording}"),
    "probe --home": (), "probe --headers": (), "probe --from": (), "probe --diff": ("--simulator",),
    "check": ("--from", "{recording}"), "check --from": (), "check --home": ("add",),
    "check --save": ("add", "--simulator", "--case", "none"),
    "check --known-issues": ("add", "--simulator", "--case", "none"),
    "check --resume": (), "check replay": (), "check list --from": (),
    "check list --home": ("add",),
    "check replay --home": ("{journal}",), "check explain --home": ("add",),
    "report": ("--from", "{journal}"), "report --from": (), "report --perfetto": ("{recording}",),
    "bench": ("--from", "{recording}"), "bench --home": ("add",), "bench --from": (),
    "ops": ("add",),
    "catalog make": ("--headers", "{folder}"), "catalog make --headers": (),
    "catalog make --home": (),
    "run": ("--simulator",), "run --home": (),
}  # fmt: skip
AFTER = {"run": ("--", "true"), "exec": ("--", "true"), "report --compare": ("{journal}",),
         "catalog make": ("--version", "9.9")}  # fmt: skip
# These run cases, or write a folder whole, before they come to their file.
SLOW = {
    "ops --html",
    "check --home",
    "check --save",
    "bench --home",
    "check contract --home",
    "check contract --save",
    "check contract --known-issues",
    "check soak --home",
    "check soak --save",
    "check soak --known-issues",
} | {
    f"{command} {option}"
    for command in ("check", "check contract", "check soak", "bench")
    for option in ("--journal", "--html", "--junit", "--md", "--json", "--plot", "--prometheus")
}
JOURNAL = '{"kind":"run","schema":"mindtorch-npu/check/1","options":{}}\n'


class Outcome(NamedTuple):
    code: int  # of the exit; below 0 a signal's; -9 where it had to be stopped
    text: str
    seconds: float

    def bad(self, limit: float) -> bool:
        wrong = self.code < 0 or self.code in (70, 99) or "Traceback" in self.text
        return wrong or self.seconds > limit


def options() -> Iterator[tuple[str, str]]:
    """(command, option) of every option or argument that names a file or folder."""

    def walk(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from walk(inner, f"{path} {name}".strip())
            return
        for name, mode in getattr(command, "modes", {}).items():
            yield from walk(mode, f"{path} {name}")
        for param in command.params:
            word = param.opts[0] if isinstance(param, click.Option) else ""
            if isinstance(param.type, click.Path) or f"{path} {word}" in WORDS:
                yield path, word

    yield from walk(main.group, "")


def words(command: str, option: str, thing: str, places: dict[str, str]) -> list[str]:
    """The command line that gives `thing` to an option."""
    key = f"{command} {option}"
    before, after = (
        [part.format(**places) for part in table.get(key, table.get(command, ()))]
        for table in (BEFORE, AFTER)
    )
    return [*command.split(), *before, *([option] if option else []), thing, *after]


def things(folder: Path) -> dict[str, str]:
    """What is no file of ours, by name."""
    (folder / "full").mkdir()
    (folder / "full" / "x").write_text("x")
    os.mkfifo(folder / "pipe")
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 1 << 30)
    (folder / "dangling").symlink_to(folder / "nothing")
    (folder / "loop").symlink_to(folder / "loop")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(folder / "socket"))
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0)
    local = {name: str(folder / name) for name in
             ("full", "pipe", "sparse", "dangling", "loop", "socket", "closed")}  # fmt: skip
    return {
        **local, "zeros": "/dev/zero", "noise": "/dev/urandom", "full disk": "/dev/full",
        "null": "/dev/null", "long": str(folder / ("n" * 300)), "longer": "/" + "d/" * 3000,
        "bytes": os.fsdecode(os.fsencode(folder) + b"/\xff\xfe"), "empty": "",
        "memory": "/proc/self/mem",
    }  # fmt: skip


def places(folder: Path) -> dict[str, str]:
    """Sound files that some options stand beside."""
    from aclnn_bindings.layers import recording_file

    (folder / "sound.jsonl").write_text(JOURNAL)
    (folder / "headers").mkdir()
    chunks = list(fuzz_files.recorded(folder))  # which records to a file of that name itself
    writer = recording_file.Writer(folder / "sound.rec")
    for chunk in chunks:
        writer.add(chunk)
    writer.close()
    return {"journal": str(folder / "sound.jsonl"), "recording": str(folder / "sound.rec"),
            "folder": str(folder / "headers")}  # fmt: skip


def tried(arguments: list[str], folder: Path, limit: float = 120) -> Outcome:
    """The command in a child with 700 MiB to take and files of at most 64 MiB."""
    out, began = folder / "out", time.monotonic()
    child = os.fork()
    if not child:
        _run(arguments, folder, out)
    while time.monotonic() - began < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.01)
    else:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        code = -9
    return Outcome(code, out.read_text("utf-8", "replace"), time.monotonic() - began)


def _run(arguments: list[str], folder: Path, out: Path) -> None:
    os.setpgid(0, 0)
    file = os.open(out, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    with contextlib.suppress(OSError), open("/proc/self/statm") as sizes:
        size = int(sizes.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (700 << 20), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    code = 99
    try:
        main.main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException as error:
        print(f"Traceback: {error!r}")
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def sweep(folder: Path, chosen: set[str] | None = None) -> Iterator[tuple[str, str, Outcome]]:
    """Every option with every thing, or the chosen ones: the option, the thing, what came of it."""
    modules = [f"commands.{name}.command" for name in main.COMMANDS]
    for module in (*modules, "commands.check.runner", "commands.ops.listing"):
        importlib.import_module(f"mindtorch_npu.{module}")
    beside, all_things = places(folder), things(folder)
    for command, option in options():
        key = f"{command} {option}".strip()
        if chosen is not None and key in SLOW:
            continue
        for name, thing in all_things.items():
            if chosen is None or name in chosen:
                line = words(command, option, thing, beside)
                yield key, name, tried(line, folder)


def test_options_that_take_files_are_known():
    known = {f"{command} {option}".strip() for command, option in options()}
    assert {"check --resume", "probe --diff", "run --record", "report", "stubs --out"} <= known
    assert {key for key in BEFORE if " --" in key} <= known, "an option that is gone"


def test_what_is_no_file_is_refused_by_name(tmp_path: Path):
    bad = [(key, name, outcome) for key, name, outcome in sweep(tmp_path, {"loop"})
           if outcome.bad(100)]  # fmt: skip
    assert bad == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_that_is_no_file_holds_an_option_up(tmp_path: Path):
    bad = [(key, name, outcome) for key, name, outcome in sweep(tmp_path) if outcome.bad(100)]
    assert bad == []


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(foreign, "_PATIENCE", 0.1)
    with pytest.raises(foreign.ForeignError, match="a pipe that nobody wrote to"):
        foreign.text_of(tmp_path / "pipe")


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(atomic_write, "_PATIENCE", 0.1)
    with pytest.raises(OSError, match="No such device or address"):
        atomic_write.write(tmp_path / "pipe", "x")


def attack(only: list[str]) -> int:
    """Print each outcome; how many are bad, at most 1."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for key, name, outcome in sweep(Path(folder)):
            if not all(word in f"{key} {name}" for word in only):
                continue
            verdict = "BAD" if outcome.bad(100) else "ok"
            bad |= verdict == "BAD"
            text = " / ".join(outcome.text.split("\n"))[:200]
            print(f"{verdict} {outcome.code} {outcome.seconds:.1f} s {key} | {name} | {text}",
                  flush=True)  # fmt: skip
    return bad


if __name__ == "__main__":
    sys.exit(attack(sys.argv[1:]))
