"""The command `sim`: leads a shell to the bundled simulator; lists what it has."""

from __future__ import annotations

import os
import shlex

import click

from aclnn_bindings import declarations, find_install
from aclnn_bindings.install import search, simulated

from ... import choices, exits, render


@click.group()
def sim() -> None:
    """The bundled simulator: `run --simulator` runs programs on it, without an NPU."""


@sim.command()
@choices.kernel
@choices.release
def env() -> int:
    """Print the exports that make a shell use the simulator: eval "$(mindtorch-npu sim env)"."""
    for name, value in simulated.environment().items():
        click.echo(f"export {name}={shlex.quote(value)}")
    for name in (simulated.KERNELS, "ACLSIM_PYTHON", search.RELEASE):
        if name in os.environ:
            click.echo(f"export {name}={shlex.quote(os.environ[name])}")
    for name in simulated.CLEARED:
        click.echo(f"unset {name}")
    return exits.OK


@sim.command()
@choices.release
def info() -> int:
    """List the operators that the simulator has, and the products that it can behave like."""
    install = find_install(simulator=True)
    names = sorted(op.name.removeprefix("aclnn") for op in declarations(install).ops.values())
    default, *others = simulated.products()
    facts = [("root", str(install.root)), ("interface", f"CANN {install.version}")]
    render.show(
        [
            render.Facts(facts),
            render.Heading("Products (--soc, ACLSIM_SOC)"),
            render.Line(" ".join([f"{default} (default)", *others])),
            render.Heading(f"Operators ({len(names)})"),
            render.Line(" ".join(names)),
        ]
    )
    return exits.OK
