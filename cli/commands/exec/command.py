"""The command `exec`: becomes a program whose `import torch` finds mindtorch; changes no more."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from ... import choices, exits

EPILOG = """\b
Examples:
  mindtorch-npu exec -- python train.py
  mindtorch-npu exec --npu -- accelerate launch train.py
  mindtorch-npu exec --absent - -- pytest tests/

The program and all that it starts import mindtorch as torch 2.13.0. In Python itself
`import mindtorch.as_torch` does the same for one process.

Exit codes: that of the program; 2 when it cannot be started."""

SITE = "_compat/torch_shim/site"


@click.command(
    "exec",
    context_settings={"allow_interspersed_args": False},
    epilog=EPILOG,
)
@click.option("--npu", is_flag=True, help="Let programs that look for torch_npu find it.")
@click.option(
    "--absent",
    metavar="FILE",
    help="Append the names of torch that were asked for and are absent to FILE; - is stderr.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(npu: bool, absent: str | None, command: tuple[str, ...]) -> int:
    """Run COMMAND with mindtorch standing in for torch."""
    environ = environment(dict(os.environ), npu, absent)
    sys.stdout.flush(), sys.stderr.flush()
    try:
        os.execvpe(command[0], command, environ)  # signals and exit codes are the program's own
    except (OSError, ValueError) as error:  # a name of nothing is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        click.echo(f"error: {choices.program_reason(command[0], reason)}", err=True)
        return exits.USAGE


def environment(environ: dict[str, str], npu: bool, absent: str | None) -> dict[str, str]:
    """The variables of a program whose `import torch` finds mindtorch."""
    spec = find_spec("mindtorch")
    assert spec is not None, "mindtorch is installed beside this command"
    assert spec.origin is not None
    home = Path(spec.origin).resolve().parent
    folders = [str(home / SITE)]
    if "site-packages" not in home.parts:
        folders.append(str(home.parent))  # a source tree, which other Pythons do not know
    if before := environ.get("PYTHONPATH"):
        folders.append(before)
    environ["PYTHONPATH"] = os.pathsep.join(folders)
    if npu:
        environ["MINDTORCH_TORCH_NPU"] = "1"
    if absent is not None:
        environ["MINDTORCH_ABSENT"] = "-" if absent == "-" else os.path.abspath(absent)
    return environ
