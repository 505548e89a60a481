"""Compares what the documents of two releases list for an operator: products and dtypes.

Refuses releases whose lists come from other kinds of text (comments of headers, documents): their
differences say nothing of CANN.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..interface import catalog
from ..interface.compare import Change
from .products import support


def changes(before: str, after: str) -> list[Change]:
    """How the documents of release `after` differ from those of `before`, by operator.

    Empty where one catalog's lists are of another kind of text than the other's.
    """
    if _lists(before) != _lists(after):
        return []
    return [*_products(before, after), *_dtypes(before, after)]


def products(version: str, op: str) -> tuple[str, ...]:
    """The products that the document of release `version` lists for `op`."""
    listed = catalog.read(version).get("products", {}).get(op)
    if listed is not None:
        return tuple(listed.split())
    newest = support(op)
    return newest.products if newest is not None else ()


def _lists(version: str) -> str:
    """What the lists of a catalog were read in: documents, comments of headers."""
    return str(catalog.read(version).get("lists", "documents"))


def _products(before: str, after: str) -> Iterator[Change]:
    for op in sorted(set(catalog.load(before).ops) & set(catalog.load(after).ops)):
        old, new = products(before, op), products(after, op)
        if detail := _detail(old, new):
            yield Change(op, "products", "documents", detail)


def _dtypes(before: str, after: str) -> Iterator[Change]:
    old, new = catalog.load(before).ops, catalog.load(after).ops
    for op in sorted(old.keys() & new.keys()):
        lists = {p.name: p.dtypes for p in old[op].params}
        details = [
            f"{p.name}: {detail}"
            for p in new[op].params
            if p.dtypes and lists.get(p.name)
            if (detail := _detail(lists[p.name], p.dtypes))
        ]
        if details:
            yield Change(op, "dtypes", "documents", "; ".join(details))


def _detail(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """What a list gained and lost: `+A3 -950`."""
    gained = [f"+{name}" for name in new if name not in old]
    lost = [f"-{name}" for name in old if name not in new]
    return " ".join([*gained, *lost])
