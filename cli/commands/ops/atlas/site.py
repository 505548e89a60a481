"""Owns the atlas as a static site: an index with search in the browser, one page an operator.

Plain files: it opens from a folder as well as from a server, and loads nothing from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from aclnn_bindings.install.products import PRODUCTS
from aclnn_bindings.interface import catalog, whole

from .entry import NAMES, Entry, clients, counts, entries


def write(folder: Path) -> dict[str, int]:
    """Write the site into `folder`, made if it is not there; the counts that its index shows.

    OSError where the folder cannot be written.
    """
    listed = entries()
    (folder / "op").mkdir(parents=True, exist_ok=True)
    for name in ("atlas.css", "atlas.js"):
        whole.write(folder / name, (files(__package__) / name).read_text("utf-8"))
    whole.write(folder / "data.js", f"const ATLAS = {_data(listed)};\n")
    numbers = counts(listed)
    whole.write(folder / "index.html", _index(numbers))
    for entry in listed:
        whole.write(folder / "op" / f"{entry.name}.html", page(entry))
    return numbers


def _data(listed: Sequence[Entry]) -> str:
    """What the search reads: one short row an operator."""
    rows = [[e.name, list(e.versions), list(e.products), int(e.documented), e.family, e.state,
             int(e.simulator), sum(e.usage.values())] for e in listed]  # fmt: skip
    data = {"versions": list(catalog.versions()), "products": NAMES, "ops": rows}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _document(title: str, body: Iterable[str], up: str = "") -> str:
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f'<link rel="stylesheet" href="{up}atlas.css">'
    )
    return head + "<body>" + "\n".join(body) + "</body></html>\n"


def _index(numbers: dict[str, int]) -> str:
    versions = ", ".join(catalog.versions())
    text = (f"{numbers['operators']} operators of {versions}: {numbers['judged']} with a reference "
            f"formula, {numbers['simulated']} in the simulator, {numbers['called']} called by "
            "mindtorch")  # fmt: skip
    return _document("ACLNN operator atlas", [
        "<header><h1>ACLNN operator atlas</h1>", f"<p>{escape(text)}.</p></header>",
        '<main><label for="query">Search: names, a product, a version. '
        "<em>Can I use RmsNorm on 310P with 8.1?</em></label>",
        '<input id="query" type="search" autofocus autocomplete="off" '
        'placeholder="RmsNorm 310P 8.1">', '<p id="answer" role="status"></p>',
        '<table id="found"><thead><tr><th>operator</th><th>CANN</th><th>products</th>'
        "<th>family</th><th>formula</th><th>simulator</th><th>uses</th></tr></thead>"
        "<tbody></tbody></table>",
        "<footer><p>Signatures by the headers of each version; products, dtypes and formats by the "
        "newest operator documents (CANN 9.1), for older versions too.</p></footer></main>",
        '<script src="data.js"></script><script src="atlas.js"></script>',
    ])  # fmt: skip


def page(e: Entry) -> str:
    """One operator's page."""
    body = [
        '<nav><a href="../index.html">ACLNN operator atlas</a></nav>',
        f"<main><h1>{escape(e.name)}</h1>", _facts(e), "<h2>Signature</h2>",
        *_signatures(e), *_types(e), *_formula(e), *_uses(e), "</main>",
    ]  # fmt: skip
    return _document(e.name, body, "../")


def _facts(e: Entry) -> str:
    products = ", ".join(NAMES[p] for p in e.products) if e.documented else "not documented"
    rows = [
        ("declared by", ", ".join(e.versions)), ("products", products or "none listed"),
        ("formula", e.state), ("family", e.family or "-"), ("tolerance", e.rule or "-"),
        ("because", e.reason or "-"),
        ("simulator", "implements it" if e.simulator else "lacks it"),
        ("mindtorch", ", ".join(e.rows) or "calls it nowhere"),
        ("mutation", "not mutation-tested" if e.mutants is None else
         f"{e.mutants[0]} of {e.mutants[1]} mutants killed by the cases of these rows"),
    ]  # fmt: skip
    cells = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows)
    return f"<dl>{cells}</dl>"


def _signatures(e: Entry) -> Iterable[str]:
    for n, (version, text) in enumerate(e.signatures):
        word = "since" if n == 0 else "changed in"
        yield f"<h3>{word} {escape(version)}</h3><pre>{escape(text)}</pre>"


def _types(e: Entry) -> Iterable[str]:
    if not e.dtypes:
        return
    text = [p for p in PRODUCTS if p in e.products]
    yield "<h2>Element types and formats</h2><table><thead><tr><th>parameter</th>"
    yield (
        "".join(f"<th>{escape(NAMES[p])}</th>" for p in text)
        + "<th>formats</th></tr></thead><tbody>"
    )
    for param, by in e.dtypes.items():
        cells = "".join(f"<td>{escape(' '.join(by.get(p, ())))}</td>" for p in text)
        yield f"<tr><th>{escape(param)}</th>{cells}<td>{escape(e.formats.get(param, ''))}</td></tr>"
    yield "</tbody></table>"


def _formula(e: Entry) -> Iterable[str]:
    yield "<h2>Reference</h2>"
    if e.source:
        yield f"<p>Source: {escape(e.source)}.</p>"
    if e.formula:
        yield f"<pre>{escape(e.formula)}</pre>"
    elif not e.source:
        yield "<p>No row states its formula yet: <code>check</code> tests its contract.</p>"


def _uses(e: Entry) -> Iterable[str]:
    if not e.usage:
        return
    yield "<h2>Who calls it</h2><table><thead><tr><th>client</th><th>uses</th><th>counted</th>"
    yield "</tr></thead><tbody>"
    message = clients()
    for client, count in sorted(e.usage.items(), key=lambda x: -x[1]):
        yield (f"<tr><th>{escape(client)}</th><td class=n>{count}</td>"
               f"<td>{escape(message.get(client, ''))}</td></tr>")  # fmt: skip
    yield "</tbody></table>"
