"""The command `sim`: runs programs on the bundled simulator; chooses what to show of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from aclnn_bindings import declarations, find_install
from aclnn_bindings.install import simulated

from .. import exits, render

STRICT = click.Choice(["off", "report", "error", "abort"])


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Bytes as the simulator reads them; refuses what it would ignore with a warning."""
    if value is None or re.fullmatch(r"[1-9][0-9]*[KMGT]?", value, re.IGNORECASE):
        return value
    raise click.BadParameter(f"{value!r} is no size; give bytes, or such as 512M or 4G")


@click.group()
def sim() -> None:
    """Run ACL and ACLNN programs on the bundled simulator, without an NPU."""


@sim.command()
def env() -> int:
    """Print the exports that make a shell use the simulator: eval "$(mindtorch-npu sim env)"."""
    for name, value in simulated.environment().items():
        click.echo(f"export {name}={shlex.quote(value)}")
    for name in simulated.CLEARED:
        click.echo(f"unset {name}")
    return exits.OK


@sim.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Exit code: that of the program; 1 when it ended well, but strict mode found misuse and "
    "--strict is error or abort, or --fail is given.",
)
@click.option("--strict", type=STRICT, default="report", show_default=True, help="Strict mode.")
@click.option("--fail", is_flag=True, help="Leave with 1 when strict mode found misuse.")
@click.option("--soc", help="Product to behave like, such as Ascend310P3 (see `sim info`).")
@click.option("--devices", type=click.IntRange(1, 64), help="Number of devices.  [default: 2]")
@click.option(
    "--memory", callback=_size, help="Bytes per device, with a unit of K, M or G if wanted."
)
@click.option(
    "--allow",
    multiple=True,
    metavar="FILE",
    help="File of accepted findings, or torch_npu for the one that comes along.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    strict: str,
    fail: bool,
    allow: tuple[str, ...],
    soc: str | None,
    devices: int | None,
    memory: str | None,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND on the simulator, and end with the findings of strict mode."""
    asked = {"STRICT": strict, "SOC": soc, "DEVICES": devices, "MEMORY": memory}
    asked["ALLOW"] = ":".join(allow) or None
    variables = {f"ACLSIM_{name}": str(value) for name, value in asked.items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="aclsim-") as folder:
        report = Path(folder) / "findings.jsonl"
        report.touch()
        code = _launch(command, variables | {"ACLSIM_REPORT": str(report)})
        findings = simulated.findings(report)
    if strict != "off":
        render.show(_summary(findings), render.console(sys.stderr))
    if code:
        return code if code > 0 else 128 - code
    return exits.PROBLEMS if findings and (fail or strict in ("error", "abort")) else exits.OK


def _launch(command: tuple[str, ...], variables: dict[str, str]) -> int:
    """The return code of the program, negative for the signal that ended it."""
    environment = {**os.environ, **simulated.environment(), **variables}
    for name in simulated.CLEARED:
        environment.pop(name, None)
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise click.UsageError(f"{command[0]}: {error.strerror}") from error


def _summary(findings: list[simulated.Finding]) -> list[render.Block]:
    """Findings that differ only in the handle's address are one item."""
    if not findings:
        return [render.Line(render.Cell("strict mode: no misuse found", "good"))]
    alike = Counter((f.what, f.call, f.created, f.at, f.remedy) for f in findings)
    items = []
    for (what, call, created, at, remedy), times in alike.items():
        first = next(
            f for f in findings if (f.what, f.call, f.created, f.at) == (what, call, created, at)
        )
        title = f"{what} in {call}: {first.object}" + (
            f" (and {times - 1} alike)" if times > 1 else ""
        )
        details = [("created", created), ("at", at), ("remedy", remedy)]
        items.append(render.Item(title, [(label, text) for label, text in details if text]))
    heading = render.Cell(f"strict mode: {len(findings)} findings", "bad")
    return [render.Line(heading), render.Items(items)]


@sim.command()
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
