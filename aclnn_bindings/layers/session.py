"""Runs a program with layers on an install: prepares, launches, collects; renders nothing."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..install.describe import Install, arch
from ..install.environment import visible_command
from ..interface import catalog
from ..interface.dtypes import canonical, enum_values
from . import parent, recording_file, scratch, table
from .interposed import Interposed, leading
from .recording_file import Chunk, Writer
from .spool import Collector, Spool
from .status import StatusFile

VERSION = 1
_PREFIX = "mindtorch-layers-"
Launcher = Callable[[Sequence[str], Mapping[str, str]], int]


@dataclass(frozen=True, slots=True)
class LayerRequest:
    """Which layers: `recording` is the file that calls go to, or None; `settings` are lines of
    `native/settings.h`, by name."""

    recording: Path | None = None
    settings: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and what its layers were unable to do.

    `code` is negative for a signal; `lost` records found no room; `failure` says why the recording
    stopped early; `unable` what a process could not do; `loaded` whether one loaded the layers;
    `matches` how many calls each fault changed, in the order of the settings; `running` are
    processes that loaded the layers and go on.
    """

    code: int
    lost: int = 0
    failure: str = ""
    loaded: bool = True
    unable: str = ""
    matches: tuple[int, ...] = ()
    running: tuple[int, ...] = ()


def run(
    interposed: Interposed,
    command: Sequence[str],
    settings: LayerRequest,
    environ: Mapping[str, str],
    watch: Callable[[Chunk], None] | None = None,
    launch: Launcher = parent.run,
) -> Ended:
    """Run `command` with the layers `settings`; OSError when it cannot be started.

    `launch` starts the program and waits for its return code; by default it shares this process's
    input and output.

    `watch` sees each chunk of rows after it was written.
    """
    with ExitStack() as stack:
        stack.enter_context(parent.signals_held())
        shared = stack.enter_context(_shared(settings))
        lines = [("table", str(interposed.table)), ("status", str(shared.status.path))]
        lines += [("internal", folder) for folder in interposed.internal()]
        lines += settings.settings
        if shared.spool is not None:
            lines.append(("spool", str(shared.spool.path)))
        settings_file(shared.settings, lines)
        variables = {**environ, **interposed.environment(environ)}
        variables["MINDTORCH_LAYERS"] = str(shared.settings)
        if settings.recording is None or shared.spool is None:
            ended = Ended(launch(command, variables))
        else:
            writer = stack.enter_context(Writer(settings.recording))
            write_head(writer, interposed, command)
            ended = _collect(shared.spool, writer, watch, lambda: launch(command, variables))
        status = shared.status
        return replace(ended, loaded=status.started > 0, unable=status.failure,
                       matches=status.matches, running=status.running())  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shared:
    """Files that the program's processes open."""

    settings: Path
    status: StatusFile
    spool: Spool | None


@contextmanager
def _shared(target: LayerRequest) -> Iterator[_Shared]:
    """The files, in the first place that has room for them."""
    problem: OSError | None = None
    for place in scratch.places():
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch.folder(_PREFIX, place))
                rules = sum(name == "fault" for name, _ in target.settings)
                status = StatusFile(scratch.create(folder, "status"), rules)
                stack.callback(status.close)
                spool = None
                if target.recording is not None:
                    spool = Spool(scratch.create(folder, "spool"))
                    stack.callback(spool.close)
                settings = scratch.create(folder, "settings")
                settings.write_bytes(bytes(4096))  # that there is room for it shows here
            except OSError as error:
                problem = error
                continue
            yield _Shared(settings, status, spool)
            return
    assert problem is not None
    raise problem


def settings_file(path: Path, lines: Sequence[tuple[str, str]]) -> None:
    """Write lines as `native/settings.h` reads them."""
    escaped = ((name, value.replace("\\", "\\\\").replace("\n", "\\n")) for name, value in lines)
    path.write_bytes(os.fsencode("".join(f"{name} {value}\n" for name, value in escaped)))


def alone(install: Install, command: Sequence[str], environ: Mapping[str, str]) -> Ended:
    """Run `command` on the install itself; OSError when it cannot be started."""
    return Ended(parent.run(command, {**environ, **leading(install, environ)}))


def _collect(
    spool: Spool,
    writer: Writer,
    watch: Callable[[Chunk], None] | None,
    program: Callable[[], int],
) -> Ended:
    collector = Collector(spool, writer, watch)
    try:
        code = program()
    finally:
        collector.finish()
    failure = collector.failure
    try:
        if failure is None:
            end = {"code": code, "lost": spool.lost, "ended": _now()}
            writer.add_json(recording_file.END, end)
            if not writer.is_there:
                failure = OSError(f"{writer.path} was removed or replaced while it was written")
    except OSError as error:
        failure = error
    return Ended(code, spool.lost, str(failure or ""))


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
            "command": visible_command(command),
            "folder": os.getcwd(),
            "host": socket.gethostname(),
            "machine": arch(),
            "install": {"root": str(install.root), "version": install.version,
                        "kind": install.kind,
                        "packages": {str(v.library): v.digest
                                     for v in install.vendors if v.library}},
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


def _function(row: table.InterposedFunction, interposed: Interposed) -> list[Any]:
    if row.signature is None or not row.known:
        return [row.name, [], True]
    parameters = [
        [p.name or f"argument{i}", table.code_of(row.name, p), p.type]
        for i, p in enumerate(row.signature.params)
    ]
    return [row.name, parameters, table.returns_word(row, interposed.declared)]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
