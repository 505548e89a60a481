"""Owns the command group and the one error boundary; refuses to know what any command does.

Exit codes: 0 ok, 1 problems found, 2 usage, 3 nothing to work on, 5 not judged, 70 a defect of
this program, 130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import stat
import sys
import time
from typing import Any, Final

import click

from . import exits

# Command → the first sentence of its help; its module is `commands.<name>.command`.
COMMANDS: Final = {
    "probe": "Tell which CANN is here, what it declares and exports, whether it works, and what "
    "to fix.",
    "sim": "The bundled simulator: `run --simulator` runs programs on it, without an NPU.",
    "run": "Run COMMAND with layers between it and CANN; they see every call, and change none.",
    "exec": "Run COMMAND with mindtorch standing in for torch.",
    "check": "Check that operators compute what they should: a verdict per case, a rule per "
    "operator.",
    "preflight": "Find faulty chips and links within seconds, before a job starts.",
    "report": "Show a recorded run of `check` again, write it in other forms, or compare two runs.",
    "bench": "Time operators: device, host and end to end, with spread, bandwidth and a "
    "comparison.",
    "grade": "Grade the operator OP, which a program wrote: is it there, correct, fast and honest.",
    "ops": "List operators: schema, ACLNN calls, devices, derivative, rule.",
    "explain": "Explain a status code, a message id, an operator's failure or a log: causes, what "
    "to do.",
    "catalog": "Know CANN versions: what each declares, as data that every command reads.",
    "new": "Write a starting reference and a pytest file for the operator OP, from its header.",
    "stubs": "Let mypy, pyright and editors check calls of cann.ops and cann.functions.",
    "completion": "Print the script that completes commands, options and operators in a shell.",
}


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for, and none for the group's help."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".commands.{cmd_name}.command", __package__)
        command = getattr(module, "execute" if cmd_name == "exec" else cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl([
                (name, click.Command(name, help=text).get_short_help_str(limit))
                for name, text in COMMANDS.items()
            ])  # fmt: skip


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        import aclnn_bindings

        click.echo(f"mindtorch-npu, version {aclnn_bindings.__version__}")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
              help="Show the version and exit.")  # fmt: skip
def group(debug: bool) -> None:
    """Find out what an Ascend machine can do, and check that its results are correct.

    Exit codes: 0 ok, 1 problems found, 2 usage, 3 nothing to work on, 5 not judged (a verdict was
    asked for and is missing), 70 a defect of this program.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code; the only place that catches everything."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows `?`
    _outlive_the_reader()
    try:
        code = _run(arguments)
        if sys.stdout is not None:  # it was closed
            sys.stdout.flush()  # here, where a full disk can still be told
        sys.exit(code)
    except BrokenPipeError:
        _send_nowhere()
        sys.exit(exits.OK)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(exits.INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        code = _explain(error)
        if isinstance(error, OSError):
            try:
                if sys.stdout is not None:
                    sys.stdout.flush()
            except OSError:
                _send_nowhere()
        sys.exit(code)


class _Pipe(io.FileIO):
    """Standard output whose reader may leave: what is written then is dropped, and the command
    goes on to its verdict, so that the exit code does not depend on `| head`."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _send_nowhere()
            return super().write(data)


def _outlive_the_reader() -> None:
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    buffer: Any = out.buffer
    if type(buffer) not in (io.BufferedWriter, io.FileIO) or out.fileno() != 1:
        return
    if stat.S_ISFIFO(os.fstat(1).st_mode):
        raw = _Pipe(1, "w", closefd=False)
        buffer = raw if isinstance(buffer, io.FileIO) else io.BufferedWriter(raw)  # `python -u`
        sys.stdout = io.TextIOWrapper(
            buffer, out.encoding, "replace", write_through=out.write_through
        )


def _send_nowhere() -> None:
    """What stdout still holds, as writing it at the end would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(arguments: list[str]) -> int:
    stdout = sys.stdout
    try:
        result: Any = group.main(
            arguments, prog_name="mindtorch-npu", standalone_mode=False, obj=_started()
        )
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        click.echo(_printable(text.getvalue()), err=True, nl=False)
        return error.exit_code
    except SystemExit:
        if sys.stdout is not stdout:  # click replaces it, and leaves with 1, where nobody reads on
            raise BrokenPipeError from None
        raise
    return result if isinstance(result, int) else exits.OK


def _started() -> float:
    """When this process began, by `time.monotonic` (proc_pid_stat(5), field 22); now where the
    system does not tell."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = 0.0
    return time.monotonic() - max(age, 0.0)


def _printable(message: str) -> str:
    """A message without what a terminal obeys: names of files and words of journals are in it."""
    from .render import printable

    return printable(message)


def _remedy(error: Exception) -> str:
    """What to do about an error that this system's limits made; "" for others."""
    if isinstance(error, MemoryError):
        return _LIMITS[errno.ENOMEM]
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    if "No usable temporary directory" in str(error):  # tempfile's words, with ENOENT
        return _LIMITS[errno.ENOSPC]
    return _LIMITS.get(error.errno, "")


_LIMITS: Final = {
    errno.ENOMEM: "raise the limit on memory: `ulimit -v`, a container's --memory",
    errno.EAGAIN: "raise the limit on processes: `ulimit -u`, a container's --pids-limit",
    errno.EMFILE: "raise the limit on open files: `ulimit -n 65536`",
    errno.ENFILE: "this system has too many open files: see /proc/sys/fs/file-max",
    errno.ENOSPC: "free some space, or let TMPDIR name a folder that can be written (`ulimit -f`)",
    errno.EDQUOT: "the quota of this user is used up: free some space",
    errno.EFBIG: "raise the limit on the size of files: `ulimit -f`",
    errno.EROFS: "that file system is mounted read-only: name a file elsewhere",
    errno.EACCES: "this user may not: name a file elsewhere, or have the rights given (`ls -l`)",
    errno.EPERM: "this system does not allow it: see the file's attributes (`lsattr`)",
    errno.EIO: "the disk or the network file system fails: see `dmesg`",
    errno.ESTALE: "mount the network file system again",
    errno.ELOOP: "links lead in a circle: mend them",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EISDIR: "that is a folder: name a file",
    errno.ENXIO: "a socket, a pipe that nobody reads, or a device that is not there: name a file",
    errno.ENOTDIR: "a part of that path is no folder",
}


_OF_INPUT: Final = (
    ("mindtorch_npu.spec.errors", "DeclarationError"),
    ("mindtorch_npu.conformance.record.journal", "JournalError"),
    ("aclnn_bindings.layers.recording_file", "RecordingError"),
)


def _is_of_input(error: Exception) -> bool:
    """Whether a file that was named is not what it should be: nothing was found in it."""
    modules = ((sys.modules.get(module), name) for module, name in _OF_INPUT)
    return any(module and isinstance(error, getattr(module, name)) for module, name in modules)


def _explain(error: Exception) -> int:
    """Say what went wrong, without a traceback; errors made on purpose are problems found."""
    from aclnn_bindings import BindingError

    if _is_of_input(error) or isinstance(error, BindingError):
        click.echo(_printable(f"error: {error}"), err=True)
        return exits.USAGE if _is_of_input(error) else exits.PROBLEMS
    if remedy := _remedy(error):
        click.echo(_printable(f"error: {str(error) or 'no memory is left'}: {remedy}"), err=True)
        return exits.NOTHING
    click.echo(_printable(f"internal error: {type(error).__name__}: {error}"), err=True)
    click.echo("run it again with --debug to see where, and please report it", err=True)
    return exits.DEFECT
