"""Runs a program with layers on an install: prepares, launches, collects; renders nothing."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..install.describe import Install, arch
from ..interface import catalog
from ..interface.dtypes import canonical, enum_values
from . import recording_file, table
from .interposed import Interposed, leading
from .recording_file import Chunk, Writer
from .spool import Collector, Spool

VERSION = 1
_READ = "settings.read"  # beside the settings, by whoever read them (native/settings.h)
Launcher = Callable[[Sequence[str], Mapping[str, str]], int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which layers: `recording` is the file that calls go to, or None; `settings` are lines of
    `native/settings.h`, by name."""

    recording: Path | None = None
    settings: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its return code, negative for a signal; records lost for want of room;
    why the recording stopped early, if it did; whether a process of it loaded the layers."""

    code: int
    lost: int = 0
    failure: str = ""
    loaded: bool = True


def run(
    interposed: Interposed,
    command: Sequence[str],
    wanted: Wanted,
    environ: Mapping[str, str],
    watch: Callable[[Chunk], None] | None = None,
    launch: Launcher | None = None,
) -> Ended:
    """Run `command` with the layers `wanted`; OSError when it cannot be started.

    `launch` starts the program and waits for its return code; by default it shares this process's
    input and output.

    `watch` sees each chunk of rows after it was written.
    """
    launch = launch or _wait
    with tempfile.TemporaryDirectory(prefix="mindtorch-layers-") as scratch:
        folder = Path(scratch)
        lines = [f"table {interposed.table}", *(f"internal {f}" for f in interposed.internal())]
        lines += [f"{name} {value}" for name, value in wanted.settings]
        variables = {**environ, **interposed.environment(environ)}
        variables["MINDTORCH_LAYERS"] = str(folder / "settings")
        if wanted.recording is None:
            (folder / "settings").write_bytes(os.fsencode("\n".join(lines) + "\n"))
            code = launch(command, variables)
            return Ended(code, loaded=(folder / _READ).exists())
        spool = Spool()
        lines.append(f"spool {spool.path}")
        (folder / "settings").write_bytes(os.fsencode("\n".join(lines) + "\n"))
        writer = Writer(wanted.recording)
        write_head(writer, interposed, command)
        ended = _collect(spool, writer, watch, lambda: launch(command, variables))
        return replace(ended, loaded=(folder / _READ).exists())


def alone(install: Install, command: Sequence[str], environ: Mapping[str, str]) -> Ended:
    """Run `command` on the install itself; OSError when it cannot be started."""
    return Ended(_wait(command, {**environ, **leading(install, environ)}))


def _collect(
    spool: Spool,
    writer: Writer,
    watch: Callable[[Chunk], None] | None,
    program: Callable[[], int],
) -> Ended:
    collector = Collector(spool, writer, watch)
    code = -1
    try:
        code = program()
    finally:
        collector.finish()
        lost = spool.lost
        failure = "" if collector.failure is None else str(collector.failure)
        if not failure:
            end = {"code": code, "lost": lost, "ended": _now()}
            writer.add_json(recording_file.END, end)
        writer.close()
        spool.close()
    return Ended(code, lost, failure)


def _wait(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """The program's return code; an interrupt from the terminal is the program's to handle."""
    process = subprocess.Popen(list(command), env=dict(variables))
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


def write_head(writer: Writer, interposed: Interposed, command: Sequence[str]) -> None:
    """The first chunks: who records what, and the functions that rows name by number."""
    install = interposed.real
    writer.add_json(
        recording_file.HEADER,
        {
            "version": VERSION,
            "started": _now(),
            "monotonic_ns": time.monotonic_ns(),
            "unix_ns": time.time_ns(),
            "command": list(command),
            "folder": os.getcwd(),
            "host": socket.gethostname(),
            "machine": arch(),
            "install": {"root": str(install.root), "version": install.version,
                        "kind": install.kind},
            "dtypes": dtype_names(interposed),
        },
    )  # fmt: skip
    rows = [_function(row, interposed) for row in interposed.functions]
    writer.add_json(recording_file.FUNCTIONS, rows)


def dtype_names(interposed: Interposed) -> dict[str, str]:
    """Numbers of aclDataType → canonical names."""
    declared = interposed.declared or catalog.load(catalog.versions()[-1])
    values = enum_values(declared, "aclDataType", "ACL_")
    return {str(value): canonical(name) for name, value in values.items()}


def _function(row: table.Function, interposed: Interposed) -> list[Any]:
    if row.signature is None or not row.known:
        return [row.name, [], True]
    parameters = [
        [p.name or f"argument{i}", table.code_of(row.name, p), p.type]
        for i, p in enumerate(row.signature.params)
    ]
    return [row.name, parameters, table.returns_word(row, interposed.declared)]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def end_as_program(code: int) -> int:
    """The exit status that a shell would show for a return code."""
    return code if code >= 0 else 128 - code
