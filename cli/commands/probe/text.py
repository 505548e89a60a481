"""The report of `probe` as a document: summary first, causes with fixes last, where eyes rest."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from aclnn_bindings import Cause, Install, Report, Step, device_nodes, product_of
from aclnn_bindings.diagnose.frameworks import PACKAGES, installed

from ...plurals import plural
from ...render import Block, Cell, Facts, Grid, Heading, Item, Items, Line, Style
from . import operators as probe_ops
from .diff import InterfaceComparison
from .operators import MAX_LISTED, listed

_NAMES: Final = {
    "init": "initialise", "device": "open device 0", "stream": "create a stream",
    "event": "record an event", "malloc": "allocate memory", "copy": "copy there and back",
    "add": "aclnnAdd", "close": "release everything", "bindings": "aclnnAdd through these bindings",
}  # fmt: skip


def _steps(report: Report) -> tuple[Step, ...]:
    """The places that counted: only the first when it was given explicitly."""
    explicit = report.request.home is not None or report.request.simulator
    return report.steps[:1] if explicit else report.steps


def _looked(step: Step) -> str:
    if step.via == "bundled simulator" and step.verdict == "unset":
        return "not built"
    return step.detail or (f"{step.verdict}: {step.path}" if step.path else step.verdict)


def document(
    report: Report,
    causes: Sequence[Cause],
    queried: Sequence[str],
    comparison: InterfaceComparison | None,
) -> Iterator[Block]:
    """Every section that has something to say."""
    yield Line(Cell(title(report), "strong"))
    yield Line(_verdict(report, causes))
    yield Heading("Machine")
    yield Facts(list(machine()))
    if report.install is not None:
        yield Heading("Install")
        yield Facts(list(_facts(report, report.install)))
        yield from _custom(report.install)
    else:
        yield Heading("Looked at")
        yield Facts([(s.via, _looked(s)) for s in _steps(report)])
    if report.census is not None:
        yield from probe_ops.operators(report, report.census)
    for name in queried:
        yield from probe_ops.operator_detail(name, report)
    if comparison is not None:
        yield from comparison_of(comparison)
    yield from _smoke(report)
    if causes:
        yield Heading("What to do" if _errors(causes) else "Worth knowing")
        yield Items([_item(cause) for cause in causes])
    if report.smoke and not _errors(causes):
        yield Line(Cell("\nnext: `mindtorch-npu check` compares operators' results", "dim"))


def machine() -> Iterator[tuple[str, str]]:
    """This system, its Python and the packages that use an NPU, by their metadata."""
    libc = " ".join(platform.libc_ver()).strip()
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "system", f"{kernel}, {libc}" if libc else kernel
    yield "python", f"{platform.python_version()} at {sys.executable}"
    packages = {name: installed(name) for name in PACKAGES}
    present = [f"{name} {version}" for name, version in packages.items() if version]
    if present:
        yield "packages", ", ".join(present)
    if nodes := device_nodes():
        yield "device files", ", ".join(map(str, nodes[:8])) + (" …" if len(nodes) > 8 else "")


def title(report: Report) -> str:
    """One line that says which install this is about."""
    install = report.install
    if install is None:
        return "no CANN install to probe"
    if not install.libraries:
        return f"headers only at {install.root}"
    if install.kind == "simulator":
        return f"simulator of CANN {install.version} (runs on the CPU, no NPU is used)"
    return f"CANN {install.version or 'of unknown version'} at {install.root}"


def _errors(causes: Sequence[Cause]) -> int:
    return sum(cause.severity == "error" for cause in causes)


def _verdict(report: Report, causes: Sequence[Cause]) -> Cell:
    errors = _errors(causes)
    if errors:
        plural = "s" if errors > 1 else ""
        return Cell(f"{errors} problem{plural} found, with fixes at the end", "bad")
    if not report.request.run:
        return Cell("nothing wrong in the files (not run: --no-run)", "good")
    return Cell("it works: libraries load, and the smoke test passed", "good")


def _facts(report: Report, install: Install) -> Iterator[tuple[str, str | Cell]]:
    versions = install.versions
    yield "found via", install.found_via
    yield "root", str(install.root)
    source = Path(versions.source).name if "/" in versions.source else versions.source
    yield "version", f"{versions.toolkit or 'unknown'}" + (f"  ({source})" if source else "")
    if install.kind == "cann" and install.libraries:
        yield "driver", versions.driver or Cell("not found", "warn")
        yield "firmware", versions.firmware or Cell("not found", "warn")
        yield "opp", versions.opp or Cell("not found", "warn")
        yield "kernels", ", ".join(versions.kernels) or Cell("none found", "warn")
    yield "device", _device(report)
    yield "declared", _declared(report)
    if install.libraries:
        yield "libraries", _libraries(report, install)
    others = [s for s in _steps(report) if s.install not in (None, install)]
    if others:
        yield "also here", ", ".join(f"{s.path} ({s.via})" for s in others)


def _device(report: Report) -> str | Cell:
    soc, devices = report.fact("soc"), report.fact("devices")
    if devices is None:
        nodes = len(device_nodes())
        seen = f"; {nodes} in /dev" if nodes else ""
        return Cell(("not reached" if report.request.run else "not asked") + seen, "dim")
    product = product_of(soc or "")
    known = f" (product {product})" if product else ""
    total, free = report.fact("memory_total"), report.fact("memory_free")
    memory = f", {free / 2**30:.1f} of {total / 2**30:.1f} GiB free" if total else ""
    return f"{soc or 'unknown SoC'}{known}, {devices} device{'s' * (devices != 1)}{memory}"


def _declared(report: Report) -> str | Cell:
    declared = report.declared
    if declared is None:
        return Cell("nothing: no headers, and no catalog of this version", "bad")
    text = f"{plural(len(declared.functions), 'function')}, {plural(len(declared.ops), 'operator')}"
    if not report.declared_from.startswith("catalog "):
        text += f" in {len(declared.sources):,} header{'s' * (len(declared.sources) != 1)}"
    else:
        text += f" ({report.declared_from})"
    if declared.skipped:
        text += f"; {plural(len(declared.skipped), 'declaration')} skipped"
    return text


def _libraries(report: Report, install: Install) -> str | Cell:
    loaded = sum(step.state == "ok" for step in report.loads)
    count = len(report.files)
    text = f"{count}, layout {install.layout}"
    if not report.loads:
        return text
    return Cell(f"{text}; {loaded} of {count} load", "" if loaded == count else "bad")


def _custom(install: Install) -> Iterator[Block]:
    if not install.vendors:
        return
    yield Heading("Custom operator packages, first wins")
    for v in install.vendors:
        state = Cell(v.problem or v.shadowed or "used", "warn" if v.problem else "")
        yield Facts([
            (f"{v.priority} {v.name}", state), ("path", str(v.root)), ("found via", v.found_via),
            ("built for", v.version or "not said"), ("sha256", v.digest or "no library"),
        ])  # fmt: skip


def comparison_of(comparison: InterfaceComparison) -> Iterator[Block]:
    difference = comparison.difference
    yield Heading(f"Compared with {comparison.reference}")
    rows: list[tuple[str, str | Cell]] = [
        ("operators", f"{len(difference.added_ops)} more, {len(difference.removed_ops)} fewer"),
        ("functions", f"{len(difference.added)} more, {len(difference.removed)} fewer"),
        ("changed", f"{len(difference.changed)}, {len(difference.breaking)} break the ABI"),
    ]
    rows += [("more", listed(difference.added_ops))] if difference.added_ops else []
    rows += [("fewer", listed(difference.removed_ops))] if difference.removed_ops else []
    yield Facts(rows)
    changed = sorted(difference.changed, key=lambda c: c.effect)
    visible = changed[: max(len(difference.breaking), 2 * MAX_LISTED)]
    if visible:
        styles: dict[str, Style] = {"breaks ABI": "bad", "source only": "", "documents": ""}
        yield Items([
            Item(Cell(c.name, styles[c.effect]),
                 [(c.what if c.effect == "documents" else c.effect, c.detail)])
            for c in visible
        ])  # fmt: skip
    if len(changed) > len(visible):
        more = f"  and {len(changed) - len(visible)} more, ABI unchanged; --json has all"
        yield Line(Cell(more, "dim"))


def _smoke(report: Report) -> Iterator[Block]:
    if not report.smoke:
        return
    yield Heading("Smoke test on device 0")
    rows: list[tuple[str | Cell, ...]] = []
    for step in report.smoke:
        good = step.state == "ok"
        style: Style = "good" if good else "dim" if step.state == "not run" else "bad"
        time = f"{step.seconds * 1e3:.2f}" if step.seconds else ""
        rows.append((_NAMES.get(step.name, step.name), Cell(step.state, style), time))
    yield Grid(("step", "state", "ms"), rows, frozenset({2}))


def _item(cause: Cause) -> Item:
    styles: dict[str, Style] = {"error": "bad", "warning": "warn", "note": ""}
    labelled = (("fix", cause.fix), ("seen", cause.evidence))
    return Item(Cell(cause.what, styles[cause.severity]), [(k, v) for k, v in labelled if v])
