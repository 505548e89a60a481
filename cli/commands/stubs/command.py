"""The command `stubs`: writes what type checkers and editors need to know of an install."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

import aclnn_bindings
from aclnn_bindings import Request, probe as look
from aclnn_bindings.diagnose.census import Status
from aclnn_bindings.interface import atomic_write

from ... import exits, render
from . import text

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
PACKAGE = "aclnn_bindings-stubs"
EPILOG = """\b
Examples:
  mindtorch-npu stubs
  mindtorch-npu stubs --home /usr/local/Ascend/ascend-toolkit/latest --out typings

Exit codes: 0 ok, 1 the install's declarations are unknown, 2 usage, 3 no install."""


@click.command(epilog=EPILOG)
@click.option("--home", type=FOLDER, help="The toolkit to describe; default: the one found.")
@click.option("--simulator", is_flag=True, help="Describe the bundled simulator.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="The folder to write to.  [default: beside the installed bindings]")  # fmt: skip
def stubs(home: Path | None, simulator: bool, out: Path | None) -> int:
    """Let mypy, pyright and editors check calls of cann.ops and cann.functions.

    Writes the partial stub package aclnn_bindings-stubs (PEP 561): the operators and functions
    that the install declares and exports, each with its parameters. Nothing is loaded or called.
    """
    if home is not None and simulator:
        raise click.UsageError("--home and --simulator exclude each other")
    report = look(Request(home, simulator, None, (), run=False))
    if report.install is None or report.declared is None or report.census is None:
        click.echo(f"error: {report.refusal or report.declared_from}", err=True)
        return exits.NOTHING if report.install is None else exits.PROBLEMS
    ops = [name for name, op in report.census.ops.items() if op.callable]
    functions = [
        name
        for name, function in report.census.functions.items()
        if function.status is Status.PRESENT
    ]
    install = report.install
    of = f"{install.kind} {install.version or 'of unknown version'} at {install.root}"
    target = _write(out or _beside(), text.render(report.declared, ops, functions, of))
    facts = [("written", str(target)), ("install", of)]
    facts += [("operators", str(len(ops))), ("functions", str(len(functions)))]
    if out is not None and os.path.realpath(out) not in {
        os.path.realpath(place or ".") for place in sys.path
    }:
        facts += [("to be found", f"PYTHONPATH={out} mypy …, or as an extra path of the editor")]
    render.show([render.Facts(facts)])
    return exits.OK


def _beside() -> Path:
    """The folder that the bindings are imported from, where checkers look for stubs too."""
    return Path(aclnn_bindings.__file__).parent.parent


def _write(folder: Path, content: str) -> Path:
    package = folder / PACKAGE
    target = package / "call" / "namespace.pyi"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # "partial": checkers take every other module from the bindings themselves (PEP 561).
        atomic_write.write(package / "py.typed", "partial\n")
        atomic_write.write(target, content)
    except OSError as error:
        raise click.UsageError(
            f"{error.filename}: {error.strerror}; name a folder that you may write with --out"
        ) from error
    return target
