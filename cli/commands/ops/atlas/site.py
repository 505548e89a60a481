"""Owns the atlas as a static site: an index with search in the browser, one page an operator.

Plain files: it opens from a folder as well as from a server, and loads nothing from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from aclnn_bindings.interface import atomic_write, catalog

from .... import pages
from .about import about
from .entry import NAMES, Entry, counts, entries
from .matrix import Matrix


def write(folder: Path, results: Matrix | None = None) -> dict[str, int]:
    """Write the site into `folder`, made if it is not there; the counts that its index shows.

    With results, a page `measured.html` and a block on each operator's page tell them.

    OSError where the folder cannot be written.
    """
    listed = entries()
    (folder / "op").mkdir(parents=True, exist_ok=True)
    for name in ("page.css", "atlas.js"):
        atomic_write.write(folder / name, pages.page(name))
    atomic_write.write(folder / "data.js", f"const ATLAS = {_data(listed)};\n")
    numbers = counts(listed)
    text = (f"{numbers['operators']} operators of {', '.join(catalog.versions())}: "
            f"{numbers['judged']} with a reference formula, {numbers['simulated']} in the "
            f"simulator, {numbers['called']} called by mindtorch")  # fmt: skip
    atomic_write.write(folder / "index.html",
                pages.page("atlas.html", title="ACLNN operator atlas", text=text,
                           measured=results is not None))  # fmt: skip
    if results is not None:
        _measured(folder, results, listed)
    for entry in listed:
        atomic_write.write(folder / "op" / f"{entry.name}.html", page(entry, results))
    return numbers


def _data(listed: Sequence[Entry]) -> str:
    """What the search reads: one short row an operator; dtypes as bits, by product."""
    dtypes = sorted({d for e in listed for by in e.dtypes.values() for ds in by.values()
                     for d in ds})  # fmt: skip
    rows = [[e.name, list(e.versions), list(e.products), int(e.documented), e.family, e.state,
             int(e.simulator), sum(e.usage.values()), " ".join(e.rows), _bits(e, dtypes)]
            for e in listed]  # fmt: skip
    data = {"versions": list(catalog.versions()), "products": NAMES, "dtypes": dtypes, "ops": rows}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _bits(e: Entry, dtypes: Sequence[str]) -> list[int]:
    """Per product of the entry: the dtypes that some parameter takes, bit i for the i-th."""
    each = [{d for by in e.dtypes.values() for d in by.get(p, ())} for p in e.products]
    return [sum(1 << dtypes.index(d) for d in names) for names in each]


def _measured(folder: Path, results: Matrix, listed: Sequence[Entry]) -> None:
    """The page of everything that was measured; a torch operator leads to an operator it calls."""
    linked = {row: e.name for e in reversed(listed) for row in e.rows} | {
        e.name: e.name for e in listed
    }
    atomic_write.write(folder / "measured.js", pages.page("measured.js"))
    data = pages.embedded(results.data(linked))
    atomic_write.write(folder / "measured_data.js", f"const MEASURED = {data};\n")
    text = pages.page("measured.html", title="Measured: ACLNN operator atlas",
                      text=results.summary(), blocks=results.without_script(),
                      releases=results.releases)  # fmt: skip
    atomic_write.write(folder / "measured.html", text)


def page(e: Entry, results: Matrix | None = None) -> str:
    """One operator's page."""
    lead = pages.markup('<p><a href="../index.html">ACLNN operator atlas</a></p>')
    return pages.page(
        "operator.html", title=e.name, lead=lead, blocks=list(about(e, results)), rest=""
    )
