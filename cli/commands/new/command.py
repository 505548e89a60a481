"""The command `new`: a starting reference and a pytest file for one operator, from its header."""

from __future__ import annotations

from pathlib import Path

import click

from ... import exits, op_names, render
from ...spec.errors import undeclared
from . import text

EPILOG = """\b
Examples:
  mindtorch-npu new aclnnSwiGluCustom
  mindtorch-npu new aclnnAdd --simulator --out my_operators

Exit codes: 0 ok, 2 usage, 3 no install."""


@click.command(epilog=EPILOG)
@click.argument("operator", metavar="OP", shell_complete=op_names.complete)
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path(),
              metavar="DIR", show_default="the working folder", help="Where to write.")  # fmt: skip
@click.option("--name", default="my_ops", show_default=True, help="Name of the Python file.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def new(
    operator: str, home: Path | None, simulator: bool, out: Path, name: str, force: bool
) -> int:
    """Write a starting reference and a pytest file for the operator OP, from its header.

    The files run as they are. Domains are guesses; what to fill in is marked.
    """
    from aclnn_bindings.errors import BindingError

    from ...conformance.run import engine
    from ...conformance.run.process import Setup

    if not name.isidentifier():
        raise click.UsageError(f"--name {name}: expected a Python name")
    try:
        declared = engine.declarations(Setup(home=str(home) if home else None, simulator=simulator))
    except BindingError as error:
        click.echo(f"error: {error}", err=True)
        return exits.NOTHING
    signature = declared.ops.get(operator)
    if signature is None:
        raise click.UsageError(undeclared(operator, declared.ops))
    file, test = out / f"{name}.py", out / f"test_{name}.py"
    _write({file: text.reference(signature), test: text.tests(signature, file.name)}, force)
    on = " --simulator" if simulator else f" --home {home}" if home else ""
    render.show([render.Facts([
        ("reference", f"{file}: lines marked {text.MARK!r} are yours"), ("pytest file", str(test)),
        ("run it", f"mindtorch-npu check {operator} --golden {file}{on}"),
    ])])  # fmt: skip
    return exits.OK


def _write(files: dict[Path, str], force: bool) -> None:
    from aclnn_bindings.interface import atomic_write

    for path in files:
        if path.exists() and not force:
            raise click.UsageError(f"{path} exists: name another with --name, or give --force")
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(path, content)
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from error
