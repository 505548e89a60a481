"""Concludes from what a log names: an operator's documents, and whose code the stack ends in.

Serves where no text, code or id is known; refuses to contradict what CANN's own message says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..install.products import Support, product_of, support
from ..runtime.advice import Remedy
from .log import Reading

_PACKAGE = re.compile(r"(?:site|dist)-packages/([A-Za-z]\w*)|-workspace/(?:[\w-]+/)?([a-z]\w*)/")
_LIBRARIES = frozenset(("torch", "multiprocessing", "click", "asyncio", "uvloop", "ray"))
_NAMES = {
    "910b": "Atlas A2 (910B)", "A3": "Atlas A3", "910": "910A", "310p": "310P", "310b": "310B",
    "950": "950",
}  # fmt: skip


def conclusions(reading: Reading) -> Iterator[tuple[int, str, Remedy]]:
    """Rank, evidence and advice, in no order; ranks are those of `explanation`."""
    product = next(filter(None, map(product_of, reading.socs)), None)
    for op in reading.operators[:3]:
        if (document := support(op, product)) is not None:
            yield from _of_documents(reading, document, product)
    if package := _package(reading.frames):
        yield 2, f"the stack ends in {package}", _defect_of(package)


def _of_documents(
    reading: Reading, document: Support, product: str | None
) -> Iterator[tuple[int, str, Remedy]]:
    source = f"document of {document.op}"
    if document.on(product) is False and product:
        cause = f"documents do not list {document.op} for {_NAMES[product]}"
        chips = ", ".join(_NAMES[p] for p in document.products)
        fix = f"turn off what calls it on this chip, or use another operator (it is for {chips})"
        yield 1, f"{document.op} on {product}", Remedy(cause, fix, "", source)
    dtypes = {dtype for names in document.dtypes.values() for dtype in names}
    for dtype in (name.removeprefix("DT_") for name in reading.dtypes):
        if dtypes and dtype not in dtypes:
            cause = f"no tensor of {document.op} may be {dtype} on this chip"
            fix = f"cast to {', '.join(sorted(dtypes))}"
            yield 1, f"{document.op} {dtype}", Remedy(cause, fix, "", source)
    yield 2, source, Remedy(f"a limit of {document.op} is not kept", _limits(document), "", source)


def _limits(document: Support) -> str:
    """What each tensor may be: `self: FLOAT FLOAT16, ND, 2 dimensions`."""
    lines = []
    for name in dict.fromkeys((*document.formats, *document.ranks)):
        low, high = document.ranks.get(name, (0, 0))
        rank = f"{low}" if low == high else f"{low} to {high}"
        parts = (
            " ".join(document.dtypes.get(name, ())),
            " ".join(document.formats.get(name, ())),
            f"{rank} dimensions" if high else "",
        )
        lines.append(f"{name}: {', '.join(filter(None, parts))}")
    return "; ".join(lines[:6]) or "see its dtypes, shapes and products"


def _package(frames: tuple[str, ...]) -> str:
    """The package of the innermost frame, less those that only pass calls on."""
    for frame in reversed(frames):
        match = _PACKAGE.search(frame)
        name = match and (match[1] or match[2])
        if name and name not in _LIBRARIES:
            return str(name)
    return ""


def _defect_of(package: str) -> Remedy:
    return Remedy(
        f"{package} raised it: a defect of its release, or it does not go with what is beside it",
        f"search the issues of {package} for this text; use its newest patch release with the "
        "torch, torch_npu, CANN and transformers that it names; try without graphs and options",
        "pip list",
        "the stack",
    )
