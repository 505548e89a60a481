"""Owns what is told of one ACLNN operator, on a terminal and as a page of the atlas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ....conformance.operators.source_files import places
from ....render import Block, Cell, Code, Content, Facts, Grid, Heading
from .entry import NAMES, Entry, clients
from .matrix import Matrix


def about(e: Entry, results: Matrix | None = None) -> Iterator[Block]:
    """Everything about one operator, with what was measured where results are given."""
    products = ", ".join(NAMES[p] for p in e.products) if e.documented else "not documented"
    yield Facts([
        ("declared by", ", ".join(e.versions)), ("products", products or "none listed"),
        ("family", e.family or "-"), ("formula", e.state), ("source", e.source or "-"),
        ("required", e.rule or "-"), ("reason", e.reason or "-"),
        ("simulator", "implements it" if e.simulator else "does not have it"),
        ("mindtorch", ", ".join(e.rows) or "does not call it"),
        ("mutation", "not mutation-tested" if e.mutants is None else
         f"{e.mutants[0]} of {e.mutants[1]} mutants killed by the cases of these rows"),
        *_places(e.name),
    ])  # fmt: skip
    if results is not None:
        yield from results.blocks(e.name, *e.rows)
    for n, (version, text) in enumerate(e.signatures):
        yield Heading(f"Signature, {'since' if n == 0 else 'changed in'} {version}")
        yield Code(text)
    if e.dtypes:
        yield Heading("Dtypes and formats")
        yield _dtypes(e)
    if e.formula:
        yield Heading("Reference")
        yield Code(e.formula)
    if e.usage:
        words = clients()
        yield Heading("Who calls it")
        yield Grid(("client", "uses", "counted"), [
            [client, str(count), words.get(client, "")]
            for client, count in sorted(e.usage.items(), key=lambda x: -x[1])
        ], frozenset((1,)))  # fmt: skip


def _dtypes(e: Entry) -> Grid:
    rows: list[list[Content]] = [
        [Cell(param, "strong"), *(" ".join(by.get(p, ())) for p in e.products),
         e.formats.get(param, "")]
        for param, by in e.dtypes.items()
    ]  # fmt: skip
    return Grid(("parameter", *(NAMES[p] for p in e.products), "formats"), rows)


def _places(name: str) -> Iterator[tuple[str, str]]:
    """The files of an operator, in a source checkout."""
    where = places(name)
    if where is not None:
        for what, path in asdict(where).items():
            yield what.replace("_", " "), path or "-"
