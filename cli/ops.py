"""The command `ops`: lists rows, or tells everything about one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from . import check_text, exits, op_names, render
from .conformance import classes, engine
from .conformance.recipe import samples
from .render import Block, Cell, Code, Content, Facts, Grid, Heading, Line

EPILOG = """\b
Examples:
  mindtorch-npu ops
  mindtorch-npu ops --family pointwise
  mindtorch-npu ops matmul

Exit codes: 0 ok, 2 usage."""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="NAME…", shell_complete=op_names.complete)
@click.option("--family", "families", multiple=True, metavar="F", help="pointwise, linalg, …")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--md", "as_md", is_flag=True, help="Write Markdown.")
def ops(names: tuple[str, ...], families: tuple[str, ...], as_json: bool, as_md: bool) -> int:
    """List operators: schema, ACLNN calls, devices, derivative, rule. With NAME: all about it."""
    from mindtorch.ops import OPS

    try:
        chosen = _chosen(OPS, names, families)
    except engine.NothingSelectedError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(json.dumps([_data(OPS[n]) for n in chosen], indent=1))
        return exits.OK
    if names:
        install = _install()
        blocks = [block for n in chosen for block in about(OPS[n], install)]
    else:
        blocks = list(table([OPS[n] for n in chosen]))
    if as_md:
        click.echo(render.markdown(blocks), nl=False)
    else:
        render.show(blocks)
    return exits.OK


def _chosen(table: Any, names: tuple[str, ...], families: tuple[str, ...]) -> list[str]:
    if not names:
        wanted = set(families)
        found = [n for n, op in table.items() if not wanted or engine.family_of(op) in wanted]
        if not found:
            known = sorted({engine.family_of(op) for op in table.values()})
            raise engine.NothingSelectedError(f"--family: one of {', '.join(known)}")
        return sorted(found)
    chosen: list[str] = []
    for name in names:
        same = [n for n in table if name in (n, n.partition(".")[0].strip("_"))]
        same = same or [n for n in table if any(c.name == name for c in table[n].aclnn)]
        chosen += same or list(engine.find_ops((name,), (), False))
    return chosen


def devices(op: Any) -> str:
    """Where an op runs: composites everywhere, rows where they name a kernel."""
    if op.body is not None:
        return "composite"
    found = [d for d, there in (("cpu", op.cpu), ("meta", op.infer), ("npu", op.aclnn)) if there]
    if not op.aclnn and (op.lower is not None or op.is_view):
        found.append("npu")
    return " ".join(found)


def derivative(op: Any) -> str:
    """`self, other`, "of its parts", or "none"."""
    if op.body is not None:
        return "of its parts"
    if not isinstance(op.grad, dict):
        return "none"
    names = [n for key in op.grad for n in (key if isinstance(key, tuple) else (key,))]
    return ", ".join(names) or "none"


def table(rows: list[Any]) -> Iterator[Block]:
    """One row an op."""
    cells: list[list[Content]] = []
    for op in rows:
        need = classes.requirement(op.name, op.tolerance)
        calls = ", ".join(dict.fromkeys(c.name for c in op.aclnn))
        cells.append([op.name, engine.family_of(op), calls or Cell("-", "dim"), devices(op),
                      derivative(op), need.tier])  # fmt: skip
    yield Grid(("operator", "family", "ACLNN", "devices", "derivative", "rule"), cells)
    checked = sum(op.samples is not None for op in rows)
    yield Line("")
    yield Line(f"{len(rows)} operators, {checked} with samples for check and bench")


def about(op: Any, install: Any) -> Iterator[Block]:
    """Everything about one op, with the signatures of the install at hand."""
    yield Heading(op.name)
    yield Code(op.text)
    forms = ["function"] + ["in place"] * op.inplace + ["out="] * (op.body is None)
    yield Facts([
        ("family", engine.family_of(op)), ("devices", devices(op)), ("forms", ", ".join(forms)),
        ("derivative", derivative(op)), ("samples", str(len(samples(op)))),
        ("dtypes", _claimed(op, install)),
    ])  # fmt: skip
    yield from check_text.explanation(op.name, op.tolerance)[1:]
    for call in op.aclnn:
        yield Line("")
        yield Line(Cell(f"calls {call.name}", "strong"))
        yield from _signature(call.name, install)


def _claimed(op: Any, install: Any) -> str:
    from .conformance.claims import claimed

    declared = install[0] if install else None
    return ", ".join(claimed(op, declared, "")) or "-"


def _signature(name: str, install: Any) -> Iterator[Block]:
    if install is None:
        yield Line(Cell("no install found: `mindtorch-npu probe` says why", "warn"))
        return
    declared, root = install
    signature = declared.ops.get(name)
    if signature is None:
        yield Line(Cell(f"not declared by {root}", "bad"))
        return
    params = [*signature.workspace.params]
    lines = ",\n    ".join(f"{p.type} {p.name}".replace("* ", "*") for p in params)
    yield Code(f"{signature.workspace.returns} {signature.workspace.name}(\n    {lines})")
    yield Line(Cell(f"  {signature.workspace.header}:{signature.workspace.line} of {root}", "dim"))
    rows: list[list[Content]] = [
        [p.name, p.direction.value, "optional" if p.optional else "", ", ".join(p.dtypes)]
        for p in signature.params
    ]
    yield Grid(("parameter", "direction", "", "dtypes in the header"), rows)


def _install() -> Any:
    """(declarations, root) of the install at hand, or None."""
    import aclnn_bindings
    from aclnn_bindings.errors import BindingError

    try:
        cann = aclnn_bindings.open()
        return cann.declarations, cann.install.root
    except (BindingError, OSError):
        return None


def _data(op: Any) -> dict[str, Any]:
    need = classes.requirement(op.name, op.tolerance)
    return {
        "name": op.name, "schema": op.text, "family": engine.family_of(op),
        "aclnn": [c.name for c in op.aclnn], "devices": devices(op).split(),
        "derivative": derivative(op), "inplace": op.inplace, "samples": len(samples(op)),
        "class": need.name, "rule": need.tier, "reason": need.reason, "source": need.source,
    }  # fmt: skip
