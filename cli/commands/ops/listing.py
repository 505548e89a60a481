"""Owns what `ops` lists: rows, everything about one or an operator, the atlas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mindtorch.ops import OPS

from ... import exits, render
from ...conformance.cases.inputs import samples
from ...conformance.run import engine
from ...conformance.run.subject import PREFIX
from ...judge import classes
from ...plurals import plural
from ...render import Block, Cell, Code, Content, Facts, Grid, Heading, Line
from ..check import text as check_text
from .atlas.entry import Entry
from .atlas.matrix import Matrix
from .options import OpsOptions

_UNREAD = 20  # files that are named; more are counted


def run(options: OpsOptions) -> int:
    """List what is asked for; the exit code."""
    results = _results(options) if options.results else None
    if options.results and results is None:
        return exits.NOT_JUDGED
    if options.site is not None:
        return _site(options.site, results)
    if results is not None and not (options.names or options.families):
        _show(options, [results.grid(results.failing()), Line(results.summary())])
        return exits.OK
    try:
        selection = _selection(OPS, options.names, options.families)
        subjects = [_entry_of(n) if n.startswith(PREFIX) else OPS[n] for n in selection]
    except engine.NothingSelectedError as error:
        raise click.UsageError(str(error)) from None
    if options.as_json:
        click.echo(json.dumps([_data(x, results) for x in subjects], indent=1))
        return exits.OK
    if options.names:
        install = _install()
        blocks = [block for x in subjects for block in _about(x, install, results)]
    else:
        blocks = list(table(subjects))
    _show(options, blocks)
    return exits.OK


def _show(options: OpsOptions, blocks: list[Block]) -> None:
    if options.as_md:
        click.echo(render.markdown(blocks), nl=False)
    else:
        render.show(blocks)


def _results(options: OpsOptions) -> Matrix | None:
    """What the folder of --results says; None where nothing could be read. Files that are left
    out are named on stderr."""
    from .atlas import results
    from .atlas.matrix import matrix

    folder = options.results or Path()
    read = results.read(folder)
    for one in read.unread[:_UNREAD]:
        click.echo(render.printable(f"left out: {one.source}: {one.why}"), err=True)
    if len(read.unread) > _UNREAD:
        click.echo(f"left out: {len(read.unread) - _UNREAD:,} more files", err=True)
    if not read.measured.results:
        click.echo(render.printable(f"{folder}: no result of probe, check or bench"), err=True)
        return None
    return matrix(read.measured, options.hosts)


def _site(folder: Path, results: Matrix | None) -> int:
    from .atlas.site import write

    try:
        folder.mkdir(parents=True, exist_ok=True)
        numbers = write(folder, results)
    except OSError as error:
        raise click.UsageError(f"--html {folder}: {error.strerror or error}") from None
    click.echo(f"{numbers['operators']} operators, {numbers['judged']} with a formula: "
               f"{folder / 'index.html'}")  # fmt: skip
    if results is not None:
        click.echo(f"{results.summary()}: {folder / 'measured.html'}")
    return exits.OK


def _entry_of(name: str) -> Entry:
    from .atlas.entry import find

    entry = find(name)
    if isinstance(entry, Entry):
        return entry
    near = f"; near: {', '.join(entry)}" if entry else ""
    raise engine.NothingSelectedError(f"{name}: no known CANN declares such an operator{near}")


def _about(subject: Any, install: Any, results: Matrix | None) -> Iterator[Block]:
    if not isinstance(subject, Entry):
        yield from about(subject, install)
        if results is not None:
            yield from results.blocks(*_related(subject))
        return
    from .atlas.about import about as about_operator

    yield Line(Cell(subject.name, "strong"))
    yield from about_operator(subject, results)


def _selection(table: Any, names: tuple[str, ...], families: tuple[str, ...]) -> list[str]:
    if not names:
        listed = [n for family in families for n in engine.members(family)]
        return sorted(set(listed)) if families else sorted(table)
    selection: list[str] = []
    for name in names:
        same = [n for n in table if name in (n, n.partition(".")[0].strip("_"))]
        selection += same or list(engine.find_ops((name,), (), False))
    return selection


def devices(op: Any) -> str:
    """Where an op runs: composites everywhere, rows where they name a kernel."""
    if op.body is not None:
        return "composite"
    kernels = {"cpu": op.kernels.cpu, "meta": op.infer, "npu": op.kernels.aclnn}
    kinds = [device for device, kernel in kernels.items() if kernel]
    if not op.kernels.aclnn and (op.lower is not None or op.is_view):
        kinds.append("npu")
    return " ".join(kinds)


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
        if isinstance(op, Entry):
            cells.append([op.name, op.family, op.name, "npu", Cell("-", "dim"), op.rule])
            continue
        need = classes.requirement(op.testing.tolerance, op.testing.rule)
        calls = ", ".join(dict.fromkeys(c.name for c in op.kernels.aclnn))
        cells.append([op.name, op.family, calls or Cell("-", "dim"), devices(op),
                      derivative(op), need.tier])  # fmt: skip
    yield Grid(("operator", "family", "ACLNN", "devices", "derivative", "rule"), cells)
    checked = sum(isinstance(op, Entry) or op.testing.samples is not None for op in rows)
    yield Line("")
    yield Line(f"{plural(len(rows), 'operator')}, {checked} that check and bench have inputs for")


def about(op: Any, install: Any) -> Iterator[Block]:
    """Everything about one op, with the signatures of the install at hand."""
    yield Heading(op.name)
    yield Code(op.text)
    forms = ["function"] + ["in place"] * op.writes.inplace + ["out="] * (op.body is None)
    yield Facts([
        ("family", op.family), ("devices", devices(op)), ("forms", ", ".join(forms)),
        ("derivative", derivative(op)), ("samples", str(len(samples(op.testing)))),
        ("dtypes", _claimed(op, install)),
    ])  # fmt: skip
    need = classes.requirement(op.testing.tolerance, op.testing.rule)
    yield from check_text.explanation(op.name, need)[1:]
    for call in op.kernels.aclnn:
        yield Line("")
        yield Line(Cell(f"calls {call.name}", "strong"))
        yield from _signature(call.name, install)


def _claimed(op: Any, install: Any) -> str:
    from ...conformance.cases.claims import claimed

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
    from aclnn_bindings import BindingError

    try:
        cann = aclnn_bindings.open()
        return cann.declarations, cann.install.root
    except (BindingError, OSError):
        return None


def _related(subject: Any) -> tuple[str, ...]:
    """An operator, and those that call it or that it calls."""
    if isinstance(subject, Entry):
        return (subject.name, *subject.rows)
    return (subject.name, *(call.name for call in subject.kernels.aclnn))


def _data(op: Any, results: Matrix | None = None) -> dict[str, Any]:
    measured = {} if results is None else {"measured": results.plain(*_related(op))}
    return {**_facts(op), **measured}


def _facts(op: Any) -> dict[str, Any]:
    if isinstance(op, Entry):
        return asdict(op)
    need = classes.requirement(op.testing.tolerance, op.testing.rule)
    return {
        "name": op.name, "schema": op.text, "family": op.family,
        "aclnn": [c.name for c in op.kernels.aclnn], "devices": devices(op).split(),
        "derivative": derivative(op), "inplace": op.writes.inplace,
        "samples": len(samples(op.testing)),
        "class": need.name, "rule": need.tier, "reason": need.reason, "source": need.source,
    }  # fmt: skip
